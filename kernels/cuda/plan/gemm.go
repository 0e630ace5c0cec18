package plan

import (
	"fmt"

	"glmbatch/kernels"
)

// Products with one weight a head: gemm, q_absorb, v_up. All variants of a weight cut k
// into 8 slices a block, which are added in order within the block, then block by block.

// resolveProduct fills in what all kernels of products have.
func resolveProduct(b *builder, c *call) error {
	x, w := c.Dims, c.w
	a := &c.gemm
	*a = gemmP{w: c.weight, at: c.at, m: x.M, n: x.N, k: x.K, global: w.Global, globalUp: w.GlobalUp,
		heads: max(1, x.Heads), whead: w.Each, rounded: c.rounded}
	in, out := c.Args[1], c.Args[len(c.Args)-1]
	a.x, a.y = b.ptr(in), b.ptr(out)
	if c.kernel.Op == "q_absorb" {
		a.rope, a.pos, a.nrope = b.ptr(c.Args[2]), b.ptr(c.Args[3]), x.Rope
	}
	a.xhead, a.yhead = x.K+x.Rope, x.N+x.Rope
	if x.Heads == 0 {
		a.xhead, a.yhead = x.K, x.N
	}
	a.ldx, a.ldy = ld(in, a.heads*a.xhead), ld(out, a.heads*a.yhead)
	if int(a.heads) > w.Count || w.Rows != int(x.N) || w.Cols != int(x.K) {
		return fmt.Errorf("%w: %d heads of %dx%d with weights %dx%dx%d", kernels.ErrKernel, a.heads, x.N, x.K, w.Count,
			w.Rows, w.Cols)
	}
	c.slices = 1
	if c.rotates() == 0 && (w.Format == kernels.BF16 || w.Format == kernels.FP8 || w.Format == kernels.FP8B) {
		c.slices = sharesOf(int32(w.Tiles)*a.heads, int32(w.Steps))
	}
	return nil
}

// rotates is one more column of blocks, where a product has a rotary part.
func (c *call) rotates() uint32 {
	if c.kernel.Op == "q_absorb" {
		return 1
	}
	return 0
}

// sharesOf is how many blocks share an output tile's k, of steps of 512 bytes: so
// many that what a warp reads fits its part of a block's memory, and more where there
// are few tiles. It follows from the weight's shape alone, and with it a row's bits.
func sharesOf(tiles, steps int32) int32 {
	c := int32(1)
	for c < 8 && (steps > 128*c || tiles*c < 128 && steps >= 48*c) {
		c *= 2
	}
	return c
}

// columnsOf is how many columns a step of a weight's k has.
func columnsOf(f kernels.Format) int32 {
	if f == kernels.FP8 {
		return 32
	}
	return 16
}

func planF32(b *builder, c *call) error {
	a := &c.gemm
	return b.do("gemm_f32", [3]uint32{ceil(a.n, 8) + c.rotates(), ceil(a.m, 8), uint32(a.heads)}, 256, 0, a)
}

// planFP4 is the product of FP4 weights; inputs that are rounded were so before.
func planFP4(b *builder, c *call) error {
	tokens, entry := int32(8), "gemm_fp4_8"
	if c.gemm.m > 8 {
		tokens, entry = 64, "gemm_fp4_64"
	}
	return b.do(entry, [3]uint32{uint32(c.w.Tiles), ceil(c.gemm.m, tokens), 1}, 256, 0, &c.gemm)
}

// planTiles is src/gemm/gemm.cu: tiles of 8 tokens, so many that FP8 weights are read once for
// all that there are.
func planTiles(b *builder, c *call) error {
	a, w := &c.gemm, c.w
	tiles := int32(2) // of 8 tokens in a block
	for tiles < 8 && (a.m > 8*tiles || w.Format == kernels.FP8 && a.m > 16) {
		tiles *= 2
	}
	entry := fmt.Sprintf("gemm_%s_%d_%d", w.Format, tiles, c.slices)
	return b.do(entry, [3]uint32{uint32(w.Tiles)*uint32(c.slices) + c.rotates(), ceil(a.m, 8*tiles), uint32(a.heads)},
		256, 0, a)
}

