package plan

import (
	"fmt"

	"glmbatch/kernels"
)

// indexShape is a block of index_logits: tiles of 16 positions a warp, warps, and
// how often a block has that many positions of its row; or, with many, of how many
// rows it has them.
type indexShape struct{ tiles, warps, span, many int32 }

func indexShapeOf(f kernels.Format, rows, width int32) indexShape {
	switch {
	case f == kernels.F32:
		return indexShape{1, 4, 1, 0}
	case rows >= 128:
		return indexShape{4, 4, 32, 1}
	case rows*width <= 98304:
		return indexShape{2, 4, 1, 0}
	case rows*width <= 262144:
		return indexShape{2, 4, 4, 0}
	}
	return indexShape{2, 4, 8, 0}
}

// resolveLogits fills in what all kernels of index_logits have.
func resolveLogits(b *builder, c *call) error {
	x := c.Dims
	if x.K%32 != 0 || x.K > 128 || x.Rope > x.K || x.Rope%4 != 0 {
		return fmt.Errorf("%w: indexer keys of %d values, %d of them rotary: a multiple of 32, at most 128, and one "+
			"of 4",
			kernels.ErrKernel, x.K, x.Rope)
	}
	c.index = indexP{q: b.ptr(c.Args[0]), hw: b.ptr(c.Args[1]), rope: b.ptr(c.Args[2]), cache: b.ptr(c.Args[3]),
		pages: b.ptr(c.Args[4]), seq: b.ptr(c.Args[5]), pos: b.ptr(c.Args[6]), scores: b.ptr(c.Args[7]), at: c.at,
		m: x.M, k: x.K, heads: x.Heads, nrope: x.Rope, pagesLd: pageRow(c.Args[4]), ldq: ld(c.Args[0], x.Heads*x.K),
		ldhw: ld(c.Args[1], x.Heads), lds: ld(c.Args[7], x.N), scale: c.Scalars[0],
		rounded: c.rounded}
	return nil
}

func planLogits(b *builder, c *call) error {
	x, a := c.Dims, &c.index
	s := indexShapeOf(c.kernel.Format, x.M, x.N)
	a.span = s.span
	tiles := 4 * ceil(x.Heads, 32)
	grid := [3]uint32{ceil(x.N, 16*s.tiles*s.warps*s.span), uint32(x.M), 1}
	if s.many == 1 {
		grid = [3]uint32{ceil(x.N, 16*s.tiles*s.warps), ceil(x.M, s.span), 1}
	}
	shared := uint32(1+s.many) * tiles * (uint32(x.K/32)*1024 + 32)
	return b.do(fmt.Sprintf("%s_%d_%d_%d", c.Kernel, s.tiles, s.warps, s.many), grid, uint32(32*s.warps), shared, a)
}

// topShape is how index_topk has a row: blocks, threads of each, scores of each
// thread, and shared memory. few: of threads, for more rows than there are
// multiprocessors or beside another launch; it has no blocks for q_absorb.
type topShape struct {
	blocks, threads, scores, shared int32
	few                             bool
}

var topShapes = []topShape{{1, 512, 16, 0, true}, {1, 1024, 8, 0, false}, {1, 1024, 16, 0, false},
	{8, 512, 32, topStagedShared, false}, {8, 1024, 32, topShared, false}}

// How index_topk waits, as in src/indexer/index_topk.cuh.
const (
	waitsFirst  = iota
	readsPos    // at once, and then waits
	waitsAtLast // for what it does not need
)

func planTopK(b *builder, c *call) error {
	x := c.Dims
	a := &topP{scores: b.ptr(c.Args[0]), pos: b.ptr(c.Args[1]), sel: b.ptr(c.Args[2]), at: c.at, topk: x.TopK,
		lds: ld(c.Args[0], x.N), m: x.M}
	if b.behind {
		b.fresh.settle()
	}
	switch {
	case b.settled(c.Args[1]) == 0:
		a.waits = waitsFirst
	case b.behind && b.settled(c.Args[0]) == 1:
		a.waits = waitsAtLast
	default:
		a.waits = readsPos
	}
	for _, s := range topShapes {
		if s.shared > b.t.Shared || a.lds > s.blocks*s.threads*s.scores ||
			s.few && (b.absorb != nil || x.M <= b.t.SMs && a.waits != waitsAtLast) {
			continue
		}
		rows := uint32(x.M)
		if q := b.absorb; q != nil {
			a.absorb = *q
			rows += ceil(q.heads*q.tiles, s.blocks*s.threads/256)
		}
		return b.do(fmt.Sprintf("index_topk_%d_%d_%d", s.blocks, s.threads, s.scores),
			[3]uint32{uint32(s.blocks), rows, 1},
			uint32(s.threads), uint32(s.shared), a)
	}
	return fmt.Errorf("%w: rows of %d scores to choose from: at most %d", kernels.ErrKernel, x.N, 8*1024*32)
}

const (
	// besideBlocks is how many blocks index_topk's rows have at most where q_absorb
	// is launched with it: an H200 has as many multiprocessors for that.
	besideBlocks = 64
	besideRows   = 64  // q_absorb's, at most
	mergedRows   = 16  // up to which q_absorb has blocks of index_topk's launch
	besideDepth  = 256 // q_absorb's columns, at most
)

// absorbsBeside reports whether q_absorb, which little is to be done for, and index_topk,
// which has few blocks, are launched together: both are what attention waits for.
func absorbsBeside(absorb, choose *kernels.Call) bool {
	if absorb.Kernel != "q_absorb_bf16" || choose.Kernel != "index_topk" || asksExact(absorb) {
		return false
	}
	a, c := &absorb.Dims, &choose.Dims
	in, out := absorb.Args[1], absorb.Args[4]
	blocks := c.M // of index_topk
	if ld(choose.Args[0], c.N) > 16384 {
		blocks *= 8
	}
	return a.M > 0 && c.M > 0 && a.M <= besideRows && blocks <= besideBlocks && a.K <= besideDepth && a.K%4 == 0 &&
		a.Rope%4 == 0 && a.N%2 == 0 && (in.Offset|int64(in.Pitch)|out.Offset|int64(out.Pitch))%16 == 0
}

// isMerged: q_absorb has blocks of the index_topk that follows.
func isMerged(b *builder, c *call) bool {
	return b.beside && c.Dims.M <= mergedRows
}

// planMerged leaves q_absorb to it.
func planMerged(b *builder, c *call) error {
	a := &c.gemm
	b.absorb = &absorbP{w: a.w, x: a.x, y: a.y, at: a.at, rope: a.rope, pos: a.pos, whead: a.whead, m: a.m, n: a.n,
		k: a.k, ldx: a.ldx, ldy: a.ldy, nrope: a.nrope,
		heads: a.heads, tiles: int32(c.w.Tiles), xhead: a.xhead, yhead: a.yhead,
		early: min(b.settled(c.Args[1]), b.settled(c.Args[3])), global: a.global, rounded: a.rounded}
	return nil
}
