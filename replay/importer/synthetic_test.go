package importer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets"
)

// traceText builds a torch trace, one event a line.
type traceText struct {
	head   string // keys before the events, with a comma at the end
	events []string
	tail   string // keys behind the events, with a comma at the start
}

const us = 1000 // ns

func micros(ns int64) string { return fmt.Sprintf("%d.%03d", ns/1000, ns%1000) }

func (t *traceText) raw(line string) { t.events = append(t.events, line) }

func (t *traceText) kernel(name string, start, dur int64, stream int, correlation int64) {
	t.raw(fmt.Sprintf(`{"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": %d, "ts": %s, "dur": %s, "args": {"device": 0, "stream": %d, "correlation": %d, "grid": [10, 1, 1], "block": [128, 1, 1]}}`,
		name, stream, micros(start), micros(dur), stream, correlation))
}

func (t *traceText) launch(name string, start, dur, correlation int64) {
	t.raw(fmt.Sprintf(`{"ph": "X", "cat": "cuda_runtime", "name": "%s", "pid": 9, "tid": 9, "ts": %s, "dur": %s, "args": {"correlation": %d}}`,
		name, micros(start), micros(dur), correlation))
}

func (t *traceText) step(name string, start, dur int64) {
	t.raw(fmt.Sprintf(`{"ph": "X", "cat": "user_annotation", "name": "%s", "pid": 9, "tid": 9, "ts": %s, "dur": %s, "args": {}}`, name, micros(start), micros(dur)))
}

// pairs adds n launches with their kernels, 10 us apart, from a time on.
func (t *traceText) pairs(n int, from int64) {
	for i := range int64(n) {
		t.launch("cudaLaunchKernel", from+i*10*us, 2*us, from+i)
		t.kernel("nvjet_tst_64x8", from+i*10*us+5*us, 4*us, 7, from+i)
	}
}

func (t *traceText) String() string {
	return "{" + t.head + "\n\"traceEvents\": [\n  " + strings.Join(t.events, ",\n  ") + "\n]" + t.tail + "}\n"
}

func writeFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestGate feeds traces with one kind of damage each and looks for its finding.
func TestGate(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(*traceText)
		code   string // "" : no finding but notes of how steps were found
		count  int64
		rows   int64 // device rows that stay
	}{
		{"sound", func(*traceText) {}, "", 0, 20},
		{"programmatic launch overlaps the next kernel", func(tt *traceText) {
			tt.kernel("nvjet_tst_64x8", 1000*us, 10*us, 7, 501)
			tt.kernel("nvjet_tst_64x8", 1008*us, 10*us, 7, 502)
		}, "", 0, 22},
		{"streams overlap", func(tt *traceText) { tt.kernel("nvjet_tst_64x8", 90*us, 500*us, 8, 501) }, "", 0, 21},
		{"a duration over much later work", func(tt *traceText) {
			tt.kernel("nvjet_tst_64x8", 121*us, 3_400_000*us, 7,
				501)
		}, "impossible", 1, 20},
		{"an endless last event", func(tt *traceText) { tt.kernel("nvjet_tst_64x8", 900*us, 3_400_000*us, 7, 501) },
			"impossible", 1, 20},
		{"branches of one graph overlap", func(tt *traceText) {
			for i := range int64(5) {
				tt.kernel("flash_fwd_kernel", (1000+i)*us, (100-2*i)*us, 7, 501)
			}
		}, "", 0, 25},
		{"one duration in a graph is unlike its kernel's others", func(tt *traceText) {
			for i := range int64(10) {
				dur := 4 * us
				if i == 3 {
					dur = 40 * us
				}
				tt.kernel("flash_fwd_kernel", (1000+5*i)*us, int64(dur), 7, 501)
			}
		}, "impossible", 1, 29},
		{"negative duration", func(tt *traceText) {
			tt.raw(`{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 500.000, "dur": -2147483648.000, "args": {}}`)
		}, "negative", 1, 20},
		{"clipped duration", func(tt *traceText) { tt.kernel("nvjet_tst_64x8", 1000*us, 0, 7, 501) }, "zero_duration",
			1, 21},
		{"zero time", func(tt *traceText) { tt.kernel("nvjet_tst_64x8", 0, 5*us, 7, 501) }, "zero_time", 1, 20},
		{"before its launch", func(tt *traceText) {
			tt.launch("cudaLaunchKernel", 1000*us, 2*us, 501)
			tt.kernel("nvjet_tst_64x8", 900*us, 2*us, 7, 501)
		}, "before_launch", 1, 21},
		{"clocks apart", func(tt *traceText) {
			for i := range int64(10) {
				tt.launch("cudaLaunchKernel", (1000+10*i)*us, 2*us, 500+i)
				tt.kernel("nvjet_tst_64x8", (500+10*i)*us, 2*us, 7, 500+i)
			}
		}, "clock", 10, 30},
		{"launches without kernels", func(tt *traceText) {
			for i := range int64(5) {
				tt.launch("cuLaunchKernelEx", (50+i)*us, us, 500+i)
			}
		}, "missing_kernels", 5, 20},
		{"graph launches without kernels", func(tt *traceText) { tt.launch("cudaGraphLaunch", 50*us, us, 500) },
			"missing_graphs", 1, 20},
		{"no number", func(tt *traceText) {
			tt.raw(`{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": NaN, "dur": 1, "args": {}}`)
		}, "bad_time", 1, 20},
		{"infinite", func(tt *traceText) {
			tt.raw(`{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": -Infinity, "args": {"x": NaN}}`)
		}, "bad_time", 1, 20},
		{"far future", func(tt *traceText) {
			tt.raw(`{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 9e18, "dur": 1, "args": {}}`)
		}, "bad_time", 1, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tt traceText
			tt.pairs(20, 100*us)
			c.damage(&tt)
			s, _ := importTorch(t, Options{}, writeFile(t, "t.json", []byte(tt.String())))
			for _, f := range s.Findings {
				if f.Severity == severityUnreliable && f.Code != c.code {
					if c.code != "missing_graphs" || f.Code != "missing_kernels" {
						t.Errorf("finding %+v was not expected", f)
					}
				}
			}
			if c.code != "" {
				f := findingOf(s, c.code)
				if f == nil || f.Count != c.count || f.Severity != severityUnreliable {
					t.Errorf("finding %+v, want an unreliable %s of %d", f, c.code, c.count)
				}
			}
			if s.Ranks[0].Kernels != c.rows {
				t.Errorf("%d kernels stay, want %d", s.Ranks[0].Kernels, c.rows)
			}
		})
	}
}

