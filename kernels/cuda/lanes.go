//go:build cuda

package cuda

import (
	"fmt"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"

	"gorgonia.org/cu"
)

// maxLanes bounds how many calls of a step can run at once.
const maxLanes = 3

// comms stands for the ranks' inboxes: collectives come one after the other.
const comms = ^uint32(0)

// access is what one call does with a range of a buffer.
type access struct {
	lo, hi int64
	call   int
	write  bool
}

// place is a call's lane and the calls of other lanes that it waits for.
type place struct {
	lane  int
	after []int
}

// places lays calls on lanes: calls that touch nothing in common may run at
// once. Each call follows the last call that it depends on, on that call's lane
// where it can, and waits for the others.
func places(calls []kernels.Call) []place {
	seen := map[uint32][]access{} // by buffer; 0 is scratch memory
	out := make([]place, len(calls))
	tails := [maxLanes]int{-1, -1, -1}
	for i := range calls {
		latest := [maxLanes]int{-1, -1, -1} // the last dependency on each lane
		mine := accesses(i, &calls[i])
		for b, as := range mine {
			for _, a := range as {
				for _, o := range seen[b] {
					if (a.write || o.write) && o.lo < a.hi && a.lo < o.hi {
						l := out[o.call].lane
						latest[l] = max(latest[l], o.call)
					}
				}
			}
		}
		p := &out[i]
		p.lane = lane(latest, tails)
		for l, c := range latest {
			if c >= 0 && l != p.lane {
				p.after = append(p.after, c)
			}
		}
		tails[p.lane] = i
		for b, as := range mine {
			seen[b] = append(forget(seen[b], as), as...)
		}
	}
	return out
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

// lane prefers the lane that ends with the latest dependency, then one that
// ends with any, then the one that has been idle longest.
func lane(latest, tails [maxLanes]int) int {
	best, at := -1, -1
	for l, c := range latest {
		if c >= 0 && c == tails[l] && c > at {
			best, at = l, c
		}
	}
	if best >= 0 {
		return best
	}
	best = 0
	for l, t := range tails {
		if t < tails[best] {
			best = l
		}
	}
	return best
}

// spread enqueues the calls on the lanes of a stream that is being captured.
func (d *device) spread(calls []kernels.Call) error {
	ps := places(calls)
	d.lanesOf = d.lanesOf[:0:0]
	for _, p := range ps {
		d.lanesOf = append(d.lanesOf, int8(p.lane))
	}
	awaited := make([]bool, len(calls))
	for _, p := range ps {
		for _, c := range p.after {
			awaited[c] = true
		}
	}
	lanes := [maxLanes]cu.Stream{d.stream}
	copy(lanes[1:], d.lanes[:])
	used := [maxLanes]bool{true}
	events := make([]*cu.Event, len(calls))
	mark := func(l int) (*cu.Event, error) {
		e, err := cu.MakeEvent(cu.DisableTiming)
		if err == nil {
			d.events = append(d.events, e)
			err = e.Record(lanes[l])
		}
		return &e, err
	}
	start, err := mark(0)
	if err != nil {
		return err
	}
	defer func() { d.on, d.late = d.stream, false }()
	d.grouped = kernels.Buffer{}
	for i, p := range ps {
		d.on, d.late = lanes[p.lane], len(p.after) > 0
		if !used[p.lane] {
			used[p.lane], d.late = true, true
			if err := d.on.Wait(*start, 0); err != nil {
				return err
			}
		}
		for _, c := range p.after {
			if err := d.on.Wait(*events[c], 0); err != nil {
				return err
			}
		}
		if err := d.one(i, &calls[i]); err != nil {
			return err
		}
		if awaited[i] {
			if events[i], err = mark(p.lane); err != nil {
				return err
			}
		}
	}
	for l := 1; l < maxLanes; l++ {
		if !used[l] {
			continue
		}
		e, err := mark(l)
		if err == nil {
			err = d.stream.Wait(*e, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// capture records the calls as a graph whose branches run at once.
func (d *device) capture(calls []kernels.Call) (*driver.Graph, error) {
	g, err := driver.Capture(d.stream, func() error { return d.spread(calls) })
	for i := range d.events {
		cu.DestroyEvent(&d.events[i])
	}
	d.events = d.events[:0]
	if err != nil {
		return nil, fmt.Errorf("%w: %w", kernels.ErrDevice, err)
	}
	return g, nil
}
