package importer

import (
	"fmt"
	"slices"

	"glmbatch/replay/timeline"
)

// fit maps a rank's clock to that of rank 0: t + offset + drift*(t-origin).
type fit struct {
	offset   int64
	drift    float64
	origin   int64
	residual int64 // ns, of nine pairs in ten
	pairs    int
	shift    int // pairs (i, i+shift)
}

const (
	minPairs  = 3
	maxShift  = 32 // collectives that a rank may have recorded more at its start
	minSame   = 0.95
	driftSpan = 100_000_000 // ns from which a drift can be told from noise
	maxDrift  = 1e-4
)

// align puts the ranks of a torch trace on the clock of the first, by the ends
// of their collectives, which all ranks leave together. Ranks that do not pair
// are refused.
func (t *trace) align() error {
	if t.oneClock || len(t.ranks) < 2 {
		return nil
	}
	collectives := make([][]int32, len(t.ranks))
	for _, i := range t.order {
		r := t.at(i)
		if r.kind != isKernel {
			continue
		}
		if class, _ := t.class(r); timeline.IsComm(class) {
			collectives[r.rank] = append(collectives[r.rank], i)
		}
	}
	moved := false
	done := map[int]bool{t.fileOf(0): true}
	for k := 1; k < len(t.ranks); k++ {
		if done[t.fileOf(k)] {
			continue // ranks of one file share a clock
		}
		done[t.fileOf(k)] = true
		f, err := t.fitRank(collectives[0], collectives[k])
		a, b := t.ranks[0].number, t.ranks[k].number
		if err != nil {
			if !t.options.AllowUnaligned {
				return refuse("ranks %d and %d do not align: %v (--allow-unaligned keeps them, with waiting times "+
					"that mean nothing)", a, b, err)
			}
			t.find("unaligned", severityUnreliable, b, 0,
				"its clock does not align with that of rank %d (%v): times across ranks cannot be compared", a, err)
			continue
		}
		t.find("aligned", severityNote, b, int64(f.pairs),
			"its clock was moved by %d ns, drift %.3f ppm, residual %d ns over %d collectives", f.offset, f.drift*1e6,
			f.residual, f.pairs)
		if f.offset != 0 || f.drift != 0 {
			moved = true
			t.move(t.fileOf(k), f)
		}
	}
	if moved {
		t.sort()
	}
	return nil
}

// fileOf is the number of a rank's file.
func (t *trace) fileOf(rank int) int { return t.procs[t.ranks[rank].proc].number }

// move applies a fit to all that was recorded in a file.
func (t *trace) move(file int, f fit) {
	at := func(ns int64) int64 { return ns + f.offset + int64(f.drift*float64(ns-f.origin)) }
	t.each(func(_ int32, r *record) {
		if t.procs[r.proc].number == file {
			r.start, r.end = at(r.start), at(r.end)
		}
	})
	for i := range t.windows {
		if w := &t.windows[i]; t.procs[w.proc].number == file {
			w.start, w.end = at(w.start), at(w.end)
		}
	}
}

// fitRank pairs the collectives of two ranks in order and fits the clocks. One
// rank may have begun to record earlier: the pairing with the smallest residual
// wins.
func (t *trace) fitRank(first, other []int32) (fit, error) {
	if len(first) < minPairs || len(other) < minPairs {
		return fit{}, fmt.Errorf("they have %d and %d collectives, %d are needed", len(first), len(other), minPairs)
	}
	var best fit
	mostSame, compared := 0, 0
	for shift := -maxShift; shift <= maxShift; shift++ {
		a, b := first, other
		if shift < 0 {
			a = a[min(len(a), -shift):]
		} else {
			b = b[min(len(b), shift):]
		}
		n := min(len(a), len(b))
		if n < minPairs || 2*n < min(len(first), len(other)) {
			continue
		}
		var x, y []int64
		for i := 0; i < n; i++ {
			p, q := t.at(a[i]), t.at(b[i])
			if p.name == q.name {
				x, y = append(x, q.end), append(y, p.end-q.end)
			}
		}
		if len(x) > mostSame {
			mostSame, compared = len(x), n
		}
		if float64(len(x)) < minSame*float64(n) || len(x) < minPairs {
			continue
		}
		f := fitClock(x, y)
		f.shift = shift
		if best.pairs == 0 || f.residual < best.residual || f.residual == best.residual &&
			abs(shift) < abs(best.shift) {
			best = f
		}
	}
	switch {
	case best.pairs == 0:
		return fit{}, fmt.Errorf("%d of %d collectives pair by name and order (events were sampled, or the ranks "+
			"did different work)", mostSame, compared)
	case best.residual > t.options.MaxResidualNS:
		return fit{}, fmt.Errorf("with the best clock the ends of their collectives still differ by %d ns, more "+
			"than %d ns", best.residual, t.options.MaxResidualNS)
	}
	return best, nil
}

// fitClock fits y = offset + drift*(x-origin) by medians, so that single
// collectives that ended apart do no harm.
func fitClock(x, y []int64) fit {
	f := fit{pairs: len(x), origin: x[0]}
	half := len(x) / 2
	if len(x) >= 16 && x[len(x)-1]-x[0] >= driftSpan {
		slopes := make([]float64, 0, half)
		for i := 0; i < half; i++ {
			if d := x[i+half] - x[i]; d > 0 {
				slopes = append(slopes, float64(y[i+half]-y[i])/float64(d))
			}
		}
		slices.Sort(slopes)
		if len(slopes) > 0 {
			f.drift = min(max(slopes[len(slopes)/2], -maxDrift), maxDrift)
		}
	}
	left := make([]int64, len(x))
	for i := range x {
		left[i] = y[i] - int64(f.drift*float64(x[i]-f.origin))
	}
	slices.Sort(left)
	f.offset = left[len(left)/2]
	for i := range left {
		left[i] = int64(abs(int(left[i] - f.offset)))
	}
	slices.Sort(left)
	f.residual = left[(len(left)*9+9)/10-1]
	return f
}

func abs(v int) int {
	if v < 0 {
		return -v
	}
	return v
}
