package timeline

import (
	"cmp"
	"glmbatch/kernels"
	"slices"
)

// Interval is the time [Start, End) in ns.
type Interval = kernels.Interval

// Union sorts iv and merges what overlaps or touches, in place. Empty intervals
// vanish.
func Union(iv []Interval) []Interval {
	slices.SortFunc(iv, func(a, b Interval) int { return cmp.Compare(a.Start, b.Start) })
	n := 0
	for _, v := range iv {
		switch {
		case v.End <= v.Start:
		case n > 0 && v.Start <= iv[n-1].End:
			iv[n-1].End = max(iv[n-1].End, v.End)
		default:
			iv[n] = v
			n++
		}
	}
	return iv[:n]
}

// After leaves out the first of a union that end by the time at.
func After(union []Interval, at int64) []Interval {
	for len(union) > 0 && union[0].End <= at {
		union = union[1:]
	}
	return union
}

// Cut splits span by a union: inside is called for each part that the union
// covers, outside for each part that it does not, in order of time.
func Cut(span Interval, union []Interval, inside, outside func(Interval)) {
	at := span.Start
	i := 0
	if len(union) > 0 && union[0].End <= at {
		i, _ = slices.BinarySearchFunc(union, at, func(v Interval, t int64) int { return cmp.Compare(v.End, t+1) })
	}
	for ; i < len(union) && union[i].Start < span.End; i++ {
		v := Interval{Start: max(union[i].Start, at), End: min(union[i].End, span.End)}
		if v.Start > at {
			outside(Interval{Start: at, End: v.Start})
		}
		if v.End > v.Start {
			inside(v)
			at = v.End
		}
	}
	if at < span.End {
		outside(Interval{Start: at, End: span.End})
	}
}
