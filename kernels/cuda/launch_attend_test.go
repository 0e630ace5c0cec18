//go:build cuda

package cuda

import "testing"

// Kernels that hold no more than rowsReach positions of a row get no longer ones, one
// whose clusters have one row each gets no more rows than there are clusters, and each
// kernel is for some number of rows.
func TestLatentKernels(t *testing.T) {
	const sms = 132
	chosen := map[string]bool{}
	for _, format := range []string{"bf16", "fp8"} {
		for _, reach := range []int32{1, rowsReach, rowsReach + 1, 1 << 20} {
			for rows := uint32(1); rows <= 600; rows++ {
				name := latentKernel(format, rows, reach, sms, false)
				w, ok := latentWays[name]
				if !ok {
					t.Fatalf("%s, %d rows: no kernel %s", format, rows, name)
				}
				chosen[name] = true
				if short := w.shared == rowsShared; short && reach > rowsReach || short && w.blocks > 1 && w.blocks*rows > sms {
					t.Errorf("%s, %d rows of %d positions: %s", format, rows, reach, name)
				}
				if alone := latentWays[latentKernel(format, rows, reach, sms, true)]; format == "fp8" && reach <= rowsReach && alone.blocks > 1 {
					t.Errorf("%d rows of ranks that share a GPU: clusters of %d", rows, alone.blocks)
				}
				if (format == "bf16") != (name == "mla_attend_glm_bf16") {
					t.Errorf("%s for entries of %s", name, format)
				}
			}
		}
	}
	for name, w := range latentWays {
		if !chosen[name] {
			t.Errorf("nobody launches %s", name)
		}
		if w.shared > 227<<10 {
			t.Errorf("%s has %d bytes of shared memory", name, w.shared)
		}
	}
}
