package attribute

import (
	"fmt"
	"strings"

	"glmbatch/datasets"
	"glmbatch/kernels"
	"glmbatch/kernels/roofline"
	"glmbatch/replay/timeline"
)

// Options say how to attribute.
type Options struct {
	By        By                // "": by class
	Machine   *roofline.Machine // nil: no bounds
	LaunchGap int64             // ns; 0: DefaultLaunchGap
	Periods   []datasets.Period // of steps and ranks; others are found from their rows
}

// DefaultLaunchGap is how long, in ns, a device may idle between two kernels of a
// step for it to count as the price of launching. It is about ten times what a
// launch costs; longer pauses need a reason.
const DefaultLaunchGap = 100_000

// Attribution adds up the costs of steps.
type Attribution struct {
	opt      Options
	names    *datasets.Names
	sections []*section
	classes  keyring
	keys     keyring
	periods  map[stepRank]*datasets.Period
	pipes    []kernels.Pipe // by number of a kernel's name
	isComm   []bool         // by number of a class's name
	isCopy   []bool         // the same: no kernel
	lanes    []bool         // shared, by number of a lane's name

	split    splitter
	sweeper  timeline.Sweeper
	pieces   []timeline.Piece
	classSum []int64
	keySum   []int64
	lists    [][]timeline.Event
	spare    [][]timeline.Event // the memory of lists
	empty    int64              // steps without device rows
	outside  []OutsideClass     // of no step, by number of the class's name
}

type stepRank struct {
	step int64
	rank int32
}

// New returns an attribution of rows whose names are numbers of names.
func New(names *datasets.Names, opt Options) *Attribution {
	if opt.By == "" {
		opt.By = ByClass
	}
	if opt.LaunchGap == 0 {
		opt.LaunchGap = DefaultLaunchGap
	}
	periods := map[stepRank]*datasets.Period{}
	for i := range opt.Periods {
		p := &opt.Periods[i]
		periods[stepRank{p.Step, p.Rank}] = p
	}
	return &Attribution{opt: opt, periods: periods, names: names, classes: keyring{by: ByClass},
		keys: keyring{by: opt.By}}
}

// Step attributes one step by class and returns the ledger of each rank. The
// step's costs are added to a's sections.
func (a *Attribution) Step(step int64, rows []timeline.Event) []Ledger {
	ranks, envelope := a.split.split(rows)
	if len(ranks) == 0 {
		a.empty++
		return nil
	}
	a.learn()
	sec := a.section(a.kind(envelope))
	lastOfAll := ranks[0].last
	for _, r := range ranks {
		lastOfAll = max(lastOfAll, r.last)
	}
	a.classSum, a.keySum = a.classSum[:0], a.keySum[:0]
	ledgers := make([]Ledger, len(ranks))
	for i, r := range ranks {
		if p := a.periods[stepRank{step, r.rank}]; p != nil {
			r.period, r.window = p, timeline.Interval{Start: min(p.Start, r.first), End: max(p.End, r.last)}
			sec.waited(p.Waits)
		}
		l := a.rank(sec, r, lastOfAll)
		l.Step, l.Kind = step, sec.kind
		ledgers[i] = l
	}
	a.collectives(sec, ranks)
	sec.close(ledgers, a.classSum, a.keySum, a.opt.By)
	return ledgers
}

// rank attributes one rank's part of a step.
func (a *Attribution) rank(sec *section, r *rankStep, lastOfAll int64) Ledger {
	a.pieces = a.pieces[:0]
	reached := r.first
	for i := range r.device {
		e := &r.device[i]
		a.pieces = append(a.pieces, timeline.Piece{Start: e.Start, End: e.End, Key: a.classes.number(e)})
		a.count(sec, e, max(0, e.Start-reached))
		reached = max(reached, e.End)
	}
	l := ledgerOf(r, &a.sweeper, a.pieces, len(a.classes.keys), lastOfAll, a.opt.LaunchGap)
	a.classSum = addTo(a.classSum, l.Self)
	if a.opt.By == ByClass {
		return l
	}
	for i := range r.device {
		a.pieces[i] = timeline.Piece{Start: r.device[i].Start, End: r.device[i].End, Key: a.keys.number(&r.device[i])}
	}
	self := make([]int64, len(a.keys.keys))
	a.sweeper.Sweep(a.pieces, func(start, end int64, key int32) {
		switch key {
		case timeline.None:
		case timeline.Several:
			sec.keyOverlap += end - start
		default:
			self[key] += end - start
		}
	})
	a.keySum = addTo(a.keySum, self)
	return l
}

