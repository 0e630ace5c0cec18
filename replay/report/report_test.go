package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"glmbatch/datasets"
	"glmbatch/golden"
	"glmbatch/kernels"
	"glmbatch/kernels/roofline"
	"glmbatch/replay/attribute"
	"glmbatch/replay/timeline"
)

// calls are a few layers of a step.
func calls(m int32) []kernels.Call {
	d := kernels.Dims{M: m, N: 1536, K: 1536, Heads: 8, Rope: 64, TopK: 8, Groups: 64, Ranks: 2, Slots: 1536, Ctx: 1536}
	var list []kernels.Call
	for layer := range int16(3) {
		for _, k := range []kernels.Name{"rms_norm", "gemm_bf16", "mla_attend_fp8", "all_reduce_norm", "moe_up_fp4",
			"moe_down_fp4", "all_reduce_norm"} {
			list = append(list, kernels.Call{Kernel: k, Layer: layer, Dims: d, Replicated: k == "rms_norm"})
		}
	}
	return append(list, kernels.Call{Kernel: "sample", Layer: -1, Dims: d, Replicated: true})
}

// example is a timeline of two ranks: a prefill step and steps of decode, rank 1
// always a little later. What a call takes follows from its place alone.
func example(shared bool) []datasets.Span {
	var rows []datasets.Span
	at := int64(1000)
	for step := range int64(6) {
		kind, m := kernels.Decode, int32(4)
		if step == 0 {
			kind, m = kernels.Prefill, 256
		}
		t := kernels.Trace{Step: step, Calls: calls(m), Shared: shared, Spans: make([][]kernels.Span, 2)}
		begin := at
		at += 30_000
		end := make([]int64, 2)
		for rank := range t.Spans {
			now := at
			for i := range t.Calls {
				if rank == 1 && !shared {
					now += int64(300 * (i % 3))
				}
				took := int64(m)*50 + int64(4000+1000*(i%5)+int(step)*37)
				t.Spans[rank] = append(t.Spans[rank], kernels.Span{Start: now, End: now + took, Groups: 20})
				now += took + 700
			}
			end[rank] = now
		}
		done := max(end[0], end[1])
		at = done + 21_000
		t.Kind = kind
		t.Times = kernels.Times{Wall: kernels.Interval{Start: begin, End: at},
			Schedule: kernels.Interval{Start: begin, End: begin + 9_000},
			Upload:   kernels.Interval{Start: begin + 9_000, End: begin + 29_500}, Sample: kernels.Interval{Start: done,
				End: done + 20_000}}
		rows = timeline.Rows(rows, &t, 1000)
		rows = timeline.HostRows(rows, step, []timeline.HostSpan{{Name: "read", Lane: timeline.LaneRead,
			Interval: kernels.Interval{Start: begin, End: done}}}, 1000)
	}
	return rows
}

func writeRows(t testing.TB, rows []datasets.Span) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "timeline.parquet")
	w, err := datasets.Create[datasets.Span](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t testing.TB, rows []datasets.Span, opt Options) *Report {
	t.Helper()
	r, err := Load(writeRows(t, rows), opt)
	if err != nil {
		t.Fatal(err)
	}
	r.Source = "timeline.parquet"
	return r
}

func TestGolden(t *testing.T) {
	h200, _ := roofline.Named("h200")
	for _, c := range []struct {
		name   string
		format string
		shared bool
		opt    Options
	}{
		{"classes.json", "json", false, Options{Machine: &h200}},
		{"classes.txt", "text", false, Options{Machine: &h200}},
		{"shared.txt", "text", true, Options{}},
		{"layers.txt", "text", false, Options{By: attribute.ByLayer, Kind: kernels.Decode}},
		{"kernels.json", "json", false, Options{By: attribute.ByKernel, Steps: &timeline.Steps{From: 1, To: 2}}},
		{"ranks.md", "markdown", false, Options{By: attribute.ByRank}},
		{"classes.csv", "csv", false, Options{}},
		{"classes.bench", "bench", false, Options{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := load(t, example(c.shared), c.opt).Write(&b, c.format, Style{}); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, c.name, b.String())
			if c.format != "text" {
				return
			}
			for _, line := range strings.Split(b.String(), "\n") {
				if n := utf8.RuneCountInString(line); n > DefaultWidth {
					t.Errorf("a line of %d columns: %s", n, line)
				}
			}
		})
	}
}

