package timeline

import (
	"fmt"
	"slices"
)

// Collective is one collective of one rank, in the order in which it ran there.
type Collective struct {
	Name       string
	Start, End int64
}

// Alignment says how the clocks of ranks lie to each other.
type Alignment struct {
	Offset   []int64 // to add to a rank's times to have them on rank 0's clock
	Residual int64   // the largest distance between the ends of one collective that is left
}

// Align finds the offsets of the ranks' clocks from the ends of their
// collectives, which all ranks leave together. It refuses ranks whose
// collectives do not pair, and clocks that leave a residual above bound ns (they
// drift, or the pairs are wrong): a merged timeline would show waiting that was
// not there.
func Align(ranks [][]Collective, bound int64) (Alignment, error) {
	a := Alignment{Offset: make([]int64, len(ranks))}
	if len(ranks) < 2 {
		return a, nil
	}
	first := ranks[0]
	if len(first) == 0 {
		return a, fmt.Errorf("ranks cannot be aligned: rank 0 has no collectives")
	}
	for r, other := range ranks[1:] {
		r++
		if len(other) != len(first) {
			return a, fmt.Errorf("ranks cannot be aligned: rank %d has %d collectives where rank 0 has %d (sampled or cut at different times?)", r, len(other), len(first))
		}
		diff := make([]int64, len(first))
		for i := range first {
			if other[i].Name != first[i].Name {
				return a, fmt.Errorf("ranks cannot be aligned: collective %d is %q on rank %d and %q on rank 0", i, other[i].Name, r, first[i].Name)
			}
			diff[i] = first[i].End - other[i].End
		}
		slices.Sort(diff)
		a.Offset[r] = diff[len(diff)/2]
		left := max(diff[len(diff)-1]-a.Offset[r], a.Offset[r]-diff[0])
		a.Residual = max(a.Residual, left)
		if left > bound {
			return a, fmt.Errorf("ranks cannot be aligned: with the best offset for rank %d (%d ns) its collectives still end up to %d ns from rank 0's; at most %d ns are allowed", r, a.Offset[r], left, bound)
		}
	}
	return a, nil
}
