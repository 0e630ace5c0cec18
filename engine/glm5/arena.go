package glm5

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"glmbatch/kernels"
)

type allocator func(bytes int64, s kernels.Sharing) (kernels.Buffer, error)

// maxScores bounds the indexer's scores, in bytes: long contexts are scored
// some rows at a time.
const maxScores = 64 << 20

// arena is all memory that steps work in. It is allocated once, for the
// largest step; a smaller one uses the first rows of each buffer. So a step
// allocates nothing and its calls have the same buffers every time.
type arena struct {
	// Uploaded for a step, in one piece: views of inputs.
	inputs                  kernels.Buffer
	tokens, pos, seq, slots kernels.Buffer // int32, one a row
	logitRows               kernels.Buffer // int32, the rows whose logits are wanted
	from                    kernels.Buffer // int32, one a logit row: see Batch.From
	next                    kernels.Buffer // int32, one a row: the token behind it
	tips                    kernels.Buffer // Tip, one a sequence
	params                  kernels.Buffer // kernels.SampleParams, one a logit row
	to                      kernels.Buffer // [rows, ranks] int32: among met's; none where all ranks have all rows
	again                   kernels.Buffer // int32: which of met's are there once more, for ranks that are not

	pages   kernels.Buffer // [MaxSeqs, pages of a context] int32
	seen    kernels.Buffer // [MaxSeqs, vocab] bits
	counts  kernels.Buffer // [MaxSeqs, vocab] uint16
	masks   kernels.Buffer // [MaxLogits + MaxSeqs, vocab] bits: the step's, then tokens allowed by sequence
	entries kernels.Buffer // kernels.Entry, those of a step
	zero    kernels.Buffer // an int32, which nothing is written to

	// Of rows: the same on every rank where each has all of them.
	x       kernels.Buffer // [rows, hidden] the residual stream
	h       kernels.Buffer // [rows, hidden] x, normed
	front   kernels.Buffer // [rows, query latent | latent | rotary key | indexer key | indexer weights]
	qr      kernels.Buffer // [rows, query latent], normed
	iq      kernels.Buffer // [rows, indexer heads · dim]
	scores  kernels.Buffer // [some rows, context]
	sel     kernels.Buffer // [rows, top-k] int32
	last    kernels.Buffer // [logit rows, hidden]
	logits  kernels.Buffer // [logit rows, vocab]
	sampled kernels.Buffer // kernels.Sampled, one a logit row, and behind them one a tip and draft
	ahead   ahead          // none without drafts
	pair    kernels.Buffer // [rows, embedding | hidden] of the prediction layer; none without it

	// Of all rows, the same on every rank.
	met     kernels.Buffer // [all rows, hidden] h; none where all ranks have all rows
	router  kernels.Buffer // [all rows, experts]
	experts kernels.Buffer // [all rows, experts a token] int32
	weights kernels.Buffer // [all rows, experts a token]

	// A rank's own part.
	q       kernels.Buffer // [rows, heads · (nope | rope)]
	qa      kernels.Buffer // [rows, heads · (latent | rope)]
	latent  kernels.Buffer // [rows, heads · latent]
	values  kernels.Buffer // [rows, heads · value]
	gateUp  kernels.Buffer // [all rows, gate | up]
	act     kernels.Buffer // [all rows, inner]
	chosen  kernels.Buffer // [all rows · experts a token, expert's inner]
	part    kernels.Buffer // [all rows, hidden] what the ranks sum
	columns kernels.Buffer // [logit rows, vocab / shards]; none where the head is whole
}

// ahead is what the prediction layer goes on with from a step's rows, a row a tip.
type ahead struct {
	rows   rows
	from   kernels.Buffer // int32, the step's row that the tip goes on from
	params kernels.Buffer // kernels.SampleParams
	logits kernels.Buffer // [tips, vocab]
	order  kernels.Buffer // int32: 0, 1, 2 …
}

const (
	paramBytes   = int(unsafe.Sizeof(kernels.SampleParams{}))
	entryBytes   = int(unsafe.Sizeof(kernels.Entry{}))
	sampledBytes = 8 + 8*kernels.MaxLogprobs
	entriesOfRow = kernels.MaxEntries + kernels.MaxAssumed
)

// frontWidth is the columns of what every layer computes from its input first.
func (c *Config) frontWidth() int {
	return c.QLoRA + c.KVLoRA + c.QKRope + c.IndexHeadDim + c.IndexHeads
}

// inner is the widest MLP that is not a routed expert.
func (c *Config) innerWidth() int {
	if c.anyDense() {
		return max(c.Intermediate, c.SharedIntermediate())
	}
	return c.SharedIntermediate()
}

// seenBytes is a row of the bitmaps of tokens seen: whole 64-bit words.
func (c *Config) seenBytes() int { return (c.Vocab + 63) / 64 * 8 }

