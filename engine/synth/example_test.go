package synth_test

import (
	"encoding/json"
	"fmt"
	"log"

	"glmbatch/engine/synth"
	"glmbatch/units"
)

// A model of random weights, in memory.
func Example() {
	members, config, err := (&synth.Options{Config: "glm-5", Layers: 4, Hidden: 1536}).Resolve()
	if err != nil {
		log.Fatal(err)
	}
	text, err := json.Marshal(members)
	if err != nil {
		log.Fatal(err)
	}
	s := synth.New(&config, 1, "nvfp4")
	fmt.Println(units.Count(s.Params), "parameters in", units.Bytes(s.Bytes))
	tiny, tinyConfig, err := (&synth.Options{Config: "tiny"}).Resolve()
	if err != nil {
		log.Fatal(err)
	}
	if text, err = json.Marshal(tiny); err != nil {
		log.Fatal(err)
	}
	ck, err := synth.Checkpoint("tiny", text, &tinyConfig, 1)
	if err != nil {
		log.Fatal(err)
	}
	l, err := ck.Linear("model.layers.3.mlp.experts.0.up_proj")
	fmt.Println(l.Format, l.Rows, l.Cols, err)
	// Output:
	// 3.42 B parameters in 3.36 GB
	// fp4 128 256 <nil>
}
