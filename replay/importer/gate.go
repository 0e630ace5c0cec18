package importer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"glmbatch/datasets"
)

// The gate looks for damage before any number is computed. Events that cannot
// be true are taken out, counted and reported; a trace that cannot give a true
// answer is refused. What it knows of is listed in [gate].

type finding = datasets.Finding

const (
	severityNote       = "note"
	severityUnreliable = "unreliable"
)

// Refusal is why a trace was refused, and what was found in it before.
type Refusal struct {
	error
	Findings []datasets.Finding
}

func (r *Refusal) Unwrap() error { return r.error }

// ErrRefused marks traces that were read and cannot be trusted.
var ErrRefused = errors.New("trace refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// Bounds of the gate.
const (
	// launchSlack is how much a kernel may begin before its launch call: the
	// clocks of host and device are converted, not the same.
	launchSlack = 2_000
	// maxHostCall is longer than any API call of a usable trace.
	maxHostCall = int64(24 * 3600 * 1e9)
	// oddFactor is how many times its usual time a row of a graph lasts at least
	// to be called broken.
	oddFactor = 4
	// lookAhead bounds the rows that one row is compared with.
	lookAhead = 64
	// missingShare of launches without GPU work, above which totals are wrong.
	missingShare = 0.02
)

// gate checks everything that needs no ranks' comparison.
func (t *trace) gate() error {
	t.reading()
	t.badTimes()
	t.beforeLaunch()
	t.impossible()
	if t.deviceRows() == 0 {
		return refuse("every GPU event of the trace has an impossible time")
	}
	t.launches()
	return nil
}

// reading reports what the reader met.
func (t *trace) reading() {
	world := int32(0)
	for _, p := range t.procs {
		world = max(world, p.world)
	}
	if int(world) > len(t.ranks) {
		t.find("missing_ranks", severityNote, -1, int64(world)-int64(len(t.ranks)),
			"%d of %d ranks are here: how long collectives wait for the others is unknown", len(t.ranks), world)
	}
	for i := range t.procs {
		p := &t.procs[i]
		c, rank := &p.parts, p.rank
		if c.truncatedAt >= 0 {
			t.find("truncated", severityUnreliable, rank, 0,
				"the file ends early, at byte %d of its text (%s): all counts and totals are lower bounds",
				c.truncatedAt, c.truncation)
		}
		if c.commas > 0 {
			t.find("decimal_commas", severityNote, rank, c.commas,
				"numbers with a decimal comma (the locale of the recording program): %d; those that must be whole "+
					"numbers are unknown", c.commas)
		}
		if c.recovered > 0 {
			t.find("recovered", severityNote, rank, c.recovered,
				"events that are not valid JSON and were read leniently: %d, the first at byte %d", c.recovered,
				c.firstRecovered)
		}
		if c.odd > 0 {
			t.find("names", severityNote, rank, c.odd,
				"names with control characters, bad escapes or broken UTF-8, which were replaced: %d", c.odd)
		}
		if c.quarantined > 0 {
			t.find("unreadable", severityUnreliable, rank, c.quarantined,
				"events that cannot be read and were left out: %d, the first at byte %d; totals are lower bounds",
				c.quarantined, c.firstQuarantined)
		}
		if c.badNumber > 0 {
			t.find("bad_time", severityUnreliable, rank, c.badNumber,
				"events with a time that is no number, which were left out: %d, the first at byte %d", c.badNumber,
				c.firstQuarantined)
		}
		if p.coarse && t.deviceRowsOf(int32(i)) > 0 {
			t.find("coarse", severityNote, rank, 0,
				"times are whole microseconds: each duration is wrong by up to 1 us")
		}
	}
}

func (t *trace) deviceRows() (n int) {
	t.each(func(_ int32, r *record) {
		if r.kind.onDevice() {
			n++
		}
	})
	return n
}

func (t *trace) deviceRowsOf(p int32) (n int) {
	t.each(func(_ int32, r *record) {
		if r.proc == p && r.kind.onDevice() {
			n++
		}
	})
	return n
}

// gpuEvents refuses traces without GPU work, and says which processes have none.
func (t *trace) gpuEvents() error {
	device := make([]int64, len(t.procs))
	launched := make([]int64, len(t.procs))
	t.each(func(_ int32, r *record) {
		switch {
		case r.kind.onDevice():
			device[r.proc]++
		case r.kind == isAPI && isLaunch(t.names.list[r.name].text):
			launched[r.proc]++
		}
	})
	all, launches := int64(0), int64(0)
	for i := range device {
		all, launches = all+device[i], launches+launched[i]
	}
	if t.opaque > 0 && all == t.opaque {
		return refuse("%d launches of CUDA graphs were recorded and no kernels: re-record with --cuda-graph-trace=node",
			t.opaque)
	}
	if all == 0 {
		return refuse("0 GPU events, %d launches: %s", launches, t.noGPU())
	}
	inFile := map[int]int64{}
	for i, n := range device {
		inFile[t.procs[i].number] += n
	}
	for i, n := range device {
		if n > 0 {
			continue
		}
		p := &t.procs[i]
		if !t.byDevice && inFile[p.number] == 0 {
			return refuse("%s: 0 GPU events, %d launches: rank %d has no GPU activity", p.file, launched[i], p.rank)
		}
		if launched[i] > 0 {
			t.find("no_kernels", severityUnreliable, -1, launched[i],
				"process%s has %d launches and no GPU events (forked? record it with nsys "+
					"--trace-fork-before-exec=true)", pidText(p.pid), launched[i])
		}
	}
	return nil
}

func pidText(pid int64) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf(" %d", pid)
}

