package glm5

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"glmbatch/kernels"
)

// Batch is what one step computes. Rows are tokens; they may come in any order
// in which a sequence's rows are together and ascend, but rows of long context
// come last: see IsLong. Where ranks have sequences of their own, so do each rank's rows and
// rows of logits, and the ranks' follow each other.
type Batch struct {
	Tokens  []int32 // one a row
	Pos     []int32 // the token's place in its sequence
	Seq     []int32 // row of the page tables, below MaxSeqs; of ranks with their own, the r-th has the r-th MaxSeqs
	Slots   []int32 // the cache slot that the token's entries go to, on its rank
	Logits  []int32 // rows whose next token is wanted
	Params  []kernels.SampleParams
	Masks   []uint64        // rows of SeenWords each, which Params.Mask counts; at most MaxLogits
	Open    bool            // Masks are not known yet: see Model.StartOpen
	Entries []kernels.Entry // of all rows of logits: see Params.Entries
	Copies  []int32         // pairs of pages: entries of the first become those of the second, before all else

	// Common has the first pages of sequences, by Seq, that others in the batch may have
	// too. The costs of calls count what is in them once. nil: none.
	Common map[int32][]int32
	counts []int32 // scratch of measure: the last block, by number, that had a page
	blocks int32

	// From says for each row of logits which row of logits of the program before
	// gives its token, which is not known here yet; -1: Tokens has it. nil: Tokens
	// has all. A program whose batch has it runs once for each Upload.
	From []int32

	// Next has the token behind each row, where it is known; those of rows of logits are
	// sampled. With it, the rows go through the prediction layer too, and it makes so many
	// Drafts for each of the Tips. Tips that may go on where a row attends to a selection
	// come last, from LongTips on. nil: the layer has no part in the step.
	Next     []int32
	Tips     []Tip
	LongTips int
	Drafts   int
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	clear(b.Common)
	*b = Batch{Tokens: b.Tokens[:0], Pos: b.Pos[:0], Seq: b.Seq[:0], Slots: b.Slots[:0], Logits: b.Logits[:0],
		Params: b.Params[:0], Masks: b.Masks[:0], Entries: b.Entries[:0], Copies: b.Copies[:0], From: b.From[:0],
		Next: b.Next[:0], Tips: b.Tips[:0], Common: b.Common, counts: b.counts, blocks: b.blocks}
}

// copyOf makes b the same as o, in memory of its own, but for masks.
func (b *Batch) copyOf(o *Batch) {
	b.Reset()
	b.Tokens, b.Pos, b.Seq, b.Slots = append(b.Tokens, o.Tokens...), append(b.Pos, o.Pos...), append(b.Seq, o.Seq...),
		append(b.Slots, o.Slots...)
	b.Logits, b.Params, b.From = append(b.Logits, o.Logits...), append(b.Params, o.Params...), append(b.From, o.From...)
	b.Entries = append(b.Entries, o.Entries...)
}

// follows reports whether b is o with every row one token further, fed as o's
// rows were: then the ranks make b's inputs of o's by themselves.
func (b *Batch) follows(o *Batch) bool {
	n := len(b.Tokens)
	if n == 0 || len(b.Copies) > 0 || len(b.Masks) > 0 || !slices.Equal(b.Entries, o.Entries) || len(b.From) != n ||
		!slices.Equal(b.From, o.From) || !slices.Equal(b.Seq, o.Seq) || !slices.Equal(b.Logits, o.Logits) {
		return false
	}
	for i := range n {
		p := o.Params[i]
		p.Counter++
		p.Last = b.Params[i].Last
		if b.From[i] < 0 || b.Params[i] != p || b.Pos[i] != o.Pos[i]+1 {
			return false
		}
	}
	return true
}

// Add appends a row and returns its number.
func (b *Batch) Add(token, pos, seq, slot int32) int32 {
	b.Tokens = append(b.Tokens, token)
	b.Pos = append(b.Pos, pos)
	b.Seq = append(b.Seq, seq)
	b.Slots = append(b.Slots, slot)
	return int32(len(b.Tokens) - 1)
}

// Samples is how many tokens the step samples: of its rows of logits, and behind them the
// drafts of its tips.
func (b *Batch) Samples() int { return len(b.Logits) + len(b.Tips)*b.Drafts }

// Share says which of a sequence's first pages others may have too.
func (b *Batch) Share(seq int32, pages []int32) {
	if b.Common == nil {
		b.Common = map[int32][]int32{}
	}
	b.Common[seq] = pages
}

