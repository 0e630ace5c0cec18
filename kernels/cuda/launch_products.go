//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"glmbatch/kernels"
)

// gemm covers every product with one weight a head: gemm, q_absorb, v_up.
func gemm(d *device, c *kernels.Call, at uintptr) error {
	w, p := d.weight(c.Args[0])
	x := c.Dims
	a := gemmP{w: p, at: at, m: x.M, n: x.N, k: x.K, global: w.global, globalUp: w.globalUp, heads: max(1, x.Heads), whead: w.each}
	in, out := c.Args[1], c.Args[len(c.Args)-1]
	a.x, a.y = d.ptr(in), d.ptr(out)
	extra := uint32(0)
	if len(c.Args) == 5 { // q_absorb
		a.rope, a.pos, a.nrope = d.ptr(c.Args[2]), d.ptr(c.Args[3]), x.Rope
		extra = 1
	}
	a.xhead, a.yhead = x.K+x.Rope, x.N+x.Rope
	if x.Heads == 0 {
		a.xhead, a.yhead = x.K, x.N
	}
	a.ldx, a.ldy = ld(in, a.heads*a.xhead), ld(out, a.heads*a.yhead)
	if int(a.heads) > w.count || w.rows != int(x.N) || w.cols != int(x.K) {
		return fmt.Errorf("%w: %d heads of %dx%d with weights %dx%dx%d", kernels.ErrKernel, a.heads, x.N, x.K, w.count, w.rows, w.cols)
	}
	if d.beside && extra != 0 && x.M <= mergedRows {
		d.absorbBeside(&a, w, min(d.settled(in), d.settled(c.Args[3])))
		return nil
	}
	blocks := int32(1) // that share an output tile
	if extra == 0 && (w.format == kernels.BF16 || w.format == kernels.FP8) {
		blocks = clusterOf(int32(w.tiles)*a.heads, int32(w.kt))
	}
	if done, err := d.team(&a, w, blocks); done || err != nil {
		return err
	}
	if done, err := d.perHead(&a, w, blocks); done || err != nil {
		return err
	}
	if w.format == kernels.BF16 || w.format == kernels.FP4 {
		if done, err := d.wide(&a, w, blocks); done || err != nil {
			return err
		}
	}
	switch w.format {
	case kernels.F32:
		return d.do("gemm_f32", [3]uint32{ceil(x.N, 8) + extra, ceil(x.M, 8), uint32(a.heads)}, 256, 0, unsafe.Pointer(&a))
	case kernels.FP4:
		tokens, name := int32(8), "gemm_fp4_8"
		if x.M > 8 {
			tokens, name = 64, "gemm_fp4_64"
		}
		return d.do(name, [3]uint32{uint32(w.tiles), ceil(x.M, tokens), 1}, 256, 0, unsafe.Pointer(&a))
	}
	if segmentsOf(c) > 0 {
		return d.product(&a, w, blocks)
	}
	if isBroad(c) {
		return d.broad(&a, w, blocks)
	}
	tiles := int32(2) // of 8 tokens in a block
	for tiles < 8 && (x.M > 8*tiles || w.format == kernels.FP8 && x.M > 16) {
		tiles *= 2
	}
	name := fmt.Sprintf("gemm_%s_%d_%d", w.format, tiles, blocks)
	return d.do(name, [3]uint32{uint32(w.tiles)*uint32(blocks) + extra, ceil(x.M, 8*tiles), uint32(a.heads)}, 256, 0, unsafe.Pointer(&a))
}

// product adds the segments of a product of few rows.
func (d *device) product(a *gemmP, w *weight, share int32) error {
	o, frags := opProductBF16, int32(1) // fragments a step
	if w.format == kernels.FP8 {
		o, frags = opProductFP8, 2
	}
	p := productP{w: a.w, x: a.x, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, ldx: a.ldx, ldy: a.ldy, global: a.global,
		heads: a.heads, tiles: int32(w.tiles), share: share, xhead: a.xhead, yhead: a.yhead, whead: a.whead}
	groups := int32(ceil(int32(ceil(int32(w.kt), 8*share)), 4)) // of 4 steps, of a warp's slice
	p.ring = max(1, min(4, groups)) * 2048
	x := 2 * frags * 512 // of a warp
	if a.m > 1 {
		p.ring, x = min(2*2048, p.ring), a.m*576
	}
	shared := uint32(8*(p.ring+x) + share*a.m*64)
	if d.gate(&p); p.act != 0 {
		shared += uint32(a.m * a.k * 4)
	}
	s := segment{op: o, blocks: uint32(p.tiles * share * p.heads), cluster: uint32(share), shared: shared, many: a.m > 1}
	if s.many && share == 1 && p.act == 0 {
		s.steps = int32(ceil(int32(w.kt), 8))
	}
	if err := d.segment(s, unsafe.Pointer(&p), unsafe.Sizeof(p)); err != nil || a.nrope == 0 {
		return err
	}
	return d.rows(opRotary, uint32(a.m), &rowsP{x: a.x, y: a.y, rope: a.rope, pos: a.pos, at: a.at, m: a.m, n: a.n, k: a.k, ldx: a.ldx, ldy: a.ldy, nrope: a.nrope, heads: a.heads})
}

