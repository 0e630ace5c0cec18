package importer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// of is an event of a process; pid is JSON.
func (t *traceText) of(cat, name, pid string, start, dur int64, args string) {
	t.raw(fmt.Sprintf(`{"ph": "X", "cat": "%s", "name": "%s", "pid": %s, "tid": 7, "ts": %s, "dur": %s, "args": {%s}}`,
		cat, name, pid, micros(start), micros(dur), args))
}

// TestRanksOfOneFile holds that processes and devices of one file become ranks,
// each with its own launches, though their correlation ids are the same.
func TestRanksOfOneFile(t *testing.T) {
	const n = 20
	for _, c := range []struct {
		name    string
		call    func(rank int64) string // pids
		kernel  func(rank int64) (pid string, device int64)
		numbers []int32
		shared  bool // the ranks share their correlation ids' space
	}{
		{"labels of SGLang", func(r int64) string { return fmt.Sprintf(`"[TP%02d-DP00-PP00-EP00] 80%d"`, r, r) },
			func(r int64) (string, int64) { return fmt.Sprintf(`"[TP%02d-DP00-PP00-EP00] %d"`, r, r), r }, []int32{0, 1,
				2}, false},
		{"labels without numbers", func(r int64) string { return fmt.Sprintf(`"[node %c] 9"`, 'a'+rune(r)) },
			func(r int64) (string, int64) { return fmt.Sprintf(`"[node %c] 0"`, 'a'+rune(r)), 0 }, []int32{0, 1,
				2}, false},
		{"processes with devices of their own", func(r int64) string { return fmt.Sprint(900 + r) },
			func(r int64) (string, int64) { return fmt.Sprint(r), r }, []int32{0, 1, 2}, false},
		{"processes that share a device", func(r int64) string { return fmt.Sprint(900 + r) },
			func(int64) (string, int64) { return "0", 0 }, []int32{0, 1, 2}, false},
		{"devices of one process", func(int64) string { return "900" },
			func(r int64) (string, int64) { return fmt.Sprint(r), r }, []int32{0, 1, 2}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tt := &traceText{}
			for i := range int64(n) {
				for r := range int64(3) {
					correlation := 1 + i
					if c.shared {
						correlation = 1 + 3*i + r
					}
					args := fmt.Sprintf(`"correlation": %d`, correlation)
					at := 1000*us + i*100*us + r*30*us
					tt.of("cuda_runtime", "cudaLaunchKernel", c.call(r), at, 3*us, args)
					pid, device := c.kernel(r)
					tt.of("kernel", "nvjet_tst_64x8", pid, at+5*us, (10+r)*us,
						fmt.Sprintf(`%s, "device": %d, "stream": 7`, args, device))
				}
			}
			rand.New(rand.NewPCG(1, 2)).Shuffle(len(tt.events),
				func(i, j int) { tt.events[i], tt.events[j] = tt.events[j], tt.events[i] })
			s, rows, err := importText(t.TempDir(), tt.String())
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Ranks) != len(c.numbers) {
				t.Fatalf("%d ranks", len(s.Ranks))
			}
			for r, k := range s.Ranks {
				if k.Rank != c.numbers[r] || k.Kernels != n || k.Calls != n || k.KernelNS != n*int64(10+r)*us {
					t.Errorf("%+v", k)
				}
			}
			launched := map[string]int64{}
			for _, r := range rows {
				if r.Evidence == timeline.RoleLaunch {
					launched[fmt.Sprint(r.Rank, " ", r.Correlation)] = r.EndNS
				}
			}
			for _, r := range rows {
				if at, ok := launched[fmt.Sprint(r.Rank, " ", r.Correlation)]; !timeline.IsHost(r.Lane) &&
					(!ok || r.StartNS != at+2*us) {
					t.Errorf("rank %d: work at %d was launched until %d", r.Rank, r.StartNS, at)
				}
			}
			checkIdle(t, s, rows)
		})
	}
}

