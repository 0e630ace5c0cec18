package report

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// Viewer is a format that trace viewers read.
type Viewer struct {
	Name  string
	Help  string
	write func(w io.Writer, t *tracks) error
}

// Viewers has all formats of [Source.Export].
var Viewers = []Viewer{
	{"perfetto", "TrackEvent protobuf, for ui.perfetto.dev", writePerfetto},
	{"chrome", "JSON, for ui.perfetto.dev, chrome://tracing and importers of torch.profiler files", writeChrome},
}

// maxExport bounds the spans of one export: viewers take no more.
const maxExport = 2_000_000

// Export writes steps of the timeline to out in a viewer's format, compressed if out
// ends in ".gz". It returns how many spans were written, and how many were left out:
// those that end before they start, and those too far from the others in time for any
// viewer. Times stay exact to the nanosecond; spans of one lane that cross each other go
// to further lanes, since viewers drop what does not nest.
func (s Source) Export(out, viewer string, steps timeline.Steps) (spans, left int, err error) {
	i := slices.IndexFunc(Viewers, func(v Viewer) bool { return v.Name == viewer })
	if i < 0 {
		return 0, 0, fmt.Errorf("no viewer %q", viewer)
	}
	t, err := s.gather(steps)
	if err != nil {
		return 0, 0, err
	}
	return len(t.events), t.left, writeAside(out, func(w io.Writer) error { return Viewers[i].write(w, t) })
}

// writeAside writes a file under another name and renames it when it is whole.
func writeAside(out string, write func(io.Writer) error) error {
	if _, err := os.Stat(filepath.Dir(out)); err != nil { // a mistyped folder is not made
		return err
	}
	f, err := datasets.CreateAside(out)
	if err != nil {
		return err
	}
	if strings.HasSuffix(out, ".gz") {
		z := gzip.NewWriter(f)
		err = write(z)
		if cerr := z.Close(); err == nil {
			err = cerr
		}
	} else {
		err = write(f)
	}
	if err != nil {
		f.Abort()
		return fmt.Errorf("writing %s: %w", out, err)
	}
	return f.Commit()
}

// tracks are the spans of an export, by start, and the lanes that they are on.
type tracks struct {
	names  *datasets.Names
	events []placed
	lanes  []lane // in the order in which they are shown
	start  int64  // of the first span
	left   int    // spans that were left out
}

// farthest is how far from the middle of a timeline a span may lie, in ns: 18 years.
// Viewers keep times in 64 bits, so that one span further out would spoil all.
const farthest = 1 << 59

// dropFar leaves out the spans that lie too far from the others.
func (t *tracks) dropFar() {
	if len(t.events) == 0 {
		return
	}
	first, last := t.events[0].Start, t.events[0].End
	for i := range t.events {
		first, last = min(first, t.events[i].Start), max(last, t.events[i].End)
	}
	if apart(first, last) <= farthest {
		return
	}
	starts := make([]int64, len(t.events))
	for i := range t.events {
		starts[i] = t.events[i].Start
	}
	slices.Sort(starts)
	middle, n := starts[len(starts)/2], len(t.events)
	t.events = slices.DeleteFunc(t.events, func(e placed) bool {
		return apart(e.Start, middle) > farthest ||
			apart(e.End, middle) > farthest
	})
	t.left += n - len(t.events)
}

// apart is how far two times lie apart, whatever they are.
func apart(a, b int64) uint64 { return uint64(max(a, b)) - uint64(min(a, b)) }

// placed is a span and the lane that it is on.
type placed struct {
	timeline.Event
	step  int64
	lane  int32 // index into lanes
	other bool  // of a page: it belongs to another step
}

// lane is a row of a viewer: spans on it nest.
type lane struct {
	rank    int32 // -1: the host of all ranks
	name    string
	overlap int // 0: the lane itself; n: the n-th for spans that cross others
	host    bool
	number  int32 // of its rank's lanes, from 1
}

// title is what a viewer shows.
func (l *lane) title() string {
	if l.overlap > 0 {
		return fmt.Sprintf("%s (overlap %d)", l.name, l.overlap)
	}
	return l.name
}

