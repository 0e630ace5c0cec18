package plan

import (
	"fmt"

	"glmbatch/kernels"
)

// Collectives of ranks that have rows of their own.

// own fills in what they have: how many rows a rank has, of n values, and what they are among
// all.
func (b *builder) own(c *call, rows kernels.Buffer) (commP, error) {
	if ranks := int32(b.t.Ranks); c.Dims.Ranks != ranks {
		return commP{}, fmt.Errorf("%w: a collective of %d ranks in a group of %d", kernels.ErrKernel,
			c.Dims.Ranks, ranks)
	}
	p := b.comm(c.at)
	p.m, p.n, p.to = c.Dims.M, c.Dims.N, b.ptr(rows)
	return p, nil
}

// planGatherOwn makes one list of the ranks' rows.
func planGatherOwn(b *builder, c *call) error {
	p, err := b.own(c, c.Args[1])
	if err != nil {
		return err
	}
	p.x, p.y, p.ldx, p.ldy = b.ptr(c.Args[0]), b.ptr(c.Args[2]), ld(c.Args[0], p.n), ld(c.Args[2], p.n)
	p.wide = b.aligned(map[kernels.Buffer]int32{c.Args[0]: p.ldx, c.Args[2]: p.ldy})
	p.cols = int32(round(int64(p.n), 4))
	return p.own(InboxBytes/(4*int64(p.ranks*p.cols)), func(p commP) error {
		return b.exchange(&piece{entry: "all_gather_rows", threads: 256, units: int(ceil(p.m*p.cols/4, 256)), clumps: 1,
			phases: []int{sendPhase, receivePhase}, waiting: 256, long: 8}, p)
	})
}

// planScatterNorm is the sum over ranks of each rank's own rows with what follows it.
func planScatterNorm(b *builder, c *call) error {
	p, err := b.own(c, c.Args[1])
	if err != nil {
		return err
	}
	n := p.n
	p.x, p.res, p.w, p.y = b.ptr(c.Args[0]), b.ptr(c.Args[2]), b.ptr(c.Args[3]), b.ptr(c.Args[4])
	p.ldx, p.ldr, p.ldy, p.eps = ld(c.Args[0], n), ld(c.Args[2], n), ld(c.Args[4], n), c.Scalars[0]
	p.wide = b.aligned(map[kernels.Buffer]int32{c.Args[0]: p.ldx, c.Args[2]: p.ldr, c.Args[3]: 0, c.Args[4]: p.ldy})
	p.cols = int32(round(int64(ceil(n, rowParts)), 4))
	threads := uint32(round(int64(p.cols/4), 32))
	if threads > 256 {
		return fmt.Errorf("%w: rows of %d values, at most %d", kernels.ErrKernel, n, 4*256*rowParts)
	}
	return p.own(InboxBytes/(int64(p.ranks)*int64(rowParts*p.cols)*4), func(p commP) error {
		return b.exchange(&piece{entry: "reduce_scatter_norm", threads: threads, units: int(p.m) * rowParts,
			clumps: rowParts, phases: []int{sendPhase, receivePhase}, waiting: 32 * rowParts, long: 4}, p)
	})
}

// own is pieces for ranks whose rows are their own: the rows of all stay where they are.
func (p *commP) own(rows int64, f func(commP) error) error {
	all := *p
	return p.pieces(rows, func(q commP) error {
		q.to = all.to + uintptr(q.row0*q.ranks)*4
		if q.res == 0 { // a gather, to anywhere among all
			q.y = all.y
		} else { // a sum of any of all
			q.x = all.x
		}
		return f(q)
	})
}
