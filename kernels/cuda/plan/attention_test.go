package plan

import (
	"testing"

	"glmbatch/kernels"
)

// Kernels that hold no more than mlaPersistentReach positions of a row get no longer ones, one
// whose clusters have one row each gets no more rows than there are clusters, and each
// kernel is for some number of rows.
func TestLatentWays(t *testing.T) {
	chosen := map[string]bool{}
	own, crowded := &Target{SMs: 132, PerGPU: 1}, &Target{SMs: 132, PerGPU: 2}
	for _, format := range []kernels.Format{kernels.BF16, kernels.FP8} {
		for _, reach := range []int32{1, mlaPersistentReach, mlaPersistentReach + 1, 1 << 20} {
			for rows := uint32(1); rows <= 600; rows++ {
				w := latentWayOf(format, rows, reach, own)
				chosen[w.entry] = true
				if short := w.persistent(); short && reach > mlaPersistentReach || short && w.blocks > 1 &&
					w.blocks*rows > 132 {
					t.Errorf("%s, %d rows of %d positions: %s", format, rows, reach, w.entry)
				}
				if alone := latentWayOf(format, rows, reach, crowded); format == kernels.FP8 &&
					reach <= mlaPersistentReach &&
					alone.blocks > 1 {
					t.Errorf("%d rows of ranks that share a GPU: clusters of %d", rows, alone.blocks)
				}
				if (format == kernels.BF16) != (w.entry == "mla_attend_bf16_cluster_16") {
					t.Errorf("%s for entries of %s", w.entry, format)
				}
			}
		}
	}
	for _, ways := range [][]latentWay{latentBF16, latentFP8} {
		for _, w := range ways {
			if !chosen[w.entry] {
				t.Errorf("nobody launches %s", w.entry)
			}
			if w.shared > 227<<10 {
				t.Errorf("%s has %d bytes of shared memory", w.entry, w.shared)
			}
		}
	}
}
