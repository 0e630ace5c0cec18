package plan

import (
	"fmt"

	"glmbatch/kernels"
)

func planEmbed(b *builder, c *call) error {
	f := int32(0)
	if c.w.Format == kernels.BF16 {
		f = 1
	}
	a := &rowwiseP{cache: c.weight, idx: b.ptr(c.Args[1]), y: b.ptr(c.Args[2]), at: c.at, m: c.Dims.M, n: c.Dims.N,
		ldy: ld(c.Args[2], c.Dims.N), format: f}
	return b.do("embed", [3]uint32{uint32(a.m), ceil(a.n, embedded), 1}, 256, 0, a)
}

func planNorm(b *builder, c *call) error {
	x := c.Dims
	a := &rowwiseP{x: b.ptr(c.Args[0]), w: b.ptr(c.Args[1]), y: b.ptr(c.Args[2]), at: c.at, m: x.M, k: x.K,
		ldx: ld(c.Args[0], x.K), ldy: ld(c.Args[2], x.K), eps: c.Scalars[0]}
	a.cache = b.leaveMany(a.y, a.m, a.k, a.ldy)
	return b.ofRows(opNorm, uint32(x.M), a)
}

func planAddNorm(b *builder, c *call) error {
	n := c.Dims.N
	if n > 8192 {
		return fmt.Errorf("%w: rows of %d values, at most 8192", kernels.ErrKernel, n)
	}
	a := &rowwiseP{x: b.ptr(c.Args[0]), res: b.ptr(c.Args[1]), w: b.ptr(c.Args[2]), y: b.ptr(c.Args[3]), at: c.at,
		m: c.Dims.M, n: n,
		ldx: ld(c.Args[0], n), ldr: ld(c.Args[1], n), ldy: ld(c.Args[3], n), eps: c.Scalars[0]}
	a.cache = b.leaveMany(a.y, a.m, a.n, a.ldy)
	return b.do("add_norm", grid1(a.m), 768, 0, a)
}

func planSilu(b *builder, c *call) error {
	x := c.Dims
	return b.ofRows(opSilu, ceil(x.N, 256)*uint32(x.M),
		&rowwiseP{x: b.ptr(c.Args[0]), y: b.ptr(c.Args[1]), at: c.at, m: x.M, n: x.N, ldx: ld(c.Args[0], 2*x.N),
			ldy: ld(c.Args[1], x.N)})
}

func planGatherRows(b *builder, c *call) error {
	x := c.Dims
	return b.do("gather_rows", grid1(x.M), 256, 0,
		&rowwiseP{x: b.ptr(c.Args[0]), idx: b.ptr(c.Args[1]), y: b.ptr(c.Args[2]), at: c.at, m: x.M, n: x.N,
			ldx: ld(c.Args[0], x.N), ldy: ld(c.Args[2], x.N)})
}

// planRoute chooses experts: of few rows in a horizontal fusion.
func planRoute(b *builder, c *call) error {
	x, s := c.Dims, c.Scalars
	if x.TopK > 64 || s[1] > 64 || x.Groups > 4096 || x.TopK > x.Groups {
		return fmt.Errorf("%w: %d of %d experts in %v groups", kernels.ErrKernel, x.TopK, x.Groups, s[1])
	}
	b.grouped = kernels.Buffer{}
	a := &routeP{x: b.ptr(c.Args[0]), bias: b.ptr(c.Args[1]), experts: b.ptr(c.Args[2]), weights: b.ptr(c.Args[3]),
		at: c.at, m: x.M, n: x.Groups, topk: x.TopK,
		ldx: ld(c.Args[0], x.Groups), ldw: ld(c.Args[3], x.TopK), scale: s[0], groups: int32(s[1]), keep: int32(s[2]),
		norm: int32(s[3])}
	if segmentsOf(c.Call) > 0 {
		return b.segment(segment{op: opRoute, blocks: ceil(x.M, 8), cluster: 1, shared: routeMemory, route: a})
	}
	entry, shared := "moe_route", uint32(0)
	if x.Groups > inRegisters {
		entry, shared = "moe_route_many", uint32(x.Groups)*4
	}
	err := b.do(entry, grid1(x.M), 32, shared, a)
	b.lead(c.Args[2])
	return err
}

// seenBytes is a row of a bitmap of n bits.
func seenBytes(seen kernels.Buffer, n int32) int32 {
	if seen.Pitch != 0 {
		return seen.Pitch
	}
	return (n + 63) / 64 * 8
}

// countBytes is a row of counts of n tokens.
func countBytes(counts kernels.Buffer, n int32) int32 {
	if counts.Pitch != 0 {
		return counts.Pitch
	}
	return int32(kernels.CountPitch(int(n)))
}

func planFeed(b *builder, c *call) error {
	a := &feedP{last: b.ptr(c.Args[0]), from: b.ptr(c.Args[1]), rows: b.ptr(c.Args[2]), seq: b.ptr(c.Args[5]),
		pages:  b.ptr(c.Args[7]),
		tokens: b.ptr(c.Args[3]), pos: b.ptr(c.Args[4]), slots: b.ptr(c.Args[6]), params: b.ptr(c.Args[8]),
		seen: b.ptr(c.Args[9]), counts: b.ptr(c.Args[10]), at: c.at,
		m: c.Dims.M, n: c.Dims.N, pagesLd: c.Args[7].Pitch / 4, seenBytes: seenBytes(c.Args[9], c.Dims.N),
		countBytes: countBytes(c.Args[10], c.Dims.N)}
	return b.do("feed", grid1(ceil(a.m, 128)), 128, 0, a)
}

func planAccept(b *builder, c *call) error {
	p := func(i int) uintptr { return b.ptr(c.Args[i]) }
	a := &acceptP{sampled: p(0), tips: p(1), rows: p(2), tokens: p(3), pos: p(4), seq: p(5), slots: p(6),
		params: p(7), next: p(8),
		from: p(9), atPos: p(10), atSeq: p(11), atSlots: p(12), atParams: p(13), at: c.at, m: c.Dims.M, n: c.Dims.N}
	return b.do("accept", grid1(ceil(max(a.m, a.n), 128)), 128, 0, a)
}

func planSample(b *builder, c *call) error {
	x := c.Dims
	n := x.N
	if x.TopK > 0 {
		n = min(n, x.TopK)
	}
	a := &sampleP{logits: b.ptr(c.Args[0]), params: b.ptr(c.Args[1]), seen: b.ptr(c.Args[2]), y: b.ptr(c.Args[3]),
		at:     c.at,
		counts: b.ptr(c.Args[4]), masks: b.ptr(c.Args[5]), entries: b.ptr(c.Args[6]), n: n, ld: ld(c.Args[0], x.N),
		seenBytes: seenBytes(c.Args[2], x.N), maskBytes: seenBytes(c.Args[5], x.N),
		countBytes: countBytes(c.Args[4], x.N)}
	a.work = b.work(ScratchWork, int64(x.M)*int64(ceil(n, 4))*16)
	return b.do("sample", grid1(sampleSlices*uint32(x.M)), 1024, 0, a)
}
