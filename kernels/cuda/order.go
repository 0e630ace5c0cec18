//go:build cuda

package cuda

import (
	"slices"

	"glmbatch/kernels"
)

// comms stands for the ranks' inboxes: collectives come one after the other.
const comms = ^uint32(0)

// access is what one call does with a range of a buffer.
type access struct {
	lo, hi int64
	call   int
	write  bool
}

// dependencies are the accesses of the calls so far, by buffer; 0 is scratch memory.
type dependencies map[uint32][]access

// add takes in call i and returns the calls that it must come after: they touch the
// same memory, and one of the two writes. What these wait for is left out.
func (d dependencies) add(i int, c *kernels.Call) (after []int) {
	mine := accesses(i, c)
	for b, as := range mine {
		for _, a := range as {
			for _, o := range d[b] {
				if (a.write || o.write) && o.lo < a.hi && a.lo < o.hi && !slices.Contains(after, o.call) {
					after = append(after, o.call)
				}
			}
		}
	}
	for b, as := range mine {
		d[b] = append(forget(d[b], as), as...)
	}
	slices.Sort(after) // ranks must agree
	return after
}

// accesses lists what call i does with each buffer.
func accesses(i int, c *kernels.Call) map[uint32][]access {
	row := kernels.Lookup(c.Kernel)
	m := map[uint32][]access{}
	for j, a := range c.Args {
		if role := row.Args[j].Role; a.Index != 0 && role != kernels.Weight {
			m[a.Index] = append(m[a.Index], access{a.Offset, a.Offset + a.Len, i, role != kernels.In})
		}
	}
	switch row.Class {
	case kernels.Comm:
		m[comms] = []access{{0, 1, i, true}} // the ranks' inboxes
	case kernels.Attention, kernels.Route, kernels.MoEF32, kernels.MoEBF16, kernels.MoEFP4, kernels.GemmFP4, kernels.Sample, kernels.CacheCast:
		m[0] = []access{{0, 1, i, true}} // they share the scratch memory
	}
	return m
}

// forget drops the accesses that a later write covers: who depends on them
// depends on the write.
func forget(old, now []access) []access {
	kept := old[:0]
	for _, o := range old {
		covered := false
		for _, a := range now {
			covered = covered || a.write && a.lo <= o.lo && o.hi <= a.hi
		}
		if !covered {
			kept = append(kept, o)
		}
	}
	return kept
}
