package plan

import (
	"testing"

	"glmbatch/kernels"
)

// sm777 is an architecture that there is not: all that adding one takes.
var sm777 = Architecture{Name: "sm777", Major: 77, Minor: 7, Variants: []Variant{
	{Name: "gemm sm777", Op: "gemm", Formats: []kernels.Format{kernels.BF16},
		When: func(_ *builder, c *call) bool { return c.gemm.m >= 128 && c.gemm.k%256 == 0 },
		Build: func(b *builder, c *call) error {
			return b.do("gemm_sm777", [3]uint32{ceil(c.gemm.n, 256), ceil(c.gemm.m, 128), 1}, 512, 200<<10, &c.gemm)
		},
		Why: "tiles of 128x256: nothing was measured"},
}}

// TestMadeUpArchitecture: a new architecture's kernel is taken where it holds, and the
// portable ones everywhere else.
func TestMadeUpArchitecture(t *testing.T) {
	g := &Target{Architecture: &sm777, SMs: 200, Shared: 256 << 10, Ranks: 1, PerGPU: 1}
	for _, c := range []struct {
		m, k  int32
		entry string
	}{{128, 256, "gemm_sm777"}, {8192, 6144, "gemm_sm777"}, {127, 256, "gemm_bf16_8_1"}, {128, 255, "gemm_bf16_8_1"},
		{8, 256, "hfuse_short_k"}} {
		calls, m := example(t, kernels.Lookup("gemm_bf16"), kernels.Dims{M: c.m, N: 4096, K: c.k}, No4)
		p, err := Each(calls, g, m)
		if err != nil || len(p.Launches) != 1 || p.Launches[0].Entry != c.entry {
			t.Errorf("%d rows of %d: %v, %v", c.m, c.k, p, err)
		}
	}
}
