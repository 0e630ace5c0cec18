package plan

import (
	"slices"

	"glmbatch/kernels"
)

// Once reports whether a list never comes again: it copies rows within a buffer, as a step
// does that makes pages of shared prefixes its own. Those pages are other ones each time.
func Once(calls []kernels.Call) bool {
	return slices.ContainsFunc(calls, func(c kernels.Call) bool {
		return c.Kernel == "gather_rows" && c.Args[0].Index == c.Args[2].Index
	})
}

// comms stands for the ranks' inboxes: collectives come one after the other.
const comms = ^uint32(0)

// access is what one call does with a range of a buffer.
type access struct {
	lo, hi int64
	call   int
	write  bool
	reads  bool
}

func (a access) meets(o access) bool { return a.lo < o.hi && o.lo < a.hi }

// uses are the accesses of a buffer that a later call may have to come after.
type uses struct{ reads, writes []access }

// dependencies are the uses by the calls so far, by buffer; 0 is scratch memory.
type dependencies map[uint32]uses

// add takes in call i and returns the calls that it must come after: they touch the
// same memory, and one of the two writes. What these wait for is left out.
func (d dependencies) add(i int, c *kernels.Call) (after []int) {
	mine := accesses(i, c)
	for b, as := range mine {
		u := d[b]
		for _, a := range as {
			after = behind(after, a, u.writes)
			if a.write {
				after = behind(after, a, u.reads)
			}
		}
	}
	for b, as := range mine {
		u := d[b]
		for _, a := range as {
			if a.write {
				u.reads, u.writes = forget(u.reads, a), forget(u.writes, a)
			}
		}
		for _, a := range as {
			if a.write {
				u.writes = append(u.writes, a)
			} else {
				u.reads = append(u.reads, a)
			}
		}
		d[b] = u
	}
	slices.Sort(after) // ranks must agree
	return after
}

// behind adds the calls of those of others that a meets.
func behind(after []int, a access, others []access) []int {
	for _, o := range others {
		if a.meets(o) && !slices.Contains(after, o.call) {
			after = append(after, o.call)
		}
	}
	return after
}

// accesses lists what call i does with each buffer.
func accesses(i int, c *kernels.Call) map[uint32][]access {
	row := kernels.Lookup(c.Kernel)
	m := map[uint32][]access{}
	for j, a := range c.Args {
		if role := row.Args[j].Role; a.Index != 0 && role != kernels.Weight {
			m[a.Index] = append(m[a.Index],
				access{a.Offset, a.Offset + a.Len, i, role != kernels.In, role != kernels.Out})
		}
	}
	switch row.Class {
	case kernels.Comm:
		m[comms] = []access{{0, 1, i, true, true}} // the ranks' inboxes
	case kernels.Attention, kernels.Route, kernels.MoEF32, kernels.MoEBF16, kernels.MoEFP8, kernels.MoEFP4,
		kernels.GemmFP4, kernels.Sample, kernels.CacheCast:
		m[0] = []access{{0, 1, i, true, true}} // they share the scratch memory
	}
	return m
}

// forget cuts what a write covers out of older accesses: who depends on that
// depends on the write.
func forget(old []access, a access) []access {
	kept := old[:0]
	var rest []access // second pieces, which may not overwrite what is still to be read
	for _, o := range old {
		if !a.meets(o) {
			kept = append(kept, o)
			continue
		}
		before, behind := o, o
		before.hi, behind.lo = a.lo, a.hi
		if before.lo < before.hi {
			kept = append(kept, before)
			if behind.lo < behind.hi {
				rest = append(rest, behind)
			}
		} else if behind.lo < behind.hi {
			kept = append(kept, behind)
		}
	}
	return append(kept, rest...)
}
