package kernels_test

import (
	"fmt"

	"glmbatch/kernels"
)

// What a call costs at least follows from the kernel's row and the call's dims.
func ExampleCall_Cost() {
	call := kernels.Call{Kernel: "gemm_bf16", Dims: kernels.Dims{M: 8, N: 6144, K: 2048}}
	cost := call.Cost(0)
	fmt.Println(kernels.Lookup(call.Kernel).Class, cost.HBM, "bytes", cost.FLOPs, "FLOPs")
	// Output:
	// gemm.bf16 25427968 bytes 201326592 FLOPs
}
