package sched

// Counter counts what prompts share, without running them: of each the tokens that one
// of the others known with it would compute. It knows so many prompts at once as it was
// made for.
type Counter struct {
	tree   tree
	known  []*Seq // a ring
	next   int    // the next one's place
	count  int
	tokens int // of those known
}

// mostTokens bounds the prompts that are known at once.
const mostTokens = 64 << 20

// NewCounter returns a counter of prompts of which so many are known at once.
func NewCounter(known, pageTokens int) *Counter {
	c := &Counter{known: make([]*Seq, known)}
	c.tree.pages, c.tree.page = newPool(0), pageTokens
	c.tree.root.tail, c.tree.root.at = -1, -1
	return c
}

// Add returns how many tokens of a prompt need not be computed, as prompts before it
// have them.
func (c *Counter) Add(prompt []int32) int {
	for c.count == len(c.known) || c.count > 0 && c.tokens+len(prompt) > mostTokens {
		old := &c.known[(c.next+len(c.known)-c.count)%len(c.known)]
		c.tree.began(*old)
		c.tree.remove(*old)
		c.count, c.tokens, *old = c.count-1, c.tokens-(*old).Prompt, nil
	}
	q := &Seq{Tokens: prompt, Prompt: len(prompt), Seat: -1}
	c.known[c.next] = q
	c.next, c.count, c.tokens = (c.next+1)%len(c.known), c.count+1, c.tokens+len(prompt)
	c.tree.add(q)
	n := q.leaf
	for n.up != nil && n.live == 1 {
		n = n.up
	}
	if rest := n.end % c.tree.page; rest < leastCopy {
		return n.end - rest
	}
	return n.end
}
