package checkpoint_test

import (
	"fmt"
	"log"

	"glmbatch/datasets/demo"
	"glmbatch/engine/checkpoint"
)

// A weight is read in the form that the checkpoint has it in, or as float32.
func Example() {
	ck, err := checkpoint.FromFiles(demo.Files())
	if err != nil {
		log.Fatal(err)
	}
	defer ck.Close()
	for _, module := range []string{"model.embed_tokens", "model.layers.3.mlp.experts.0.up_proj"} {
		l, err := ck.Linear(module)
		if err != nil {
			log.Fatal(err)
		}
		row, err := l.Float32(0, 1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(l.Format, l.Rows, l.Cols, len(row))
	}
	// Output:
	// bf16 2048 256 256
	// fp4 128 256 256
}
