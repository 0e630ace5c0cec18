package timeline

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"glmbatch/datasets"
)

// Event is a row of a timeline as attribution needs it. Lane, Kernel and Class
// are numbers of the reader's names.
type Event struct {
	Start, End          int64
	Bytes, Wire, FLOPs  int64
	Correlation, Slots  int64
	Rank, Layer, Call   int32
	Lane, Kernel, Class int32
	Groups              int32
	GridX, BlockX, K    int32
	Site                int32 // operator, module or frame, as the reader was asked for; else 0
	Role                Role
	Detail              *Detail // nil where the reader was not asked for it
}

// Detail is the rest of a row, for pictures of single calls.
type Detail struct {
	M, N, Heads, Rope, TopK      int32
	Ranks                        int32
	GridY, GridZ, BlockY, BlockZ int32
	Ctx, Graph                   int64
}

// Role is what an event is for attribution.
type Role uint8

// The roles of events.
const (
	Device   Role = iota
	Phase         // a phase of the driving thread
	Beside        // a phase of another goroutine
	Envelope      // the whole step
	Launch        // a call that starts device work
	Call          // another call of a driver; the host waits for a device, say
	Profiler      // time that a profiler took
)

// Steps is a range of steps, both ends included.
type Steps struct{ From, To int64 }

// AllSteps is every step there is.
var AllSteps = Steps{0, math.MaxInt64}

// Has reports whether the range has a step.
func (s Steps) Has(step int64) bool { return step >= s.From && step <= s.To }

// Reader reads a timeline, of one or more files, step by step.
type Reader struct {
	Names    datasets.Names
	Rows     int64 // rows read so far
	Findings []datasets.Finding
	Periods  []datasets.Period // of imports
	Device   string            // name of the GPU that an imported trace was recorded on; "": unknown

	also  datasets.Columns
	site  SiteKind
	files []*datasets.SpanReader
	rows  *datasets.SpanColumns // in memory; nil: in files
	roles rolesOf
	held  map[int64][]Event
	free  [][]Event
	nHeld int
}

// maxHeld bounds the rows of steps that are not complete yet.
const maxHeld = 1 << 25

// Open opens the files of one timeline.
func Open(files []string) (*Reader, error) { return open(files, 0, NoSite) }

// OpenSites opens the files of one timeline; its events have their operator, module or
// frame.
func OpenSites(files []string, site SiteKind) (*Reader, error) {
	also := datasets.Sites
	if site == NoSite {
		also = 0
	}
	return open(files, also, site)
}

// SiteKind is what the Site of an event is.
type SiteKind uint8

// The kinds of sites.
const (
	NoSite SiteKind = iota
	OperatorSite
	ModuleSite
	FrameSite
)

// OpenDetail opens the files of one timeline; its events have their details.
func OpenDetail(files []string) (*Reader, error) { return open(files, datasets.Details, NoSite) }

func open(files []string, also datasets.Columns, site SiteKind) (*Reader, error) {
	if len(files) == 0 {
		return nil, errors.New("no timeline files")
	}
	r := &Reader{also: also, site: site, held: map[int64][]Event{}}
	for _, path := range files {
		s, err := datasets.OpenSpans(path, &r.Names, also)
		if err != nil {
			r.Close()
			return nil, err
		}
		r.files = append(r.files, s)
		found, err := s.Findings()
		if err != nil {
			r.Close()
			return nil, err
		}
		r.Findings = append(r.Findings, found...)
		if r.Device == "" {
			r.Device = s.Device()
		}
		periods, err := s.Periods()
		if err != nil {
			r.Close()
			return nil, err
		}
		r.Periods = append(r.Periods, periods...)
	}
	return r, nil
}

// Of reads rows in memory as one timeline; its events have their sites and details.
func Of(rows []datasets.Span, site SiteKind) *Reader {
	r := &Reader{also: datasets.Details, site: site, held: map[int64][]Event{}}
	r.rows = datasets.ColumnsOf(rows, &r.Names)
	return r
}

// Close closes the files.
func (r *Reader) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Each calls f once for each step of the range, in ascending order, with all of
// its rows, and any number of times with step -1 and rows of no step. f must not
// keep the rows. It is called as soon as no row group that is left can have more
// of the step, so that memory is bounded by the steps that lie interleaved in
// the file.
func (r *Reader) Each(steps Steps, f func(step int64, rows []Event) error) error {
	if r.rows != nil {
		if err := r.read(r.rows, steps, f); err != nil {
			return err
		}
		return r.flush(math.MaxInt64, f)
	}
	later, err := r.later()
	if err != nil {
		return err
	}
	groups, spare, stop := make(chan group), make(chan *datasets.SpanColumns, 2), make(chan struct{})
	var fetching sync.WaitGroup
	defer fetching.Wait()
	defer close(stop)
	spare <- new(datasets.SpanColumns)
	spare <- new(datasets.SpanColumns)
	fetching.Go(func() { r.fetch(steps, groups, spare, stop) })
	for _, before := range later[1:] {
		g := <-groups
		if g.err == nil && g.columns != nil {
			g.err = r.read(g.columns, steps, f)
			spare <- g.columns
		}
		if g.err == nil {
			g.err = r.flush(before, f)
		}
		if g.err != nil {
			return g.err
		}
	}
	return nil
}

// group is a row group that was read.
type group struct {
	columns *datasets.SpanColumns // nil: it has no step of the range
	err     error
}

// fetch reads all row groups, one ahead of the one that is worked on.
func (r *Reader) fetch(steps Steps, groups chan<- group, spare <-chan *datasets.SpanColumns, stop <-chan struct{}) {
	for _, file := range r.files {
		for i := range file.Blocks() {
			var g group
			if lo, hi := file.Steps(i); hi < steps.From && lo >= 0 || lo > steps.To {
				file.Skip()
			} else {
				select {
				case g.columns = <-spare:
				case <-stop:
					return
				}
				g.err = file.Next(g.columns)
			}
			select {
			case groups <- g:
			case <-stop:
				return
			}
		}
	}
}