// noGPU says why a trace has no GPU activity, as far as it tells.
func (t *trace) noGPU() string {
	for _, f := range t.findings {
		text := strings.ToLower(f.Text)
		if f.Code == "nsys" && (strings.Contains(text, "not supported") || strings.Contains(text, "driver") ||
			strings.Contains(text, "permission")) {
			return f.Text
		}
	}
	other, legacy := int64(0), int64(0)
	for i := range t.procs {
		other, legacy = other+t.procs[i].parts.other, legacy+t.procs[i].parts.legacy
	}
	const remedy = "record with CUDA activities, as root or with the profiling permission, and stop after a " +
		"synchronisation"
	switch {
	case legacy > 0:
		return fmt.Sprintf("the trace is of the profiler before PyTorch 1.8.1, whose %d spans of \"CUDA functions\" "+
			"are of operators and not of kernels; record with torch.profiler", legacy)
	case other == 0 && !t.byDevice:
		return "the trace has no events at all; " + remedy
	case !t.byDevice:
		return fmt.Sprintf("the capture has no GPU activity, nothing but events of the CPU: %d (%s)", other, remedy)
	}
	return "the capture has no GPU activity (" + remedy + ")"
}

// isLaunch guesses from its name that an API call starts GPU work.
func isLaunch(name string) bool { return strings.Contains(name, "Launch") }

// badTimes takes out rows with times that CUPTI uses for "not collected" and
// ends before starts.
func (t *trace) badTimes() {
	zero, negative := make([]int64, len(t.procs)), make([]int64, len(t.procs))
	host, empty := make([]int64, len(t.procs)), make([]int64, len(t.procs))
	t.each(func(_ int32, r *record) {
		bad := true
		switch {
		case !r.kind.onDevice():
			if bad = r.start <= 0 || r.end < r.start || r.end-r.start > maxHostCall; bad {
				host[r.proc]++
			}
		case r.start <= 0:
			zero[r.proc]++
		case r.end < r.start:
			negative[r.proc]++
		default:
			bad = false
			if r.end == r.start && !t.procs[r.proc].coarse {
				empty[r.proc]++
			}
		}
		if bad {
			r.kind = isNothing
		}
	})
	for i := range t.procs {
		rank := t.procs[i].rank
		if zero[i] > 0 {
			t.find("zero_time", severityUnreliable, rank, zero[i],
				"GPU events with time zero, which means not collected, were left out: %d", zero[i])
		}
		if negative[i] > 0 {
			t.find("negative", severityUnreliable, rank, negative[i],
				"GPU events that end before they start were left out: %d", negative[i])
		}
		if empty[i] > 0 {
			t.find("zero_duration", severityUnreliable, rank, empty[i],
				"GPU events that last 0 ns: %d; their time was clipped, so totals are lower bounds", empty[i])
		}
		if host[i] > 0 {
			t.find("host_time", severityNote, rank, host[i], "API calls with impossible times were left out: %d",
				host[i])
		}
	}
}

