package importer

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"glmbatch/datasets"
)

// moving finds what differs between repetitions of a trace: times, correlations
// and the numbers of steps.
var moving = regexp.MustCompile(`"(ts|correlation|id|External id)": (\d+)|"name": "(decode_step)\.(\d+)"`)

// repeatTrace writes a torch trace many times over, each time later and with
// correlations of its own, as one trace.
func repeatTrace(t testing.TB, w io.Writer, path string, times int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	start := regexp.MustCompile(`"traceEvents": \[`).FindIndex(body)[1]
	end := regexp.MustCompile(`\n *\],\n *"traceName"`).FindIndex(body)[0]
	head, events, tail := body[:start], body[start:end], body[end:]
	out := bufio.NewWriterSize(w, 1<<20)
	out.Write(head)
	places := moving.FindAllSubmatchIndex(events, -1)
	const period, ids, steps = 1_000_000, 1_000_000, 3
	for n := range times {
		if n > 0 {
			out.WriteByte(',')
		}
		at := 0
		for _, m := range places {
			group, add := 4, int64(n*ids)
			switch {
			case m[6] >= 0:
				group, add = 8, int64(n*steps)
			case events[m[2]] == 't':
				add = int64(n * period)
			}
			out.Write(events[at:m[group]])
			v, _ := strconv.ParseInt(string(events[m[group]:m[group+1]]), 10, 64)
			out.WriteString(strconv.FormatInt(v+add, 10))
			at = m[group+1]
		}
		out.Write(events[at:])
	}
	out.Write(tail)
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestRepeated imports a trace that is one of ours many times over: every sum is
// that many times the sum of the one.
func TestRepeated(t *testing.T) {
	const times = 5
	path := filepath.Join(t.TempDir(), "repeated.json")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	repeatTrace(t, f, "testdata/cast-graph.json.gz", times)
	f.Close()
	s, rows := importTorch(t, Options{}, path)
	if got, want := s.Ranks[0].KernelNS, int64(times*19776782); got != want {
		t.Errorf("kernels take %d ns, want %d", got, want)
	}
	if s.Steps != 3*times {
		t.Errorf("%d steps, want %d", s.Steps, 3*times)
	}
	casts := map[int64]int{}
	for _, r := range rows {
		if r.Class == "kv.cast" {
			casts[r.Step]++
		}
	}
	for step := range int64(3 * times) {
		if casts[step] != 6 {
			t.Errorf("step %d has %d casts of the pool, want 6", step, casts[step])
		}
	}
}

// BenchmarkTorch reports the speed in bytes of JSON. GLMBATCH_TRACE_MB sets the
// size of the trace, 64 MB by default.
func BenchmarkTorch(b *testing.B) {
	megabytes := int64(64)
	if v, err := strconv.ParseInt(os.Getenv("GLMBATCH_TRACE_MB"), 10, 64); err == nil {
		megabytes = v
	}
	for _, name := range []string{"cast-eager", "cast-graph"} {
		b.Run(name, func(b *testing.B) {
			source := filepath.Join("testdata", name+".json.gz")
			path := filepath.Join(b.TempDir(), "trace.json")
			var one counter
			repeatTrace(b, &one, source, 1)
			f, err := os.Create(path)
			if err != nil {
				b.Fatal(err)
			}
			repeatTrace(b, f, source, int(megabytes*1e6/int64(one)+1))
			f.Close()
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(info.Size())
			b.ReportAllocs()
			for b.Loop() {
				s, err := Torch([]string{path}, Options{}, func([]datasets.Span) error { return nil })
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(s.Rows), "rows")
			}
		})
	}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// importTorch imports traces and keeps their rows.
func importTorch(t testing.TB, o Options, paths ...string) (*Summary, []datasets.Span) {
	t.Helper()
	var rows []datasets.Span
	s, err := Torch(paths, o, func(r []datasets.Span) error {
		rows = append(rows, r...)
		return nil
	})
	if err != nil {
		t.Fatal(fmt.Errorf("importing %v: %w", paths, err))
	}
	return s, rows
}