// The JSON form keeps its promises: ledgers add up, shares are of the span.
func TestJSONAddsUp(t *testing.T) {
	var b bytes.Buffer
	if err := load(t, example(false), Options{By: attribute.ByCall}).Write(&b, "json", Style{}); err != nil {
		t.Fatal(err)
	}
	type totals struct {
		Wall    int64            `json:"wall_ns"`
		Span    int64            `json:"device_span_ns"`
		Ledger  map[string]int64 `json:"ledger"`
		Classes []struct {
			Class string  `json:"class"`
			Self  int64   `json:"self_ns"`
			Share float64 `json:"share"`
		} `json:"classes"`
	}
	var d struct {
		totals
		Findings []Finding `json:"findings"`
		Kinds    []totals  `json:"kinds"`
	}
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Kinds) != 2 || len(d.Findings) == 0 {
		t.Fatalf("%d kinds, %d findings", len(d.Kinds), len(d.Findings))
	}
	var walls int64
	for _, k := range append(d.Kinds, d.totals) {
		var sum int64
		for _, ns := range k.Ledger {
			sum += ns
		}
		if sum != k.Wall || k.Wall == 0 {
			t.Errorf("the ledger adds up to %d of %d ns", sum, k.Wall)
		}
		walls += k.Wall
		for _, c := range k.Classes {
			if k.Ledger[c.Class] != c.Self {
				t.Errorf("%s: self %d, ledger %d", c.Class, c.Self, k.Ledger[c.Class])
			}
			if want := float64(c.Self) / float64(k.Span); c.Share < want-1e-6 || c.Share > want+1e-6 {
				t.Errorf("%s: share %g, want %g", c.Class, c.Share, want)
			}
		}
	}
	if walls != 2*d.Wall {
		t.Errorf("the kinds' walls add up to %d, the whole is %d", walls-d.Wall, d.Wall)
	}
}

// synthetic is one step with the given device rows.
func synthetic(wall int64, rows ...datasets.Span) []datasets.Span {
	out := []datasets.Span{{Rank: 0, Lane: "host step", Kernel: "decode_step.0", Class: "host", Evidence: "step",
		Call: -1, Layer: -1, EndNS: wall}}
	return append(out, rows...)
}

func kernel(class string, start, end int64) datasets.Span {
	return datasets.Span{Lane: "stream 7", Kernel: class + "_kernel", Class: class, Call: -1, Layer: -1, StartNS: start,
		EndNS: end}
}

func TestFindings(t *testing.T) {
	cast := kernel("kv.cast", 0, 7_400_000)
	cast.Slots, cast.K = 494_976, 576
	attn := kernel("attn", 7_400_000, 8_000_000)
	attn.Slots = 1536
	late := kernel("gemm.bf16", 6_000_000, 7_000_000)
	late.Correlation = 5
	launch := datasets.Span{Lane: "host 9", Kernel: "cudaLaunchKernel", Class: "host", Evidence: "launch", Call: -1,
		StartNS: 5_990_000, EndNS: 5_995_000, Correlation: 5}
	for _, c := range []struct {
		name string
		rows []datasets.Span
		code string
		text string
	}{
		{"a cast of the pool", synthetic(10_000_000, cast, attn, kernel("gemm.bf16", 8_000_000, 10_000_000)), "kv.cast",
			"kv.cast is 74 % of the decode step (7.400 of 10.000 ms) and 74 % of all kernels' time: it reads and " +
				"writes the whole pool, 494,976 slots, of which the batch uses 1,536, in 1 call"},
		{"launch-bound", synthetic(7_000_000, kernel("norm", 0, 1_000_000), launch, late), "launch-bound",
			"launch-bound: the device idles for 71 % of the decode step (5.000 of 7.000 ms): 4.995 ms for launches"},
		{"dominant", synthetic(10_000_000, kernel("norm", 0, 2_000_000), kernel("attn", 2_000_000, 10_000_000)),
			"dominant",
			"attn is 80 % of the decode step (8.000 of 10.000 ms) and 80 % of all kernels' time, in 1 call"},
		{"idle is named with all its causes", synthetic(10_000_000, kernel("norm", 0, 5_000_000), launch, late), "idle",
			"the device idles for 40 % of the decode step (4.000 of 10.000 ms): 3.000 ms for reasons that are not " +
				"recorded, 0.995 ms for launches"},
		{"unclassified", synthetic(100, kernel("norm", 0, 70), kernel("unclassified", 70, 100)), "unclassified",
			"kernels without a class take 30 % of the decode step (0.000 of 0.000 ms): see --by kernel"},
		{"unexplained", synthetic(100, kernel("norm", 0, 60)), "unexplained",
			"40 % of the decode step (0.000 of 0.000 ms) is unexplained: the device idles and nothing that was " +
				"recorded says why"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := load(t, c.rows, Options{})
			var found []string
			for _, f := range r.Findings {
				if f.Code == c.code {
					if f.Text != c.text {
						t.Errorf("%q, want %q", f.Text, c.text)
					}
					return
				}
				found = append(found, f.Text)
			}
			t.Errorf("not found; there are %q", found)
		})
	}
	// What takes most of the time stands first, idle time too.
	for _, c := range []struct {
		code string
		rows []datasets.Span
	}{
		{"kv.cast", synthetic(10_000_000, cast, attn)},
		{"kv.cast", synthetic(10_000_000, kernel("kv.cast", 0, 3_000_000), kernel("attn", 3_000_000, 10_000_000))},
		{"idle", synthetic(10_000_000, kernel("norm", 0, 3_000_000), kernel("attn", 3_000_000, 5_000_000))},
		{"dominant", synthetic(10_000_000, kernel("norm", 0, 6_000_000))},
		{"device-bound", synthetic(10_000_000, kernel("norm", 0, 9_500_000))},
		{"launch-bound", synthetic(7_000_000, kernel("kv.cast", 0, 1_000_000), launch, late)},
	} {
		if first := load(t, c.rows, Options{}).Findings[0]; first.Code != c.code {
			t.Errorf("the first finding is %q, want %s", first.Text, c.code)
		}
	}
}

