package importer

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// Why a device idles is decided here, where the whole trace is at hand: the
// calls of all threads, the work of all steps. A stretch in which no work of a
// rank runs is cut into parts, each with the cause that the records show:
//
//   - profiler: the profiler itself held the host up.
//   - launch: the work that ended the stretch had not been launched yet; until its
//     launch call returned.
//   - wait: the same, but the launching thread was in a call that waits for the
//     device, or the launch itself is a copy that waits.
//   - dependency: the work was launched and its own stream free before the stretch
//     began, which work of another stream ended; or it was launched before the stretch,
//     behind a call that makes a stream wait for an event.
//   - queue: it was launched, and began later.
//   - host: no more work came, and the host was still in the step.
//   - unknown: the launch is not in the trace.
//
// The parts of a stretch add up to it.

type cause uint8

const (
	idleLaunch cause = iota
	idleWait
	idleQueue
	idleDependency
	idleHost
	idleProfiler
	idleUnknown
	numCauses
)

var causeNames = [numCauses]string{datasets.IdleLaunch, datasets.IdleWait, datasets.IdleQueue, datasets.IdleDependency,
	datasets.IdleHost, datasets.IdleProfiler, datasets.IdleUnknown}

// idle is a part of an idle stretch of one rank.
type idle struct {
	start, end int64
	name       uint32 // of the call, of idleWait
	cause      cause
}

// idler finds the idle stretches of one rank after the other.
type idler struct {
	t        *trace
	waits    map[thread][]idle // calls that wait for the device, by start, none inside another
	profiler [][]timeline.Interval
	windows  map[procStep]timeline.Interval // of the steps, on the host
	held     map[int32]bool                 // launches behind a call that makes a stream wait for an event
}

// thread is a thread of a process.
type thread struct {
	proc int32
	lane uint32
}

func newIdler(t *trace) *idler {
	d := &idler{t: t, waits: map[thread][]idle{}, profiler: make([][]timeline.Interval, len(t.procs)),
		windows: t.stepWindows(), held: map[int32]bool{}}
	waiting := t.waitingCopies()
	holding := map[thread]bool{} // such a call came last
	for _, i := range t.order {
		r := t.at(i)
		switch r.kind {
		case isOverhead:
			d.profiler[r.proc] = append(d.profiler[r.proc], timeline.Interval{Start: r.start, End: r.end})
		case isAPI:
			k := thread{r.proc, r.lane}
			if r.role == roleSync || waiting[i] {
				d.waits[k] = appendOuter(d.waits[k], idle{r.start, r.end, r.name, idleWait})
			}
			switch {
			case strings.Contains(t.names.list[r.name].text, "StreamWaitEvent"):
				holding[k] = true
			case r.role == roleLaunch && holding[k]:
				d.held[i], holding[k] = true, false
			}
		}
	}
	for p := range d.profiler {
		d.profiler[p] = timeline.Union(d.profiler[p])
	}
	return d
}

// appendOuter adds a call to those of its thread, unless it lies inside the last.
// Calls that cross each other are cut, so that the list stays disjoint.
func appendOuter(list []idle, call idle) []idle {
	if n := len(list); n > 0 {
		call.start = max(call.start, list[n-1].end)
	}
	if call.start >= call.end {
		return list
	}
	return append(list, call)
}

// waitingCopies are the calls that start a copy and return when it is done: by
// their names, or because they returned no earlier than the copy ended.
func (t *trace) waitingCopies() map[int32]bool {
	found := map[int32]bool{}
	t.each(func(_ int32, r *record) {
		if r.kind != isMemcpy {
			return
		}
		i, ok := t.launchIndex(r)
		if !ok {
			return
		}
		l := t.at(i)
		name := t.names.list[l.name].text
		if l.end >= r.end && l.start <= r.start || strings.Contains(name, "emcpy") && !strings.Contains(name, "Async") {
			found[i] = true
		}
	})
	return found
}

