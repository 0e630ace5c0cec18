package importer_test

import (
	"fmt"

	"glmbatch/replay/importer"
)

// Kernels of other engines are classed by rules over their names.
func ExampleClassify() {
	for _, kernel := range []string{"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "flash_fwd_splitkv_mla_kernel",
		"some_kernel"} {
		class, _ := importer.Classify(kernel)
		fmt.Println(kernel, class)
	}
	// Output:
	// ncclDevKernel_AllReduce_Sum_bf16_RING_LL comm.ar
	// flash_fwd_splitkv_mla_kernel attn.decode
	// some_kernel unclassified
}
