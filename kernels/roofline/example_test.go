package roofline_test

import (
	"fmt"

	"glmbatch/kernels"
	"glmbatch/kernels/roofline"
)

// The least time that a call can take on a machine.
func ExampleMachine_Bound() {
	h200, _ := roofline.Named("h200")
	for _, rows := range []int32{1, 8192} {
		call := kernels.Call{Kernel: "gemm_bf16", Dims: kernels.Dims{M: rows, N: 6144, K: 2048}}
		ns := h200.Bound(call.Cost(0), kernels.Lookup(call.Kernel).Pipe)
		fmt.Printf("%d rows: %.1f us\n", rows, float64(ns)/1e3)
	}
	// Output:
	// 1 rows: 5.6 us
	// 8192 rows: 208.5 us
}
