//go:build cuda

package cuda

import (
	"testing"

	"glmbatch/kernels"
)

// Which products of GLM-5's ranks have blocks with several tiles: those have launches
// of their own.
func TestBroad(t *testing.T) {
	for _, c := range []struct {
		kernel  kernels.Name
		m, n, k int32
		want    bool
	}{
		{"gemm_bf16", 1, 2784, 6144, true},
		{"gemm_bf16", 8, 2784, 6144, true},
		{"gemm_bf16", 9, 2784, 6144, false}, // many rows
		{"gemm_bf16", 8, 19360, 6144, true},
		{"gemm_bf16", 1, 6144, 2048, false}, // all blocks run at once
		{"gemm_bf16", 1, 512, 6144, false},
		{"gemm_fp8", 1, 6464, 2048, true},
		{"gemm_fp4", 1, 19360, 6144, false},
	} {
		call := kernels.Call{Kernel: c.kernel, Dims: kernels.Dims{M: c.m, N: c.n, K: c.k}, Args: make([]kernels.Buffer, 3)}
		if got := isBroad(&call); got != c.want {
			t.Errorf("%s of %d rows, %dx%d: %t, want %t", c.kernel, c.m, c.n, c.k, got, c.want)
		}
		if isBroad(&call) && segmentsOf(&call) != 0 {
			t.Errorf("%s of %d rows, %dx%d has segments of a bundle too", c.kernel, c.m, c.n, c.k)
		}
	}
}
