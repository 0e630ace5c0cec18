//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
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
	blocks := int32(1) // that share an output tile
	if extra == 0 && (w.format == kernels.BF16 || w.format == kernels.FP8) {
		blocks = clusterOf(int32(w.tiles)*a.heads, int32(w.kt))
	}
	if w.format != kernels.F32 {
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
	tiles := int32(1) // of 8 tokens in a block
	for tiles < 8 && x.M > 8*tiles {
		tiles *= 2
	}
	name := fmt.Sprintf("gemm_bf16_%d_%d", tiles, blocks)
	return d.do(name, [3]uint32{uint32(w.tiles)*uint32(blocks) + extra, ceil(x.M, 8*tiles), uint32(a.heads)}, 256, 0, unsafe.Pointer(&a))
}

// clusterOf is how many blocks share an output tile's k: enough blocks to fill the
// GPU with at least three fragments a warp. It follows from the weight's shape alone.
func clusterOf(tiles, kt int32) int32 {
	c := int32(1)
	for c < 8 && tiles*c*2 <= 528 && kt >= 3*8*c*2 {
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
	k := fmt.Sprintf("zeros %d", n)
	if t, ok := d.tables[k]; ok {
		return t, nil
	}
	t, err := d.malloc(int64(n) * 4)
	if err != nil {
		return 0, err
	}
	d.tables[k] = t
	return t, driver.Set(t, 0, int64(n)*4, d.stream)
}