// TestRefusedTraces holds the reasons for which a trace gives no timeline.
func TestRefusedTraces(t *testing.T) {
	only := func(f func(*traceText)) string {
		var tt traceText
		f(&tt)
		return tt.String()
	}
	for _, c := range []struct{ name, text, want string }{
		{"launches only", only(func(tt *traceText) {
			for i := range int64(1234) {
				tt.launch("cudaLaunchKernel", 1000+i, 1, i)
			}
		}), "0 GPU events, 1234 launches"},
		{"all zero", only(func(tt *traceText) { tt.kernel("k", 0, 0, 7, 1) }), "every GPU event"},
		{"empty", "", "the file is empty"},
		{"text", "hello", "no torch.profiler trace"},
		{"no events", `{"schemaVersion": 1}`, "no traceEvents"},
		{"events are no list", `{"traceEvents": 7}`, "no torch.profiler trace"},
		{"cut before the events", `{"deviceProperties": [`, "no torch.profiler trace"},
		{"empty list", `[]`, "0 GPU events, 0 launches"},
		{"endless nesting", `{"traceEvents": [` + strings.Repeat(`{"ph":"X","x":[{"y":1},`, 2000), "have no end"},
	} {
		_, err := Torch([]string{writeFile(t, "t.json", []byte(c.text))}, Options{},
			func([]datasets.Span) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", c.name, err, c.want)
		}
	}
	if _, err := Torch([]string{"testdata/none.json"}, Options{}, nil); err == nil {
		t.Error("a missing file is no error")
	}
	if _, err := Torch(nil, Options{Rank: -1, KVSlots: -1}, nil); err == nil ||
		!strings.Contains(err.Error(), "rank") || !strings.Contains(err.Error(), "KV slots") {
		t.Errorf("error %v, want both faults of the options", err)
	}
}

// TestMaxRows holds the bound on memory.
func TestMaxRows(t *testing.T) {
	var tt traceText
	tt.pairs(20, 100*us)
	_, err := Torch([]string{writeFile(t, "t.json", []byte(tt.String()))}, Options{MaxRows: 39},
		func([]datasets.Span) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "more than 39") {
		t.Errorf("error %v, want one about 39 rows", err)
	}
}

