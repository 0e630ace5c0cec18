package cpu

import (
	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// headUnits: a unit is one head of one row.
func headUnits(d *kernels.Dims) int { return int(d.M) * int(d.Heads) }

// attend is latent attention of rows over the cache's entries, read in place:
// those that sel names, or all up to the row's own. Ranks that share the cache
// have their heads done side by side, so an entry is decoded once for all.
func attend(f kernels.Format) work {
	return func(x *frame, lo, hi int) error {
		k, wide, own := int(x.K), int(x.K+x.Rope), int(x.Heads)
		qs, ys := x.shares(0, x.M, x.Heads*(x.K+x.Rope)), x.shares(6, x.M, x.Heads*x.K)
		seq, pos := x.ints(3, x.M), x.ints(4, x.M)
		cache := simd.Cache{Format: f, Data: x.bytes(1, x.rank), Latent: k, Rope: int(x.Rope)}
		table := x.pageTable(2, cache.Data, kernels.LatentEntry(f, k, int(x.Rope)))
		var sel intRows
		if x.TopK > 0 {
			sel = x.intRows(5, x.M, x.TopK)
		}
		if x.err != nil {
			return x.err
		}
		for heads := own * len(qs); lo < hi; {
			m := lo / heads
			h, end := lo-m*heads, min(hi-m*heads, heads)
			pages := x.pagesOf(2, table, seq[m], pos[m])
			if x.err != nil {
				return x.err
			}
			var slots []int32
			if x.TopK > 0 {
				slots = x.selected(intRow(sel, m, int(x.TopK)), pages, pos[m])
			} else {
				slots = x.slots(pages, 0, int(pos[m])+1)
			}
			if x.err != nil {
				return x.err
			}
			if len(qs) == 1 {
				simd.Attend(row(ys[0], m, own*k)[h*k:end*k], row(qs[0], m, own*wide)[h*wide:end*wide], end-h,
					x.scalar(0), cache, slots, &x.s.simd)
			} else {
				q, y := x.s.floats(0, heads*wide), x.s.floats(1, heads*k)
				for g := h; g < end; g++ {
					copy(q[(g-h)*wide:][:wide], row(qs[g/own], m, own*wide)[g%own*wide:])
				}
				simd.Attend(y[:(end-h)*k], q[:(end-h)*wide], end-h, x.scalar(0), cache, slots, &x.s.simd)
				for g := h; g < end; g++ {
					copy(row(ys[g/own], m, own*k)[g%own*k:][:k], y[(g-h)*k:])
				}
			}
			lo = m*heads + end
		}
		return nil
	}
}

// sharedCache says whether the ranks keep once what attention reads beside the
// queries: the entries, and which of them a row attends to.
func sharedCache(c *kernels.Call, bufs []*buffer) bool {
	for _, a := range c.Args[1:6] {
		if a.Index != 0 && bufs[a.Index-1].sharing != kernels.Replicated {
			return false
		}
	}
	return true
}

// shares returns argument i on the ranks that this run serves: its own, or all.
func (x *frame) shares(i int, rows, width int32) []simd.Rows {
	if x.joint {
		return x.onRanks(i, 0, x.ranks, rows, width)
	}
	return x.onRanks(i, x.rank, 1, rows, width)
}

// selected returns the slots of the positions in sel; a negative one ends it.
func (x *frame) selected(sel, pages []int32, pos int32) []int32 {
	slots := x.s.ints(0, len(sel))
	for i, p := range sel {
		if p < 0 {
			return slots[:i]
		}
		if p > pos {
			x.fail(5, "position %d is after the row's own, %d", p, pos)
			return nil
		}
		slots[i] = slotAt(pages, int(p))
	}
	return slots
}

// slots returns the slots of positions [from, to).
func (x *frame) slots(pages []int32, from, to int) []int32 {
	slots := x.s.ints(0, to-from)
	for i := range slots {
		slots[i] = slotAt(pages, from+i)
	}
	return slots
}