// beforeLaunch reports work that begins before the call that launched it: the clocks
// of host and GPU were not the same then. The work stays; only what is said of its
// launch is wrong.
func (t *trace) beforeLaunch() {
	t.indexLaunches()
	early, matched, skew := make([]int64, len(t.procs)), make([]int64, len(t.procs)), make([]int64, len(t.procs))
	t.each(func(_ int32, r *record) {
		if !r.kind.onDevice() {
			return
		}
		if l := t.launch(r); l != nil {
			matched[r.proc]++
			if by := l.start - r.start; by > launchSlack {
				early[r.proc]++
				skew[r.proc] = max(skew[r.proc], by)
			}
		}
	})
	for p, n := range early {
		if n == 0 {
			continue
		}
		code, severity := "before_launch", severityNote
		if n*100 > matched[p] {
			severity = severityUnreliable
		}
		if n*10 > matched[p] {
			code = "clock"
		}
		t.find(code, severity, t.procs[p].rank, n,
			"%d of %d GPU events begin before their launch, by up to %s: the clocks of host and GPU differ by that "+
				"much at times, and what is said of gaps and launches is wrong by as much (the events are kept)",
			n, matched[p], millis(skew[p]))
	}
}

// indexLaunches maps correlations to the call that begins first: a runtime call
// and the driver call inside it may share one.
func (t *trace) indexLaunches() {
	for i := range t.procs {
		t.procs[i].launches = map[int64]int32{}
	}
	t.each(func(i int32, r *record) {
		if r.kind != isAPI || r.correlation <= 0 {
			return
		}
		m := t.procs[r.proc].launches
		if k, ok := m[r.correlation]; !ok || r.start < t.at(k).start {
			m[r.correlation] = i
		}
	})
}

// impossible takes out rows that hold two or more whole rows of other launches
// of the same stream: a stream runs its work in order, and even a programmatic
// launch lets only the next kernel overlap. The row's duration is broken. Rows of
// one graph may run beside each other; there only a row that also takes much
// longer than others of its kernel and size is taken out.
func (t *trace) impossible() {
	type place struct {
		rank int32
		lane uint32
	}
	count, total := make([]int64, len(t.ranks)), make([]int64, len(t.ranks))
	worst := make([]int32, len(t.ranks))
	lanes := map[place][]int32{}
	usual := t.usualTimes()
	for _, i := range t.order {
		if r := t.at(i); r.kind.onDevice() && !t.procs[r.proc].exported { // an export was checked when it was imported
			k := place{r.rank, r.lane}
			lanes[k] = append(lanes[k], i)
		}
	}
	keys := slices.SortedFunc(maps.Keys(lanes), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.lane, b.lane))
	})
	for _, k := range keys {
		rows := lanes[k]
		slack := int64(0)
		if t.procs[t.ranks[k.rank].proc].coarse {
			slack = 1000
		}
		for n, i := range rows {
			r := t.at(i)
			held, inGraph := 0, 0
			for _, j := range rows[n+1 : min(len(rows), n+1+lookAhead)] {
				o := t.at(j)
				if o.start+slack >= r.end || held >= 2 {
					break
				}
				if o.start > r.start+slack && o.end < r.end-slack {
					if inGraph++; o.correlation != r.correlation {
						held++
					}
				}
			}
			odd := inGraph >= 2 && r.end-r.start > oddFactor*usual(r)
			if held < 2 && !odd && !t.endless(rows, n) {
				continue
			}
			if count[k.rank] == 0 || r.end-r.start > t.at(worst[k.rank]).end-t.at(worst[k.rank]).start {
				worst[k.rank] = i
			}
			count[k.rank]++
			total[k.rank] += r.end - r.start
			r.kind = isNothing
		}
	}
	for k, n := range count {
		if n > 0 {
			w := t.at(worst[k])
			t.find("impossible", severityUnreliable, t.ranks[k].number, n,
				"GPU events that last into later work of their own stream were left out: %d of %d ns in all, the "+
					"longest %d ns of %s", n, total[k], w.end-w.start, brief(t.names.list[w.name].text))
		}
	}
}

