package cpu

import (
	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// headUnits: a unit is one head of one row.
func headUnits(d *kernels.Dims) int { return int(d.M) * int(d.Heads) }

// attend is latent attention of rows over the cache's entries, read in place:
// those that sel names, or all up to the row's own.
func attend(f kernels.Format) func(x *frame, lo, hi int) error {
	return func(x *frame, lo, hi int) error {
		k, wide, heads := int(x.K), int(x.K+x.Rope), int(x.Heads)
		q, y := x.rows(0, x.M, x.Heads*(x.K+x.Rope)), x.rows(6, x.M, x.Heads*x.K)
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
		for lo < hi {
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
				slots = x.upTo(pages, pos[m])
			}
			if x.err != nil {
				return x.err
			}
			simd.Attend(row(y, m, heads*k)[h*k:end*k], row(q, m, heads*wide)[h*wide:end*wide], end-h, x.scalar(0), cache, slots, &x.s.simd)
			lo = m*heads + end
		}
		return nil
	}
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

// upTo returns the slots of positions 0..pos.
func (x *frame) upTo(pages []int32, pos int32) []int32 { return x.slots(pages, 0, int(pos)+1) }

// slots returns the slots of positions [from, to).
func (x *frame) slots(pages []int32, from, to int) []int32 {
	slots := x.s.ints(0, to-from)
	for i := range slots {
		slots[i] = slotAt(pages, from+i)
	}
	return slots
}
