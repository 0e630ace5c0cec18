package plan

import "glmbatch/kernels"

// Products that are asked not to round their inputs, on plain kernels that are there for
// checks: src/gemm/gemm_exact.cu.

// exactOf fills in what all exact products share, and their kernel's suffix.
func (b *builder) exactOf(c *call) (*exactP, string) {
	w, x := c.w, c.Dims
	a := &exactP{w: c.weight, x: b.ptr(c.Args[1]), y: b.ptr(c.Args[len(c.Args)-1]), at: c.at, m: x.M, n: x.N, k: x.K,
		heads: max(1, x.Heads), topk: x.TopK,
		groups: int32(w.Count), global: w.Global, wnext: w.Each}
	if w.Format == kernels.FP4 {
		a.globals = w.sums(c.kernel.Inputs)
	}
	return a, string(w.Format)
}

func planExact(b *builder, c *call) error {
	by := b.by
	if c.kernel.Inputs != "" {
		if err := b.quantisedRows(c); err != nil {
			return err
		}
	}
	b.by = by
	a, f := b.exactOf(c)
	if c.kernel.Op == "q_absorb" {
		a.rope, a.pos, a.nrope = b.ptr(c.Args[2]), b.ptr(c.Args[3]), c.Dims.Rope
	}
	a.xhead, a.yhead = c.Dims.K+c.Dims.Rope, c.Dims.N+c.Dims.Rope
	a.x, a.ldx, a.ldy = c.gemm.x, c.gemm.ldx, ld(c.Args[len(c.Args)-1], a.heads*a.yhead)
	return b.do("exact_gemm_"+f, [3]uint32{ceil(a.n, 128) + c.rotates(), ceil(a.m, 8), uint32(a.heads)}, 256, 0, a)
}

func planExactUp(b *builder, c *call) error {
	a, f := b.exactOf(c)
	a.experts = b.ptr(c.Args[2])
	a.x, a.ldx, a.byPair = c.moe.x, c.moe.ldx, c.moe.byPair
	return b.do("exact_up_"+f, [3]uint32{ceil(a.n, 128), uint32(a.m * a.topk), 1}, 256, 0, a)
}

func planExactDown(b *builder, c *call) error {
	a, f := b.exactOf(c)
	a.experts, a.weights = b.ptr(c.Args[2]), b.ptr(c.Args[3])
	a.x, a.ldx, a.byPair = c.moe.x, c.moe.ldx, c.moe.byPair
	a.ldw, a.ldy = ld(c.Args[3], c.Dims.TopK), ld(c.Args[4], c.Dims.N)
	return b.do("exact_down_"+f, [3]uint32{ceil(a.n, 128), uint32(a.m), 1}, 256, 0, a)
}
