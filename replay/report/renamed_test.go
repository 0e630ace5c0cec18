package report

import (
	"testing"

	"glmbatch/replay/attribute"
)

// TestRenamed holds which kernels of two timelines are one with two names.
func TestRenamed(t *testing.T) {
	row := func(name, class string, calls, self int64, grid int32) attribute.Row {
		return attribute.Row{Label: name, Class: class, Calls: calls, Self: self,
			Key:     attribute.Key{GridX: grid, Block: 128},
			PerStep: attribute.Stat{Median: self / 4, Lo: self / 4, Hi: self / 4, N: 4}}
	}
	a := &attribute.Section{Kind: "decode", Steps: 4, RankSteps: 4, Rows: []attribute.Row{
		row("gemm_v1_wide", "gemm.bf16", 40, 4_000, 64), row("gemm_v1_small", "gemm.bf16", 40, 400, 8), row("norm",
			"norm", 8, 80, 1),
		row("gone", "act", 4, 40, 2), row("odd_v1", "unclassified", 4, 8, 2), row("often", "rope", 4, 12, 2)}}
	b := &attribute.Section{Kind: "decode", Steps: 4, RankSteps: 4, Rows: []attribute.Row{
		row("gemm_v2_small", "gemm.bf16", 40, 5_000, 8), row("gemm_v2_wide", "gemm.bf16", 40, 2_000, 32), row("norm",
			"norm", 8, 80, 1),
		row("odd_v2", "unclassified", 4, 8, 2), row("seldom", "rope", 8, 12, 2)}}
	got := map[[2]string]Verdict{}
	sum := 0.0
	for _, c := range renamed(a, b, changes(a, b, a.Rows, b.Rows)) {
		got[[2]string{c.Name, c.NameB}] = c.Verdict
		sum += c.Delta
	}
	want := map[[2]string]Verdict{
		{"gemm_v1_small", "gemm_v2_small"}: Slower, // the same grid, though not the same place in order
		{"gemm_v1_wide", "gemm_v2_wide"}:   Faster,
		{"norm", ""}:                       Same,
		{"gone", ""}:                       OnlyA, {"odd_v1", ""}: OnlyA, {"often", ""}: OnlyA,
		{"odd_v2", ""}: OnlyB, {"seldom", ""}: OnlyB,
	}
	for name, verdict := range want {
		if got[name] != verdict {
			t.Errorf("%v: %q, want %q", name, got[name], verdict)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d changes, want %d: %v", len(got), len(want), got)
	}
	if all := 5_000.0 + 2_000 + 80 + 8 + 12 - 4_000 - 400 - 80 - 40 - 8 - 12; sum != all/4 {
		t.Errorf("the changes add up to %g, want %g", sum, all/4)
	}
}