// gather reads the spans of steps, and of no step where all steps are asked for.
func (s Source) gather(steps timeline.Steps) (*tracks, error) {
	r, err := s.open(timeline.OpenDetail, timeline.NoSite)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	t := &tracks{names: &r.Names}
	err = r.Each(steps, func(step int64, rows []timeline.Event) error {
		if step < 0 && steps != timeline.AllSteps {
			return nil
		}
		if len(t.events)+len(rows) > maxExport {
			return fmt.Errorf("%s: more than %d spans, which no viewer opens: choose some with --steps a..b", s.Path,
				maxExport)
		}
		for i := range rows {
			if rows[i].End < rows[i].Start {
				t.left++
				continue
			}
			t.events = append(t.events, placed{Event: rows[i], step: step})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.dropFar()
	if len(t.events) == 0 {
		return nil, fmt.Errorf("%s: no spans in the steps asked for", s.Path)
	}
	t.place()
	return t, nil
}

// laneID is a lane as the rows name it.
type laneID struct {
	rank int32
	name int32
}

// place sorts the spans and puts each on the first lane on which it nests.
func (t *tracks) place() {
	slices.SortStableFunc(t.events, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	t.start = t.events[0].Start
	open := map[laneID][]int32{} // the lanes of a row's lane
	var ends [][]int64           // of the spans that are open on each lane, outermost first
	for i := range t.events {
		e := &t.events[i]
		id := laneID{e.Rank, e.Lane}
		e.lane = -1
		for _, l := range open[id] {
			for n := len(ends[l]); n > 0 && ends[l][n-1] <= e.Start; n-- {
				ends[l] = ends[l][:n-1]
			}
			if n := len(ends[l]); n == 0 || e.End <= ends[l][n-1] {
				e.lane = l
				break
			}
		}
		if e.lane < 0 {
			e.lane = int32(len(t.lanes))
			name := t.names.Name(e.Lane)
			t.lanes = append(t.lanes, lane{rank: e.Rank, name: name, overlap: len(open[id]),
				host: timeline.IsHost(name)})
			open[id] = append(open[id], e.lane)
			ends = append(ends, nil)
		}
		ends[e.lane] = append(ends[e.lane], e.End)
	}
	t.order()
}

// order puts the lanes into the order in which viewers show them, and numbers them.
func (t *tracks) order() {
	byPlace := make([]int32, len(t.lanes))
	for i := range byPlace {
		byPlace[i] = int32(i)
	}
	slices.SortStableFunc(byPlace, func(a, b int32) int {
		x, y := &t.lanes[a], &t.lanes[b]
		host := func(l *lane) int {
			if l.host {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(host(x), host(y)), natural(x.name, y.name),
			cmp.Compare(x.overlap, y.overlap))
	})
	lanes, at := make([]lane, len(t.lanes)), make([]int32, len(t.lanes))
	for i, old := range byPlace {
		lanes[i], at[old] = t.lanes[old], int32(i)
		lanes[i].number = 1
		if i > 0 && lanes[i-1].rank == lanes[i].rank {
			lanes[i].number = lanes[i-1].number + 1
		}
	}
	t.lanes = lanes
	for i := range t.events {
		t.events[i].lane = at[t.events[i].lane]
	}
}

// natural compares names that end in numbers: "stream 7" is before "stream 13".
func natural(a, b string) int {
	cut := func(s string) (string, int) {
		i := len(strings.TrimRight(s, "0123456789"))
		n, _ := strconv.Atoi(s[i:])
		return s[:i], n
	}
	textA, nA := cut(a)
	textB, nB := cut(b)
	return cmp.Or(cmp.Compare(textA, textB), cmp.Compare(nA, nB), cmp.Compare(a, b))
}

// process is the number and name of a rank's process in a viewer; the host of
// all ranks comes behind them.
func (t *tracks) process(rank int32) (pid int32, name string) {
	if rank >= 0 {
		return rank, fmt.Sprintf("rank %d", rank)
	}
	for i := range t.lanes {
		pid = max(pid, t.lanes[i].rank+1)
	}
	return pid, "host"
}

// argument is a fact about a span that viewers show.
type argument struct {
	name   string
	number int64
	text   string // "": number holds
}

// arguments lists what is known of a span, without what is 0.
func (t *tracks) arguments(e *placed) []argument {
	var list []argument
	add := func(name string, v int64) {
		if v != 0 {
			list = append(list, argument{name: name, number: v})
		}
	}
	list = append(list, argument{name: "step", number: e.step})
	if e.Role == timeline.Device {
		list = append(list, argument{name: "class", text: t.names.Name(e.Class)})
	}
	if e.Layer >= 0 && e.Role == timeline.Device {
		list = append(list, argument{name: "layer", number: int64(e.Layer)})
	}
	if e.Call >= 0 && e.Role == timeline.Device {
		list = append(list, argument{name: "call", number: int64(e.Call)})
	}
	add("bytes", e.Bytes)
	add("wire_bytes", e.Wire)
	add("flops", e.FLOPs)
	add("groups", int64(e.Groups))
	add("slots", e.Slots)
	if d := e.Detail; d != nil {
		for _, x := range []struct {
			name string
			v    int32
		}{{"m", d.M}, {"n", d.N}, {"k", e.K}, {"heads", d.Heads}, {"rope", d.Rope}, {"top_k", d.TopK},
			{"ranks", d.Ranks}} {
			add(x.name, int64(x.v))
		}
		add("ctx", d.Ctx)
		add("graph node id", d.Graph)
	}
	add("correlation", e.Correlation)
	return list
}

// label is what a span is called in a viewer.
func (t *tracks) label(e *placed) string {
	name := t.names.Name(e.Kernel)
	if e.Role == timeline.Envelope && e.step >= 0 && !strings.ContainsAny(name, "0123456789") {
		return fmt.Sprintf("%s_step.%d", name, e.step)
	}
	return name
}
