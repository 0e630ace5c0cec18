//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"glmbatch/kernels"
)

// topShape is how index_topk has a row: blocks, threads of each, scores of each
// thread, and shared memory. few: of threads, for more rows than there are
// multiprocessors or beside another launch; it has no blocks for q_absorb.
type topShape struct {
	blocks, threads, scores, shared int32
	few                             bool
}

var topShapes = []topShape{{1, 512, 16, 0, true}, {1, 1024, 8, 0, false}, {1, 1024, 16, 0, false}, {8, 512, 32, 109136, false}, {8, 1024, 32, 43616, false}}

const (
	// besideBlocks is how many blocks index_topk's rows have at most where q_absorb
	// is launched with it: an H200 has as many multiprocessors for that.
	besideBlocks = 64
	besideRows   = 64  // q_absorb's, at most
	mergedRows   = 16  // up to which q_absorb has blocks of index_topk's launch
	besideDepth  = 256 // q_absorb's columns, at most
)

// How index_topk waits, as in src/topk.cuh.
const (
	waitsFirst  = iota
	readsPos    // at once, and then waits
	waitsAtLast // for what it does not need
)

// beside reports whether q_absorb, which little is to be done for, and index_topk, which
// has few blocks, are launched together: both are what attention waits for.
func beside(absorb, choose *kernels.Call) bool {
	if absorb.Kernel != "q_absorb_bf16" || choose.Kernel != "index_topk" || absorb.Scalars[0] != 0 {
		return false
	}
	a, c := &absorb.Dims, &choose.Dims
	in, out := absorb.Args[1], absorb.Args[4]
	blocks := c.M // of index_topk
	if ld(choose.Args[0], c.N) > 16384 {
		blocks *= 8
	}
	return a.M > 0 && c.M > 0 && a.M <= besideRows && blocks <= besideBlocks && a.K <= besideDepth && a.K%4 == 0 && a.Rope%4 == 0 && a.N%2 == 0 && (in.Offset|int64(in.Pitch)|out.Offset|int64(out.Pitch))%16 == 0
}

// absorbBeside leaves q_absorb to the index_topk that follows.
func (d *device) absorbBeside(a *gemmP, w *weight, early int32) {
	p := absorbP{w: a.w, x: a.x, y: a.y, at: a.at, rope: a.rope, pos: a.pos, whead: a.whead, m: a.m, n: a.n, k: a.k, ldx: a.ldx, ldy: a.ldy, nrope: a.nrope,
		heads: a.heads, tiles: int32(w.tiles), xhead: a.xhead, yhead: a.yhead, early: early, global: a.global}
	d.absorb = &p
}

func indexTopK(d *device, c *kernels.Call, at uintptr) error {
	x := c.Dims
	a := topP{scores: d.ptr(c.Args[0]), pos: d.ptr(c.Args[1]), sel: d.ptr(c.Args[2]), at: at, topk: x.TopK, lds: ld(c.Args[0], x.N), m: x.M}
	sms, limit, err := d.chip()
	if err != nil {
		return err
	}
	if d.behind {
		d.fresh.settle()
	}
	switch {
	case d.settled(c.Args[1]) == 0:
		a.waits = waitsFirst
	case d.behind && d.settled(c.Args[0]) == 1:
		a.waits = waitsAtLast
	default:
		a.waits = readsPos
	}
	for _, s := range topShapes {
		if s.shared > limit || a.lds > s.blocks*s.threads*s.scores || s.few && (d.absorb != nil || x.M <= sms && a.waits != waitsAtLast) {
			continue
		}
		rows := uint32(x.M)
		if b := d.absorb; b != nil {
			a.absorb = *b
			rows += ceil(b.heads*b.tiles, s.blocks*s.threads/256)
		}
		return d.do(fmt.Sprintf("index_topk_%d_%d_%d", s.blocks, s.threads, s.scores), [3]uint32{uint32(s.blocks), rows, 1}, uint32(s.threads), uint32(s.shared), unsafe.Pointer(&a))
	}
	return fmt.Errorf("%w: rows of %d scores to choose from: at most %d", kernels.ErrKernel, x.N, 8*1024*32)
}