// later returns, for each row group and for the end, the least step that it or a
// later group can have.
func (r *Reader) later() ([]int64, error) {
	var least []int64
	for _, file := range r.files {
		for i := range file.Blocks() {
			lo, _ := file.Steps(i)
			if lo < 0 {
				var err error
				if lo, err = file.LeastStep(i); err != nil {
					return nil, err
				}
			}
			least = append(least, lo)
		}
	}
	least = append(least, math.MaxInt64)
	for i := len(least) - 2; i >= 0; i-- {
		least[i] = min(least[i], least[i+1])
	}
	return least, nil
}

// read takes in a row group.
func (r *Reader) read(c *datasets.SpanColumns, steps Steps, f func(int64, []Event) error) error {
	r.Rows += int64(c.Rows())
	r.roles.learn(&r.Names)
	last, into := int64(math.MinInt64), []Event(nil)
	loose := r.take()
	for i, step := range c.Step {
		if step >= 0 && !steps.Has(step) {
			continue
		}
		if step < 0 {
			loose = append(loose, Event{})
			r.event(&loose[len(loose)-1], c, i)
			continue
		}
		if step != last {
			r.keep(last, into)
			into = r.held[step]
			if into == nil {
				into = r.take()
			}
			last = step
		}
		into = append(into, Event{})
		r.event(&into[len(into)-1], c, i)
		if r.nHeld++; r.nHeld > maxHeld {
			return fmt.Errorf("more than %d rows belong to steps that do not end: sort the timeline by step", maxHeld)
		}
	}
	r.keep(last, into)
	if len(loose) > 0 {
		if err := f(-1, loose); err != nil {
			return err
		}
	}
	r.free = append(r.free, loose[:0])
	return nil
}

func (r *Reader) event(e *Event, c *datasets.SpanColumns, i int) {
	*e = Event{
		Start: c.StartNS[i], End: c.EndNS[i], Bytes: c.Bytes[i], Wire: c.WireBytes[i], FLOPs: c.FLOPs[i],
		Correlation: c.Correlation[i], Slots: c.Slots[i], Rank: c.Rank[i], Layer: c.Layer[i], Call: c.Call[i],
		Lane: c.Lane[i], Kernel: c.Kernel[i], Class: c.Class[i], Groups: c.Groups[i],
		GridX: c.GridX[i], BlockX: c.BlockX[i], K: c.K[i], Role: r.roles.of(c.Lane[i], c.Evidence[i]),
	}
	switch r.site {
	case OperatorSite:
		e.Site = c.Operator[i]
	case ModuleSite:
		e.Site = c.Module[i]
	case FrameSite:
		e.Site = c.Frame[i]
	}
	if r.also&datasets.Details != 0 {
		e.Detail = &Detail{M: c.M[i], N: c.N[i], Heads: c.Heads[i], Rope: c.Rope[i], TopK: c.TopK[i], Ranks: c.Ranks[i],
			GridY: c.GridY[i], GridZ: c.GridZ[i], BlockY: c.BlockY[i], BlockZ: c.BlockZ[i], Ctx: c.Ctx[i],
			Graph: c.Graph[i]}
	}
}

func (r *Reader) keep(step int64, rows []Event) {
	if rows != nil {
		r.held[step] = rows
	}
}

func (r *Reader) take() []Event {
	if n := len(r.free); n > 0 {
		s := r.free[n-1]
		r.free = r.free[:n-1]
		return s
	}
	return make([]Event, 0, 1024)
}

func (r *Reader) flush(before int64, f func(int64, []Event) error) error {
	var done []int64
	for step := range r.held {
		if step < before || before == math.MaxInt64 {
			done = append(done, step)
		}
	}
	slices.Sort(done)
	for _, step := range done {
		rows := r.held[step]
		if err := f(step, rows); err != nil {
			return err
		}
		delete(r.held, step)
		r.nHeld -= len(rows)
		r.free = append(r.free, rows[:0])
	}
	return nil
}

// rolesOf has, for each name, what a lane or an evidence of that name says.
type rolesOf struct {
	lane     []Role // Device, Phase (host) or Beside
	evidence []Role // Device where it says nothing
}

var roleNames = map[string]Role{RoleStep: Envelope, RoleLaunch: Launch, RoleSync: Call, RoleAPI: Call,
	RoleOverhead: Profiler}

// learn takes in the names that have come since.
func (o *rolesOf) learn(n *datasets.Names) {
	for i := len(o.lane); i < n.Len(); i++ {
		name, role := n.Name(int32(i)), Device
		if IsHost(name) {
			role = Beside
			if explains(name) {
				role = Phase
			}
		}
		o.lane = append(o.lane, role)
		o.evidence = append(o.evidence, roleNames[name])
	}
}

func (o *rolesOf) of(lane, evidence int32) Role {
	role := o.lane[lane]
	if role != Device && o.evidence[evidence] != Device {
		return o.evidence[evidence]
	}
	return role
}

// Events returns rows in memory as the events of each step; those of no step are
// left out.
func Events(rows []datasets.Span, names *datasets.Names) map[int64][]Event {
	c := datasets.ColumnsOf(rows, names)
	var r Reader
	r.roles.learn(names)
	steps := map[int64][]Event{}
	for i, step := range c.Step {
		if step >= 0 {
			events := append(steps[step], Event{})
			r.event(&events[len(events)-1], c, i)
			steps[step] = events
		}
	}
	return steps
}
