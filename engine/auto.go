package engine

import (
	"math/bits"

	"glmbatch/kernels"
)

// AutoRows is the most requests at once with which Auto tries drafts: with more, rows of
// drafts are work that the ranks are not idle for.
const AutoRows = 16

// chooser finds out how many drafts pay, from what steps took and gave. Requests are told
// apart by nothing but their number: what one's drafts were worth is no reason to treat it
// differently. Steps of twice as many requests are another case.
//
// The ways that are compared are no draft, one, and the most. Each is tried for some steps;
// then the one is taken that gave the most tokens for its time.
type chooser struct {
	most  int
	cases [8][3]trial // by the number of requests and the way
	row   int64       // ns that a row takes in steps of many
	idle  int64       // ns that drafts would have saved, if they save what they mostly do
}

// trial is what steps of one way took and gave.
type trial struct {
	last   [8]int64 // ns of the last steps, in a ring: the least counts, as first ones and others' work take longer
	n      int
	tokens float64
	rows   float64 // sequences that got them
}

const (
	tries   = 4    // steps of each way before ways are compared
	margin  = 1.02 // what a way has to be better by than no drafts
	saved   = 0.3  // of a step's time: what drafts are taken to save before they are tried
	fading  = 0.99 // of what steps gave, with each step
	manyRow = 32   // rows of steps that say what a row takes in prefill
)

func (c *chooser) drafts(way int) int { return [3]int{0, 1, c.most}[way] }

func (c *chooser) at(rows int) *[3]trial { return &c.cases[min(bits.Len(uint(rows)), len(c.cases)-1)] }

// choose returns the drafts of the next step, of so many requests. To begin with drafts, so
// many rows would be computed again.
func (c *chooser) choose(rows, behind int) int {
	if rows == 0 || rows > AutoRows {
		return 0
	}
	if behind > 0 && c.idle < int64(behind)*c.row {
		return 0
	}
	ways := c.at(rows)
	order := [3]int{2, 0, 1}
	if behind > 0 {
		order = [3]int{0, 2, 1}
	}
	for _, w := range order {
		if (w == 0 || c.drafts(w) > 0) && ways[w].n < tries && (w != 1 || c.most > 1) {
			return c.drafts(w)
		}
	}
	best := 0
	for w := range ways {
		if ways[w].n >= tries && ways[w].rate() > margin*ways[best].rate() {
			best = w
		}
	}
	return c.drafts(best)
}

// rate is tokens of a sequence in a ns.
func (t *trial) rate() float64 {
	least := t.last[0]
	for _, ns := range t.last[1:min(t.n, len(t.last))] {
		least = min(least, ns)
	}
	return t.tokens / t.rows / float64(max(1, least))
}

// landed says what a step was that has landed.
func (c *chooser) landed(i *StepInfo, drafts int) {
	ns := i.Times.Wall.NS()
	if i.Tokens >= manyRow && i.Kind != kernels.Decode {
		if row := ns / int64(i.Tokens); c.row == 0 || row < c.row {
			c.row = row
		}
	}
	if i.Kind != kernels.Decode || i.Sequences > AutoRows || i.Sampled == 0 {
		return
	}
	if c.row == 0 {
		c.row = ns / int64(i.Tokens)
	}
	if drafts == 0 {
		c.idle += int64(saved * float64(ns))
	} else {
		c.idle = 0
	}
	way := 0
	for w := range 3 {
		if c.drafts(w) == drafts {
			way = w
		}
	}
	t := &c.at(i.Sequences)[way]
	t.last[t.n%len(t.last)] = ns
	t.n++
	t.tokens, t.rows = fading*t.tokens+float64(i.Sampled), fading*t.rows+float64(i.Sequences)
}
