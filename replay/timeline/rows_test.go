package timeline

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
	"glmbatch/kernels"
)

// trace is a step of one sharded and one replicated call on two ranks.
func trace(step int64, shared bool) kernels.Trace {
	d := kernels.Dims{M: 2, N: 64, K: 128, Ranks: 2}
	t := kernels.Trace{Step: step, Shared: shared, Calls: []kernels.Call{
		{Kernel: "gemm_bf16", Layer: 3, Dims: d},
		{Kernel: "rms_norm", Layer: -1, Dims: d, Replicated: true},
	}}
	for r := range int64(2) {
		t.Spans = append(t.Spans, []kernels.Span{{Start: 1100 + r, End: 1200}, {Start: 1200, End: 1250 + r}})
	}
	return t
}

func rowsOf(tr kernels.Trace) []datasets.Span { return Rows(nil, &tr, 0) }

func TestRows(t *testing.T) {
	tr := trace(7, false)
	tr.Kind, tr.Times = kernels.Decode, kernels.Times{Wall: kernels.Interval{Start: 1000, End: 1400},
		Schedule: kernels.Interval{Start: 1010, End: 1050}}
	rows := HostRows(nil, 7, []HostSpan{{Name: "write", Lane: LaneWrite, Interval: kernels.Interval{Start: 1020,
		End: 1030}}}, 1000)
	rows = Rows(rows, &tr, 1000)
	if len(rows) != 1+2+4 {
		t.Fatalf("%d rows", len(rows))
	}
	host := []datasets.Span{
		{Step: 7, Rank: -1, Lane: "host.write", Call: -1, Layer: -1, Kernel: "write", Class: "host", StartNS: 20,
			EndNS: 30},
		{Step: 7, Rank: -1, Lane: "host", Call: -1, Layer: -1, Kernel: "decode", Class: "host", Evidence: "step",
			StartNS: 0, EndNS: 400},
		{Step: 7, Rank: -1, Lane: "host", Call: -1, Layer: -1, Kernel: "schedule", Class: "host", StartNS: 10,
			EndNS: 50},
	}
	if d := cmp.Diff(host, rows[:3]); d != "" {
		t.Error(d)
	}
	cost := kernels.Lookup("gemm_bf16").Cost(kernels.Dims{M: 2, N: 64, K: 128})
	want := datasets.Span{Step: 7, Rank: 1, Lane: "device", Call: 0, Layer: 3, Kernel: "gemm_bf16", Class: "gemm.bf16",
		StartNS: 101, EndNS: 200, Dims: datasets.Dims{M: 2, N: 64, K: 128,
			Ranks: 2}, Bytes: cost.HBM, FLOPs: cost.FLOPs}
	if d := cmp.Diff(want, rows[5]); d != "" {
		t.Error(d)
	}
}

// Calls that a device runs at once are on lanes of their own.
func TestRowsOfLanes(t *testing.T) {
	tr := trace(0, false)
	tr.Spans[0][1].Lane = 2
	rows := Rows(nil, &tr, 0)
	if rows[0].Lane != "device" || rows[1].Lane != "device 2" || IsHost(rows[1].Lane) {
		t.Errorf("lanes %q and %q", rows[0].Lane, rows[1].Lane)
	}
}

// Copies and launches are beside the host's own thread.
func TestRowsOfAsides(t *testing.T) {
	tr := trace(4, false)
	tr.Asides = [][]kernels.Aside{nil, {{Name: kernels.AsideLaunch, Start: 1040, End: 1090},
		{Name: kernels.AsideIn, Start: 1050, End: 1060}}}
	rows := Rows(nil, &tr, 1000)
	want := []datasets.Span{
		{Step: 4, Rank: 1, Lane: "host.launch", Call: -1, Layer: -1, Kernel: "launch", Class: "host", StartNS: 40,
			EndNS: 90},
		{Step: 4, Rank: 1, Lane: "host.copies", Call: -1, Layer: -1, Kernel: "copy in", Class: "host", StartNS: 50,
			EndNS: 60},
	}
	if d := cmp.Diff(want, rows[:2]); d != "" {
		t.Error(d)
	}
	names := new(datasets.Names)
	var roles []Role
	for _, e := range Events(rows, names)[4][:2] {
		roles = append(roles, e.Role)
	}
	if roles[0] != Beside || roles[1] != Beside {
		t.Errorf("roles %v", roles)
	}
}

