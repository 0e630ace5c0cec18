//go:build cuda

package cuda

import (
	"unsafe"

	"glmbatch/kernels"
)

// Experts' products for many rows, on Hopper: src/wide_moe.cu and src/wide_many.cu.
// They give the bits of src/experts_up.cu.

const (
	wideRows   = 3                               // rows an expert, on average, from which on it pays
	upShared   = 222336                          // bytes of a block of wide_up, besides 12 an expert
	upGroups   = (227<<10 - upShared - 4) / 12   // experts that there is room for
	upSlices   = 16                              // of k, as kUpSlices
	manyRows   = 48                              // rows an expert, on average, above which src/wide_many.cu is faster
	manyShared = 190544                          // bytes of one of its blocks, besides 36 an expert
	manyGroups = (227<<10 - manyShared - 8) / 36 // experts that there is room for
	downRows   = 64                              // of an expert in a block of wide_down
	downRing   = 16                              // groups of 16 outputs whose weights it has
	downTile   = 272                             // bytes of its tile
)

type wideMoeP struct {
	w, global, x, rows, list, offsets, y, at             uintptr
	m, n, k, topk, groups, ldx, byPair, per, row0, count int32
	wexpert                                              int64
}

// isWide reports whether a call has as many rows as src/wide_moe.cu is for.
func (d *device) isWide(a *moeP, w *weight) bool {
	return d.warpgroups && w.format == kernels.FP4 && a.m*a.topk >= wideRows*a.groups && a.x%16 == 0 && a.ldx%4 == 0
}

func (d *device) wideMoe(a *moeP) wideMoeP {
	return wideMoeP{w: a.w, global: a.global, x: a.x, list: a.list, offsets: a.offsets, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, topk: a.topk, groups: a.groups,
		ldx: a.ldx, byPair: a.byPair, wexpert: a.wexpert}
}

// isWideUp, isWideDown: calls for src/wide_moe.cu.
func (d *device) isWideUp(a *moeP, w *weight) bool {
	return d.isWide(a, w) && a.n%128 == 0 && a.k%64 == 0 && a.groups <= upGroups
}
func (d *device) isWideDown(a *moeP, w *weight) bool {
	return d.isWide(a, w) && a.n%64 == 0 && a.k%256 == 0 && a.k <= 512
}

// wideUp launches moe_up.
func (d *device) wideUp(a *moeP, w *weight) error {
	p, pairs := d.wideMoe(a), a.m*a.topk
	if a.byPair != 0 {
		p.m = pairs
	}
	p.per = int32(ceil(int32(w.kt), upSlices))
	p.rows = d.work(scratchPanels, int64(p.m)*int64(p.k)*4)
	if err := d.do("moe_split_fp4", [3]uint32{1056, 1, 1}, 256, 0, unsafe.Pointer(&p)); err != nil {
		return err
	}
	sms, _, err := d.chip()
	if err != nil {
		return err
	}
	grid := [3]uint32{uint32(sms), 1, 1}
	if pairs > manyRows*a.groups && a.groups <= manyGroups {
		return d.do("wide_many_fp4", grid, 384, manyShared+8+36*uint32(a.groups), unsafe.Pointer(&p))
	}
	return d.do("wide_up_fp4", grid, 640, upShared+4*uint32(3*a.groups+1), unsafe.Pointer(&p))
}

// wideDown launches moe_down.
func (d *device) wideDown(a *moeP) error {
	p, pairs := d.wideMoe(a), a.m*a.topk
	p.y, p.count = a.scratch, a.n
	tiles := pairs/downRows + a.groups // at most
	shared := 1024 + uint32(p.k)*downRows*4 + downRing*(uint32(p.k)/64*576+8) + downTile
	if err := d.do("wide_down_fp4", [3]uint32{ceil(1024, tiles), uint32(tiles), 1}, 256, shared, unsafe.Pointer(&p)); err != nil {
		return err
	}
	return d.do("moe_combine", [3]uint32{ceil(a.n, 256), uint32(a.m), 1}, 256, 0, unsafe.Pointer(a))
}