// count adds an event's cost to the rows that it belongs to. The device idled for
// gap before it.
func (a *Attribution) count(sec *section, e *timeline.Event, gap int64) {
	c := cost{Calls: 1, Total: e.End - e.Start, Gap: gap, Bytes: e.Bytes, Wire: e.Wire, FLOPs: e.FLOPs, Slots: e.Slots}
	if !a.isCopy[e.Class] {
		c.Kernels = c.Total
	}
	if a.opt.Machine != nil {
		c.Bound = a.opt.Machine.Bound(kernels.Cost{HBM: e.Bytes, Wire: e.Wire, FLOPs: e.FLOPs}, a.pipes[e.Kernel])
	}
	sec.classes = grow(sec.classes, len(a.classes.keys))
	sec.classes[a.classes.number(e)].add(c)
	if a.opt.By != ByClass {
		n := a.keys.number(e)
		sec.keys = grow(sec.keys, len(a.keys.keys))
		sec.keys[n].add(c)
		if a.opt.By.ofKernels() {
			sec.keys[n].length(c.Total)
		}
	}
	sec.shared = sec.shared || a.lanes[e.Lane]
}

// learn looks names up once.
func (a *Attribution) learn() {
	for i := len(a.pipes); i < a.names.Len(); i++ {
		name, pipe := a.names.Name(int32(i)), kernels.OnMatrix
		if k := kernels.Lookup(kernels.Name(name)); k != nil {
			pipe = k.Pipe
		}
		a.pipes = append(a.pipes, pipe)
		a.isComm = append(a.isComm, timeline.IsComm(name))
		a.isCopy = append(a.isCopy, strings.HasPrefix(name, "mem"))
		a.lanes = append(a.lanes, name == timeline.LaneShared)
	}
}

func (a *Attribution) collectives(sec *section, ranks []*rankStep) {
	a.lists = a.lists[:0]
	any := false
	for i, r := range ranks {
		a.spare = grow(a.spare, i+1)
		list := a.spare[i][:0]
		for j := range r.device {
			if a.isComm[r.device[j].Class] {
				list = append(list, r.device[j])
			}
		}
		any = any || len(list) > 0
		a.lists = append(a.lists, list)
		a.spare[i] = list
	}
	if any {
		sec.comm.collectives(ranks, a.lists)
	}
}

func (a *Attribution) kind(envelope int32) string {
	if envelope >= 0 {
		return timeline.KindOf(a.names.Name(envelope))
	}
	return timeline.KindUnknown
}

func (a *Attribution) section(kind string) *section {
	for _, s := range a.sections {
		if s.kind == kind {
			return s
		}
	}
	s := &section{kind: kind, rankSteps: map[int32]int64{}}
	a.sections = append(a.sections, s)
	return s
}

// Warnings says what was left out or cannot be told, in plain words.
func (a *Attribution) Warnings() []string {
	var w []string
	if a.split.rejected > 0 {
		w = append(w, fmt.Sprintf("spans that end before they start, or have times that cannot be true, were left "+
			"out: %d", a.split.rejected))
	}
	if a.empty > 0 {
		w = append(w, fmt.Sprintf("steps without device spans were left out: %d", a.empty))
	}
	for _, s := range a.sections {
		w = append(w, s.missing()...)
	}
	return w
}

func addTo(sum, v []int64) []int64 {
	sum = append(sum, make([]int64, max(0, len(v)-len(sum)))...)
	for i, x := range v {
		sum[i] += x
	}
	return sum
}

func grow[T any](s []T, n int) []T {
	for len(s) < n {
		var zero T
		s = append(s, zero)
	}
	return s
}
