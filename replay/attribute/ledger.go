package attribute

import (
	"cmp"
	"math"
	"slices"

	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// Ledger is where the time of one step on one rank went, in ns.
type Ledger struct {
	Step  int64
	Rank  int32
	Kind  string // of the step
	Wall  int64
	Span  int64 // first device start to last device end
	Self  []int64
	Other [numEntries]int64
}

// Entry numbers what a ledger has besides the classes.
type Entry int

// The entries of a ledger after the classes, in its order.
const (
	Overlap Entry = iota
	Host
	Launch
	Wait
	Queue
	Dependency
	Peers
	Profiler
	Elsewhere
	Unexplained
	numEntries
)

// entryNames are what the entries are called in reports.
var entryNames = [numEntries]string{"overlap", "gap.host", "gap.launch", "gap.wait", "gap.queue", "gap.dependency",
	"gap.peers",
	"gap.profiler", "other steps", "unexplained"}

// entryOf is where idle time of a cause belongs.
var entryOf = map[string]Entry{
	datasets.IdleLaunch: Launch, datasets.IdleWait: Wait, datasets.IdleQueue: Queue,
	datasets.IdleDependency: Dependency,
	datasets.IdleHost:       Host, datasets.IdleProfiler: Profiler, datasets.IdleUnknown: Unexplained,
}

func (e Entry) String() string { return entryNames[e] }

// rankStep is one rank's share of a step while it is worked on.
type rankStep struct {
	rank     int32
	device   []timeline.Event    // by start
	phases   []timeline.Interval // what the host did
	profiler []timeline.Interval // while a profiler held it up
	launched map[int64]int64     // correlation -> end of the launch
	window   timeline.Interval
	period   *datasets.Period // as an import found it, or nil
	first    int64            // first device start
	last     int64            // last device end
}

var nothing = timeline.Interval{Start: math.MaxInt64, End: math.MinInt64}

func (r *rankStep) reset(rank int32) {
	r.rank, r.window, r.period = rank, nothing, nil
	r.device, r.phases, r.profiler = r.device[:0], r.phases[:0], r.profiler[:0]
	clear(r.launched)
}

func widen(w *timeline.Interval, start, end int64) {
	w.Start, w.End = min(w.Start, start), max(w.End, end)
}

// splitter sorts a step's rows by rank.
type splitter struct {
	ranks    []*rankStep // by rank
	spare    []*rankStep
	rejected int64 // spans that ended before they started
}

func (s *splitter) at(rank int32) *rankStep {
	i, ok := slices.BinarySearchFunc(s.ranks, rank, func(r *rankStep, k int32) int { return cmp.Compare(r.rank, k) })
	if ok {
		return s.ranks[i]
	}
	var r *rankStep
	if n := len(s.spare); n > 0 {
		r, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		r = &rankStep{launched: map[int64]int64{}}
	}
	r.reset(rank)
	s.ranks = slices.Insert(s.ranks, i, r)
	return r
}

// split returns the ranks with device rows, and the name of the envelope or -1.
func (s *splitter) split(rows []timeline.Event) (ranks []*rankStep, kind int32) {
	s.spare, s.ranks = append(s.spare, s.ranks...), s.ranks[:0]
	kind = -1
	var r *rankStep
	for i := range rows {
		e := &rows[i]
		if impossible(e) {
			s.rejected++
			continue
		}
		if r == nil || r.rank != e.Rank {
			r = s.at(e.Rank)
		}
		switch e.Role {
		case timeline.Device:
			r.device = append(r.device, *e)
		case timeline.Profiler:
			r.profiler = append(r.profiler, timeline.Interval{Start: e.Start, End: e.End})
		case timeline.Phase, timeline.Call:
			r.phases = append(r.phases, timeline.Interval{Start: e.Start, End: e.End})
		case timeline.Launch:
			r.launched[e.Correlation] = max(e.End, r.launched[e.Correlation])
		case timeline.Envelope:
			widen(&r.window, e.Start, e.End)
			kind = e.Kernel
		}
	}
	return s.share(), kind
}

// longestSpan is longer than any span, in ns: 104 days; farthestTime is further than any
// time. Sums of what lies within do not overflow.
const (
	longestSpan  = 1 << 53
	farthestTime = 1 << 61
)

// impossible reports spans that end before they start, or whose times cannot be true.
func impossible(e *timeline.Event) bool {
	return e.End < e.Start || e.Start < -farthestTime || e.End > farthestTime || e.End-e.Start > longestSpan
}

// share gives the host rows of rank -1 to all ranks and finds the windows.
func (s *splitter) share() []*rankStep {
	var all *rankStep
	ranks := s.ranks
	if len(ranks) > 0 && ranks[0].rank == -1 && len(ranks[0].device) == 0 {
		all, ranks = ranks[0], ranks[1:]
	}
	ranks = slices.DeleteFunc(slices.Clone(ranks), func(r *rankStep) bool { return len(r.device) == 0 })
	byStart := func(a, b timeline.Event) int { return cmp.Compare(a.Start, b.Start) }
	for _, r := range ranks {
		if !slices.IsSortedFunc(r.device, byStart) {
			slices.SortStableFunc(r.device, byStart)
		}
		r.first, r.last = r.device[0].Start, r.device[0].End
		for i := range r.device {
			r.last = max(r.last, r.device[i].End)
		}
		if all != nil {
			r.phases = append(r.phases, all.phases...)
			r.profiler = append(r.profiler, all.profiler...)
			if r.window == nothing {
				r.window = all.window
			}
		}
		widen(&r.window, r.first, r.last)
		r.phases = timeline.Union(r.phases)
		r.profiler = timeline.Union(r.profiler)
	}
	return ranks
}

// gaps types the idle stretches of one rank.
type gaps struct {
	r         *rankStep
	next      int                 // the device row that ends the gap at hand, or an earlier one: gaps come in order
	profiler  []timeline.Interval // of r, from the gap at hand on
	phases    []timeline.Interval // the same
	launchGap int64
	lastOfAll int64 // when the last rank's device work ended
	into      *[numEntries]int64
}

func (g *gaps) add(start, end int64) {
	if start >= end {
		return
	}
	late, launched := g.launchedUntil(start, end)
	g.profiler, g.phases = timeline.After(g.profiler, start), timeline.After(g.phases, start)
	timeline.Cut(timeline.Interval{Start: start, End: end}, g.profiler,
		func(v timeline.Interval) { g.into[Profiler] += v.End - v.Start },
		func(v timeline.Interval) {
			until := min(max(late, v.Start), v.End)
			g.into[Launch] += until - v.Start
			timeline.Cut(timeline.Interval{Start: until, End: v.End}, g.phases,
				func(v timeline.Interval) { g.into[Host] += v.End - v.Start },
				func(v timeline.Interval) {
					if launched {
						g.into[Queue] += v.End - v.Start
						return
					}
					g.quiet(v, end-start)
				})
		})
}

// launchedUntil returns when the launch of what ended a gap returned, as far as
// that is in the gap, and whether that launch is known.
func (g *gaps) launchedUntil(start, end int64) (until int64, known bool) {
	if len(g.r.launched) == 0 {
		return start, false
	}
	d := g.r.device
	for g.next < len(d) && d[g.next].Start < end {
		g.next++
	}
	until = end
	for i := g.next; i < len(d) && d[i].Start == end; i++ {
		if at, ok := g.r.launched[d[i].Correlation]; ok {
			until, known = min(until, at), true
		}
	}
	if !known {
		return start, false
	}
	return max(start, until), true
}

// quiet types a part of a gap, of length whole, in which no phase ran.
func (g *gaps) quiet(v timeline.Interval, whole int64) {
	inside := v.Start >= g.r.first && v.End <= g.r.last
	switch {
	case inside && whole < g.launchGap:
		g.into[Launch] += v.End - v.Start
	case v.Start >= g.r.last && v.Start < g.lastOfAll:
		wait := min(v.End, g.lastOfAll) - v.Start
		g.into[Peers] += wait
		g.into[Unexplained] += v.End - v.Start - wait
	default:
		g.into[Unexplained] += v.End - v.Start
	}
}

// ledgerOf sweeps one rank. key numbers the class of an event.
func ledgerOf(r *rankStep, sw *timeline.Sweeper, pieces []timeline.Piece, nKeys int, lastOfAll,
	launchGap int64) Ledger {
	l := Ledger{Rank: r.rank, Wall: r.window.End - r.window.Start, Span: r.last - r.first, Self: make([]int64, nKeys)}
	g := gaps{r: r, profiler: r.profiler, phases: r.phases, launchGap: launchGap, lastOfAll: lastOfAll, into: &l.Other}
	at := r.window.Start
	sw.Sweep(pieces, func(start, end int64, key int32) {
		g.add(at, start)
		switch key {
		case timeline.None:
			g.add(start, end)
		case timeline.Several:
			l.Other[Overlap] += end - start
		default:
			l.Self[key] += end - start
		}
		at = end
	})
	g.add(at, r.window.End)
	if r.period != nil {
		l.settle(r.period)
	}
	return l
}

// settle replaces the gaps of a ledger by what an import found of them. In the rest
// of the wall, work of other steps or of none ran. Periods that do not fit the rows
// are passed over.
func (l *Ledger) settle(p *datasets.Period) {
	var gaps, found int64
	for e := Overlap + 1; e < numEntries; e++ {
		gaps += l.Other[e]
	}
	for cause, ns := range p.Idle {
		if _, ok := entryOf[cause]; !ok || ns < 0 || ns > gaps-found {
			return
		}
		found += ns
	}
	clear(l.Other[Overlap+1:])
	for cause, ns := range p.Idle {
		l.Other[entryOf[cause]] += ns
	}
	l.Other[Elsewhere] = gaps - found
}
