package report

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"glmbatch/datasets"
	"glmbatch/golden"
	"glmbatch/replay/importer"
	"glmbatch/replay/timeline"
)

// slice is a span as it was read back from an export.
type slice struct {
	process, lane, name, class string
	start, length              int64
}

// totals are the spans and the time of each (process, lane without its overlap, class).
func totalsOf(slices []slice) map[string][2]int64 {
	m := map[string][2]int64{}
	for _, s := range slices {
		lane, _, _ := strings.Cut(s.lane, " (overlap")
		key := s.process + "/" + lane + "/" + s.class
		m[key] = [2]int64{m[key][0] + 1, m[key][1] + s.length}
	}
	return m
}

// readChrome reads a Chrome trace; times are exact decimals.
func readChrome(data []byte) ([]slice, error) {
	var f struct {
		Events []struct {
			Ph, Cat, Name string
			Pid, Tid      int
			Ts, Dur       json.Number
			Args          struct {
				Name  string
				Class string
			}
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	processes, lanes := map[int]string{}, map[[2]int]string{}
	var out []slice
	for _, e := range f.Events {
		switch {
		case e.Ph == "M" && e.Name == "process_name":
			processes[e.Pid] = e.Args.Name
		case e.Ph == "M" && e.Name == "thread_name":
			lanes[[2]int{e.Pid, e.Tid}] = e.Args.Name
		case e.Ph == "X":
			ns := func(n json.Number) int64 {
				whole, rest, _ := strings.Cut(string(n), ".")
				if len(rest) != 3 {
					return -1 << 60
				}
				v, err := strconv.ParseInt(whole+rest, 10, 64)
				if err != nil {
					return -1 << 60
				}
				return v
			}
			class := e.Args.Class
			if class == "" {
				class = "host"
			}
			out = append(out, slice{processes[e.Pid], lanes[[2]int{e.Pid, e.Tid}], e.Name, class, ns(e.Ts) - lead,
				ns(e.Dur)})
		}
	}
	return out, nil
}

// fields splits a protobuf message.
func fields(b []byte) (map[int][]uint64, map[int][][]byte, error) {
	numbers, texts := map[int][]uint64{}, map[int][][]byte{}
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, nil, errors.New("bad tag")
		}
		b = b[n:]
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, nil, errors.New("bad value")
		}
		b = b[n:]
		switch field := int(tag >> 3); tag & 7 {
		case 0:
			numbers[field] = append(numbers[field], v)
		case 2:
			if v > uint64(len(b)) {
				return nil, nil, errors.New("cut off")
			}
			texts[field] = append(texts[field], b[:v])
			b = b[v:]
		default:
			return nil, nil, fmt.Errorf("wire type %d", tag&7)
		}
	}
	return numbers, texts, nil
}

// readPerfetto reads a TrackEvent trace as a viewer does: an end closes the span
// of its track that began last.
func readPerfetto(data []byte) ([]slice, error) {
	_, packets, err := fields(data)
	if err != nil {
		return nil, err
	}
	type track struct{ name, process string }
	tracks, processes := map[uint64]track{}, map[uint64]string{}
	interned := map[int]map[uint64]string{internedEventNames: {}, internedCategories: {}}
	open := map[uint64][]slice{}
	var out []slice
	var last uint64
	for _, p := range packets[tracePacket] {
		n, m, err := fields(p)
		if err != nil {
			return nil, err
		}
		for _, d := range m[packetDescriptor] {
			dn, dm, _ := fields(d)
			if process := dm[trackProcess]; process != nil {
				_, pm, _ := fields(process[0])
				processes[dn[trackUUID][0]] = string(pm[processName][0])
			} else {
				tracks[dn[trackUUID][0]] = track{string(dm[trackName][0]), processes[dn[trackParent][0]]}
			}
		}
		for _, d := range m[packetInterned] {
			_, dm, _ := fields(d)
			for field, texts := range interned {
				for _, x := range dm[field] {
					xn, xm, _ := fields(x)
					texts[xn[internedIID][0]] = string(xm[internedText][0])
				}
			}
		}
		for _, e := range m[packetEvent] {
			at := n[packetTimestamp][0]
			if at < last {
				return nil, errors.New("packets are not in order")
			}
			last = at
			en, _, _ := fields(e)
			id := en[eventTrack][0]
			tr, ok := tracks[id]
			if !ok {
				return nil, errors.New("a span on an unknown track")
			}
			if en[eventType][0] == sliceBegin {
				open[id] = append(open[id], slice{tr.process, tr.name, interned[internedEventNames][en[eventName][0]],
					interned[internedCategories][en[eventCategory][0]], int64(at), 0})
				continue
			}
			n := len(open[id])
			if n == 0 {
				return nil, errors.New("an end without a begin")
			}
			s := open[id][n-1]
			s.length = int64(at) - s.start
			open[id] = open[id][:n-1]
			out = append(out, s)
		}
	}
	for _, o := range open {
		if len(o) > 0 {
			return nil, errors.New("a span without an end")
		}
	}
	return out, nil
}

