package plan

import (
	"math"

	"glmbatch/kernels"
)

// index_logits of GLM-5's sizes on Hopper: src/indexer/sm90_index_logits.cu. Rows that are many of few
// sequences share what is read of the keys; it changes no bit.

// Shared memory of index_logits_pages by the cache's format; what a block costs before its first
// page or row, in those; and how many rows index_logits_rows has at once, whose queries it has in
// scratch memory.
var indexPagesShared = map[kernels.Format]uint32{kernels.BF16: indexPagesSharedBf16, kernels.FP8: indexPagesSharedFp8}

const (
	indexStart = 4
	indexLeast = 2 // pages of a block: others' blocks find multiprocessors
	indexRows  = 2048
)

// indexSpan is how many of n a block has, at most most of them, so that what many of
// those make ends soonest.
func indexSpan(many, n, most, sms int32) int32 {
	best, least := n, int64(math.MaxInt64)
	for chunks := int32(ceil(n, most)); chunks <= n &&
		(chunks == 1 || int64(many)*int64(chunks) <= 32*int64(sms)); chunks++ {
		span := int32(ceil(n, chunks))
		waves := (int64(many)*int64(ceil(n, span)) + int64(sms) - 1) / int64(max(1, sms))
		if t := waves * int64(span+indexStart); t < least {
			best, least = span, t
		}
	}
	return min(best, most)
}

func isIndexGLM(_ *builder, c *call) bool { return c.Dims.K == 128 && c.Dims.Heads <= 32 }

// isIndexPages: few rows, or each of a sequence of its own.
func isIndexPages(b *builder, c *call) bool {
	return isIndexGLM(b, c) && (c.Dims.M < 128 || c.Dims.Ctx < 8*c.Dims.Slots)
}

func planIndexPages(b *builder, c *call) error {
	x, a := c.Dims, &c.index
	pages := int32(ceil(x.N, kernels.PageTokens))
	a.span = max(indexSpan(x.M, pages, pages, b.t.SMs), indexLeast) // its warpgroups take a page each at once
	a.early = b.settled(c.Args[6])
	err := b.do("index_logits_pages_"+string(c.kernel.Format), [3]uint32{ceil(pages, a.span), uint32(x.M), 1}, 512,
		indexPagesShared[c.kernel.Format], a)
	b.fresh.settle()
	return err
}

func planIndexRows(b *builder, c *call) error {
	x, a, f := c.Dims, &c.index, string(c.kernel.Format)
	rows, blocks, entry := min(x.M, indexRows), ceil(x.N, 512), "index_logits_rows_"+f
	if c.rounded != 0 {
		entry = "index_logits_rows_rounded_" + f
	}
	a.split = b.work(ScratchWork, int64(rows)*indexQueries)
	a.span = indexSpan(int32(blocks), rows, 64, b.t.SMs)
	for m := int32(0); m < x.M; m += rows {
		p, at := *a, uintptr(m)*4
		p.m = min(rows, x.M-m)
		p.q, p.hw, p.seq, p.pos, p.scores = a.q+at*uintptr(a.ldq), a.hw+at*uintptr(a.ldhw), a.seq+at, a.pos+at,
			a.scores+at*uintptr(a.lds)
		if err := b.do("index_pack_"+f, grid1(uint32(p.m)), 256, 0, &p); err != nil {
			return err
		}
		if err := b.do(entry, [3]uint32{blocks, ceil(p.m, p.span), 1}, 384, indexRowsShared,
			&p); err != nil {
			return err
		}
	}
	b.fresh.settle()
	return nil
}
