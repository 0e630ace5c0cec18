package attribute

import (
	"cmp"
	"fmt"
	"glmbatch/kernels"
	"glmbatch/replay/timeline"
	"maps"
	"slices"
)

// Section is the cost of all steps of one kind. Sums are over steps and ranks.
type Section struct {
	Kind      string
	Steps     int
	Ranks     int
	RankSteps int64 // pairs of a step and a rank that the sums are over
	Shared    bool  // ranks share memory and threads: every rank's span is the whole call

	Wall    int64    // the sum of Ledger
	Span    int64    // first device start to last device end
	Ledger  []Amount // the classes' self times, then the entries that are no class
	Classes []Row
	Rows    []Row // by Options.By; Classes where that is class
	Overlap int64 // time in which several of Rows ran
	Comm    Comm
	Waits   []Amount // the calls in which the host waited while the device idled, the longest first

	WallOf Stat    // of one step: the mean over its ranks
	SpanOf Stat    // the same
	Walls  []int64 // of each step
}

// Amount is an entry of a ledger.
type Amount struct {
	Name    string
	NS      int64
	PerStep Stat // in one step: the mean over its ranks
}

// Row is the cost of one class, kernel, layer, rank or call.
type Row struct {
	Label string
	Class string // "" where the row has several
	Key   Key

	Calls   int64
	Self    int64 // time in which only this ran
	Total   int64 // lengths of the spans
	Kernels int64 // the same, of kernels alone: copies and memsets are none
	Gap     int64 // idle time of the device right before them, inside its span
	Bytes   int64
	Wire    int64
	FLOPs   int64
	Bound   int64 // roofline time; 0: unknown

	Slots int64 // the most of a span

	Min, Median, Max int64 // lengths of its spans; the median to three digits; 0 where rows are not of kernels

	PerStep Stat    // self time in one step: the mean over its ranks
	Steps   []int64 // of each step
}

// cost is what is added up for a row.
type cost struct {
	Calls, Total, Kernels, Gap, Bytes, Wire, FLOPs, Bound, Slots int64

	lengths *lengths // of the spans; nil: not asked for
}

func (c *cost) add(o cost) {
	c.Calls += o.Calls
	c.Total += o.Total
	c.Kernels += o.Kernels
	c.Gap += o.Gap
	c.Bytes += o.Bytes
	c.Wire += o.Wire
	c.FLOPs += o.FLOPs
	c.Bound += o.Bound
	c.Slots = max(c.Slots, o.Slots)
}

// section is a Section while it grows.
type section struct {
	kind       string
	steps      int
	shared     bool
	rankSteps  map[int32]int64 // steps that each rank has
	wall, span int64
	other      [numEntries]int64
	keyOverlap int64
	classes    []cost
	keys       []cost
	classSelf  samples
	keySelf    samples
	otherSelf  samples
	walls      []int64
	spans      []int64
	comm       Comm
	waits      map[string]int64 // by call
}

func (s *section) waited(calls map[string]int64) {
	for call, ns := range calls {
		if s.waits == nil {
			s.waits = map[string]int64{}
		}
		s.waits[call] += ns
	}
}

// samples are the self times of keys, one value a step: the mean over its ranks.
type samples struct {
	sum    []int64
	values [][]int64
}

func (s *samples) add(step int, self []int64, ranks int64) {
	s.sum = addTo(s.sum, self)
	s.values = grow(s.values, len(self))
	for i, v := range self {
		if v == 0 {
			continue
		}
		s.values[i] = append(append(s.values[i], make([]int64, max(0, step-len(s.values[i])))...), v/ranks)
	}
}

// of returns the values of a key in all steps.
func (s *samples) of(i, steps int) []int64 {
	if i >= len(s.values) {
		return make([]int64, steps)
	}
	return append(s.values[i], make([]int64, max(0, steps-len(s.values[i])))...)
}

func (s *samples) total(i int) int64 {
	if i >= len(s.sum) {
		return 0
	}
	return s.sum[i]
}

// close adds a step that all ranks have been attributed of.
func (s *section) close(ledgers []Ledger, classSum, keySum []int64, by By) {
	var wall, span int64
	var other [numEntries]int64
	for i := range ledgers {
		l := &ledgers[i]
		wall += l.Wall
		span += l.Span
		for e, ns := range l.Other {
			s.other[e] += ns
			other[e] += ns
		}
		s.rankSteps[l.Rank]++
	}
	n := int64(len(ledgers))
	of := n // ranks that a key's time is summed over
	if by == ByRank {
		of = 1
	}
	s.otherSelf.add(s.steps, other[:], n)
	s.wall += wall
	s.span += span
	s.walls = append(s.walls, wall/n)
	s.spans = append(s.spans, span/n)
	s.classSelf.add(s.steps, classSum, n)
	s.keySelf.add(s.steps, keySum, of)
	s.steps++
}

