package plan

import (
	"fmt"

	"glmbatch/kernels"
)

// The experts' products: moe_up and moe_down.

const (
	fewestRows  = 2  // up to so many, making no list is faster
	directPairs = 64 // (token, choice) pairs that are worth a group each
)

// resolveExperts fills in what all kernels of experts have, and rounds their inputs where
// the kernel says so and no matrix units do it.
func resolveExperts(b *builder, c *call) (err error) {
	x := c.Dims
	c.moe = moeP{w: c.weight, x: b.ptr(c.Args[1]), experts: b.ptr(c.Args[2]), at: c.at, m: x.M, n: x.N, k: x.K,
		topk: x.TopK, groups: int32(c.w.Count),
		ldx: ld(c.Args[1], x.K), wexpert: c.w.Each, rounded: c.rounded}
	a, up := &c.moe, c.kernel.Op == "moe_up"
	if c.w.Format == kernels.FP4 {
		a.global = c.w.sums(c.kernel.Inputs)
	}
	if up {
		a.y = b.ptr(c.Args[3])
		if a.n%16 != 0 && !c.exact {
			return fmt.Errorf("%w: experts of %d values a rank: a multiple of 16", kernels.ErrKernel, a.n)
		}
	} else {
		a.weights, a.y, a.ldy, a.ldw = b.ptr(c.Args[3]), b.ptr(c.Args[4]), ld(c.Args[4], x.N), ld(c.Args[3], x.TopK)
	}
	if c.kernel.Inputs == "" || c.w.Units4 != No4 {
		return nil
	}
	behind := int64(0)
	q := quantP{x: a.x, experts: a.experts, pairs: a.m * a.topk, k: a.k, topk: a.topk, ldx: a.ldx, byPair: 1}
	if up {
		q.byPair = 0
	} else if !c.exact {
		behind = c.rowsBytes()
	}
	a.x, err = b.quantised(c, q, behind)
	a.ldx = a.k
	if up || c.exact {
		a.byPair = 1
	}
	return err
}

// rowsBytes is what moe_down's rows of pairs take before they are added.
func (c *call) rowsBytes() int64 { return int64(c.moe.m*c.moe.topk) * int64(c.moe.n) * 4 }

// byExpert orders the pairs by expert, once for moe_up and moe_down.
func (b *builder) byExpert(a *moeP, experts kernels.Buffer) error {
	pairs, by := a.m*a.topk, b.by
	a.list = b.work(ScratchLists, int64(pairs+a.groups+1)*4)
	a.offsets = a.list + uintptr(pairs)*4
	if b.grouped == experts {
		return nil
	}
	b.grouped, b.by = experts, "group"
	defer func() { b.by = by }()
	g := &groupP{experts: a.experts, list: a.list, offsets: a.offsets, at: a.at, pairs: pairs, groups: a.groups}
	return b.do("moe_group", grid1(uint32(8)), 1024, uint32(3*a.groups)*4, g)
}

// combine adds the rows of pairs.
func (b *builder) combine(a *moeP) error {
	return b.do("moe_combine", [3]uint32{ceil(a.n, 256), uint32(a.m), 1}, 256, 0, a)
}

func planUpF32(b *builder, c *call) error {
	a := &c.moe
	return b.do("moe_up_f32", [3]uint32{ceil(a.n, 8), uint32(a.m * a.topk), 1}, 256, 0, a)
}

func planDownF32(b *builder, c *call) error {
	a := &c.moe
	return b.do("moe_down_f32", [3]uint32{ceil(a.n, 8), uint32(a.m), 1}, 256, 0, a)
}

// isDirect: each pair is a group of its own.
func isDirect(_ *builder, c *call) bool { return c.moe.m*c.moe.topk <= directPairs }

func planUpDirect(b *builder, c *call) error {
	a := &c.moe
	return b.do("moe_up_"+string(c.w.Format)+"_8", [3]uint32{ceil(a.n, 16), uint32(a.m * a.topk), 1}, upSlices*32, 0, a)
}

func planDownDirect(b *builder, c *call) error {
	a := &c.moe
	return b.do("moe_down_"+string(c.w.Format), [3]uint32{ceil(a.n, 16), uint32(a.m), 1}, 256, uint32(a.topk)*64, a)
}

// grouped is the suffix of kernels whose groups have rows by the average of an expert.
func (a *moeP) grouped() string {
	if a.m*a.topk > 8*a.groups {
		return "_32"
	}
	return "_8"
}

func planUpGrouped(b *builder, c *call) error {
	a := &c.moe
	if err := b.byExpert(a, c.Args[2]); err != nil {
		return err
	}
	return b.do("moe_up_"+string(c.w.Format)+a.grouped(), [3]uint32{ceil(a.n, 16), uint32(a.groups), 1},
		upSlices*32, 0, a)
}

func planDownGrouped(b *builder, c *call) error {
	a := &c.moe
	if err := b.byExpert(a, c.Args[2]); err != nil {
		return err
	}
	a.scratch = b.work(ScratchWork, c.rowsBytes())
	if err := b.do("moe_down_"+string(c.w.Format)+a.grouped(), [3]uint32{ceil(a.n, 128), uint32(a.groups), 1}, 256, 0,
		a); err != nil {
		return err
	}
	return b.combine(a)
}
