package attribute

import "glmbatch/replay/timeline"

// Comm is how the time in collectives splits.
type Comm struct {
	Waiting  int64 // for the last rank to arrive
	Transfer int64
	Unsplit  int64 // collectives that do not pair, or of one rank alone
	Ranks    []Skew
}

// Skew is how one rank's arrivals at collectives compare with the others'.
type Skew struct {
	Rank        int32
	Collectives int64
	Waiting     int64 // summed
	Lag         int64 // own arrival after the first rank's, summed
	Last        int64 // collectives that had to wait for this rank
}

func (c *Comm) rank(rank int32) *Skew {
	for i := range c.Ranks {
		if c.Ranks[i].Rank == rank {
			return &c.Ranks[i]
		}
	}
	c.Ranks = append(c.Ranks, Skew{Rank: rank})
	return &c.Ranks[len(c.Ranks)-1]
}

// collectives adds those of one step. lists has, for each rank, its collectives
// in order.
func (c *Comm) collectives(ranks []*rankStep, lists [][]timeline.Event) {
	if !pair(lists) {
		for _, l := range lists {
			for i := range l {
				c.Unsplit += l[i].End - l[i].Start
			}
		}
		return
	}
	for i := range lists[0] {
		first, last, late := lists[0][i].Start, lists[0][i].Start, 0
		for r := range lists {
			at := lists[r][i].Start
			first = min(first, at)
			if at > last {
				last, late = at, r
			}
		}
		for r := range lists {
			e := &lists[r][i]
			wait := min(last-e.Start, e.End-e.Start)
			c.Waiting += wait
			c.Transfer += e.End - e.Start - wait
			s := c.rank(ranks[r].rank)
			s.Collectives++
			s.Waiting += wait
			s.Lag += e.Start - first
			if r == late && last > first {
				s.Last++
			}
		}
	}
}

// pair reports whether the ranks ran the same collectives in the same order.
func pair(lists [][]timeline.Event) bool {
	if len(lists) < 2 {
		return false
	}
	for _, l := range lists[1:] {
		if len(l) != len(lists[0]) {
			return false
		}
		for i := range l {
			if l[i].Kernel != lists[0][i].Kernel {
				return false
			}
		}
	}
	return true
}
