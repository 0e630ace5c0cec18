package glm5

import (
	"fmt"

	"glmbatch/kernels"
)

// Layout says what of attention the ranks of a model share out. MLPs and experts are split by
// their inner width in both.
type Layout string

const (
	// Latency: the heads. Every rank has every row and the whole cache, and attention's
	// output is summed over the ranks.
	Latency Layout = "latency"

	// Throughput: the sequences. A rank has rows and caches of its own and attention's weights
	// and the head whole. Behind attention the rows of all ranks meet, MLPs and experts work
	// on all of them, and each rank gets the sums of its own.
	Throughput Layout = "throughput"
)

// Layouts are all of them.
var Layouts = []Layout{Latency, Throughput}

// Of is a weight with the part of it that a rank has in the layout.
func (l Layout) Of(t Tensor) Tensor {
	if l == Throughput && (t.Part == Attn || t.Part == Head) {
		t.Split = Whole
	}
	return t
}

// Apart: ranks have rows of their own.
func (o *Options) Apart() bool { return o.Layout == Throughput && o.Shards > 1 }

// Homes is how many ranks' rows are different ones: 1 where all ranks have all rows.
func (o *Options) Homes() int {
	if o.Apart() {
		return o.Shards
	}
	return 1
}

// heads is how many heads of attention a rank has.
func (o *Options) heads(c *Config) int { return c.Heads / o.Shards * o.Homes() }

// rows is how many places for rows a rank has. Rows that attend to a selection are in the
// same places on all ranks, and the ranks may differ in how many have none.
func (o *Options) rows(c *Config) int {
	if o.Apart() && o.Context > c.IndexTopK {
		return 2 * o.MaxRows
	}
	return o.MaxRows
}

// ofRows says whether the ranks' copies of what rows have differ.
func (o *Options) ofRows() kernels.Sharing {
	if o.Apart() {
		return kernels.Sharded
	}
	return kernels.Replicated
}

// pages and seats count the page and the page table that places without a row have.
func (o *Options) pages() int { return o.Pages + min(1, o.Homes()-1) }
func (o *Options) seats() int { return o.MaxSeqs + min(1, o.Homes()-1) }

// share is what of a batch a rank has: rows [from, to), of which those from long on attend to
// a selection, and rows of logits [logits, last).
type share struct{ from, long, to, logits, last int }

// cut is a batch as the ranks have it: in short places for rows that attend to everything,
// and behind them in places for those that attend to a selection, as many as the rank with
// the most needs.
type cut struct {
	shares      []share // of each rank that has rows of its own; one for all where none has
	short, rows int     // places
	logits      int     // rows of logits of the rank with the most
	all         int     // rows, of all ranks
}

// cut finds out which rows are whose.
func (m *Model) cut(b *Batch, c *cut) {
	*c = cut{shares: c.shares[:0], all: len(b.Tokens)}
	row, logit, long, rows := 0, 0, 0, min(len(b.Seq), len(b.Pos))
	for r := range m.homes {
		s := share{from: row, logits: logit}
		for row < rows && (m.homes == 1 || int(b.Seq[row]) < (r+1)*m.o.MaxSeqs) {
			row++
		}
		s.to = row
		for s.long = s.from; s.long < s.to && !m.Config.IsLong(int(b.Pos[s.long])); {
			s.long++
		}
		for logit < len(b.Logits) && (m.homes == 1 || int(b.Logits[logit]) < s.to) {
			logit++
		}
		s.last = logit
		c.shares = append(c.shares, s)
		c.short, long, c.logits = max(c.short, s.long-s.from), max(long, s.to-s.long), max(c.logits, s.last-s.logits)
	}
	c.rows = c.short + long
}

// place is where a rank has a row of its share.
func (c *cut) place(s *share, row int) int {
	if row < s.long {
		return row - s.from
	}
	return c.short + row - s.long
}

// measure returns the block of places [from, to), none or all of which are for rows that
// attend to everything: what the rank has that has the most.
func (c *cut) measure(b *Batch, from, to, topK int) block {
	k := block{from: int32(from), rows: int32(to - from)}
	for _, s := range c.shares {
		lo, hi := s.from+from, min(s.from+to, s.long)
		if from >= c.short {
			lo, hi = s.long+from-c.short, min(s.long+to-c.short, s.to)
		}
		if lo < hi {
			o := b.measure(lo, hi, topK)
			k.ctx, k.slots, k.selected, k.width = max(k.ctx, o.ctx), max(k.slots, o.slots), max(k.selected, o.selected),
				max(k.width, o.width)
		}
	}
	return k
}

// checkShares reports what of a batch does not fit the ranks' own buffers.
func (m *Model) checkShares(b *Batch, c *cut) error {
	for r, s := range c.shares {
		if n := s.to - s.from; n > m.o.MaxRows || s.last-s.logits > m.o.MaxLogits {
			return fmt.Errorf("rank %d has %d rows and %d rows of logits, at most %d and %d", r, n, s.last-s.logits,
				m.o.MaxRows, m.o.MaxLogits)
		}
		for i := s.from; i < s.to; i++ {
			if m.homes > 1 && int(b.Seq[i]) < r*m.o.MaxSeqs || m.Config.IsLong(int(b.Pos[i])) != (i >= s.long) {
				return fmt.Errorf("row %d of sequence %d at position %d is out of order: long rows of rank %d begin at %d",
					i, b.Seq[i], b.Pos[i], r, s.long)
			}
		}
	}
	if s := c.shares[len(c.shares)-1]; s.to != len(b.Tokens) || s.last != len(b.Logits) {
		return fmt.Errorf("the ranks have %d of %d rows and %d of %d rows of logits", s.to, len(b.Tokens), s.last,
			len(b.Logits))
	}
	return nil
}
