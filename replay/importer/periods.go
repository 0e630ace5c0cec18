package importer

import (
	"cmp"
	"math"
	"slices"

	"glmbatch/datasets"
	"glmbatch/replay/timeline"
)

// procStep is a step of one process.
type procStep struct{ proc, step int32 }

// stepWindows are the steps' windows on the host.
func (t *trace) stepWindows() map[procStep]timeline.Interval {
	of := map[procStep]timeline.Interval{}
	for i := range t.windows {
		w := &t.windows[i]
		if w.gpu || t.stepOf == nil || t.stepOf[i] < 0 {
			continue
		}
		for p := range t.procs {
			if int32(p) != w.proc && !(t.procs[w.proc].everyRank && t.procs[p].number == t.procs[w.proc].number) {
				continue
			}
			k := procStep{int32(p), t.stepOf[i]}
			v, ok := of[k]
			if !ok {
				v = timeline.Interval{Start: w.start, End: w.end}
			}
			of[k] = timeline.Interval{Start: min(v.Start, w.start), End: max(v.End, w.end)}
		}
	}
	return of
}

// work is what a step did on a device.
type work struct {
	step       int32
	start, end int64
	launched   int64 // start of the first launch, MaxInt64: not in the trace
}

// works sums the device rows of a rank up by step, in order of time.
func (t *trace) works(rows []int32) []work {
	at := map[int32]int{}
	var list []work
	for _, i := range rows {
		r := t.at(i)
		if r.step < 0 {
			continue
		}
		n, ok := at[r.step]
		if !ok {
			n = len(list)
			at[r.step] = n
			list = append(list, work{step: r.step, start: r.start, end: r.end, launched: math.MaxInt64})
		}
		w := &list[n]
		w.end = max(w.end, r.end)
		if l := t.launch(r); l != nil {
			w.launched = min(w.launched, l.start)
		}
	}
	slices.SortStableFunc(list, func(a, b work) int { return cmp.Compare(a.start, b.start) })
	return list
}

// stepTime is the time of a step on one rank, host and device together.
type stepTime struct {
	start, end int64
	step       int32
}

// periods says from when to when each step of a rank lasted. A step begins with
// its window on the host, but not before the work of the step before it is done:
// where the host runs ahead, a step lasts from the end of one's work to the end
// of the next one's. It ends with its work or its window, whichever is later, and
// no window reaches into the work of the next step. Without a window the first
// launch stands for its begin.
func (d *idler) periods(rank int32, rows []int32) []stepTime {
	t := d.t
	list := t.works(rows)
	out := make([]stepTime, 0, len(list))
	before := int64(math.MinInt64) // end of the step before
	for n, w := range list {
		window, annotated := d.windows[procStep{t.ranks[rank].proc, w.step}]
		begin, end := w.start, w.end
		switch {
		case annotated:
			ahead := window.End < w.end // the host left the step before its work was done
			if n > 0 || !ahead {
				begin = min(window.Start, w.start)
			}
			until := window.End
			if n+1 < len(list) {
				until = min(until, max(w.end, list[n+1].start))
			}
			end = max(w.end, until)
		case n > 0 && w.launched != math.MaxInt64:
			begin = min(w.launched, w.start)
		}
		begin = min(max(begin, before), w.start)
		out = append(out, stepTime{begin, end, w.step})
		before = max(before, end)
	}
	return out
}

// periodsOf returns the periods of all steps and ranks, with their idle time. None
// where there are too many to be kept.
func (t *trace) periodsOf(epoch int64) []datasets.Period {
	rows := make([][]int32, len(t.ranks))
	for _, i := range t.order {
		if r := t.at(i); r.kind.onDevice() {
			rows[r.rank] = append(rows[r.rank], i)
		}
	}
	d := newIdler(t)
	var out []datasets.Period
	long, longNS := int64(0), int64(0)
	for k, r := range t.ranks {
		periods, parts := d.rank(int32(k), rows[k])
		if len(out)+len(periods)+1 > datasets.MaxPeriods {
			t.find("many_steps", severityNote, -1, int64(len(t.steps)),
				"there are too many steps to keep why the device idles in each: gaps are told by what the timeline "+
					"has of them alone")
			return nil
		}
		for _, p := range parts {
			if p.cause == idleQueue && p.end-p.start > longQueue {
				long, longNS = long+1, longNS+p.end-p.start
			}
		}
		at := map[int32]int{-1: len(out)}
		out = append(out, datasets.Period{Step: -1, Rank: r.number})
		for _, p := range periods {
			at[p.step] = len(out)
			out = append(out, datasets.Period{Step: t.steps[p.step].number, Rank: r.number, Start: p.start - epoch,
				End: p.end - epoch})
		}
		shareOut(periods, parts, func(p idle, step int32) { t.addIdle(&out[at[step]], p) })
	}
	if long > 0 {
		t.find("long_queue", severityNote, -1, long,
			"%d times launched work had not begun for more than %s, and nothing else ran (%s in all): the trace "+
				"lacks what it waited for, or the GPU worked for another process",
			long, millis(longQueue), millis(longNS))
	}
	return out
}

// longQueue is longer than a device takes to begin what was launched.
const longQueue = 1_000_000

func (t *trace) addIdle(to *datasets.Period, p idle) {
	if to.Idle == nil {
		to.Idle = map[string]int64{}
	}
	to.Idle[causeNames[p.cause]] += p.end - p.start
	if p.cause == idleWait {
		if to.Waits == nil {
			to.Waits = map[string]int64{}
		}
		to.Waits[t.names.list[p.name].text] += p.end - p.start
	}
}

// shareOut hands the idle parts of a rank to its steps: what lies in no step's
// period has step -1. Periods of steps whose work runs at once overlap, and each
// has the idle parts of its own time.
func shareOut(periods []stepTime, parts []idle, put func(part idle, step int32)) {
	first := 0
	for _, p := range parts {
		for first < len(periods) && periods[first].end <= p.start {
			first++
		}
		at := p.start
		for n := first; n < len(periods) && periods[n].start < p.end; n++ {
			v := idle{max(p.start, periods[n].start), min(p.end, periods[n].end), p.name, p.cause}
			if v.start >= v.end {
				continue
			}
			if v.start > at {
				put(idle{at, v.start, p.name, p.cause}, -1)
			}
			put(v, periods[n].step)
			at = max(at, v.end)
		}
		if at < p.end {
			put(idle{at, p.end, p.name, p.cause}, -1)
		}
	}
}
