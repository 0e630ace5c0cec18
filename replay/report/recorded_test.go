package report

import (
	"testing"

	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// A job all of whose steps were recorded agrees with itself, whatever their times are by its ranks.
func TestAllStepsAgree(t *testing.T) {
	for _, ranks := range []int32{1, 2, 4, 8} {
		for wall := int64(1000); wall < 1016; wall++ {
			var rows []datasets.Span
			for rank := range ranks {
				r := kernel("gemm.bf16", 10, 900)
				r.Rank = rank
				rows = append(rows, r)
			}
			all := synthetic(wall, rows...)
			all[0].Rank, all[0].Lane, all[0].Kernel = -1, timeline.LaneHost, "decode"
			r := load(t, all, Options{})
			k := r.Recorded[0].Kind
			r.Beside(&Throughput{Kinds: []StepKind{{Kind: k, Steps: 1, WallNS: wall, MaxNS: wall}}})
			if got := r.Recorded[0]; got.Of != 1 || !got.Agrees() {
				t.Errorf("%d ranks: %+v of a step of %d ns", ranks, got, wall)
			}
		}
	}
}
