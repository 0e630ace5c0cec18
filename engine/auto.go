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
// differently. Steps of twice as many requests are another case of how long a step takes;
// how many drafts are right is the same in all.
//
// The ways that are compared are no draft, one, and the most. Each is tried for some steps,
// unless drafts are known to be wrong; then the one is taken that gives the most tokens for
// its time. Drafts that were wrong are tried again after many steps without.
type chooser struct {
	most  int
	cases [8][3]trial // by the number of requests and the way
	given [3]yield    // by the way
	row   int64       // ns that a row takes in steps of many
	idle  int64       // ns that drafts would have saved, if they save what they mostly do
	total int64       // ns of all steps
	spent int64       // ns of rows that were computed again
	plain int         // steps without drafts that might have had some, one after the other
	doubt bool        // drafts have been wrong
}

// trial is what steps of one way took.
type trial struct {
	last [8]int64 // ns of the last steps, in a ring: the least counts, as first ones and others' work take longer
	n    int
}

// yield is what steps of one way gave.
type yield struct{ tokens, rows float64 } // to so many sequences

const (
	tries   = 4    // steps of each way before ways are compared
	enough  = 12   // sequences' steps that say what drafts are worth
	margin  = 1.02 // what a way has to be better by than no drafts
	saved   = 0.3  // of a step's time: what drafts are taken to save before they are tried
	share   = 0.01 // of all time, that may be spent to begin with drafts before they would have saved that
	fading  = 0.99 // of what steps gave, with each step
	again   = 1024 // steps without drafts after which they are tried again
	manyRow = 32   // rows of steps that say what a row takes in prefill
)

func (c *chooser) drafts(way int) int { return [3]int{0, 1, c.most}[way] }

func (c *chooser) at(rows int) *[3]trial { return &c.cases[min(bits.Len(uint(rows)), len(c.cases)-1)] }

// choose returns the drafts of the next step, of so many requests. To begin with drafts, so
// many rows would be computed again. It may be asked more than once for a step.
func (c *chooser) choose(rows, behind int) int {
	if rows == 0 || rows > AutoRows {
		return 0
	}
	cost := int64(behind) * c.row
	small := float64(c.spent+cost) <= share*float64(c.total)
	if behind > 0 && !small && (c.doubt || c.idle < cost) {
		return 0
	}
	return c.drafts(c.way(c.at(rows), behind > 0))
}

// begin says that a step takes drafts, before which so many rows are computed again.
func (c *chooser) begin(behind int) { c.spent += int64(behind) * c.row }

// way is the next to try, or the best. late: to begin with drafts takes time.
func (c *chooser) way(ways *[3]trial, late bool) int {
	order := [3]int{2, 0, 1}
	if late {
		order = [3]int{0, 2, 1}
	}
	for _, w := range order {
		if ways[w].n < tries && (w != 1 || c.most > 1) && c.worth(w) {
			return w
		}
	}
	best := 0
	for w := range ways {
		if ways[w].n >= tries && c.rate(ways, w) > margin*c.rate(ways, best) {
			best = w
		}
	}
	return best
}

// worth reports whether a way may be better than no drafts, as far as is known: its steps
// take no less time, and more drafts give no fewer tokens.
func (c *chooser) worth(way int) bool {
	switch {
	case way == 0:
		return true
	case c.given[way].rows >= enough:
		return c.given[way].each() > margin
	case c.given[2].rows >= enough:
		return c.given[2].each() > margin
	}
	return true
}

func (y *yield) each() float64 { return y.tokens / y.rows }

// rate is tokens of a sequence in a ns.
func (c *chooser) rate(ways *[3]trial, way int) float64 {
	t := &ways[way]
	least := t.last[0]
	for _, ns := range t.last[1:min(t.n, len(t.last))] {
		least = min(least, ns)
	}
	return c.given[way].each() / float64(max(1, least))
}

// landed says what a step was that has landed.
func (c *chooser) landed(i *StepInfo, drafts int) {
	ns := i.Times.Wall.NS()
	c.total += ns
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
	way := 0
	for w := range 3 {
		if c.drafts(w) == drafts {
			way = w
		}
	}
	t, y := &c.at(i.Sequences)[way], &c.given[way]
	t.last[t.n%len(t.last)] = ns
	t.n++
	y.tokens, y.rows = fading*y.tokens+float64(i.Sampled), fading*y.rows+float64(i.Sequences)
	if way > 0 {
		c.idle, c.plain = 0, 0
		return
	}
	c.idle += int64(saved * float64(ns))
	if c.plain++; c.plain == again {
		c.forget()
	}
}

// forget has drafts tried again.
func (c *chooser) forget() {
	c.plain, c.doubt = 0, true
	for w := 1; w < len(c.given); w++ {
		c.given[w] = yield{}
		for i := range c.cases {
			c.cases[i][w] = trial{}
		}
	}
}
