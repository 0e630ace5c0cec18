//go:build cuda

package cuda

import (
	"fmt"
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/kerneltest"
)

// hold keeps a device open for as long as a test that opens many takes: one that
// stays open keeps the GPU's context and kernels.
func hold(t testing.TB) []kernels.Device {
	t.Helper()
	held, err := Open(1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := held[0].Close(); err != nil {
			t.Error(err)
		}
	})
	return held
}

// likeHeld opens devices whose kernels are loaded already, until the test is over.
func likeHeld(t testing.TB) kerneltest.Open {
	t.Helper()
	held := hold(t)
	return func(t testing.TB, ranks int) []kernels.Device {
		t.Helper()
		ds, err := Open(ranks, Options{like: held})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
}

// The products and attention at the shapes of one of GLM-5's eight ranks: a row's
// bits do not depend on how many rows there are.
func TestBatchBits(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	open := likeHeld(t)
	for _, c := range []struct {
		kernel kernels.Name
		d      kernels.Dims
	}{
		{"gemm_bf16", kernels.Dims{N: 2784, K: 6144}},
		{"gemm_bf16", kernels.Dims{N: 4096, K: 2048}},
		{"gemm_bf16", kernels.Dims{N: 6144, K: 2048}},
		{"gemm_bf16", kernels.Dims{N: 256, K: 6144}},
		{"gemm_bf16", kernels.Dims{N: 6144, K: 256}},
		{"gemm_fp8", kernels.Dims{N: 2784, K: 6144}},
		{"gemm_fp8", kernels.Dims{N: 6464, K: 2048}},  // of few rows for src/gemm/gemv_multi_tile.cu
		{"gemm_bf16", kernels.Dims{N: 7000, K: 1000}}, // likewise, nothing whole
		{"gemm_fp8b", kernels.Dims{N: 2784, K: 6144}},
		{"gemm_fp8b", kernels.Dims{N: 6144, K: 256}},
		{"gemm_fp4", kernels.Dims{N: 512, K: 6144}},
		{"q_absorb_bf16", kernels.Dims{Heads: 8, N: 512, K: 192, Rope: 64}},
		{"v_up_bf16", kernels.Dims{Heads: 8, N: 256, K: 512}},
		{"moe_up_fp4", kernels.Dims{N: 256, K: 6144, Groups: 32, TopK: 8}},
		{"moe_down_fp4", kernels.Dims{N: 6144, K: 256, Groups: 32, TopK: 8}},
		{"moe_up_fp4", kernels.Dims{N: 16, K: 6144, Groups: 64, TopK: 8}},    // never for src/moe/sm90_moe_wgmma.cu
		{"moe_down_fp4", kernels.Dims{N: 192, K: 256, Groups: 256, TopK: 8}}, // up to 95 rows for moe_down_fp4_all
		{"moe_up_bf16", kernels.Dims{N: 256, K: 6144, Groups: 16, TopK: 8}},
		{"moe_down_bf16", kernels.Dims{N: 6144, K: 256, Groups: 16, TopK: 8}},
		{"moe_up_fp8b", kernels.Dims{N: 256, K: 6144, Groups: 16, TopK: 8}},
		{"moe_down_fp8b", kernels.Dims{N: 6144, K: 256, Groups: 16, TopK: 8}},
		{"mla_attend_fp8", kernels.Dims{Heads: 8, K: 512, Rope: 64, TopK: 2048}},
		// more positions than 16 leaves have
		{"mla_attend_fp8", kernels.Dims{Heads: 8, K: 512, Rope: 64, Ctx: 530 * 2700}},
		{"mla_attend_bf16", kernels.Dims{Heads: 8, K: 512, Rope: 64, TopK: 2048}},
		{"index_logits_fp8", kernels.Dims{N: 4096, Heads: 32, K: 128, Rope: 64}},
		{"index_logits_bf16", kernels.Dims{N: 4096, Heads: 32, K: 128, Rope: 64}},
	} {
		t.Run(fmt.Sprintf("%s/%dx%d", c.kernel, c.d.N, c.d.K), func(t *testing.T) {
			c.d.M = 530 // two tiles of 256 rows, and some
			kerneltest.SameRows(t, open, kernels.Lookup(c.kernel), c.d)
		})
	}
}
