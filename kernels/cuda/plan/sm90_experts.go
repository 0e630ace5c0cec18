package plan

import "math"

// Experts' products for many rows, by Hopper's warpgroups: src/wide_moe.cu and
// src/wide_many.cu; and moe_up of GLM-5's width by bulk copies: src/experts_ring.cu. They
// give the bits of src/experts_up.cu.

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

// manyOfEach reports whether a call has as many rows as src/wide_moe.cu is for.
func (a *moeP) manyOfEach() bool {
	return a.m*a.topk >= wideRows*a.groups && a.x%16 == 0 && a.ldx%4 == 0
}

func isWideUp(_ *builder, c *call) bool {
	a := &c.moe
	return a.manyOfEach() && a.n%128 == 0 && a.k%64 == 0 && a.groups <= upGroups
}

func isManyUp(b *builder, c *call) bool {
	a := &c.moe
	return isWideUp(b, c) && a.m*a.topk > manyRows*a.groups && a.groups <= manyGroups
}

func isWideDown(_ *builder, c *call) bool {
	a := &c.moe
	return a.manyOfEach() && a.n%64 == 0 && a.k%256 == 0 && a.k <= 512
}

func wideMoe(a *moeP) *wideMoeP {
	return &wideMoeP{w: a.w, global: a.global, x: a.x, list: a.list, offsets: a.offsets, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, topk: a.topk, groups: a.groups,
		ldx: a.ldx, byPair: a.byPair, wexpert: a.wexpert}
}

// splitUp groups the rows and makes their panels.
func (b *builder) splitUp(c *call) (*wideMoeP, error) {
	a, by := &c.moe, b.by
	if err := b.byExpert(a, c.Args[2]); err != nil {
		return nil, err
	}
	p := wideMoe(a)
	if a.byPair != 0 {
		p.m = a.m * a.topk
	}
	p.per = int32(ceil(int32(c.w.Steps), upSlices))
	p.rows = b.work(ScratchPanels, int64(p.m)*int64(p.k)*4)
	b.by = "split"
	defer func() { b.by = by }()
	return p, b.do("moe_split_fp4", grid1(uint32(1056)), 256, 0, p)
}

func planManyUp(b *builder, c *call) error {
	p, err := b.splitUp(c)
	if err != nil {
		return err
	}
	return b.do("wide_many_fp4", grid1(b.t.SMs), 384, manyShared+8+36*uint32(p.groups), p)
}

func planWideUp(b *builder, c *call) error {
	p, err := b.splitUp(c)
	if err != nil {
		return err
	}
	return b.do("wide_up_fp4", grid1(b.t.SMs), 640, upShared+4*uint32(3*p.groups+1), p)
}

func planWideDown(b *builder, c *call) error {
	a := &c.moe
	if err := b.byExpert(a, c.Args[2]); err != nil {
		return err
	}
	a.scratch = b.work(ScratchWork, c.rowsBytes())
	p := wideMoe(a)
	p.y, p.count = a.scratch, a.n
	tiles := a.m*a.topk/downRows + a.groups // at most
	shared := 1024 + uint32(p.k)*downRows*4 + downRing*(uint32(p.k)/64*576+8) + downTile
	if err := b.do("wide_down_fp4", [3]uint32{ceil(1024, tiles), uint32(tiles), 1}, 256, shared, p); err != nil {
		return err
	}
	return b.combine(a)
}

const (
	ringK       = 6144
	ringThreads = 640    // and experts, at most
	ringBytes   = 190704 // of shared memory, besides its list and what making that takes
)

// inRing is the shared memory of experts_up_fp4_6144, see src/experts_ring.cu; 0: the
// call is not one for it.
func (a *moeP) inRing() int32 {
	chunks := int64(ceil(a.m*a.topk, 32))
	bytes := ringBytes + int64(a.slots)*(2+4)*4 + (chunks+1)*int64(a.groups)*4 + ringThreads/32*4
	if a.k != ringK || a.m == 1 || a.m >= 1<<15 || a.groups > ringThreads || bytes > math.MaxInt32 {
		return 0
	}
	return int32(bytes)
}

// ring is the shape of moe_up in src/experts_ring.cu.
func ring(a *moeP, blocks int32) (s upShape, ok bool) {
	a.tokens = 4
	s = upShape{entry: "experts_up_fp4_6144", grid: min(blocks, a.most()*a.n/16), threads: ringThreads, opens: true}
	a.slots = (a.spread(s.grid) + 1) / 2 * 2 // so that what is behind the list is at a multiple of 16 bytes
	s.shared = a.inRing()
	return s, s.shared > 0
}

func isRing(_ *builder, c *call) bool { return c.moe.k == ringK }

// planRing has the portable shapes behind it: a row alone, and what does not fit.
func planRing(b *builder, c *call) error { return b.upExperts(c, ring) }