// usualTimes returns a function that gives the median time of a row's kernel at
// its launch size, or a large number where it ran fewer than three times.
func (t *trace) usualTimes() func(*record) int64 {
	type key struct {
		castKey
		rank int32
	}
	var of map[key][]int64 // made when first asked for
	return func(r *record) int64 {
		if of == nil {
			of = map[key][]int64{}
			t.each(func(_ int32, r *record) {
				if r.kind == isKernel {
					k := key{castKey{r.name, r.shape}, r.rank}
					of[k] = append(of[k], r.end-r.start)
				}
			})
			for _, times := range of {
				slices.Sort(times)
			}
		}
		times := of[key{castKey{r.name, r.shape}, r.rank}]
		if len(times) < 3 {
			return math.MaxInt64 / oddFactor
		}
		return times[len(times)/2]
	}
}

// endless reports that the last row of a lane lasts longer than a second and
// four times as long as all of the lane before it.
func (t *trace) endless(rows []int32, n int) bool {
	r := t.at(rows[n])
	if n < 2 || n < len(rows)-1 {
		return false
	}
	length := r.end - r.start
	return length > 1e9 && length/4 > r.start-t.at(rows[0]).start
}

// launches reports launches without work and work without launches.
func (t *trace) launches() {
	type counts struct{ launches, missing, graphs, graphsMissing, first, last, rows, orphans int64 }
	of := make([]counts, len(t.procs))
	started := make([]map[int64]bool, len(t.procs))
	for i := range started {
		started[i] = map[int64]bool{}
	}
	t.each(func(_ int32, r *record) {
		if !r.kind.onDevice() {
			return
		}
		of[r.proc].rows++
		if t.launch(r) == nil {
			of[r.proc].orphans++
		} else {
			started[r.proc][r.correlation] = true
		}
	})
	prefix := make([]bool, len(t.procs))
	for _, i := range t.order {
		r := t.at(i)
		if r.kind != isAPI {
			continue
		}
		name := t.names.list[r.name].text
		has := started[r.proc][r.correlation]
		r.role = apiRole(name, has)
		c := &of[r.proc]
		if !isLaunch(name) || strings.Contains(name, "LaunchHostFunc") || t.procs[r.proc].launches[r.correlation] != i {
			continue
		}
		graph := strings.Contains(name, "GraphLaunch")
		c.launches++
		if graph {
			c.graphs++
		}
		if has {
			prefix[r.proc], c.last = true, 0
			continue
		}
		c.missing++
		c.last++
		if graph {
			c.graphsMissing++
		}
		if !prefix[r.proc] {
			c.first++
		}
	}
	for i, c := range of {
		rank := t.procs[i].rank
		if c.missing > 0 {
			severity := severityNote
			if float64(c.missing-c.last) > missingShare*float64(c.launches) {
				severity = severityUnreliable
			}
			where := ""
			if c.first > 0 {
				where = fmt.Sprintf(", %d of them before the first that has", c.first)
			}
			if c.last > 0 {
				where += fmt.Sprintf(", %d of them after the last that has (the end of the recorded window)", c.last)
			}
			t.find("missing_kernels", severity, rank, c.missing,
				"%d of %d launches have no GPU work in the trace%s: totals are lower bounds", c.missing,
				c.launches, where)
		}
		if c.graphsMissing > 0 {
			t.find("missing_graphs", severityUnreliable, rank, c.graphsMissing,
				"%d of %d graph launches have no kernels: idle time of the GPU is unknown", c.graphsMissing, c.graphs)
		}
		if c.orphans > 0 {
			t.find("launch_outside", severityNote, rank, c.orphans,
				"the launches of %d of %d GPU events are not in the trace: nothing is known of their host side",
				c.orphans, c.rows)
		}
	}
}

func apiRole(name string, startsWork bool) role {
	switch {
	case startsWork, isLaunch(name):
		return roleLaunch
	case strings.Contains(name, "Synchronize"), strings.Contains(name, "WaitEvent") &&
		!strings.Contains(name, "Stream"):
		return roleSync
	}
	return roleAPI
}

// brief cuts a kernel's name for a message.
func brief(name string) string {
	const most = 60
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}