// Sums over ranks are what the machine did: a replicated call of ranks that share
// a machine ran once.
func TestRowsOfSharedRanksAddUp(t *testing.T) {
	sum := func(shared bool, kernel string) (bytes int64) {
		for _, r := range rowsOf(trace(0, shared)) {
			if r.Kernel == kernel {
				bytes += r.Bytes
			}
		}
		return bytes
	}
	d := kernels.Dims{M: 2, N: 64, K: 128, Ranks: 2}
	norm, gemm := kernels.Lookup("rms_norm").Cost(d).HBM, kernels.Lookup("gemm_bf16").Cost(d).HBM
	for _, c := range []struct {
		shared bool
		kernel string
		want   int64
	}{{true, "rms_norm", norm}, {false, "rms_norm", 2 * norm}, {true, "gemm_bf16", 2 * gemm},
		{false, "gemm_bf16", 2 * gemm}} {
		if got := sum(c.shared, c.kernel); got != c.want {
			t.Errorf("shared %v, %s: %d bytes, want %d", c.shared, c.kernel, got, c.want)
		}
	}
}

// A span's experts decide a grouped call's cost.
func TestRowsCountTouchedExperts(t *testing.T) {
	d := kernels.Dims{M: 64, N: 16, K: 256, Groups: 16, TopK: 4}
	tr := kernels.Trace{Calls: []kernels.Call{{Kernel: "moe_up_fp4", Dims: d}},
		Spans: [][]kernels.Span{{{Start: 0, End: 5, Groups: 3}}}}
	r := Rows(nil, &tr, 0)[0]
	d.Groups = 3
	if want := kernels.Lookup("moe_up_fp4").Cost(d).HBM; r.Bytes != want || r.Groups != 3 {
		t.Errorf("%d bytes of %d experts, want %d of 3", r.Bytes, r.Groups, want)
	}
}

func TestLanesAndKinds(t *testing.T) {
	for lane, want := range map[string]bool{"host": true, "host 417": true, "host.read": true, "host step": true,
		"device": false, "stream 7": false, "hostess": false, "": false} {
		if IsHost(lane) != want {
			t.Errorf("IsHost(%q) is %v", lane, !want)
		}
	}
	for name, want := range map[string]string{
		"decode": kernels.Decode, "decode_step.3": kernels.Decode, "step[DECODE bs=32]": kernels.Decode,
		"step[EXTEND bs=1]": kernels.Prefill, "mixed": kernels.Mixed,
		"execute_context_0(0)_generation_8(8)":     kernels.Decode,
		"execute_context_1(512)_generation_0(0)":   kernels.Prefill,
		"execute_context_2(900)_generation_10(10)": kernels.Mixed, "ProfilerStep#12": KindUnknown, "": KindUnknown,
	} {
		if got := KindOf(name); got != want {
			t.Errorf("KindOf(%q) = %q, want %q", name, got, want)
		}
	}
}

func writeRows(t *testing.T, path string, rows []datasets.Span) {
	t.Helper()
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
}

// A step comes once and whole, also when its rows lie in several row groups
// between those of others and of no step.
func TestReaderGathersSteps(t *testing.T) {
	for _, ext := range []string{datasets.Parquet, datasets.Arrow} {
		t.Run(ext, func(t *testing.T) { gathersSteps(t, ext) })
	}
}

func gathersSteps(t *testing.T, ext string) {
	dir := t.TempDir()
	var files []string
	want := map[int64]int{}
	for part, steps := range [][]int64{{0, 1, -1, 0}, {1, 2, 3, -1}, {3, -1, 4}, {-1}, {5, 4, 6}} {
		var rows []datasets.Span
		for _, step := range steps {
			for _, r := range rowsOf(trace(step, false)) {
				r.Step = step
				rows = append(rows, r)
				want[step]++
			}
		}
		path := filepath.Join(dir, fmt.Sprintf("part-%d.%s", part, ext))
		writeRows(t, path, rows)
		files = append(files, path)
	}
	for _, c := range []struct {
		name  string
		steps Steps
		want  []int64
	}{{"all", AllSteps, []int64{0, 1, 2, 3, 4, 5, 6}}, {"a range", Steps{2, 4}, []int64{2, 3, 4}},
		{"one", Steps{6, 6}, []int64{6}}, {"none", Steps{9, 9}, nil}} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Open(files)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var got []int64
			err = r.Each(c.steps, func(step int64, rows []Event) error {
				if step < 0 {
					return nil
				}
				got = append(got, step)
				if len(rows) != want[step] {
					t.Errorf("step %d has %d rows, want %d", step, len(rows), want[step])
				}
				for _, e := range rows {
					if n := r.Names.Name(e.Kernel); n != "gemm_bf16" && n != "rms_norm" {
						t.Errorf("step %d: kernel %q", step, n)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("steps %v, want %v", got, c.want)
			}
		})
	}
}

