package plan

import (
	"slices"
	"unsafe"
)

// Rows that products of warpgroups read are left as panels too by what makes them:
// src/mma/panels.cuh. They are found by the rows' address for as long as nothing else
// writes there; launches are in the order of the stream.

const (
	panelSlots   = 4
	fewRows      = 16 // up to which others are as fast
	panelRows    = 256
	panelColumns = 8192
	panelBytes   = panelRows * panelColumns * 4
	panelTile    = 64 // rows of a panel
)

type panels struct {
	slots [panelSlots]panel
	many  panel // of more rows than slots have
	clock int
}

// panel is where a slot's rows are; m 0: nowhere.
type panel struct {
	lo, hi   uintptr
	m, k, ld int32
	used     int
}

// find returns the offset of a slot with such rows.
func (p *panels) find(x uintptr, m, k, ld int32) (slot int, ok bool) {
	for i := range p.slots {
		if s := &p.slots[i]; s.lo == x && s.m == m && s.k == k && s.ld == ld {
			p.clock++
			s.used = p.clock
			return i, true
		}
	}
	return 0, false
}

// has reports whether there is such a slot.
func (p *panels) has(x uintptr, m, k, ld int32) bool {
	return slices.ContainsFunc(p.slots[:], func(s panel) bool {
		return s.lo == x && s.m == m && s.k == k && s.ld == ld
	})
}

// take gives a slot to rows, that which was used longest ago.
func (p *panels) take(x uintptr, m, k, ld int32) int {
	at := 0
	for i := range p.slots {
		if p.slots[i].used < p.slots[at].used {
			at = i
		}
	}
	p.clock++
	p.slots[at] = panel{x, x + uintptr((m-1)*ld+k)*4, m, k, ld, p.clock}
	return at
}

// forget drops rows that are written.
func (p *panels) forget(lo, hi uintptr) {
	for i := range p.slots {
		p.slots[i].forget(lo, hi)
	}
	p.many.forget(lo, hi)
}

func (p *panel) forget(lo, hi uintptr) {
	if p.lo < hi && lo < p.hi {
		*p = panel{}
	}
}

// within finds rows among those of many: the first's index there, a whole number of
// tiles.
func (p *panels) within(x uintptr, m, k, ld int32) (row int32, ok bool) {
	s := &p.many
	if s.m == 0 || s.k != k || s.ld != ld || x < s.lo || (x-s.lo)%(panelTile*4*uintptr(ld)) != 0 {
		return 0, false
	}
	row = int32((x - s.lo) / (4 * uintptr(ld)))
	return row, row+m <= s.m
}

// slot is the address of a slot.
func (b *builder) slot(i int) uintptr {
	return b.work(ScratchRows, panelSlots*panelBytes) + uintptr(i)*panelBytes
}

// panelsOf is the bytes of many rows' panels, of whole pairs of tiles.
func panelsOf(m, k int32) int64 { return int64(ceil(m, 2*panelTile)) * 2 * panelTile * int64(k) * 4 }

// leaveMany is leave for any number of rows.
func (b *builder) leaveMany(y uintptr, m, k, ld int32) uintptr {
	if !b.t.Panels || m <= panelRows || k%64 != 0 || k > panelColumns {
		return b.leave(y, m, k, ld)
	}
	at := b.manyPanels(m, k)
	for i := range b.segments { // a norm of the same launch leaves its own there
		if s := &b.segments[i]; s.op == opNorm && s.rows.cache == at {
			return 0
		}
	}
	b.panels.many = panel{lo: y, hi: y + (uintptr(m-1)*uintptr(ld)+uintptr(k))*4, m: m, k: k, ld: ld}
	return at
}

// manyPanels is where the panels of many rows are, with room for a tile more: products
// of 128 rows at a time that begin with any tile read so far.
func (b *builder) manyPanels(m, k int32) uintptr {
	return b.work(ScratchMany, panelsOf(m+panelTile, k))
}

// leave returns where the panels of y go, which a kernel writes; 0: nobody wants them.
func (b *builder) leave(y uintptr, m, k, ld int32) uintptr {
	if !b.t.Panels || m <= fewRows || m > panelRows || k%64 != 0 || k > panelColumns {
		return 0
	}
	return b.slot(b.panels.take(y, m, k, ld))
}

// Panels is where a launch leaves the rows that it writes as panels too; 0: nowhere.
func (l *Launch) Panels() uintptr {
	switch p := l.Params.(type) {
	case *rowwiseP:
		if l.Entry != "embed" { // whose cache is its table
			return p.cache
		}
	case *hfuseP:
		for i, o := range p.op {
			if op(o) == opNorm && p.blocks[i] > 0 {
				return (*rowwiseP)(unsafe.Pointer(&p.params[i])).cache
			}
		}
	case *commP:
		return p.panels
	case *batchedGemmP:
		return p.panels
	}
	return 0
}
