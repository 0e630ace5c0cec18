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

	pages   kernels.Buffer // [MaxSeqs, pages of a context] int32
	seen    kernels.Buffer // [MaxSeqs, vocab] bits
	counts  kernels.Buffer // [MaxSeqs, vocab] uint16
	masks   kernels.Buffer // [MaxLogits + MaxSeqs, vocab] bits: the step's, then tokens allowed by sequence
	entries kernels.Buffer // kernels.Entry, those of a step
	zero    kernels.Buffer // an int32, which nothing is written to

	// The same on every rank.
	x       kernels.Buffer // [rows, hidden] the residual stream
	h       kernels.Buffer // [rows, hidden] x, normed
	front   kernels.Buffer // [rows, query latent | latent | rotary key | indexer key | indexer weights]
	qr      kernels.Buffer // [rows, query latent], normed
	iq      kernels.Buffer // [rows, indexer heads · dim]
	scores  kernels.Buffer // [some rows, context]
	sel     kernels.Buffer // [rows, top-k] int32
	router  kernels.Buffer // [rows, experts]
	experts kernels.Buffer // [rows, experts a token] int32
	weights kernels.Buffer // [rows, experts a token]
	last    kernels.Buffer // [logit rows, hidden]
	logits  kernels.Buffer // [logit rows, vocab]
	sampled kernels.Buffer // kernels.Sampled, one a logit row, and behind them one a tip and draft
	ahead   ahead          // none without drafts
	pair    kernels.Buffer // [rows, embedding | hidden] of the prediction layer; none without it

	// A rank's own part.
	q       kernels.Buffer // [rows, heads · (nope | rope)]
	qa      kernels.Buffer // [rows, heads · (latent | rope)]
	latent  kernels.Buffer // [rows, heads · latent]
	values  kernels.Buffer // [rows, heads · value]
	gateUp  kernels.Buffer // [rows, gate | up]
	act     kernels.Buffer // [rows, inner]
	chosen  kernels.Buffer // [rows · experts a token, expert's inner]
	part    kernels.Buffer // [rows, hidden] what the ranks sum
	columns kernels.Buffer // [logit rows, vocab / shards]
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
	heads, maxPages := c.Heads/o.Shards, pagesFor(o.Context)
	longest := maxPages * kernels.PageTokens
	type want struct {
		b     *kernels.Buffer
		rows  int
		width int // bytes
		share kernels.Sharing
	}
	const f, whole, own = 4, kernels.Replicated, kernels.Sharded
	wants := []want{
		{&a.inputs, 1, o.MaxLogits*(paramBytes+2*f) + o.MaxRows*4*f + o.ahead(o.MaxRows*f+o.MaxSeqs*2*f), whole},
		{&a.pages, o.MaxSeqs, f * maxPages, whole}, {&a.seen, o.MaxSeqs, c.seenBytes(), whole},
		{&a.counts, o.MaxSeqs, kernels.CountPitch(c.Vocab), whole},
		{&a.masks, o.MaxLogits + o.MaxSeqs, c.seenBytes(), whole},
		{&a.entries, o.MaxLogits * entriesOfRow, entryBytes, whole},
		{&a.x, o.MaxRows, f * c.Hidden, whole}, {&a.h, o.MaxRows, f * c.Hidden, whole},
		{&a.front, o.MaxRows, f * c.frontWidth(), whole}, {&a.qr, o.MaxRows, f * c.QLoRA, whole},
		{&a.iq, o.MaxRows, f * c.IndexHeads * c.IndexHeadDim, whole},
		{&a.scores, 1, min(maxScores, f*o.MaxRows*longest), whole},
		{&a.sel, o.MaxRows, f * c.IndexTopK, whole},
		{&a.router, o.MaxRows, f * c.Experts, whole},
		{&a.experts, o.MaxRows, f * c.ExpertsPerToken, whole}, {&a.weights, o.MaxRows, f * c.ExpertsPerToken, whole},
		{&a.last, o.MaxLogits, f * c.Hidden, whole}, {&a.logits, o.MaxLogits, f * c.Vocab, whole},
		{&a.sampled, o.MaxLogits + o.Drafts*o.MaxSeqs, sampledBytes, whole},
		{&a.q, o.MaxRows, f * heads * c.QKHeadDim(), own}, {&a.qa, o.MaxRows, f * heads * (c.KVLoRA + c.QKRope), own},
		{&a.latent, o.MaxRows, f * heads * c.KVLoRA, own}, {&a.values, o.MaxRows, f * heads * c.VHead, own},
		{&a.gateUp, o.MaxRows, f * 2 * c.innerWidth() / o.Shards, own},
		{&a.act, o.MaxRows, f * c.innerWidth() / o.Shards, own},
		{&a.chosen, o.MaxRows * c.ExpertsPerToken, f * c.MoEIntermediate / o.Shards, own},
		{&a.part, o.MaxRows, f * c.Hidden, own}, {&a.columns, o.MaxLogits, f * c.Vocab / o.Shards, own},
	}
	if longest <= c.IndexTopK { // attention never selects
		wants = slices.DeleteFunc(wants, func(w want) bool { return w.b == &a.scores || w.b == &a.sel || w.b == &a.iq })
	}
	if o.MTP {
		wants = append(wants, want{&a.pair, o.MaxRows, f * 2 * c.Hidden, whole})
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
		{&a.tokens, o.MaxRows * f}, {&a.pos, o.MaxRows * f}, {&a.seq, o.MaxRows * f}, {&a.slots, o.MaxRows * f},
		{&a.next, o.ahead(o.MaxRows * f)}, {&a.tips, o.ahead(o.MaxSeqs * 2 * f)},
	} {
		*v.b = a.inputs.Slice(at, int64(v.n))
		at += int64(v.n)
	}
	a.pages.Pitch, a.seen.Pitch, a.masks.Pitch, a.counts.Pitch = int32(maxPages*f), int32(c.seenBytes()), int32(
		c.seenBytes()), int32(kernels.CountPitch(c.Vocab))
	return a, nil
}
