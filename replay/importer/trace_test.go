package importer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// public returns a trace that is too large or not ours to be kept here.
// GLMBATCH_TESTDATA names the folder that has them in traces/public.
func public(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("GLMBATCH_TESTDATA")
	if dir == "" {
		t.Skip("GLMBATCH_TESTDATA is not set")
	}
	return filepath.Join(dir, "traces", "public", name)
}

// TestSums holds the counts and sums of real traces, to the nanosecond.
func TestSums(t *testing.T) {
	for _, c := range []struct {
		file                                  string
		kernels, memcpy, memset, sum, uni, sp int64
		steps, layers                         int
	}{
		{"testdata/cast-graph.json.gz", 1182, 0, 0, 19776782, 19776782, 22324142, 3, 6},
		{"testdata/cast-eager.json.gz", 1182, 0, 0, 19685409, 19682752, 72670487, 3, 6},
		{"testdata/fused-graph.json.gz", 1182, 0, 0, 4358996, 4358996, 6044665, 3, 6},
		{"testdata/fused-eager.json.gz", 1182, 0, 0, 4295613, 4294974, 68694903, 3, 6},
		{"torch-b200-tp8-rank0-vllm-mxfp4.json.gz", 768, 161, 0, 10862916, 11596482, 84487178, 1, 36},
		{"torch-h100-eager-casts.json.gz", 1465, 1, 241, 45432698, 45647300, 49652832, 1, 24},
		{"torch-mi300-vllm-decode-graph.json.gz", 425, 9, 0, 10674517, 10717708, 10743181, 1, 24},
		{"torch-a100-rank0-sampled.json.gz", 1154, 40, 10, 606519000, 547656000, 1222847000, 2, 0},
		{"torch-a100-rank1-sampled.json.gz", 1104, 40, 10, 651026000, 580050000, 1231186000, 2, 0},
		{"nsys-2xh100.sqlite", 3442, 904, 22, 44829522, 967638948, 969447605, 1, 24},
	} {
		t.Run(strings.TrimPrefix(c.file, "testdata/"), func(t *testing.T) {
			path := c.file
			if !strings.HasPrefix(path, "testdata/") {
				path = public(t, path)
			}
			read := Torch
			if strings.HasSuffix(path, ".sqlite") {
				read = Nsys
			}
			var kernels, memcpy, memset, sum int64
			var rows []timeline.Interval
			layers := map[int32]bool{}
			s, err := read([]string{path}, Options{}, func(batch []datasets.Span) error {
				for _, r := range batch {
					if timeline.IsHost(r.Lane) {
						continue
					}
					rows = append(rows, timeline.Interval{Start: r.StartNS, End: r.EndNS})
					if r.Layer >= 0 {
						layers[r.Layer] = true
					}
					switch {
					case strings.HasPrefix(r.Class, "memcpy"):
						memcpy++
					case r.Class == "memset":
						memset++
					default:
						kernels++
						sum += r.EndNS - r.StartNS
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			union := timeline.Union(rows)
			var busy int64
			for _, v := range union {
				busy += v.NS()
			}
			for _, v := range []struct {
				what      string
				got, want int64
			}{
				{"kernels", kernels, c.kernels}, {"copies", memcpy, c.memcpy}, {"memsets", memset, c.memset},
				{"sum of kernels", sum, c.sum}, {"union", busy, c.uni}, {"span",
					union[len(union)-1].End - union[0].Start, c.sp},
				{"the summary's union", s.UnionNS, c.uni}, {"the summary's span", s.SpanNS, c.sp},
				{"steps", int64(s.Steps), int64(c.steps)}, {"layers", int64(len(layers)), int64(c.layers)},
			} {
				if v.got != v.want {
					t.Errorf("%s: %d, want %d", v.what, v.got, v.want)
				}
			}
			if s.Covered() < 0.97 {
				t.Errorf("only %.2f %% of the kernels' time has a class", 100*s.Covered())
			}
		})
	}
}

// TestPoolCast finds the fault that this importer exists for: a cast of the
// whole KV pool in each layer.
func TestPoolCast(t *testing.T) {
	for _, c := range []struct {
		name    string
		options Options
		casts   int
	}{
		{"cast-graph", Options{}, 18},
		{"cast-eager", Options{}, 18},
		{"cast-graph", Options{KVSlots: 494976}, 18},
		{"cast-graph", Options{KVSlots: 494976, KVWidth: 576}, 18},
		{"cast-graph", Options{KVSlots: 494977}, 0},
		{"fused-graph", Options{}, 0},
		{"fused-eager", Options{}, 0},
	} {
		s, rows := importTorch(t, c.options, "testdata/"+c.name+".json.gz")
		span := map[int64]timeline.Interval{}
		cast := map[int64]int64{}
		casts := 0
		for _, r := range rows {
			if timeline.IsHost(r.Lane) {
				continue
			}
			iv, ok := span[r.Step]
			if !ok {
				iv = timeline.Interval{Start: r.StartNS, End: r.EndNS}
			}
			span[r.Step] = timeline.Interval{Start: min(iv.Start, r.StartNS), End: max(iv.End, r.EndNS)}
			if r.Class != "kv.cast" {
				continue
			}
			casts++
			cast[r.Step] += r.EndNS - r.StartNS
			if r.Slots != 494976 || r.K != 576 || r.Bytes != 494976*576*3 {
				t.Errorf("%s: a cast of %d slots x %d, %d bytes", c.name, r.Slots, r.K, r.Bytes)
			}
			if !strings.HasSuffix(r.Evidence, "; grid 556848 x 512 = 494976 slots x 576") {
				t.Errorf("%s: evidence %q", c.name, r.Evidence)
			}
		}
		if casts != c.casts {
			t.Errorf("%s %+v: %d casts of the pool, want %d", c.name, c.options, casts, c.casts)
		}
		if c.casts == 0 {
			continue
		}
		if s.Classes[0].Class != "kv.cast" {
			t.Errorf("%s: first class is %s, want kv.cast", c.name, s.Classes[0].Class)
		}
		if len(cast) != 3 {
			t.Errorf("%s: casts in %d steps, want 3", c.name, len(cast))
		}
		for step, ns := range cast {
			share := float64(ns) / float64(span[step].End-span[step].Start)
			if strings.HasSuffix(c.name, "graph") && (share < 0.70 || share > 0.80) {
				t.Errorf("%s: step %d has %.1f %% of casts, want 70 to 80", c.name, step, 100*share)
			}
		}
	}
}

// TestHostSide holds what a report needs to call a step launch-bound: its window
// on the host, and launches that join to kernels.
func TestHostSide(t *testing.T) {
	for _, c := range []struct {
		name               string
		launches, unjoined int // launch rows, and device rows without one
		least              int64
	}{
		{"cast-eager", 1182, 0, 20e6},
		{"cast-graph", 3, 0, 5e6},
	} {
		_, rows := importTorch(t, Options{}, "testdata/"+c.name+".json.gz")
		launches := map[int64]int{}
		windows := 0
		for _, r := range rows {
			switch r.Evidence {
			case timeline.RoleLaunch:
				launches[r.Correlation]++
			case timeline.RoleStep:
				windows++
				if r.EndNS-r.StartNS < c.least {
					t.Errorf("%s: step %d lasts %d ns on the host, less than %d", c.name, r.Step, r.EndNS-r.StartNS,
						int64(c.least))
				}
			}
		}
		if windows != 3 {
			t.Errorf("%s: %d step windows, want 3", c.name, windows)
		}
		unjoined := 0
		for _, r := range rows {
			if !timeline.IsHost(r.Lane) && launches[r.Correlation] == 0 {
				unjoined++
			}
		}
		total := 0
		for correlation, n := range launches {
			if n != 1 {
				t.Errorf("%s: correlation %d has %d launches", c.name, correlation, n)
			}
			total += n
		}
		if total != c.launches || unjoined != c.unjoined {
			t.Errorf("%s: %d launches and %d rows without, want %d and %d", c.name, total, unjoined, c.launches,
				c.unjoined)
		}
	}
}

// TestLayersWithoutAnnotations compares the layers that the period gives with
// those that the annotations of the same program give.
func TestLayersWithoutAnnotations(t *testing.T) {
	count := func(name string) map[[2]int64]int {
		n := map[[2]int64]int{}
		_, rows := importTorch(t, Options{}, "testdata/"+name+".json.gz")
		for _, r := range rows {
			if !timeline.IsHost(r.Lane) {
				n[[2]int64{r.Step, int64(r.Layer)}]++
			}
		}
		return n
	}
	eager, graph := count("fused-eager"), count("fused-graph")
	for k, n := range eager {
		if graph[k] != n {
			t.Errorf("step %d layer %d: %d rows by period, %d by annotation", k[0], k[1], graph[k], n)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		want  []string
	}{
		{"no GPU events", []string{"torch-no-gpu-events.json.gz"}, []string{"0 GPU events, 0 launches"}},
		{"sampled ranks", []string{"torch-a100-rank0-sampled.json.gz", "torch-a100-rank1-sampled.json.gz"},
			[]string{"ranks 0 and 1 do not align", "--allow-unaligned"}},
		{"one rank twice", []string{"torch-a100-rank0-sampled.json.gz", "torch-a100-rank0-sampled.json.gz"},
			[]string{"both of rank 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var files []string
			for _, f := range c.files {
				files = append(files, public(t, f))
			}
			_, err := Torch(files, Options{}, func([]datasets.Span) error { return nil })
			if !errors.Is(err, ErrRefused) {
				t.Fatalf("error %v, want a refusal", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
}

func TestAllowUnaligned(t *testing.T) {
	s, _ := importTorch(t, Options{AllowUnaligned: true}, public(t, "torch-a100-rank0-sampled.json.gz"),
		public(t, "torch-a100-rank1-sampled.json.gz"))
	if f := findingOf(s, "unaligned"); f == nil || f.Severity != severityUnreliable || len(s.Ranks) != 2 {
		t.Errorf("finding %+v of %d ranks, want an unreliable one of 2", f, len(s.Ranks))
	}
}

// TestMissingRanks holds that a trace of some ranks of a job says so.
func TestMissingRanks(t *testing.T) {
	tt := traceText{head: `"distributedInfo": {"backend": "nccl", "rank": 5, "world_size": 8},`}
	tt.pairs(5, 100*us)
	s, rows := importTorch(t, Options{}, writeFile(t, "t.json", []byte(tt.String())))
	if f := findingOf(s, "missing_ranks"); f == nil || f.Count != 7 || rows[0].Rank != 5 {
		t.Errorf("finding %+v on rank %d, want one of 7 ranks on rank 5", f, rows[0].Rank)
	}
}

func findingOf(s *Summary, code string) *datasets.Finding {
	for i := range s.Findings {
		if s.Findings[i].Code == code {
			return &s.Findings[i]
		}
	}
	return nil
}
