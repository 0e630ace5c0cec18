//go:build cuda

package cuda

import (
	"testing"

	"pgregory.net/rapid"
)

// Between readings the drift is followed; the residual says how well.
func TestClockFollowsDrift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ppm := rapid.Float64Range(-100, 100).Draw(t, "drift in millionths")
		noise := rapid.Int64Range(0, 5_000).Draw(t, "noise")
		const base = 3_000_000_000_000
		truth := func(gpu int64) int64 { return gpu - base + int64(ppm*1e-6*float64(gpu-base)) }
		look := func(gpu int64) reading {
			e := rapid.Int64Range(-noise, noise).Draw(t, "error")
			return reading{gpu, truth(gpu) - gpu + e, 2 * noise}
		}
		var c clock
		c.start(look(base))
		if c.residual != noise {
			t.Fatalf("residual %d of a reading %d wide", c.residual, 2*noise)
		}
		gpu := int64(base)
		for i := range 30 {
			gpu += rapid.Int64Range(1e9, 2e9).Draw(t, "pause")
			if missed := c.now(gpu) - truth(gpu); i >= 8 && (missed > 4*noise+2 || missed < -4*noise-2) {
				t.Fatalf("after %d readings it is off by %d ns, readings by %d", i, missed, noise)
			}
			c.take(look(gpu))
			if c.residual < noise {
				t.Fatalf("residual %d of readings %d wide", c.residual, 2*noise)
			}
		}
	})
}