// planGemv adds the segments of a product of few rows.
func planGemv(b *builder, c *call) error {
	a, w, share := &c.gemm, c.w, c.slices
	o, frags := op(opGemvBf16), int32(1) // fragments a step
	if w.Format == kernels.FP8 {
		o, frags = opGemvFp8, 2
	}
	p := &gemvP{w: a.w, x: a.x, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, ldx: a.ldx, ldy: a.ldy, global: a.global,
		heads: a.heads, tiles: int32(w.Tiles), share: share, xhead: a.xhead, yhead: a.yhead, whead: a.whead,
		rounded: a.rounded}
	groups := int32(ceil(int32(ceil(int32(w.Steps), 8*share)), 4)) // of 4 steps, of a warp's slice
	p.ring = max(1, min(4, groups)) * 2048
	x := 2 * frags * 512 // of a warp
	if a.m > 1 {
		p.ring, x = min(2*2048, p.ring), a.m*gemvRowBytes
	}
	shared := uint32(8*(p.ring+x) + share*a.m*64)
	if s := b.takeSilu(p.x, nil); s != nil { // it is done by the product
		p.x, p.ldx, p.act, p.ldact, p.actAt = s.x, s.ldx, s.y, s.ldy, s.at
		shared += uint32(a.m * a.k * 4)
	}
	s := segment{op: o, blocks: uint32(p.tiles * share * p.heads), cluster: uint32(share),
		shared: shared, many: a.m > 1,
		gemv: p}
	if s.many && share == 1 && p.act == 0 {
		s.steps = int32(ceil(int32(w.Steps), 8))
	}
	if err := b.segment(s); err != nil || a.nrope == 0 {
		return err
	}
	return b.ofRows(opRotary, uint32(a.m), &rowwiseP{x: a.x, y: a.y, rope: a.rope, pos: a.pos, at: a.at, m: a.m, n: a.n,
		k: a.k, ldx: a.ldx, ldy: a.ldy, nrope: a.nrope, heads: a.heads})
}

// columns is how many a warp has of such a product's k.
func (s *segment) columns() int32 {
	if s.op == opGemvFp8 {
		return s.steps * 32
	}
	return s.steps * 16
}

// shortK makes a launch one of src/gemm/gemv_short_k.cuh if it has nothing but such products.
func shortK(launch []segment) bool {
	for i := range launch {
		if s := &launch[i]; s.steps < prefetchSteps || s.columns() > shortKColumns {
			return false
		}
	}
	for i := range launch {
		launch[i].shared = uint32(8 * launch[i].gemv.ring)
	}
	return true
}

// prefetched makes a launch one of src/gemm/gemv_prefetch.cuh: of products whose blocks are more than two for
// each multiprocessor, and then at most one.
func prefetched(launch []segment, sms, limit uint32) bool {
	before, after := uint32(0), uint32(0)
	memory := func(s *segment) uint32 { return prefetchBars + prefetchTiles*8*uint32(s.steps)*512 } // of a block
	for i := range launch {
		s := &launch[i]
		if s.steps < prefetchSteps || s.columns() > prefetchColumns || memory(s) > limit {
			return false
		}
		before, after = before+s.blocks, after+ceil(s.gemv.tiles, prefetchTiles)*uint32(s.gemv.heads)
	}
	if before <= 2*sms || after > sms {
		return false
	}
	for i := range launch {
		s := &launch[i]
		s.blocks, s.shared = ceil(s.gemv.tiles, prefetchTiles)*uint32(s.gemv.heads), memory(s)
	}
	return true
}

// multiTileBlocks is from how many blocks on, of a tile each, a product of few rows
// is one for src/gemm/gemv_multi_tile.cu: more than run at once.
const multiTileBlocks = 400

