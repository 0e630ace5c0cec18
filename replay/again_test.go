package replay

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
	"glmbatch/kernels"
	"glmbatch/replay/report"
	"glmbatch/replay/timeline"
)

// stepCalls are the calls of a step of forty layers.
func stepCalls() []kernels.Call {
	var calls []kernels.Call
	for layer := range int16(40) {
		for _, k := range []kernels.Name{"gemm_bf16", "mla_attend_fp8", "silu_mul"} {
			calls = append(calls, kernels.Call{Kernel: k, Layer: layer, Dims: kernels.Dims{M: 2, N: 64, K: 64, Heads: 4,
				Ctx: 100, Slots: 100}})
		}
	}
	return calls
}

// timesOf are the spans of a step: length says how long each call takes, host how long
// the host takes before the first.
func timesOf(calls []kernels.Call, begin, host int64, length func(i int) int64) (spans [][]kernels.Span, end int64) {
	at := begin + host
	var list []kernels.Span
	for i := range calls {
		n := length(i)
		list = append(list, kernels.Span{Start: at, End: at + n, Lane: int8(i % 2)})
		at += n + 10
	}
	return [][]kernels.Span{list}, at + 50
}

// stepTimes are those of a step that uploads for a while and then waits.
func stepTimes(begin, upload, end int64) kernels.Times {
	at := func(from, to int64) kernels.Interval { return kernels.Interval{Start: from, End: to} }
	return kernels.Times{Wall: at(begin, end), Schedule: at(begin, begin), Upload: at(begin, begin+upload),
		Launch: at(begin+upload, begin+upload),
		Device: at(begin+upload, end), Sample: at(end, end)}
}

// TestRecordedBesideReplayed: what made a recorded step longer than its repeats is said
// from what was measured: a call that stalled, the host, or all of it.
func TestRecordedBesideReplayed(t *testing.T) {
	calls := stepCalls()
	usual := func(i int) int64 { return 1000 + 200*int64(i%3) }
	var repeats []datasets.Span
	for n := range int64(9) {
		begin := n * 1_000_000
		spans, end := timesOf(calls, begin, 2000, func(i int) int64 { return usual(i) + n })
		repeats = timeline.Rows(repeats, &kernels.Trace{Step: n, Kind: kernels.Decode,
			Times: stepTimes(begin, 2000, end), Calls: calls, Spans: spans}, 0)
	}
	for _, c := range []struct {
		cause  string
		host   int64
		length func(i int) int64
		says   []string
	}{
		{CauseNone, 2000, usual, []string{"no difference"}},
		{CauseShort, 2000, func(i int) int64 { return usual(i) / 2 }, []string{"the repeats are what took longer"}},
		{CauseSlow, 2000, func(i int) int64 { return 2*usual(i) + int64(i%7) },
			[]string{"2.00 times", "by class from 2.0", "no call stalled", "nothing was recorded of clocks and load"}},
		{CauseHost, 300_000, usual, []string{"the device idled", "gap.host"}},
		{CauseStall, 2000, func(i int) int64 {
			if i == 31 {
				return 500_000
			}
			return usual(i)
		}, []string{"a stall: mla_attend_fp8 of layer 10 took 0.500 ms, 0.001 ms again", "100 % of the difference"}},
		{CauseStall, 2000, func(i int) int64 { // slower by a third, and two calls stalled
			if i == 3 || i == 90 {
				return 400_000
			}
			return usual(i) * 4 / 3
		}, []string{"a stall: ", "gemm_bf16 of layer 1 ", "gemm_bf16 of layer 30 ", "1.33 times"}},
		{CauseSpread, 2000, func(i int) int64 {
			if i%3 == 1 && i > 60 {
				return 6 * usual(i)
			}
			return usual(i)
		}, []string{"most of it attn ("}},
	} {
		x := &Capture{Header: Header{Step: 7, Kind: "decode", Ranks: 1}, Calls: calls}
		var end int64
		x.Spans, end = timesOf(calls, 5_000, c.host, c.length)
		x.Times = stepTimes(5_000, c.host, end)
		r := &Result{Capture: x, Figures: Figures{Name: "as captured", Rows: repeats}}
		r.Report = reportOf("as captured", repeats, report.Options{})
		a := r.again()
		if a == nil || a.Cause != c.cause {
			t.Fatalf("%+v; want %s", a, c.cause)
		}
		for _, s := range c.says {
			if !strings.Contains(a.Text, s) {
				t.Errorf("%s: %q lacks %q", c.cause, a.Text, s)
			}
		}
		var sum int64
		for _, row := range a.Rows {
			sum += row.Recorded
		}
		if sum != a.Wall.Recorded || a.Wall.Recorded != x.Times.Wall.NS() {
			t.Errorf("%s: the recorded rows add up to %d, the wall is %d of %d", c.cause, sum, a.Wall.Recorded,
				x.Times.Wall.NS())
		}
	}
	if (&Result{Capture: &Capture{}}).again() != nil {
		t.Error("a capture without spans is compared")
	}
}

// TestCaptureIsATimeline: the spans of captures, as files have them, are a timeline.
func TestCaptureIsATimeline(t *testing.T) {
	calls := stepCalls()
	dir := t.TempDir()
	var files []string
	var want []datasets.Span
	for step := range int64(3) {
		x := &Capture{Header: Header{Step: step, Kind: "decode", Ranks: 1, KV: KVSeeded}, Calls: calls}
		begin := step * 1_000_000
		spans, end := timesOf(calls, begin, 2000, func(i int) int64 { return 1000 })
		x.Spans, x.Times = spans, stepTimes(begin, 2000, end)
		x.Asides = [][]kernels.Aside{{{Name: kernels.AsideIn, Start: begin + 5, End: begin + 50}}}
		x.Batch.Tokens, x.Tables, x.Outputs = []int32{1}, []Table{{0, []int32{0}}}, []Output{{Call: 0, Arg: "y",
			Hash: make([]byte, 32)}}
		path := filepath.Join(dir, FileName(step))
		if err := x.Write(path); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
		want = append(want, x.Timeline()...)
	}
	got, err := Timeline(files)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	r, err := report.Source{Path: "captures", Rows: got}.Report(report.Options{})
	if err != nil || len(r.Sections) != 1 || r.Sections[0].Steps != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	var b bytes.Buffer
	if err := r.Write(&b, "text", report.Style{}); err != nil || !strings.Contains(b.String(), "decode: 3 steps") {
		t.Errorf("%s, %v", &b, err)
	}
	if !datasets.IsCapture(files[0]) {
		t.Error("captures are not told from timelines")
	}
}