// TestSteps holds the ways in which rows get their step.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(*traceText)
		want  map[int64]int // device rows by step
	}{
		{"work runs after the window of its launch", func(tt *traceText) {
			tt.step("decode_step.4", 100*us, 50*us)
			tt.step("decode_step.5", 200*us, 50*us)
			tt.launch("cudaLaunchKernel", 110*us, us, 1)
			tt.kernel("a", 210*us, 5*us, 7, 1)
			tt.launch("cudaLaunchKernel", 210*us, us, 2)
			tt.kernel("b", 300*us, 5*us, 7, 2)
			tt.kernel("c", 400*us, 5*us, 7, 3)
		}, map[int64]int{4: 1, 5: 1, -1: 1}},
		{"a graph has one launch", func(tt *traceText) {
			tt.step("step[DECODE bs=32]", 100*us, 50*us)
			tt.step("step[DECODE bs=32]", 200*us, 50*us)
			tt.launch("cudaGraphLaunch", 110*us, us, 1)
			tt.launch("cudaGraphLaunch", 210*us, us, 2)
			for i := range int64(5) {
				tt.kernel("a", (500+10*i)*us, 5*us, 7, 1)
				tt.kernel("a", (600+10*i)*us, 5*us, 7, 2)
			}
		}, map[int64]int{0: 5, 1: 5}},
		{"numbers that come twice are not numbers of steps", func(tt *traceText) {
			tt.step("ProfilerStep#3", 100*us, 50*us)
			tt.step("ProfilerStep#3", 200*us, 50*us)
			tt.launch("cudaLaunchKernel", 210*us, us, 2)
			tt.kernel("b", 300*us, 5*us, 7, 2)
		}, map[int64]int{1: 1}},
		{"the finest annotation wins", func(tt *traceText) {
			tt.step("ProfilerStep#3", 100*us, 500*us)
			tt.step("execute_context_1(8)_generation_0(0)", 110*us, 50*us)
			tt.step("execute_context_1(8)_generation_0(0)", 210*us, 50*us)
			tt.launch("cudaLaunchKernel", 220*us, us, 2)
			tt.kernel("b", 300*us, 5*us, 7, 2)
		}, map[int64]int{1: 1}},
		{"none", func(tt *traceText) { tt.pairs(10, 100*us) }, map[int64]int{0: 10}},
		{"by period, with layers inside", func(tt *traceText) {
			at, id := int64(100*us), int64(1)
			put := func(name string) {
				tt.launch("cudaLaunchKernel", at, us, id)
				tt.kernel(name, at+2*us, 5*us, 7, id)
				at, id = at+10*us, id+1
			}
			for range 5 {
				put("indexSelect")
				for range 6 {
					for _, k := range []string{"rms_norm_kernel", "nvjet_tst_64x8", "rotary_kernel", "flash_fwd_kernel",
						"act_and_mul_kernel"} {
						put(k)
					}
				}
				put("ArgMaxOps")
			}
		}, map[int64]int{0: 32, 1: 32, 2: 32, 3: 32, 4: 32}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tt traceText
			c.build(&tt)
			_, rows := importTorch(t, Options{}, writeFile(t, "t.json", []byte(tt.String())))
			got := map[int64]int{}
			layers := map[int32]int{}
			for _, r := range rows {
				if r.Class != "host" {
					got[r.Step]++
					layers[r.Layer]++
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("device rows by step %v, want %v", got, c.want)
			}
			if strings.Contains(c.name, "layers") && (layers[0] != 25 || layers[5] != 25 || layers[-1] != 10) {
				t.Errorf("device rows by layer %v, want 25 in each of 6 and 10 in none", layers)
			}
		})
	}
}

// ranksText is a trace of one rank whose collectives end when those of all ranks
// do, on a clock of its own.
func ranksText(n int, from int, offset int64, drift float64, jitter int64) []byte {
	var tt traceText
	for i := from; i < n; i++ {
		end := int64(i)*10_000*us + 1_000_000*us
		end += int64(i%7) * 100 * us // no two gaps alike
		clock := end + offset + int64(drift*float64(end)) + int64(i%3)*jitter
		name := "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
		if i%5 == 0 {
			name = "ncclDevKernel_AllGather_RING_LL"
		}
		tt.launch("cudaLaunchKernel", clock-200*us, us, int64(i)+1)
		tt.kernel(name, clock-50*us, 50*us, 7, int64(i)+1)
	}
	return []byte(tt.String())
}