// IsLong reports whether a row at a position attends to a selection: its context
// is longer than the indexer's top-k.
func (c *Config) IsLong(pos int) bool { return pos >= c.IndexTopK }

// check reports what of b does not fit the model's buffers. A batch is the
// engine's own: what is wrong with it is a bug, which must not write elsewhere.
func (m *Model) check(b *Batch, c *cut) error {
	n := len(b.Tokens)
	switch {
	case n == 0 || n > m.o.MaxRows*m.homes:
		return fmt.Errorf("a step of %d rows, not in 1..%d", n, m.o.MaxRows*m.homes)
	case len(b.Pos) != n || len(b.Seq) != n || len(b.Slots) != n:
		return fmt.Errorf("a step of %d rows has %d positions, %d sequences, %d slots", n, len(b.Pos), len(b.Seq),
			len(b.Slots))
	case len(b.Logits) > m.o.MaxLogits*m.homes || len(b.Params) != len(b.Logits) ||
		len(b.From) > 0 && len(b.From) != len(b.Logits):
		return fmt.Errorf("a step of %d rows of logits, %d parameters, %d fed, at most %d", len(b.Logits),
			len(b.Params), len(b.From), m.o.MaxLogits*m.homes)
	case len(b.Copies) > 0 && m.homes > 1:
		return errors.New("pages are copied on all ranks, and each has its own")
	}
	if err := m.checkShares(b, c); err != nil {
		return err
	}
	if err := m.checkParams(b); err != nil {
		return err
	}
	if len(b.Copies)%2 != 0 {
		return fmt.Errorf("a step that copies %d pages in pairs", len(b.Copies))
	}
	for _, p := range b.Copies {
		if p < 0 || int(p) >= m.o.Pages {
			return fmt.Errorf("a step that copies page %d of %d", p, m.o.Pages)
		}
	}
	for i, from := range b.From {
		if int(from) >= m.o.MaxLogits*m.homes || from >= 0 && (b.Logits[i] < 0 || int(b.Logits[i]) >= n) {
			return fmt.Errorf("row of logits %d, row %d of the step, continues row %d", i, b.Logits[i], from)
		}
	}
	if err := m.checkTips(b); err != nil {
		return err
	}
	for i := range n {
		if b.Tokens[i] < 0 || int(b.Tokens[i]) >= m.Config.Vocab || b.Pos[i] < 0 || int(b.Pos[i]) >= m.o.Context ||
			b.Seq[i] < 0 || int(b.Seq[i]) >= m.o.MaxSeqs*m.homes ||
			b.Slots[i] < 0 || int(b.Slots[i]) >= m.o.Pages*kernels.PageTokens {
			return fmt.Errorf("row %d: token %d, position %d, sequence %d, slot %d", i, b.Tokens[i], b.Pos[i], b.Seq[i],
				b.Slots[i])
		}
	}
	return nil
}

// checkParams reports what of the parameters refers to nothing.
func (m *Model) checkParams(b *Batch) error {
	rows, seats := m.o.MaxLogits*m.o.Homes(), m.o.MaxSeqs*m.homes
	if words := m.SeenWords(); len(b.Masks)%words != 0 || len(b.Masks)/words > rows ||
		len(b.Entries) > m.mostEntries() {
		return fmt.Errorf("a step with masks of %d words in rows of %d, and %d entries of at most %d", len(b.Masks),
			words, len(b.Entries), m.mostEntries())
	}
	for i := range b.Params {
		p := &b.Params[i]
		switch from, n := int64(p.Entries), int64(p.Biases)+int64(p.Labels)+int64(p.Assumed); {
		case int(p.Seen) >= seats || int(p.Counts) >= seats || int(p.Mask) >= len(b.Masks)/m.SeenWords() ||
			p.Allowed >= 0 && (int(p.Allowed) < rows || int(p.Allowed) >= rows+seats):
			return fmt.Errorf("row of logits %d with tokens seen %d, counts %d, mask %d, allowed %d", i, p.Seen,
				p.Counts, p.Mask, p.Allowed)
		case p.Biases < 0 || p.Labels < 0 || p.Assumed < 0 || p.Assumed > kernels.MaxAssumed ||
			n > 0 && (from < 0 || from+n > int64(len(b.Entries))) ||
			p.Labels > 0 && int64(p.Logprobs)+int64(p.Labels) > kernels.MaxLogprobs:
			return fmt.Errorf("row of logits %d with %d biases, %d labels and %d tokens assumed from %d of %d, and %d alternatives",
				i, p.Biases, p.Labels, p.Assumed, from, len(b.Entries), p.Logprobs)
		case int(p.Forced) >= m.o.Tokens:
			return fmt.Errorf("row of logits %d with token %d of %d", i, p.Forced, m.o.Tokens)
		}
	}
	for i, e := range b.Entries {
		if e.Token < 0 || int(e.Token) >= m.o.Tokens {
			return fmt.Errorf("entry %d of token %d, of %d", i, e.Token, m.o.Tokens)
		}
	}
	return nil
}