// TestDecimalCommas holds that numbers printed by a German locale cost an argument,
// never an event.
func TestDecimalCommas(t *testing.T) {
	tt := &traceText{}
	tt.pairs(20, 1000*us)
	for i, line := range tt.events {
		line = strings.Replace(line, `"args": {`, `"args": {"blocks per SM": 0,015152, "warps per SM": [1.5,2], `, 1)
		tt.events[i] = strings.Replace(line, `"dur": 4.000`, `"dur": 4,250`, 1)
	}
	s, rows, err := importText(t.TempDir(), tt.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Findings {
		if f.Severity == severityUnreliable || f.Code == "decimal_commas" && f.Count != 60 {
			t.Errorf("%+v", f)
		}
	}
	if k := s.Ranks[0]; k.Kernels != 20 || k.KernelNS != 20*4250 {
		t.Errorf("%+v", k)
	}
	for _, r := range rows {
		if !timeline.IsHost(r.Lane) && (r.GridX != 10 || r.Correlation == 0) {
			t.Errorf("%+v", r)
		}
	}
}

// TestListWithoutEnd: a bare list of events may lack its bracket.
func TestListWithoutEnd(t *testing.T) {
	tt := &traceText{}
	tt.pairs(20, 1000*us)
	list := "[\n" + strings.Join(tt.events, ",\n")
	for name, text := range map[string]string{"whole": list + "]", "no bracket": list, "a comma": list + ",\n"} {
		s, _, err := importText(t.TempDir(), text)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.Findings {
			if f.Code == "truncated" {
				t.Errorf("%s: %s", name, f.Text)
			}
		}
		if s.Ranks[0].Kernels != 20 {
			t.Errorf("%s: %d kernels", name, s.Ranks[0].Kernels)
		}
	}
	s, _, err := importText(t.TempDir(), list[:len(list)-20])
	if err != nil || s.Findings[0].Code != "truncated" {
		t.Errorf("cut inside an event: %v, %v", s, err)
	}
}

// TestKindsOfFiles names what a file is that is no trace, and why there is no GPU work.
func TestKindsOfFiles(t *testing.T) {
	tar := make([]byte, 600)
	copy(tar[257:], "ustar")
	for _, c := range []struct{ name, text, say string }{
		{"zip", "PK\x03\x04rest", "a zip archive"},
		{"tar", string(tar), "a tar archive"},
		{"SQLite", "SQLite format 3\x00", "import nsys"},
		{"zstd", "\x28\xb5\x2f\xfdabc", "zstd"},
		{"Perfetto", "\x0a\x10\x08\x01", "Perfetto"},
		{"XPlane", "\x0a\x20\x08\x01\x12/device:GPU:0", "XPlane"},
		{"Parquet", "PAR1abcdefgh", "Parquet"},
		{"legacy",
			`[{"name": "aten::add", "ph": "X", "ts": 1, "dur": 2, "tid": 0, "pid": "CUDA functions", "args": {}}]`,
			"before PyTorch 1.8"},
		{"names only",
			`{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "python"}}]}`,
			"no events at all"},
		{"CPU only",
			`{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}`, "nothing but events of the CPU: 1 ("},
	} {
		_, _, err := importText(t.TempDir(), c.text)
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v does not say %q", c.name, err, c.say)
		}
	}
}

// TestRefusalHasFindings: what was found before a refusal is not lost.
func TestRefusalHasFindings(t *testing.T) {
	n := sampleNsys()
	n.kernels, n.memcpy, n.memset = nil, nil, nil
	n.notes = []nsysDiagnostic{{Severity: 3, Text: "Installed CUDA driver version (590.1) is not supported by this " +
		"build"}}
	_, err := Nsys([]string{n.sqlite(t)}, Options{}, func([]datasets.Span) error { return nil })
	var r *Refusal
	if !errors.As(err, &r) || !errors.Is(err, ErrRefused) || len(r.Findings) == 0 ||
		!strings.Contains(err.Error(), "driver version (590.1) is not supported") {
		t.Errorf("%v, %+v", err, r)
	}
}
