//go:build cuda

package cuda

import (
	"fmt"
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/kerneltest"
)

// Products that share launches have the bits that they have alone.
func TestProductsTogether(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	open := likeHeld(t)
	for _, x := range []struct {
		kernel kernels.Name
		k      int32
		n      []int32
	}{
		{"gemm_bf16", 2048, []int32{2048, 4096}}, // q_b and wq_b: src/gemm/gemv_prefetch.cuh
		{"gemm_bf16", 1964, []int32{2041, 4096}}, // likewise, nothing whole
		{"gemm_fp8", 2048, []int32{2048, 4096}},
		{"gemm_bf16", 6144, []int32{256, 512}},
	} {
		t.Run(fmt.Sprintf("%s/%v", x.kernel, x.n), func(t *testing.T) { kerneltest.Products(t, open, x.kernel, x.k, x.n, 1, 2, 5, 8) })
	}
}