// checkTips is check for the prediction layer's part.
func (m *Model) checkTips(b *Batch) error {
	if len(b.Next) == 0 && len(b.Tips) == 0 {
		return nil
	}
	if len(b.Next) != len(b.Tokens) || len(b.Tips) > m.o.MaxSeqs || b.Drafts < 1 || b.Drafts > m.o.Drafts ||
		b.LongTips < 0 || b.LongTips > len(b.Tips) {
		return fmt.Errorf("a step of %d rows, %d of them with a next token, %d drafts for %d sequences, long from "+
			"%d: the model makes up to %d for %d", len(b.Tokens), len(b.Next), b.Drafts, len(b.Tips), b.LongTips,
			m.o.Drafts, m.o.MaxSeqs)
	}
	for i, t := range b.Next {
		if t < 0 || int(t) >= m.Config.Vocab {
			return fmt.Errorf("row %d: the next token is %d", i, t)
		}
	}
	for i, h := range b.Tips {
		if h.First < 0 || h.Rows < 1 || int(h.First)+int(h.Rows) > len(b.Logits) {
			return fmt.Errorf("tip %d has rows of logits [%d, %d) of %d", i, h.First, h.First+h.Rows, len(b.Logits))
		}
		for r := h.First; r < h.First+h.Rows; r++ {
			if b.Logits[r] < 0 || int(b.Logits[r]) >= len(b.Tokens) {
				return fmt.Errorf("row of logits %d is row %d of a step of %d", r, b.Logits[r], len(b.Tokens))
			}
		}
		if end := int(b.Pos[b.Logits[h.First+h.Rows-1]]) + b.Drafts; end > m.o.Context {
			return fmt.Errorf("tip %d may come to position %d of a context of %d", i, end, m.o.Context)
		} else if i < b.LongTips && m.Config.IsLong(end-1) {
			return fmt.Errorf("tip %d may come to position %d: it attends to a selection", i, end-1)
		}
	}
	return nil
}

// mostEntries is the most that the rows of a step can have.
func (m *Model) mostEntries() int { return m.o.MaxLogits * m.o.Homes() * entriesOfRow }

// block is some rows that one call works on, with what its cost follows from.
type block struct {
	from, rows int32
	ctx        int64 // positions up to and with each row, summed
	slots      int64 // distinct cache slots among them
	selected   int64 // at most topK of them for each row: distinct slots
	width      int32 // of the longest row's context; of scores, rounded up: see scoreWidth
}

// measure returns the block of rows [from, to).
func (b *Batch) measure(from, to, topK int) block {
	k := block{from: int32(from), rows: int32(to - from)}
	b.blocks++
	for i, run := from, 1; i < to; i, run = i+1, run+1 {
		ctx := int64(b.Pos[i]) + 1
		k.ctx += ctx
		k.width = max(k.width, int32(ctx))
		if i+1 == to || b.Seq[i+1] != b.Seq[i] { // the sequence's last row here has the longest context
			k.slots += ctx - b.again(b.Common[b.Seq[i]], ctx)
			k.selected += min(ctx, int64(run)*int64(topK))
			run = 0
		}
	}
	k.selected = min(k.selected, k.slots)
	return k
}

// again is how many of the first positions of a sequence, up to ctx, are in pages that
// the block had already.
func (b *Batch) again(pages []int32, ctx int64) (n int64) {
	for _, p := range pages[:min(len(pages), int(ctx/kernels.PageTokens))] {
		if int(p) >= len(b.counts) {
			b.counts = append(b.counts, make([]int32, int(p)+1-len(b.counts))...)
		}
		if b.counts[p] == b.blocks {
			n += kernels.PageTokens
		}
		b.counts[p] = b.blocks
	}
	return n
}

// scoreWidth rounds the longest context of some rows up to an eighth of its power
// of two, whole pages, so that sequences grow for a while without changing a
// program. No more than the longest context there can be fits the buffers.
func (o Options) scoreWidth(ctx int32) int32 {
	step := max(kernels.PageTokens, int32(1)<<max(0, bits.Len32(uint32(ctx))-4))
	return min((ctx+step-1)/step*step, int32(pagesFor(o.Context)*kernels.PageTokens))
}