// wanted are the spans that an export of rows must have.
func wanted(rows []datasets.Span) []slice {
	first := rows[0].StartNS
	for _, r := range rows {
		first = min(first, r.StartNS)
	}
	var out []slice
	for _, r := range rows {
		process := "host"
		if r.Rank >= 0 {
			process = fmt.Sprintf("rank %d", r.Rank)
		}
		out = append(out, slice{process, r.Lane, "", r.Class, r.StartNS - first, r.EndNS - r.StartNS})
	}
	return out
}

// crossing returns two spans of one lane that overlap without nesting.
func crossing(list []slice) (a, b slice, found bool) {
	slices.SortStableFunc(list, func(a, b slice) int {
		return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.lane, b.lane), cmp.Compare(a.start, b.start),
			cmp.Compare(b.length, a.length))
	})
	for i, a := range list {
		for _, b := range list[i+1:] {
			if b.process != a.process || b.lane != a.lane || b.start >= a.start+a.length {
				break
			}
			if b.start+b.length > a.start+a.length {
				return a, b, true
			}
		}
	}
	return slice{}, slice{}, false
}

var readers = map[string]func([]byte) ([]slice, error){"chrome": readChrome, "perfetto": readPerfetto}

func exported(t interface {
	Helper()
	Fatal(...any)
}, dir string, rows []datasets.Span, viewer string) []slice {
	t.Helper()
	in, out := filepath.Join(dir, "in.parquet"), filepath.Join(dir, "out."+viewer)
	w, err := datasets.Create[datasets.Span](in, nil)
	if err == nil {
		err = w.Write(rows)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := (Source{Path: in}).Export(out, viewer, timeline.AllSteps); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	list, err := readers[viewer](data)
	if err != nil {
		t.Fatal(viewer, err)
	}
	return list
}

// Whatever overlaps, an export has every span with its exact time, and no lane has
// spans that cross.
func TestExportKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) datasets.Span {
			s := datasets.Span{Call: -1, Layer: -1, Rank: rapid.Int32Range(-1, 2).Draw(t, "rank"),
				Lane:    rapid.SampledFrom([]string{"device", "stream 7", "stream 13"}).Draw(t, "lane"),
				Class:   rapid.SampledFrom([]string{"gemm", "attn", "memcpy.d2d"}).Draw(t, "class"),
				StartNS: rapid.Int64Range(0, 40).Draw(t, "start")}
			s.EndNS = s.StartNS + rapid.Int64Range(0, 20).Draw(t, "length")
			s.Kernel = s.Class + "\"\x01<é>"
			if s.Rank < 0 {
				s.Lane, s.Class = "host", "host"
			}
			return s
		}), 1, 25).Draw(t, "rows")
		for viewer := range readers {
			got := exported(t, dir, rows, viewer)
			if d := gocmp.Diff(totalsOf(wanted(rows)), totalsOf(got)); d != "" {
				t.Fatalf("%s: %s", viewer, d)
			}
			if a, b, found := crossing(got); found {
				t.Fatalf("%s: %+v and %+v cross", viewer, a, b)
			}
			starts := func(list []slice) (at []int64) {
				for _, s := range list {
					at = append(at, s.start)
				}
				slices.Sort(at)
				return at
			}
			if !slices.Equal(starts(got), starts(wanted(rows))) {
				t.Fatalf("%s: the starts differ", viewer)
			}
		}
	})
}

// The export of a run adds up to the ledger's classes, to the nanosecond.
func TestExportAddsUpToTheReport(t *testing.T) {
	rows := example(false)
	r := load(t, rows, Options{})
	total := r.total()
	for viewer := range readers {
		sums := map[string]int64{}
		for _, s := range exported(t, t.TempDir(), rows, viewer) {
			sums[s.class] += s.length
		}
		for _, c := range total.Classes {
			if sums[c.Class] != c.Self {
				t.Errorf("%s, %s: %d ns, the report has %d", viewer, c.Class, sums[c.Class], c.Self)
			}
		}
	}
}

