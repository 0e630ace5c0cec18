package plan

import (
	"fmt"

	"glmbatch/kernels"
)

// Products of 4-bit weights and 4-bit activations, on GPUs that multiply both as
// they are: weights that were packed for that. src/gemm/sm120_w4a4.cu, src/gemm/sm100_w4a4.cu.

func isMMA4(_ *builder, c *call) bool { return c.kernel.Inputs == kernels.FP4 && c.w.Units4 == MMA4 }
func isTensor4(_ *builder, c *call) bool {
	return c.kernel.Inputs == kernels.FP4 && c.w.Units4 == Tensor4
}

// fp4Of quantises the rows of a call: one for each (token, choice), or each token.
// more bytes of scratch memory, for the variant, are at the address returned.
func (b *builder) fp4Of(c *call, byPair int32, more int64) (*fp4P, uintptr, error) {
	w, x, by := c.w, c.Dims, b.by
	a := &fp4P{w: c.weight, globals: w.Globals4, input: w.Inputs, at: c.at, x: b.ptr(c.Args[1]),
		ldx: ld(c.Args[1], x.K),
		m:   x.M * max(1, x.TopK), n: x.N, k: x.K,
		kt: int32(w.Steps), topk: max(1, x.TopK), groups: int32(w.Count), byPair: byPair, wexpert: w.Each}
	if x.TopK > 0 {
		a.experts = b.ptr(c.Args[2])
	}
	codes, scales := int64(a.m)*int64(a.kt)*32, round(int64(a.m)*int64(a.kt)*4, 256)
	a.codes = b.work(ScratchWork, codes+scales+more)
	a.scales = a.codes + uintptr(codes)
	a.codesOut, a.scalesOut = a.codes, a.scales
	q := *a
	b.by = "quantise"
	defer func() { b.by = by }()
	return a, a.scales + uintptr(scales), b.do("quant_fp4", grid1(ceil(a.m*a.kt*4, 256)), 256, 0, &q)
}

// tile4 is the rows that a block works on at once.
func tile4(rows, groups int32) int32 {
	if rows > 8*groups {
		return 32
	}
	return 8
}

// tensor4 is the product of all kernels on tensor memory.
func (b *builder) tensor4(a *fp4P, w *Weight, groups uint32, t int32, chunks uint32) error {
	entry := "fp4a4_tcgen05_16"
	if t > 16 {
		entry = "fp4a4_tcgen05_32"
	}
	return b.do(entry, [3]uint32{uint32(w.Tiles), groups, chunks}, 128, 0, a)
}

// gemm4 quantises the rows of a product.
func (b *builder) gemm4(c *call) (*fp4P, int32, error) {
	a, _, err := b.fp4Of(c, 1, 0)
	if err == nil {
		a.y, a.ldy = b.ptr(c.Args[2]), ld(c.Args[2], a.n)
	}
	return a, tile4(a.m, 1), err
}

func planGemmTensor4(b *builder, c *call) error {
	a, t, err := b.gemm4(c)
	if err != nil {
		return err
	}
	return b.tensor4(a, c.w, 1, t, ceil(a.m, max(16, t)))
}

func planGemmMMA4(b *builder, c *call) error {
	a, t, err := b.gemm4(c)
	if err != nil {
		return err
	}
	return b.do(fmt.Sprintf("gemm_fp4a4_%d", t), [3]uint32{ceil(a.n, 16), ceil(a.m, t), 1}, 256, 0, a)
}

// groups4 groups the rows by expert where there are many. It returns the groups and
// the rows that a block works on.
func (b *builder) groups4(a *fp4P, c *call) (uint32, int32, error) {
	if a.m <= directPairs {
		return uint32(a.m), 8, nil
	}
	m := &moeP{experts: a.experts, at: a.at, m: c.Dims.M, topk: c.Dims.TopK, groups: int32(c.w.Count)}
	if err := b.byExpert(m, c.Args[2]); err != nil {
		return 0, 0, err
	}
	a.list, a.offsets = m.list, m.offsets
	return uint32(c.w.Count), tile4(a.m, int32(c.w.Count)), nil
}

// up4 quantises and groups the rows of moe_up, with room for gate and up of all pairs.
func (b *builder) up4(c *call) (a *fp4P, both uintptr, groups uint32, t int32, err error) {
	pairs := c.Dims.M * c.Dims.TopK
	if a, both, err = b.fp4Of(c, 0, int64(pairs)*int64(c.Dims.N)*8); err != nil {
		return
	}
	a.y = b.ptr(c.Args[3])
	groups, t, err = b.groups4(a, c)
	return
}

func planUpTensor4(b *builder, c *call) error {
	a, both, groups, t, err := b.up4(c)
	if err != nil {
		return err
	}
	n, pairs := c.Dims.N, c.Dims.M*c.Dims.TopK
	s := &rowwiseP{x: both, y: a.y, at: c.at, m: pairs, n: n, ldx: 2 * n, ldy: n}
	a.y, a.n, a.ldy = both, 2*n, 2*n
	if err := b.tensor4(a, c.w, groups, t, 1); err != nil {
		return err
	}
	return b.ofRows(opSilu, ceil(n, 256)*uint32(pairs), s)
}

func planUpMMA4(b *builder, c *call) error {
	a, _, groups, t, err := b.up4(c)
	if err != nil {
		return err
	}
	return b.do(fmt.Sprintf("moe_up_fp4a4_%d", t), [3]uint32{ceil(a.n, 16), groups, 1}, 256, 0, a)
}

// down4 quantises and groups the rows of moe_down, has product multiply them, and adds
// what comes out.
func (b *builder) down4(c *call, product func(a *fp4P, groups uint32, t int32) error) error {
	pairs := int64(c.Dims.M) * int64(c.Dims.TopK)
	a, rows, err := b.fp4Of(c, 1, pairs*int64(c.Dims.N)*4)
	if err != nil {
		return err
	}
	a.y, a.ldy = rows, a.n
	groups, t, err := b.groups4(a, c)
	if err != nil {
		return err
	}
	if err := product(a, groups, t); err != nil {
		return err
	}
	s := &combine4P{rows: rows, weights: b.ptr(c.Args[3]), y: b.ptr(c.Args[4]), at: c.at, n: a.n, topk: a.topk,
		ldw: ld(c.Args[3], a.topk), ldy: ld(c.Args[4], a.n)}
	return b.do("combine_fp4a4", [3]uint32{ceil(a.n, 256), uint32(c.Dims.M), 1}, 256, 0, s)
}

func planDownTensor4(b *builder, c *call) error {
	return b.down4(c, func(a *fp4P, groups uint32, t int32) error { return b.tensor4(a, c.w, groups, t, 1) })
}

func planDownMMA4(b *builder, c *call) error {
	return b.down4(c, func(a *fp4P, groups uint32, t int32) error {
		return b.do(fmt.Sprintf("moe_down_fp4a4_%d", t), [3]uint32{ceil(a.n, 128), groups, 1}, 256, 0, a)
	})
}
