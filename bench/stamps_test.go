package bench

import (
	"strings"
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda"
)

// Kernels overlap: what is compared is each one's time after those it waits for.
func TestStampCheck(t *testing.T) {
	calls := []kernels.Call{{Kernel: "rms_norm"}, {Kernel: "gemm_bf16"}, {Kernel: "moe_up_fp4"}, {Kernel: "gemm_bf16"}}
	spans := []kernels.Span{{Start: 1000, End: 3000}, {Start: 3000, End: 9000}, {Start: 9000, End: 9000},
		{Start: 9200, End: 20000}}
	seen := func(late int64) []cuda.ProfiledCall {
		return []cuda.ProfiledCall{
			{Kernels: 1, Start: 5_000_900, Ready: 5_000_900, After: -1, End: 5_003_100},
			{Kernels: 2, Start: 5_002_000, Launch: 1, Ready: 5_003_100, After: 0, End: 5_009_000},
			{Launch: 2, After: 1},
			{Kernels: 1, Start: 5_008_000, Launch: 3, Ready: 5_009_000, After: 1, End: 5_020_000 + late},
		}
	}
	s := newStampSteps()
	for range 3 {
		if err := s.add(calls, spans, seen(0)); err != nil {
			t.Fatal(err)
		}
	}
	c := s.check()
	if c.Steps != 3 || c.Kernel.N != 9 || c.Kernel.Worst != 200 || c.Step.Median != 100 || c.Stamped != 19000 ||
		c.Seen != 19100 || c.Clock.Median != 5_000_000 || !c.holds() {
		t.Errorf("%+v", c)
	}
	if len(c.Kernels) != 2 || len(c.Classes) != 2 || c.Kernels[0].Name != "gemm_bf16" &&
		c.Kernels[0].Name != "rms_norm" {
		t.Errorf("%+v, %+v", c.Kernels, c.Classes)
	}
	var text strings.Builder
	c.print(&text, Case{batch: 1, context: 8192})
	for _, want := range []string{"they agree", "gemm.bf16", "0.20"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, text.String())
		}
	}
	for line := range strings.Lines(text.String()) {
		if len([]rune(line)) > 101 {
			t.Errorf("more than 100 columns: %s", line)
		}
	}

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

// Calls that share a launch are one kernel for CUPTI: the first may begin and the last
// end as it does, whatever those between do, and what comes behind waits for all.
func TestStampsOfSharedLaunches(t *testing.T) {
	calls := []kernels.Call{{Kernel: "gemm_bf16"}, {Kernel: "moe_route"}, {Kernel: "silu_mul"}, {Kernel: "moe_up_fp4"},
		{Kernel: "moe_down_fp4"}}
	spans := []kernels.Span{{Start: 0, End: 5000}, {Start: 6000, End: 8000}, {Start: 6100, End: 7000},
		{Start: 9000, End: 40000}, {Start: 41000, End: 60000}}
	seen := func(late int64) []cuda.ProfiledCall {
		up := cuda.ProfiledCall{Kernels: 1, Start: 4000, Launch: 1, Ready: 5000, After: 0, End: 40000 + late}
		return []cuda.ProfiledCall{{Kernels: 1, After: -1, End: 5000}, up, up, up,
			{Kernels: 1, Start: 39000, Launch: 2, Ready: 40000 + late, After: 1, End: 60000}}
	}
	s := newStampSteps()
	if err := s.add(calls, spans, seen(0)); err != nil {
		t.Fatal(err)
	}
	if c := s.check(); c.Alone.N != 3 || c.Alone.Worst != 0 || len(c.Kernels) != 3 || !c.holds() {
		t.Errorf("%+v", c)
	}
	for range 2 {
		if err := s.add(calls, spans, seen(2500)); err != nil {
			t.Fatal(err)
		}
	}
	if c := s.check(); c.holds() {
		t.Errorf("moe_up ends 2.5 us later for CUPTI, and passes: %+v", c)
	}
}

// Launches of other lanes that run meanwhile share the GPU; one that ends as another
// begins does not.
func TestShares(t *testing.T) {
	list := []stampLaunch{
		{kernels: 1, ready: 0, end: 100},
		{kernels: 1, ready: 100, end: 200},
		{kernels: 0, ready: 200, end: 200},
		{kernels: 1, ready: 150, end: 250},
		{kernels: 1, ready: 250, end: 260},
	}
	for i, want := range map[int]bool{0: false, 1: true, 3: true, 4: false} {
		if got := shares(list, i); got != want {
			t.Errorf("launch %d: %v", i, got)
		}
	}
}
