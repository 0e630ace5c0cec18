package plan

import "math"

// Experts' products for many rows, by Hopper's warpgroups: src/moe/sm90_moe_wgmma.cu and
// src/moe/sm90_moe_up_wgmma_128.cu; and moe_up of GLM-5's width by bulk copies: src/moe/sm90_moe_up_fp4_ws.cu. They
// give the bits of src/moe/moe_up_fp4.cu.

const (
	wgmmaRows     = 3                                  // rows an expert, on average, from which on it pays
	wgmmaUpGroups = (227<<10 - wgmmaUpShared - 4) / 12 // experts that there is room for
	// rows an expert, on average, above which src/moe/sm90_moe_up_wgmma_128.cu is faster
	wgmma128Rows   = 48
	wgmma128Groups = (227<<10 - wgmma128Shared - 8) / wgmma128Expert // experts that there is room for
)

// manyOfEach reports whether a call has as many rows as src/moe/sm90_moe_wgmma.cu is for.
func (a *moeP) manyOfEach() bool {
	return a.m*a.topk >= wgmmaRows*a.groups && a.x%16 == 0 && a.ldx%4 == 0
}

func isMoeUpWgmma(_ *builder, c *call) bool {
	a := &c.moe
	return a.manyOfEach() && a.n%128 == 0 && a.k%128 == 0 && a.groups <= wgmmaUpGroups
}

func isMoeUpWgmma128(_ *builder, c *call) bool {
	a := &c.moe
	return a.n%128 == 0 && a.k%64 == 0 && a.m*a.topk > wgmma128Rows*a.groups &&
		a.groups <= wgmma128Groups && a.manyOfEach()
}

func isMoeDownWgmma(_ *builder, c *call) bool {
	a := &c.moe
	return a.manyOfEach() && a.n%64 == 0 && a.k%256 == 0 && a.k <= 512
}

func moeWgmma(a *moeP) *moeWgmmaP {
	return &moeWgmmaP{w: a.w, global: a.global, x: a.x, list: a.list, offsets: a.offsets, y: a.y, at: a.at, m: a.m,
		n: a.n, k: a.k, topk: a.topk, groups: a.groups,
		ldx: a.ldx, byPair: a.byPair, wexpert: a.wexpert, rounded: a.rounded}
}

// splitUp groups the rows and makes their panels.
func (b *builder) splitUp(c *call) (*moeWgmmaP, error) {
	a, by := &c.moe, b.by
	if err := b.byExpert(a, c.Args[2]); err != nil {
		return nil, err
	}
	p := moeWgmma(a)
	if a.byPair != 0 {
		p.m = a.m * a.topk
	}
	p.per = int32(ceil(int32(c.w.Steps), upSlices))
	p.rows = b.work(ScratchPanels, int64(p.m)*int64(p.k)*4)
	b.by = "pack panels"
	defer func() { b.by = by }()
	return p, b.do("moe_pack_panels_fp4", grid1(uint32(1056)), 256, 0, p)
}

func planMoeUpWgmma128(b *builder, c *call) error {
	p, err := b.splitUp(c)
	if err != nil {
		return err
	}
	return b.do("moe_up_wgmma_128_"+formatOf(c).String(), grid1(b.t.SMs), wgmma128Threads,
		wgmma128Shared+8+wgmma128Expert*uint32(p.groups), p)
}

func planMoeUpWgmma(b *builder, c *call) error {
	p, err := b.splitUp(c)
	if err != nil {
		return err
	}
	return b.do("moe_up_wgmma_"+formatOf(c).String(), grid1(b.t.SMs), wgmmaUpThreads,
		wgmmaUpShared+4*uint32(3*p.groups+1), p)
}

func planMoeDownWgmma(b *builder, c *call) error {
	a := &c.moe
	if err := b.byExpert(a, c.Args[2]); err != nil {
		return err
	}
	a.scratch = b.work(ScratchWork, c.rowsBytes())
	p := moeWgmma(a)
	p.y, p.count = a.scratch, a.n
	tiles := a.m*a.topk/wgmmaDownRows + a.groups // at most
	panels := uint32(p.k * wgmmaDownRows * 2 * formatOf(c).terms())
	shared := 1024 + panels + wgmmaDownRing*(uint32(p.k)/64*fp4Unit+8) + wgmmaDownTile
	grid := [3]uint32{ceil(1024, tiles), uint32(tiles), 1}
	if err := b.do("moe_down_wgmma_"+formatOf(c).String(), grid, 256, shared, p); err != nil {
		return err
	}
	return b.combine(a)
}

// wsShared is the shared memory of moe_up_fp4_ws_6144, see src/moe/sm90_moe_up_fp4_ws.cu; 0: the
// call is not one for it.
func (a *moeP) wsShared() int32 {
	chunks := int64(ceil(a.m*a.topk, 32))
	bytes := wsBytes + int64(a.slots)*(2+4)*4 + (chunks+1)*int64(a.groups)*4 + wsThreads/32*4
	if a.k != wsK || a.m == 1 || a.m >= 1<<15 || a.groups > wsThreads || bytes > math.MaxInt32 {
		return 0
	}
	return int32(bytes)
}

// upWS is the shape of moe_up in src/moe/sm90_moe_up_fp4_ws.cu.
func upWS(a *moeP, blocks int32) (s upShape, ok bool) {
	a.tokens = 4
	s = upShape{entry: "moe_up_fp4_ws_6144", grid: min(blocks, a.most()*a.n/16), threads: wsThreads, prologue: true}
	a.slots = (a.spread(s.grid) + 1) / 2 * 2 // so that what is behind the list is at a multiple of 16 bytes
	s.shared = a.wsShared()
	return s, s.shared > 0
}

func isMoeUpWS(_ *builder, c *call) bool { return c.moe.k == wsK }

// planMoeUpWS has the portable shapes behind it: a row alone, and what does not fit.
func planMoeUpWS(b *builder, c *call) error { return b.upExperts(c, upWS) }