// As in src/held.cuh.
const (
	briefColumns = 128 // of a warp, at most, as in src/brief.cuh

	heldColumns = 256 // of a warp, at most
	heldTiles   = 3   // of a block
	heldThreads = 288
	heldSteps   = 2   // of a warp, at least: its sums are where they were
	heldBars    = 128 // bytes
)

// columns is how many a warp has of such a product's k.
func (s *segment) columns() int32 {
	if s.op == opProductFP8 {
		return s.steps * 32
	}
	return s.steps * 16
}

// brief makes a launch one of src/brief.cuh if it has nothing but such products.
func brief(launch []segment) bool {
	for i := range launch {
		if s := &launch[i]; s.steps < heldSteps || s.columns() > briefColumns {
			return false
		}
	}
	for i := range launch {
		s := &launch[i]
		s.shared = uint32(8 * (*productP)(unsafe.Pointer(&s.params)).ring)
	}
	return true
}

// held makes a launch one of src/held.cuh: of products whose blocks are more than two for
// each multiprocessor, and then at most one.
func held(launch []segment, sms, limit uint32) bool {
	before, after := uint32(0), uint32(0)
	memory := func(s *segment) uint32 { return heldBars + heldTiles*8*uint32(s.steps)*512 } // of a block
	for i := range launch {
		s := &launch[i]
		if s.steps < heldSteps || s.columns() > heldColumns || memory(s) > limit {
			return false
		}
		p := (*productP)(unsafe.Pointer(&s.params))
		before, after = before+s.blocks, after+ceil(p.tiles, heldTiles)*uint32(p.heads)
	}
	if before <= 2*sms || after > sms {
		return false
	}
	for i := range launch {
		s := &launch[i]
		p := (*productP)(unsafe.Pointer(&s.params))
		s.blocks, s.shared = ceil(p.tiles, heldTiles)*uint32(p.heads), memory(s)
	}
	return true
}

// clusterOf is how many blocks share an output tile's k, of steps of 512 bytes: so
// many that what a warp reads fits its part of a block's memory, and more where there
// are few tiles. It follows from the weight's shape alone, and with it a row's bits:
// all kernels for a weight cut k into 8 slices a block, which are added in order
// within the block, then block by block.
func clusterOf(tiles, steps int32) int32 {
	c := int32(1)
	for c < 8 && (steps > 128*c || tiles*c < 128 && steps >= 48*c) {
		c *= 2
	}
	return c
}

// quantised returns activations as 4- or 8-bit kernels see them, a row a pair; 4-bit
// ones without their input scale, so that they are exact in BF16.
func (d *device) quantised(w *weight, x, experts uintptr, a4 bool, pairs, k, topk, ldx, byPair int32, at uintptr, region int64) (uintptr, error) {
	q := quantP{x: x, experts: experts, at: at, pairs: pairs, k: k, topk: topk, ldx: ldx, byPair: byPair}
	q.y = d.work(scratchWork, region+int64(pairs)*int64(k)*4) + uintptr(region)
	if a4 {
		q.input = w.ins
	}
	return q.y, d.do("quant_pairs", [3]uint32{ceil(pairs*(k/16), 256), 1, 1}, 256, 0, unsafe.Pointer(&q))
}

func gemmQuant(d *device, c *kernels.Call, at uintptr) error {
	w, _ := d.weight(c.Args[0])
	x := c.Dims
	zero, err := d.zeros(x.M)
	if err != nil {
		return err
	}
	y, err := d.quantised(w, d.ptr(c.Args[1]), zero, c.Kernel == "gemm_fp4a4", x.M, x.K, 1, ld(c.Args[1], x.K), 1, at, 0)
	if err != nil {
		return err
	}
	_, p := d.weight(c.Args[0])
	a := gemmP{w: p, x: y, y: d.ptr(c.Args[2]), at: at, m: x.M, n: x.N, k: x.K, ldx: x.K, ldy: ld(c.Args[2], x.N), global: w.global, globalUp: w.globalUp, heads: 1}
	if c.Kernel == "gemm_fp4a4" {
		a.global, a.globalUp = a.global*w.input, a.globalUp*w.input
	}
	tokens, name := int32(8), "gemm_fp4_8"
	if x.M > 8 {
		tokens, name = 64, "gemm_fp4_64"
	}
	return d.do(name, [3]uint32{uint32(w.tiles), ceil(x.M, tokens), 1}, 256, 0, unsafe.Pointer(&a))
}

// zeros is an array of n expert numbers for weights without experts.
func (d *device) zeros(n int32) (uintptr, error) {
	return d.filled(fmt.Sprintf("zeros %d", n), 4*int64(n), 0)
}
