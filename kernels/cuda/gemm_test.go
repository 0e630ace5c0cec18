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
		t.Run(fmt.Sprintf("%s/%v", x.kernel, x.n), func(t *testing.T) {
			kerneltest.Products(t, open, x.kernel, x.k, x.n, 1, 2, 5, 8, 40, 300)
		})
	}
}

// A row's bits are the same whichever blocks of src/gemm/sm90_gemm_persistent.cu it is for: each of them is taken
// on an H200 for one of these.
func TestPersistentBits(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	open := likeHeld(t)
	for _, kernel := range []kernels.Name{"gemm_bf16", "gemm_fp8"} {
		for _, d := range []kernels.Dims{
			{M: 130, N: 2048, K: 2048}, {M: 500, N: 2048, K: 2048}, {M: 1000, N: 6144, K: 2048},
			{M: 230, N: 6144, K: 2048},
			{M: 450, N: 6144, K: 2048}, {M: 900, N: 3072, K: 6144},
			{M: 100, N: 3072, K: 6144}, {M: 100, N: 2784, K: 6144}, {M: 250, N: 2784, K: 6144},
			{M: 250, N: 512, K: 6144},
			{M: 470, N: 512, K: 6144}, {M: 300, N: 6144, K: 256}, {M: 300, N: 132, K: 576},
		} {
			t.Run(fmt.Sprintf("%s/%dx%dx%d", kernel, d.M, d.N, d.K), func(t *testing.T) {
				kerneltest.SameRows(t, open, kernels.Lookup(kernel), d)
			})
		}
	}
}