// rank returns the periods and the idle parts of a rank, both by start. rows are
// its device rows by start.
func (d *idler) rank(rank int32, rows []int32) ([]stepTime, []idle) {
	if len(rows) == 0 {
		return nil, nil
	}
	periods := d.periods(rank, rows)
	proc := d.t.ranks[rank].proc
	var out []idle
	put := func(start, end int64, name uint32, cause cause) {
		timeline.Cut(timeline.Interval{Start: start, End: end}, d.profiler[proc],
			func(v timeline.Interval) {
				out = append(out, idle{v.Start, v.End, 0, idleProfiler})
			},
			func(v timeline.Interval) { out = append(out, idle{v.Start, v.End, name, cause}) })
	}
	first := d.t.at(rows[0]).start
	reached, by := first, int32(-1)
	if len(periods) > 0 {
		reached = min(first, periods[0].start)
	}
	ends := map[uint32]int64{} // of the last work of each stream
	for n := 0; n < len(rows); n++ {
		r := d.t.at(rows[n])
		if r.start > reached {
			d.gap(reached, d.ender(rows[n:]), by, ends, put)
		}
		if r.end > reached || by < 0 {
			reached, by = max(reached, r.end), rows[n]
		}
		if e, ok := ends[r.lane]; !ok || r.end > e {
			ends[r.lane] = r.end
		}
	}
	last := reached
	for _, p := range periods {
		last = max(last, p.end)
	}
	if last > reached {
		d.tail(reached, last, by, put)
	}
	return periods, out
}

// ender is the work that ends a stretch: of all that begins at its end, what was
// launched first.
func (d *idler) ender(rows []int32) *record {
	first := d.t.at(rows[0])
	best, at := first, int64(math.MaxInt64)
	for _, i := range rows {
		r := d.t.at(i)
		if r.start != first.start {
			break
		}
		if l := d.t.launch(r); l != nil && l.end < at {
			best, at = r, l.end
		}
	}
	return best
}

type putIdle func(start, end int64, name uint32, cause cause)

// gap types the stretch from start to the begin of r. by is the work that ended
// last before it, -1: none; ends has when each stream became free.
func (d *idler) gap(start int64, r *record, by int32, ends map[uint32]int64, put putIdle) {
	end := r.start
	l := d.t.launch(r)
	if l == nil {
		cause := idleUnknown
		if by >= 0 && r.correlation > 0 && d.t.at(by).correlation == r.correlation { // of one graph
			cause = d.behind(start, math.MinInt64, r, by, ends)
		}
		put(start, end, 0, cause)
		return
	}
	until := min(max(l.end, start), end) // the launch's part ends
	k := thread{l.proc, l.lane}
	between(start, until, d.waits[k],
		func(a, b int64, w idle) { put(a, b, w.name, idleWait) },
		func(a, b int64) { put(a, b, 0, idleLaunch) })
	if until < end {
		cause := d.behind(start, l.end, r, by, ends)
		put(until, end, 0, cause)
	}
}

// behind tells queue from dependency: r was launched by the time launched.
func (d *idler) behind(start, launched int64, r *record, by int32, ends map[uint32]int64) cause {
	if i, ok := d.t.launchIndex(r); ok && by >= 0 && d.held[i] && launched <= start {
		return idleDependency
	}
	free, used := ends[r.lane]
	if by >= 0 && d.t.at(by).lane != r.lane && launched < start && (!used || free < start) {
		return idleDependency
	}
	return idleQueue
}

// tail types the stretch behind the last work of a rank, by its last launch's
// thread.
func (d *idler) tail(start, end int64, by int32, put putIdle) {
	l := d.t.launch(d.t.at(by))
	if l == nil {
		put(start, end, 0, idleUnknown)
		return
	}
	k := thread{l.proc, l.lane}
	between(start, end, d.waits[k],
		func(a, b int64, w idle) { put(a, b, w.name, idleWait) },
		func(a, b int64) { put(a, b, 0, idleHost) })
}

// between cuts a stretch by a list of disjoint calls.
func between(start, end int64, list []idle, inside func(a, b int64, w idle), outside func(a, b int64)) {
	i, _ := slices.BinarySearchFunc(list, start, func(w idle, at int64) int { return cmp.Compare(w.end, at+1) })
	for ; i < len(list) && list[i].start < end; i++ {
		a, b := max(list[i].start, start), min(list[i].end, end)
		if a > start {
			outside(start, a)
		}
		inside(a, b, list[i])
		start = b
	}
	if start < end {
		outside(start, end)
	}
}