func newArena(c *Config, o Options, alloc allocator) (*arena, error) {
	a := &arena{}
	heads, maxPages := o.heads(c), pagesFor(o.Context)
	rows, all, seats, met := o.rows(c), o.MaxRows*o.Homes(), o.seats(), 0
	if o.Apart() {
		met = all
	}
	longest := maxPages * kernels.PageTokens
	type want struct {
		b     *kernels.Buffer
		rows  int
		width int // bytes
		share kernels.Sharing
	}
	const f, whole, own = 4, kernels.Replicated, kernels.Sharded
	ours := o.ofRows()
	wants := []want{
		{&a.inputs, 1, o.MaxLogits*(paramBytes+2*f) + rows*4*f + o.ahead(rows*f+o.MaxSeqs*2*f) +
			min(1, met)*rows*o.Shards*f + met*f, ours},
		{&a.pages, seats, f * maxPages, ours}, {&a.seen, o.MaxSeqs, c.seenBytes(), ours},
		{&a.counts, o.MaxSeqs, kernels.CountPitch(c.Vocab), ours},
		{&a.masks, o.MaxLogits*o.Homes() + o.MaxSeqs, c.seenBytes(), ours},
		{&a.entries, o.MaxLogits * o.Homes() * entriesOfRow, entryBytes, whole},
		{&a.x, rows, f * c.Hidden, ours}, {&a.h, rows, f * c.Hidden, ours},
		{&a.front, rows, f * c.frontWidth(), ours}, {&a.qr, rows, f * c.QLoRA, ours},
		{&a.iq, rows, f * c.IndexHeads * c.IndexHeadDim, ours},
		{&a.scores, 1, min(maxScores, f*rows*longest), ours},
		{&a.sel, rows, f * c.IndexTopK, ours},
		{&a.router, all, f * c.Experts, whole},
		{&a.experts, all, f * c.ExpertsPerToken, whole}, {&a.weights, all, f * c.ExpertsPerToken, whole},
		{&a.last, o.MaxLogits, f * c.Hidden, ours}, {&a.logits, o.MaxLogits, f * c.Vocab, ours},
		{&a.sampled, o.MaxLogits + o.Drafts*o.MaxSeqs, sampledBytes, ours},
		{&a.q, rows, f * heads * c.QKHeadDim(), own}, {&a.qa, rows, f * heads * (c.KVLoRA + c.QKRope), own},
		{&a.latent, rows, f * heads * c.KVLoRA, own}, {&a.values, rows, f * heads * c.VHead, own},
		{&a.gateUp, all, f * 2 * c.innerWidth() / o.Shards, own}, {&a.act, all, f * c.innerWidth() / o.Shards, own},
		{&a.chosen, all * c.ExpertsPerToken, f * c.MoEIntermediate / o.Shards, own},
		{&a.part, max(rows, all), f * c.Hidden, own}, {&a.columns, o.MaxLogits, f * c.Vocab / o.Shards, own},
	}
	if met > 0 {
		wants = slices.DeleteFunc(wants, func(w want) bool { return w.b == &a.columns })
		wants = append(wants, want{&a.met, met, f * c.Hidden, whole})
	}
	if longest <= c.IndexTopK { // attention never selects
		wants = slices.DeleteFunc(wants, func(w want) bool { return w.b == &a.scores || w.b == &a.sel || w.b == &a.iq })
	}
	if o.MTP {
		wants = append(wants, want{&a.pair, rows, f * 2 * c.Hidden, ours})
	}
	if g := &a.ahead; o.Drafts > 0 {
		for _, b := range []*kernels.Buffer{&g.rows.tokens, &g.rows.pos, &g.rows.seq, &g.rows.slots,
			&g.from, &g.order} {
			wants = append(wants, want{b, o.MaxSeqs, f, whole})
		}
		wants = append(wants, want{&g.rows.x, o.MaxSeqs, f * c.Hidden, whole},
			want{&g.rows.front, o.MaxSeqs, f * c.frontWidth(), whole},
			want{&g.params, o.MaxSeqs, paramBytes, whole}, want{&g.logits, o.MaxSeqs, f * c.Vocab, whole})
	}
	wants = append(wants, want{&a.zero, 1, 16, whole})
	var total int64
	for _, w := range wants {
		n := int64(w.rows) * int64(w.width)
		b, err := alloc(n, w.share)
		if err != nil {
			return nil, fmt.Errorf("buffers of a step of %d rows, after %d bytes: %w", o.MaxRows, total, err)
		}
		*w.b = b
		total += n
	}
	if int64(maxPages)*f > math.MaxInt32 {
		return nil, fmt.Errorf("a context of %d positions has too many pages", o.Context)
	}
	at := int64(0)
	for _, v := range []struct {
		b *kernels.Buffer
		n int
	}{
		{&a.params, o.MaxLogits * paramBytes}, {&a.logitRows, o.MaxLogits * f}, {&a.from, o.MaxLogits * f},
		{&a.tokens, rows * f}, {&a.pos, rows * f}, {&a.seq, rows * f}, {&a.slots, rows * f},
		{&a.next, o.ahead(rows * f)}, {&a.tips, o.ahead(o.MaxSeqs * 2 * f)},
		{&a.to, min(1, met) * rows * o.Shards * f}, {&a.again, met * f},
	} {
		*v.b = a.inputs.Slice(at, int64(v.n))
		at += int64(v.n)
	}
	a.pages.Pitch, a.seen.Pitch, a.masks.Pitch, a.counts.Pitch = int32(maxPages*f), int32(c.seenBytes()), int32(
		c.seenBytes()), int32(kernels.CountPitch(c.Vocab))
	return a, nil
}
