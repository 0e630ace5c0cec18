package modelopt_test

import (
	"fmt"

	"glmbatch/engine/modelopt"
)

// The tensors that a weight becomes.
func ExampleEntries() {
	for _, e := range modelopt.Entries("model.layers.3.mlp.experts.0.up_proj", 2048, 6144, true) {
		fmt.Println(e.Name, e.DType, e.Shape)
	}
	// Output:
	// model.layers.3.mlp.experts.0.up_proj.weight U8 [2048 3072]
	// model.layers.3.mlp.experts.0.up_proj.weight_scale F8_E4M3 [2048 384]
	// model.layers.3.mlp.experts.0.up_proj.weight_scale_2 F32 []
	// model.layers.3.mlp.experts.0.up_proj.input_scale F32 []
}