func (s *section) missing() []string {
	var w []string
	for _, r := range slices.Sorted(maps.Keys(s.rankSteps)) {
		if n := s.rankSteps[r]; n < int64(s.steps) {
			w = append(w, fmt.Sprintf("rank %d has spans in %d of %d %s steps", r, n, s.steps, s.kind))
		}
	}
	if s.comm.Unsplit > 0 && len(s.rankSteps) > 1 {
		w = append(w, fmt.Sprintf("collectives of some %s steps do not pair across ranks: their waiting and "+
			"transfer cannot be told apart", s.kind))
	}
	return w
}

// Kinds are the kinds of steps, in the order of sections in reports.
var Kinds = append(slices.Clone(kernels.StepKinds), timeline.KindUnknown)

// Sections returns the result: a section for each kind of step, and classes,
// rows and ledger entries from the most expensive down.
func (a *Attribution) Sections() []Section {
	var out []Section
	for _, s := range a.sections {
		out = append(out, a.result(s))
	}
	slices.SortStableFunc(out, func(x, y Section) int {
		return cmp.Compare(slices.Index(Kinds, x.Kind), slices.Index(Kinds, y.Kind))
	})
	return out
}

func (a *Attribution) result(s *section) Section {
	sec := Section{Kind: s.kind, Steps: s.steps, Ranks: len(s.rankSteps), Shared: s.shared, Wall: s.wall, Span: s.span,
		Comm: s.comm, WallOf: MedianOf(s.walls), SpanOf: MedianOf(s.spans), Walls: s.walls, Overlap: s.keyOverlap}
	if a.opt.By == ByClass {
		sec.Overlap = s.other[Overlap]
	}
	for _, n := range s.rankSteps {
		sec.RankSteps += n
	}
	slices.SortFunc(sec.Comm.Ranks, func(x, y Skew) int { return cmp.Compare(x.Rank, y.Rank) })
	sec.Classes = a.rows(s, &a.classes, s.classes, &s.classSelf)
	sec.Rows = sec.Classes
	if a.opt.By != ByClass {
		sec.Rows = a.rows(s, &a.keys, s.keys, &s.keySelf)
	}
	for _, c := range sec.Classes {
		sec.Ledger = append(sec.Ledger, Amount{c.Label, c.Self, c.PerStep})
	}
	for call, ns := range s.waits {
		sec.Waits = append(sec.Waits, Amount{Name: call, NS: ns})
	}
	slices.SortFunc(sec.Waits, func(x, y Amount) int {
		return cmp.Or(cmp.Compare(y.NS, x.NS),
			cmp.Compare(x.Name, y.Name))
	})
	for e, ns := range s.other {
		sec.Ledger = append(sec.Ledger, Amount{Entry(e).String(), ns, MedianOf(s.otherSelf.of(e, s.steps))})
	}
	return sec
}

func (a *Attribution) rows(s *section, ring *keyring, costs []cost, self *samples) []Row {
	var rows []Row
	for i, c := range costs {
		if c.Calls == 0 {
			continue
		}
		k := ring.keys[i]
		r := Row{Label: ring.by.label(k, a.names), Key: k, Calls: c.Calls, Self: self.total(i), Total: c.Total,
			Kernels: c.Kernels, Gap: c.Gap,
			Bytes: c.Bytes, Wire: c.Wire, FLOPs: c.FLOPs, Bound: c.Bound, Slots: c.Slots,
			Steps: self.of(i, s.steps)}
		if c.lengths != nil {
			r.Min, r.Median, r.Max = c.lengths.min, c.lengths.median(), c.lengths.max
		}
		r.PerStep = MedianOf(r.Steps)
		if k.Class >= 0 {
			r.Class = a.names.Name(k.Class)
		}
		if s.shared {
			// The ranks' parts are done one after the other on one machine, and each
			// rank's span is the whole of it.
			r.Bound *= int64(len(s.rankSteps))
		}
		rows = append(rows, r)
	}
	slices.SortStableFunc(rows, func(x, y Row) int {
		if ring.by == ByLayer || ring.by == ByRank || ring.by == ByCall {
			return cmp.Or(cmp.Compare(x.Key.Rank, y.Key.Rank), cmp.Compare(x.Key.Call, y.Key.Call),
				cmp.Compare(x.Key.Layer, y.Key.Layer))
		}
		return cmp.Or(cmp.Compare(y.Self, x.Self), cmp.Compare(y.Total, x.Total), cmp.Compare(x.Label, y.Label))
	})
	return rows
}
