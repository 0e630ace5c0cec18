package main

import (
	"strings"
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda"
)

// Kernels overlap: what is compared is each one's time after those it waits for.
func TestStampCheck(t *testing.T) {
	calls := []kernels.Call{{Kernel: "rms_norm"}, {Kernel: "gemm_bf16"}, {Kernel: "moe_up_fp4"}, {Kernel: "gemm_bf16"}}
	spans := []kernels.Span{{Start: 1000, End: 3000}, {Start: 3000, End: 9000}, {Start: 9000, End: 9000}, {Start: 9200, End: 20000}}
	seen := func(late int64) []cuda.ProfiledCall {
		return []cuda.ProfiledCall{
			{Kernels: 1, Start: 5_000_900, Ready: 5_000_900, After: -1, End: 5_003_100},
			{Kernels: 2, Start: 5_002_000, Ready: 5_003_100, After: 0, End: 5_009_000},
			{After: 1},
			{Kernels: 1, Start: 5_008_000, Ready: 5_009_000, After: 1, End: 5_020_000 + late},
		}
	}
	s := newStampSteps()
	for range 3 {
		if err := s.add(calls, spans, seen(0)); err != nil {
			t.Fatal(err)
		}
	}
	c := s.check()
	if c.Steps != 3 || c.Kernel.N != 9 || c.Kernel.Worst != 200 || c.Step.Median != 100 || c.Stamped != 19000 || c.Seen != 19100 || c.Clock.Median != 5_000_000 || !c.holds() {
		t.Errorf("%+v", c)
	}
	if len(c.Kernels) != 2 || len(c.Classes) != 2 || c.Kernels[0].Name != "gemm_bf16" && c.Kernels[0].Name != "rms_norm" {
		t.Errorf("%+v, %+v", c.Kernels, c.Classes)
	}
	var text strings.Builder
	c.print(&text, benchCase{batch: 1, context: 8192})
	for _, want := range []string{"they agree", "gemm.bf16", "0.20"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, text.String())
		}
	}
	narrow(t, text.String())

	if err := s.add(calls, spans, seen(5000)); err != nil {
		t.Fatal(err)
	}
	if c := s.check(); c.holds() || c.Share < .2 {
		t.Errorf("a kernel that CUPTI saw end 5 us later passes: %+v", c)
	}
	if s.add(calls, spans, seen(0)[:2]) == nil || s.add(calls, spans, make([]cuda.ProfiledCall, 4)) == nil {
		t.Error("calls that CUPTI did not see pass")
	}
}

// Calls of other lanes that run meanwhile share the GPU; one that ends as another
// begins does not.
func TestShares(t *testing.T) {
	seen := []cuda.ProfiledCall{
		{Kernels: 1, Ready: 0, End: 100},
		{Kernels: 1, Ready: 100, End: 200},
		{Kernels: 0, Ready: 200, End: 200},
		{Kernels: 1, Ready: 150, End: 250},
		{Kernels: 1, Ready: 250, End: 260},
	}
	for i, want := range map[int]bool{0: false, 1: true, 3: true, 4: false} {
		if got := shares(seen, i); got != want {
			t.Errorf("call %d: %v", i, got)
		}
	}
}
