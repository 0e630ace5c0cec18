package attribute

import (
	"maps"
	"math/bits"
	"slices"
)

// lengths are those of many spans, in counters of values that agree in their first
// ten binary digits: exact up to 1,023 ns, to a thousandth above.
type lengths struct {
	min, max, n int64
	counts      map[int64]int64 // by least value
}

// length counts a span of the cost's.
func (c *cost) length(ns int64) {
	if c.lengths == nil {
		c.lengths = &lengths{min: ns, max: ns, counts: map[int64]int64{}}
	}
	l := c.lengths
	l.min, l.max, l.n = min(l.min, ns), max(l.max, ns), l.n+1
	drop := max(0, bits.Len64(uint64(ns))-10)
	l.counts[ns>>drop<<drop]++
}

// median is the value at the middle, the lower one of two.
func (l *lengths) median() int64 {
	left := (l.n + 1) / 2
	for _, v := range slices.Sorted(maps.Keys(l.counts)) {
		if left -= l.counts[v]; left <= 0 {
			return max(v, l.min)
		}
	}
	return l.max
}