// Spans that overlap on one stream come back from the importer as they were.
func TestOverlapSurvivesReimport(t *testing.T) {
	dir := t.TempDir()
	rows := []datasets.Span{
		{Lane: "host step", Kernel: "decode_step.4", Class: "host", Evidence: "step", Call: -1, Layer: -1, Step: 4,
			StartNS: 0, EndNS: 9000},
		{Lane: "host 9", Kernel: "cudaGraphLaunch", Class: "host", Evidence: "launch", Call: -1, Layer: -1, Step: 4,
			StartNS: 10, EndNS: 500, Correlation: 77},
	}
	for i, name := range []string{"nvjet_tst_64x8_TNT", "fused_add_rms_norm_kernel", "nvjet_tst_64x8_TNT",
		"reshape_and_cache_flash_kernel"} {
		class, _ := importer.Classify(name)
		rows = append(rows, datasets.Span{Lane: "stream 7", Kernel: name, Class: class, Call: -1, Layer: -1, Step: 4,
			StartNS: 1000 + int64(i)*1000, EndNS: 2000 +
				int64(i)*1000 + 137, Correlation: 77, GridX: 8, GridY: 2, GridZ: 1, BlockX: 128, BlockY: 1, BlockZ: 1})
	}
	in, out := writeRows(t, rows), filepath.Join(dir, "trace.json")
	if _, _, err := (Source{Path: in}).Export(out, "chrome", timeline.AllSteps); err != nil {
		t.Fatal(err)
	}
	var again []datasets.Span
	if _, err := importer.Torch([]string{out}, importer.Options{}, func(rows []datasets.Span) error {
		again = append(again, rows...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	before, after := load(t, rows, Options{}), load(t, again, Options{})
	if overlap := before.Sections[0].Overlap; overlap != 3*137 {
		t.Fatalf("the example overlaps for %d ns", overlap)
	}
	if d := gocmp.Diff(before.Sections, after.Sections,
		gocmp.FilterPath(func(p gocmp.Path) bool { return p.Last().String() == ".Key" }, gocmp.Ignore())); d != "" {
		t.Error(d)
	}
}

// An export that is read again has the ranks, steps, classes, counts and times that
// it was made of, also where names and annotations tell nothing.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		var rows []datasets.Span
		id := int64(0)
		for rank := range int32(rapid.IntRange(1, 3).Draw(t, "ranks")) {
			at := rapid.Int64Range(0, 1000).Draw(t, "begin")
			for step := range int64(rapid.IntRange(1, 3).Draw(t, "steps")) {
				from := at
				for range rapid.IntRange(1, 5).Draw(t, "kernels") {
					id++
					class := rapid.SampledFrom([]string{"gemm.bf16", "mine", "memcpy.d2d", "kv.cast", "memset"}).Draw(t,
						"class")
					k := datasets.Span{Step: step - 1, Rank: rank, Call: -1,
						Layer: rapid.Int32Range(-1, 5).Draw(t, "layer"), Lane: rapid.SampledFrom([]string{"stream 7",
							"stream 13"}).Draw(t, "lane"),
						Kernel: "Memcpy DtoD", Class: class, StartNS: at + 20, EndNS: at + 20 +
							rapid.Int64Range(1, 50).Draw(t, "length"), Correlation: id, Bytes: 2 * rapid.Int64Range(1,
							99).Draw(t, "bytes")}
					rows = append(rows, k, datasets.Span{Step: k.Step, Rank: rank, Call: -1, Layer: -1,
						Lane: "host 144", Kernel: "cudaLaunchKernel", Class: "host", Evidence: "launch", StartNS: at,
						EndNS: at + 10, Correlation: id})
					at += rapid.Int64Range(12, 60).Draw(t, "pause")
				}
				if step > 0 {
					rows = append(rows, datasets.Span{Step: step - 1, Rank: rank, Call: -1, Layer: -1,
						Lane: "host step", Kernel: "execute 7 things", Class: "host", Evidence: "step",
						StartNS: from, EndNS: at})
				}
			}
		}
		in, out := filepath.Join(dir, "in.parquet"), filepath.Join(dir, "trace.json")
		w, err := datasets.Create[datasets.Span](in, nil)
		if err == nil {
			err = errors.Join(w.Write(rows), w.Close())
		}
		if err == nil {
			_, _, err = (Source{Path: in}).Export(out, "chrome", timeline.AllSteps)
		}
		if err != nil {
			t.Fatal(err)
		}
		var again []datasets.Span
		if _, err := importer.Torch([]string{out}, importer.Options{}, func(rows []datasets.Span) error {
			again = append(again, rows...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		first := func(rows []datasets.Span) int64 {
			return slices.MinFunc(rows, func(a, b datasets.Span) int {
				return cmp.Compare(a.StartNS,
					b.StartNS)
			}).StartNS
		}
		told := func(rows []datasets.Span) (list []string) {
			from := first(rows)
			for _, r := range rows {
				list = append(list, fmt.Sprint(r.Step, r.Rank, r.Lane, r.Layer, r.Kernel, r.Class, r.StartNS-from,
					r.EndNS-from, r.Correlation, r.Bytes))
			}
			slices.Sort(list)
			return list
		}
		if d := gocmp.Diff(told(rows), told(again)); d != "" {
			t.Fatal(d)
		}
	})
}

// One span with a time that cannot be true spoils no other, and is counted.
func TestExportOfAnyTimes(t *testing.T) {
	dir := t.TempDir()
	for _, wild := range [][2]int64{{math.MinInt64, math.MinInt64 + 5}, {math.MinInt64, math.MaxInt64},
		{math.MaxInt64 - 1, math.MaxInt64}, {50, math.MaxInt64}, {50, 20}, {-1 << 62, 1 << 62}} {
		rows := []datasets.Span{kernel("gemm", 10, 20), kernel("attn", 20, 40), kernel("norm", 60, 70)}
		bad := kernel("wild", wild[0], wild[1])
		bad.Lane = "stream 8"
		rows = append(rows, bad)
		for viewer := range readers {
			out := filepath.Join(dir, "out."+viewer)
			n, left, err := (Source{Path: writeRows(t, rows)}).Export(out, viewer, timeline.AllSteps)
			if err != nil || n != 3 || left != 1 {
				t.Errorf("%v, %s: %d spans, %d left out, %v", wild, viewer, n, left, err)
				continue
			}
			data, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			list, err := readers[viewer](data)
			if err != nil || len(list) != 3 {
				t.Errorf("%v, %s: %d spans read back, %v", wild, viewer, len(list), err)
			}
			var b bytes.Buffer
			page, err := Source{Path: writeRows(t, rows)}.Page(Options{})
			if err == nil {
				err = page.Write(&b)
			}
			if err != nil || !strings.Contains(page.note, "spans with impossible times, which are not shown: 1") {
				t.Errorf("%v: page: %v", wild, err)
			}
		}
	}
}

func TestCellsOfSpreadsheets(t *testing.T) {
	for in, want := range map[string]string{"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\tx": "'\tx",
		"gemm": "gemm", "": "", "void f": "void f"} {
		if got := datasets.Cell(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestExportErrors(t *testing.T) {
	dir := t.TempDir()
	in := writeRows(t, example(false))
	if _, _, err := (Source{Path: in}).Export(filepath.Join(dir, "x"), "chrome",
		timeline.Steps{From: 70, To: 80}); err == nil || !strings.Contains(err.Error(), "no spans in the steps") {
		t.Errorf("steps that are not there: %v", err)
	}
	if _, _, err := (Source{Path: in}).Export(filepath.Join(dir, "none", "x"), "chrome",
		timeline.AllSteps); err == nil {
		t.Error("written into a folder that is not there")
	}
	if _, _, err := (Source{Path: in}).Export(dir, "chrome", timeline.AllSteps); err == nil ||
		!strings.HasSuffix(err.Error(), "is a folder: give the name of a file") {
		t.Errorf("written in place of a folder: %v", err)
	}
	if n, _, err := (Source{Path: in}).Export(filepath.Join(dir, "x.json.gz"), "chrome",
		timeline.Steps{From: 2, To: 3}); err != nil || n != 2*(5+2*len(calls(1))) {
		t.Errorf("%d spans, %v", n, err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*.part"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDiff(t *testing.T) {
	fast, slow := example(false), example(false)
	for i := range slow {
		if slow[i].Class == "attn" && slow[i].Rank == 0 && slow[i].Step > 0 {
			slow[i].EndNS += 50_000
		}
	}
	a, b := load(t, fast, DiffOptions("")), load(t, slow, DiffOptions(""))
	d, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]Verdict{}
	for _, k := range d.Kinds {
		var sum float64
		for _, c := range k.Ledger {
			sum += c.Delta
			verdicts[k.Kind+" "+c.Name] = c.Verdict
		}
		if diff := sum - k.Wall.Delta; diff > 1e-6 || diff < -1e-6 {
			t.Errorf("%s: changes add up to %g of %g ns", k.Kind, sum, k.Wall.Delta)
		}
	}
	for what, want := range map[string]Verdict{"prefill attn": Same, "decode attn": Slower, "decode overlap": Slower,
		"prefill overlap": Same} {
		if verdicts[what] != want {
			t.Errorf("%s: %q, want %q", what, verdicts[what], want)
		}
	}
	same, err := Compare(a, a)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range same.Kinds {
		for _, c := range append(k.Kernels, k.Ledger...) {
			if c.Verdict != Same || c.Delta != 0 {
				t.Errorf("%s differs from itself: %+v", c.Name, c)
			}
		}
	}
	for _, f := range DiffFormats {
		var b bytes.Buffer
		if err := d.Write(&b, f, Style{}); err != nil {
			t.Error(err)
		}
		golden.Check(t, "diff."+f, b.String())
	}
}
