package importer

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// TestOperatorsOfRealTraces compares the operators found by the threads' nesting with
// those that the profiler itself joined to kernels, by their external ids.
func TestOperatorsOfRealTraces(t *testing.T) {
	for _, c := range []struct {
		file   string
		joined int // kernels that the profiler joined to an operator
	}{
		{"testdata/cast-eager.json.gz", 1182},
		{"torch-h100-eager-casts.json.gz", 1198},
		{"torch-b200-tp8-rank0-vllm-mxfp4.json.gz", 927},
	} {
		t.Run(c.file, func(t *testing.T) {
			path := c.file
			if _, err := os.Stat(path); err != nil {
				path = public(t, path)
			}
			want := joinedOperators(t, path)
			_, rows := importTorch(t, Options{}, path)
			found, wrong := 0, 0
			for _, r := range rows {
				op, ok := want[r.Correlation]
				if r.Class == "host" || !ok {
					continue
				}
				if found++; r.Operator != op {
					if wrong++; wrong < 5 {
						t.Errorf("%s at %d: operator %q, want %q", brief(r.Kernel), r.StartNS, r.Operator, op)
					}
				}
			}
			if found != c.joined || wrong > 0 {
				t.Errorf("%d rows with an operator, %d of them wrong; want %d", found, wrong, c.joined)
			}
		})
	}
}

// joinedOperators has the operator of each correlation, by external ids.
func joinedOperators(t *testing.T, path string) map[int64]string {
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
	type torchEvent struct {
		Cat, Name string
		Args      struct {
			External    int64 `json:"External id"`
			Correlation int64 `json:"correlation"`
		}
	}
	var d struct {
		Events []json.RawMessage `json:"traceEvents"`
	}
	if err := json.NewDecoder(z).Decode(&d); err != nil {
		t.Fatal(err)
	}
	ops, out := map[int64]string{}, map[int64]string{}
	for _, pass := range []string{"operators", "kernels"} {
		for _, raw := range d.Events {
			var e torchEvent
			if json.Unmarshal(raw, &e) != nil {
				continue
			}
			switch {
			case pass == "operators" && e.Cat == "cpu_op":
				ops[e.Args.External] = e.Name
			case pass == "kernels" && (e.Cat == "kernel" || e.Cat == "gpu_memcpy" || e.Cat == "gpu_memset"):
				if op, ok := ops[e.Args.External]; ok && e.Args.External > 0 {
					out[e.Args.Correlation] = op
				}
			}
		}
	}
	return out
}

func TestSites(t *testing.T) {
	tt := &traceText{}
	call := func(cat, name string, tid int, start, dur int64) {
		tt.raw(fmt.Sprintf(`{"ph": "X", "cat": "%s", "name": "%s", "pid": 9, "tid": %d, "ts": %s, "dur": %s, "args": {"External id": 3}}`, cat, name, tid, micros(start*us), micros(dur*us)))
	}
	pair := func(at, correlation int64) {
		tt.launch("cudaLaunchKernel", at*us, 2*us, correlation)
		tt.kernel("nvjet_tst_64x8", (at+5)*us, 4*us, 7, correlation)
	}
	// Inner calls stand before outer ones, as in no particular order.
	call("cpu_op", "aten::mm", 9, 120, 20)
	call("cpu_op", "aten::linear", 9, 110, 40)
	call("python_function", "nn.Module: Linear_7", 9, 105, 50)
	call("python_function", "model.py(12): forward", 9, 101, 90)
	call("python_function", "nn.Module: Block_3", 9, 100, 100)
	call("python_function", "<built-in method linear of type object at 0x7f>", 9, 106, 48)
	call("cpu_op", "aten::other", 8, 0, 1000) // of another thread
	for pid := range 20_000 {                 // more than a trace may have processes: these are none
		tt.raw(fmt.Sprintf(`{"ph": "X", "cat": "cpu_op", "name": "aten::far", "pid": "p%d", "tid": 9, "ts": 1.000, "dur": 900.000, "args": {}}`, pid))
	}
	pair(10, 1)
	pair(125, 2)
	pair(145, 3)
	pair(160, 4)
	pair(200, 5) // as the block ends
	_, rows, err := importText(t.TempDir(), tt.String())
	if err != nil {
		t.Fatal(err)
	}
	want := map[int64][3]string{1: {}, 2: {"aten::mm", "Block/Linear", "model.py(12): forward"},
		3: {"aten::linear", "Block/Linear", "model.py(12): forward"},
		4: {"", "Block", "model.py(12): forward"}, 5: {}}
	for _, r := range rows {
		if got := [3]string{r.Operator, r.Module, r.Frame}; r.Class != "host" && got != want[r.Correlation] {
			t.Errorf("launch %d: %q, want %q", r.Correlation, got, want[r.Correlation])
		}
	}
}