// What an importer holds to be unreliable stands before every figure.
func TestUnreliableImportComesFirst(t *testing.T) {
	r := load(t, synthetic(100, kernel("norm", 0, 100)), Options{})
	r.imported([]datasets.Finding{{Code: "layers", Severity: "note", Rank: -1, Text: "layers by period"},
		{Code: "truncated", Severity: "unreliable", Rank: 2, Text: "the file is cut off"}})
	if r.Findings[0].Text != "unreliable: rank 2: the file is cut off" || len(r.Warnings) != 1 {
		t.Errorf("%+v, %q", r.Findings, r.Warnings)
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "out")
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"out/_manifest.json": "{}", "not.parquet": "hello, hello"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	good := writeRows(t, example(false))
	for _, c := range []struct {
		path string
		opt  Options
		want string
	}{
		{filepath.Join(dir, "none"), Options{}, "no such file"},
		{run, Options{}, "no timeline"},
		{filepath.Join(dir, "not.parquet"), Options{}, "not.parquet"},
		{good, Options{By: "colour"}, "group by"},
		{good, Options{Steps: &timeline.Steps{From: 5, To: 2}}, "range of steps"},
		{good, Options{Steps: &timeline.Steps{From: 90, To: 99}}, "no device spans in steps 90 to 99"},
		{good, Options{Kind: "mixed"}, "no device spans in mixed steps"},
	} {
		_, err := Load(c.path, c.opt)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %+v: error %v, want %q", c.path, c.opt, err, c.want)
		}
	}
	if err := load(t, example(false), Options{}).Write(&bytes.Buffer{}, "poem", Style{}); err == nil ||
		!strings.Contains(err.Error(), "markdown") {
		t.Errorf("an unknown format: %v", err)
	}
}

// BenchmarkLoad is the speed of a report over a timeline, per row.
func BenchmarkLoad(b *testing.B) {
	var rows []datasets.Span
	one := example(false)
	for i := range int64(2000) {
		for _, r := range one {
			r.Step += 6 * i
			r.StartNS += 3_000_000 * i
			r.EndNS += 3_000_000 * i
			rows = append(rows, r)
		}
	}
	path := writeRows(b, rows)
	for b.Loop() {
		if _, err := Load(path, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(rows))*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// A step whose device waits for the host is named after what the host does: launch, or
// anything else.
func TestHostBound(t *testing.T) {
	for code, ns := range map[string]map[attribute.Entry]int64{
		"launch-bound": {attribute.Launch: 40, attribute.Host: 10, attribute.Wait: 10},
		"host-bound":   {attribute.Launch: 20, attribute.Host: 10, attribute.Wait: 30},
		"":             {attribute.Launch: 20, attribute.Queue: 50},
	} {
		s := &attribute.Section{Kind: kernels.Decode, RankSteps: 1, Wall: 100}
		for entry, n := range ns {
			s.Ledger = append(s.Ledger, attribute.Amount{Name: entry.String(), NS: n})
		}
		got, text, _ := (&Report{}).bound(s)
		if got != code || !strings.HasPrefix(text, code) {
			t.Errorf("%v: %s, %q, want %s", ns, got, text, code)
		}
	}
}