// multiTile reports whether a call is a product for src/gemm/gemv_multi_tile.cu.
func multiTile(c *kernels.Call) bool {
	k := kernels.Lookup(c.Kernel)
	if k.Op != "gemm" || k.Format != kernels.BF16 && k.Format != kernels.FP8 {
		return false
	}
	if x := c.Args[1]; c.Dims.M > gemvRows || asksExact(c) || (x.Offset|int64(x.Pitch))%16 != 0 ||
		c.Dims.K%4 != 0 {
		return false
	}
	tiles := int32(ceil(c.Dims.N, 16))
	return tiles*sharesOf(tiles, int32(ceil(c.Dims.K, columnsOf(k.Format)))) > multiTileBlocks
}

func planMultiTile(b *builder, c *call) error {
	a, w, share := &c.gemm, c.w, c.slices
	p := &multiTileP{w: a.w, x: a.x, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, ldx: a.ldx, ldy: a.ldy, global: a.global,
		tiles: int32(w.Tiles), share: share, rounded: a.rounded}
	steps := int32(ceil(int32(w.Steps), 8*share)) // of a warp
	for p.width = multiTileWidth; p.width > 0; p.width /= 2 {
		x, parts := 8*p.m*(min(steps*columnsOf(w.Format), 256)*4+32), share*p.width*p.m*64
		for p.slots = min(multiTileSlots, int32(ceil(steps, 4)*ceil(p.width, 3))); p.slots > 0; p.slots-- {
			shared := multiTileInbox + 8*max(p.slots*min(p.width, 3)*2048, p.width*576) + x + parts
			if shared > b.t.Shared {
				continue
			}
			if err := b.flush(); err != nil {
				return err
			}
			return b.add(Launch{Entry: "gemv_multi_tile_" + string(w.Format),
				Grid: grid1(ceil(p.tiles, p.width) * uint32(share)), Threads: 256,
				Cluster: uint32(share), Shared: uint32(shared), Params: p})
		}
	}
	return fmt.Errorf("%w: a product of %dx%d on a GPU with little shared memory", kernels.ErrKernel, a.n, a.k)
}

// quantised plans the rounding of activations as 4- or 8-bit kernels see them, a row a
// pair, and returns where they are; 4-bit ones without their input scale, so that they are
// exact in BF16. They lie behind some bytes of ScratchWork.
func (b *builder) quantised(c *call, q quantP, behind int64) (uintptr, error) {
	q.y = b.work(ScratchWork, behind+int64(q.pairs)*int64(q.k)*4) + uintptr(behind)
	q.at = c.at
	if c.kernel.Inputs == kernels.FP4 {
		q.input = c.w.Inputs
	}
	b.by = "quantise"
	return q.y, b.do("quant_pairs", grid1(ceil(q.pairs*(q.k/16), 256)), 256, 0, &q)
}

// quantisedRows rounds a product's inputs, as if they were of one expert.
func (b *builder) quantisedRows(c *call) (err error) {
	x := c.Dims
	zeros := b.constant(Constant{fmt.Sprintf("zeros %d", x.M), 4 * int64(x.M), 0})
	c.gemm.x, err = b.quantised(c, quantP{x: c.gemm.x, experts: zeros, pairs: x.M, k: x.K, topk: 1, ldx: c.gemm.ldx,
		byPair: 1}, 0)
	c.gemm.ldx = x.K
	return err
}

// planQuantised is the product of FP4 weights with inputs that are rounded.
func planQuantised(b *builder, c *call) error {
	by := b.by
	if err := b.quantisedRows(c); err != nil {
		return err
	}
	a := &c.gemm
	if c.kernel.Inputs == kernels.FP4 {
		a.global, a.globalUp = a.global*c.w.Input, a.globalUp*c.w.Input
	}
	a.heads, a.xhead, a.yhead, a.whead, b.by = 1, 0, 0, 0, by
	return planFP4(b, c)
}
