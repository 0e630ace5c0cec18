package guide_test

import (
	"context"
	"fmt"
	"log"

	"glmbatch/datasets/demo"
	"glmbatch/pipeline/guide"
	"glmbatch/pipeline/tokenizer"
)

// The tokens that may begin a response that is yes or no.
func Example() {
	tok, err := tokenizer.Load(demo.Files()["tokenizer.json"])
	if err != nil {
		log.Fatal(err)
	}
	guides, err := guide.New(context.Background(), tok, guide.Options{Ends: []int32{2027}})
	if err != nil {
		log.Fatal(err)
	}
	defer guides.Close()
	spec, err := guide.NewChoice([]string{"yes", "no"})
	if err != nil {
		log.Fatal(err)
	}
	m := guides.Start(spec, false)
	defer m.Close()
	words := make([]uint64, 64) // bit t%64 of word t/64: token t
	if _, err := m.Mask(0, words); err != nil {
		log.Fatal(err)
	}
	for t := range int32(len(words) * 64) {
		if words[t/64]>>(t%64)&1 == 1 {
			fmt.Printf("%q ", tok.Decode([]int32{t}, false))
		}
	}
	// Output:
	// "n" "y" "no"
}
