package tokenizer_test

import (
	"fmt"
	"log"

	"glmbatch/datasets/demo"
	"glmbatch/pipeline/tokenizer"
)

// Text becomes ids, and ids text as they come.
func Example() {
	t, err := tokenizer.Load(demo.Files()["tokenizer.json"])
	if err != nil {
		log.Fatal(err)
	}
	ids := t.Encode(nil, "Batch inference")
	d := t.NewDecoder(true)
	text := ""
	for _, id := range ids {
		text += d.Next(id)
	}
	fmt.Println(text+d.Flush() == "Batch inference", t.Decode(ids, true))
	// Output:
	// true Batch inference
}
