package replay_test

import (
	"fmt"
	"log"

	"glmbatch/replay"
)

// Which steps of a job are captured.
func ExampleParseSelectors() {
	selectors, err := replay.ParseSelectors("decode:every=500,slowest=2")
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range selectors {
		fmt.Println(s)
	}
	w, err := replay.ParseWhatIf("drop=comm")
	fmt.Println(w, err)
	// Output:
	// decode:every=500
	// slowest=2
	// drop=comm <nil>
}