// What is read from a file is what the same rows are in memory.
func TestReaderAgreesWithEvents(t *testing.T) {
	tr := trace(4, true)
	tr.Kind, tr.Times.Wall = kernels.Prefill, kernels.Interval{Start: 1000, End: 1400}
	rows := HostRows(Rows(nil, &tr, 0), 4, []HostSpan{{Name: "read", Lane: LaneRead,
		Interval: kernels.Interval{Start: 1, End: 2}}}, 0)
	for _, ext := range []string{datasets.Parquet, datasets.Arrow} {
		path := filepath.Join(t.TempDir(), "t."+ext)
		writeRows(t, path, rows)
		agrees(t, path, rows)
	}
}

func agrees(t *testing.T, path string, rows []datasets.Span) {
	t.Helper()
	r, err := Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var names datasets.Names
	want := Events(rows, &names)[4]
	err = r.Each(AllSteps, func(_ int64, got []Event) error {
		for i := range got {
			a, b := got[i], want[i]
			if r.Names.Name(a.Kernel) != names.Name(b.Kernel) || r.Names.Name(a.Lane) != names.Name(b.Lane) ||
				r.Names.Name(a.Class) != names.Name(b.Class) {
				t.Errorf("row %d: names differ", i)
			}
			a.Kernel, a.Lane, a.Class, b.Kernel, b.Lane, b.Class = 0, 0, 0, 0, 0, 0
			if a != b {
				t.Errorf("row %d: %+v, want %+v", i, a, b)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Damaged files end in an error that names them, or in rows; never in a panic.
func TestDamagedTimelines(t *testing.T) {
	for _, ext := range []string{datasets.Parquet, datasets.Arrow} {
		t.Run(ext, func(t *testing.T) { damaged(t, ext) })
	}
}

func damaged(t *testing.T, ext string) {
	dir := t.TempDir()
	path := filepath.Join(dir, "t."+ext)
	var rows []datasets.Span
	for step := range int64(40) {
		rows = append(rows, rowsOf(trace(step, false))...)
	}
	writeRows(t, path, rows)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad."+ext)
	failed := 0
	for i := range 400 {
		data := slices.Clone(whole)
		at := (i*7919 + 13) % len(data)
		data[at] ^= byte(1 + i%255)
		if i%10 == 0 {
			data = data[:at]
		}
		if err := os.WriteFile(bad, data, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Open([]string{bad})
		if err == nil {
			err = r.Each(AllSteps, func(int64, []Event) error { return nil })
			r.Close()
		}
		if err != nil {
			failed++
		}
	}
	if failed < 40 {
		t.Errorf("only %d of 400 damaged files were refused", failed)
	}
}

func TestPhases(t *testing.T) {
	at := func(from, to int64) kernels.Interval { return kernels.Interval{Start: from, End: to} }
	tr := kernels.Trace{
		Spans: [][]kernels.Span{{{Start: 40, End: 50}, {Start: 52, End: 60}}, {{}, {Start: 45, End: 71}}},
		Times: kernels.Times{Wall: at(10, 90), Schedule: at(10, 12), Upload: at(12, 30), Launch: at(30, 40),
			Device: at(40, 80), Sample: at(80, 90)},
	}
	want := []HostSpan{{Name: "schedule", Interval: at(10, 12)}, {Name: "upload", Interval: at(12, 30)},
		{Name: "launch", Interval: at(30, 40)},
		{Name: "wait", Interval: at(71, 80)}, {Name: "sample", Interval: at(80, 90)}}
	if got := phases(&tr); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	plain := tr
	plain.Spans = nil
	if got := phases(&plain); !slices.Equal(got, append(want[:2:2], want[4])) {
		t.Errorf("without spans: %v", got)
	}
	launched := func(n int64) { tr.Times.Launch.End, tr.Times.Device.Start = n, n }
	for _, n := range []int64{30, 80} { // the list ran while it was launched
		launched(n)
		if got := phases(&tr); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	launched(75) // it was launched when its calls had ended
	want[2].End, want[3].Start = 40, 71
	if got := phases(&tr); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// Clocks that differ a little: no phase ends before it begins.
	tr.Spans = [][]kernels.Span{{{Start: 29, End: 82}}}
	for _, n := range []int64{30, 31, 80} {
		launched(n)
		for _, p := range phases(&tr) {
			if p.NS() <= 0 {
				t.Errorf("%+v", p)
			}
		}
	}
	// Launched ahead: the tokens of the step before come first.
	tr.Times = kernels.Times{Wall: at(10, 90), Sample: at(10, 14), Schedule: at(15, 18), Upload: at(18, 20),
		Launch: at(20, 26), Device: at(26, 90)}
	tr.Spans = [][]kernels.Span{{{Start: 11, End: 84}}}
	want = []HostSpan{{Name: "sample", Interval: at(10, 14)}, {Name: "schedule", Interval: at(15, 18)},
		{Name: "upload", Interval: at(18, 20)},
		{Name: "launch", Interval: at(20, 26)}, {Name: "wait", Interval: at(84, 90)}}
	if got := phases(&tr); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