// TestAlign holds that the clocks of ranks are found again, and that ranks that
// do not fit are refused.
func TestAlign(t *testing.T) {
	for _, c := range []struct {
		name    string
		other   []byte
		refused string
	}{
		{"the same clock", ranksText(60, 0, 0, 0, 0), ""},
		{"an offset", ranksText(60, 0, 11_560_000_000, 0, 0), ""},
		{"an offset and a drift", ranksText(60, 0, -700_000_000, 2e-6, 0), ""},
		{"began later", ranksText(60, 4, 1_600_000, 0, 0), ""},
		{"ends scatter by 20 us", ranksText(60, 0, 1_600_000, 0, 10*us), ""},
		{"ends scatter by 4 ms", ranksText(60, 0, 1_600_000, 0, 2000*us), "still differ by"},
		{"no collectives", func() []byte { var tt traceText; tt.pairs(20, 100*us); return []byte(tt.String()) }(),
			"60 and 0 collectives"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			files := []string{filepath.Join(dir, "rank0.json"), filepath.Join(dir, "run-TP-1.json")}
			for i, b := range [][]byte{ranksText(60, 0, 0, 0, 0), c.other} {
				if err := os.WriteFile(files[i], b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var rows []datasets.Span
			s, err := Torch(files, Options{}, func(r []datasets.Span) error { rows = append(rows, r...); return nil })
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("error %v, want one that says %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s.Ranks[0].Rank != 0 || s.Ranks[1].Rank != 1 {
				t.Errorf("ranks %d and %d, want 0 and 1", s.Ranks[0].Rank, s.Ranks[1].Rank)
			}
			ends := map[int64][]int64{}
			for _, r := range rows {
				if strings.HasPrefix(r.Class, "comm") {
					ends[r.Correlation] = append(ends[r.Correlation], r.EndNS)
				}
			}
			for i, e := range ends {
				if len(e) == 2 && max(e[0]-e[1], e[1]-e[0]) > 25*us {
					t.Errorf("collective %d ends %d ns apart", i, e[0]-e[1])
				}
			}
		})
	}
}

// TestRanksOfFiles holds where a rank comes from.
func TestRanksOfFiles(t *testing.T) {
	yes, no := torchHead{rank: 5, hasRank: true}, torchHead{}
	for _, c := range []struct {
		file string
		head torchHead
		opt  Options
		want int32
	}{
		{"trace.json", yes, Options{}, 5},
		{"trace_rank3.json", yes, Options{}, 5},
		{"trace.json", yes, Options{SetRank: true, Rank: 2}, 9},
		{"trace.json", no, Options{}, 7},
		{"dp0_pp0_tp0_dcp0_ep0_rank3.171.pt.trace.json.gz", no, Options{}, 3},
		{"17-TP-6-DP-0-PP-0-EP-0.trace.json.gz", no, Options{}, 6},
		{"frank9.json", no, Options{}, 7},
	} {
		if got := rankOf("dir/"+c.file, c.head, c.opt, 7); got != c.want {
			t.Errorf("%s %+v: rank %d, want %d", c.file, c.opt, got, c.want)
		}
	}
}

// TestUnclassified holds that what no rule knows is a row, is reported, and gets
// a rule to fill in.
func TestUnclassified(t *testing.T) {
	var tt traceText
	tt.pairs(3, 100*us)
	tt.kernel("void acme::(anonymous namespace)::warp_drive<float, 3>(float*)", 1000*us, 12*us, 7, 900)
	s, rows := importTorch(t, Options{}, writeFile(t, "t.json", []byte(tt.String())))
	if f := findingOf(s, "unclassified"); f == nil || f.Count != 1 || !strings.Contains(f.Text, "50.00 %") {
		t.Errorf("finding %+v, want one of half the time", f)
	}
	if got := rows[len(rows)-1].Class; got != unclassified {
		t.Errorf("class %q, want %q", got, unclassified)
	}
	var b bytes.Buffer
	if err := s.Stubs(&b); err != nil || !strings.Contains(b.String(), "?\twarp_drive\n") {
		t.Errorf("stub %q, %v", b.String(), err)
	}
}
