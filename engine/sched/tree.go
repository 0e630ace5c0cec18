package sched

import (
	"cmp"
	"slices"
)

// tree is the prompts of all sequences that wait or run, as a radix tree over their
// tokens but each prompt's last, which everyone has to compute. It has at most two
// nodes a sequence, and no tokens of its own.
type tree struct {
	root  node
	pages *pool
	page  int     // tokens of a page
	step  int64   // that is laid out now
	held  []*node // that keep pages
	path  []*node // scratch of way
}

// node is tokens that follow its parent's, the same in all prompts below it.
type node struct {
	up   *node
	kids []*node // by their first token
	seqs []*Seq  // whose prompts end here
	src  []int32 // a living sequence's tokens up to the node's end
	end  int     // tokens from the root to the last of the node

	ended   mean // answers of sequences here and below
	live    int  // sequences here and below
	waiting int  // of them, those that wait
	busy    *Seq
	// The entries of tokens up to ready are in the caches, or the step that is laid
	// out computes them; up.end: of none of the node's own. pages has the pages that
	// end among these tokens, tail the one that the last of them begin; -1: it is not
	// kept.
	ready int
	since int64 // step that computed the last token
	pages []int32
	tail  int32
	at    int // in held; -1
}

func (n *node) first() int32 { return n.src[n.up.end] }

// kid finds the child that begins with a token; nil: there is none, and its place.
func (n *node) kid(token int32) (*node, int) {
	at, found := slices.BinarySearchFunc(n.kids, token, func(k *node, t int32) int { return cmp.Compare(k.first(), t) })
	if !found {
		return nil, at
	}
	return n.kids[at], at
}

// add puts a waiting sequence in.
func (t *tree) add(q *Seq) {
	n, tokens := &t.root, q.Tokens[:q.Prompt-1]
	for n.end < len(tokens) {
		k, at := n.kid(tokens[n.end])
		if k == nil {
			k = &node{up: n, src: tokens, end: len(tokens), ready: n.end, tail: -1, at: -1}
			n.kids = slices.Insert(n.kids, at, k)
			n = k
			break
		}
		if same := n.end + common(k.src[n.end:k.end], tokens[n.end:]); same < k.end {
			k = t.split(k, at, same)
		}
		n = k
	}
	q.leaf = n
	n.seqs = append(n.seqs, q)
	for ; n != nil; n = n.up {
		n.live++
		n.waiting++
	}
}

// common is the length of the longest common prefix.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// split puts a node between k and its parent, whose child at a place k is, that ends
// at a token within k.
func (t *tree) split(k *node, at, end int) *node {
	n := &node{up: k.up, kids: []*node{k}, src: k.src[:end], end: end, live: k.live, waiting: k.waiting, ended: k.ended,
		busy: k.busy, ready: min(k.ready, end), tail: -1, at: -1}
	k.up.kids[at] = n
	whole := end/t.page - k.up.end/t.page
	whole = min(whole, len(k.pages))
	if k.ready >= end {
		n.busy = nil
		if end%t.page > 0 {
			// The page that the tokens up to end begin. Where it is k's last and k is being
			// computed, there is none yet: k's tail is known at the end of its step.
			if n.tail = k.tail; len(k.pages) > whole {
				n.tail = k.pages[whole]
			}
		}
		if n.tail >= 0 {
			t.pages.keep(n.tail)
		}
	}
	if k.ready < end {
		n.tail, k.tail, n.since = k.tail, -1, k.since
	}
	n.pages, k.pages = k.pages[:whole:whole], k.pages[whole:]
	k.up, k.ready = n, max(k.ready, end)
	t.hold(n)
	t.hold(k)
	return n
}

// hold brings held up to date with a node.
func (t *tree) hold(n *node) {
	switch keeps := len(n.pages) > 0 || n.tail >= 0; {
	case keeps && n.at < 0:
		n.at = len(t.held)
		t.held = append(t.held, n)
	case !keeps && n.at >= 0:
		last := t.held[len(t.held)-1]
		t.held[n.at], last.at = last, n.at
		t.held, n.at = t.held[:len(t.held)-1], -1
	}
}

// cut leaves a node its first pages, so many, and no tail.
func (t *tree) cut(n *node, pages int) {
	for _, p := range n.pages[pages:] {
		t.pages.drop(p)
	}
	if n.pages = n.pages[:pages]; pages == 0 {
		n.pages = nil
	}
	n.ready = max(n.up.end, min(n.ready, (n.up.end/t.page+pages)*t.page))
	t.dropTail(n)
}

func (t *tree) dropTail(n *node) {
	if n.tail >= 0 {
		t.pages.drop(n.tail)
		n.tail = -1
	}
	t.hold(n)
}

// began says that a sequence does not wait any more: it runs, or ends.
func (t *tree) began(q *Seq) {
	for n := q.leaf; n != nil; n = n.up {
		n.waiting--
		t.letGo(n, 0)
	}
}

// letGo drops the tail of a node that nobody runs with and only so many wait for.
func (t *tree) letGo(n *node, waiting int) {
	if n.tail >= 0 && n.waiting <= waiting && t.pages.onlyKept(n.tail) {
		t.dropTail(n)
	}
}

// letGoOf drops the tails on a sequence's way that nobody needs.
func (t *tree) letGoOf(q *Seq) {
	for n := q.leaf; n != nil; n = n.up {
		t.letGo(n, 0)
	}
}

// stopped says that a sequence that ran waits again, and has no pages any more. What
// nobody else can use is not kept.
func (t *tree) stopped(q *Seq) {
	for n := q.leaf; n != nil; n = n.up {
		n.waiting++
		if n.busy == q {
			n.busy = nil
		}
		if n.live == 1 && n.up != nil {
			t.cut(n, 0)
		}
		t.letGo(n, 1)
	}
}

// remove takes a sequence out that does not wait.
func (t *tree) remove(q *Seq) {
	n := q.leaf
	i := slices.Index(n.seqs, q)
	n.seqs = slices.Delete(n.seqs, i, i+1)
	for m := n; m != nil; m = m.up {
		m.live--
		if m.busy == q {
			m.busy = nil
		}
		t.letGo(m, 0)
	}
	for n.up != nil && n.live == 0 {
		t.cut(n, 0)
		_, at := n.up.kid(n.first())
		n.up.kids = slices.Delete(n.up.kids, at, at+1)
		n = n.up
	}
	if n.up != nil && len(n.kids) == 1 && len(n.seqs) == 0 {
		n = t.merge(n)
	}
	for ; n.up != nil; n = n.up { // q's tokens may go
		if len(n.seqs) > 0 {
			n.src = n.seqs[0].Tokens[:n.end]
		} else {
			n.src = n.kids[0].src[:n.end]
		}
	}
	q.leaf = nil
}

// merge is the reverse of split, for a node whose only child can take its place.
func (t *tree) merge(n *node) *node {
	k := n.kids[0]
	if n.ready < n.end { // what is behind a gap is of no use
		t.cut(k, 0)
		if k.ready = n.ready; k.busy == nil {
			k.busy = n.busy
		}
	}
	if k.ready == n.ready {
		t.dropTail(k)
		k.tail, n.tail, k.since = n.tail, -1, n.since
	} else {
		t.dropTail(n)
	}
	k.pages, n.pages = append(n.pages, k.pages...), nil
	t.hold(n)
	_, at := n.up.kid(n.first())
	n.up.kids[at], k.up = k, n.up
	t.hold(k)
	return k
}

// way returns the nodes from the root's child to a sequence's own.
func (t *tree) way(q *Seq) []*node {
	t.path = t.path[:0]
	for n := q.leaf; n.up != nil; n = n.up {
		t.path = append(t.path, n)
	}
	slices.Reverse(t.path)
	return t.path
}

// computed says that the entries of q's first tokens are there when the step is done.
func (t *tree) computed(q *Seq, to int) {
	for n := q.leaf; n.up != nil; n = n.up {
		if ready := min(to, n.end); ready > n.ready {
			for i := n.up.end/t.page + len(n.pages); i < ready/t.page; i++ {
				n.pages = append(n.pages, q.Pages[i])
				t.pages.keep(q.Pages[i])
			}
			t.dropTail(n)
			if n.ready = ready; ready == n.end {
				n.busy, n.since = nil, t.step
			}
		}
		if n.end <= to && n.end%t.page > 0 && n.tail < 0 {
			n.tail, n.since = q.Pages[n.end/t.page], t.step
			t.pages.keep(n.tail)
		}
		t.hold(n)
	}
}

// match is what of a sequence's prompt others have computed.
type match struct {
	pages []int32 // whole ones; the tree's, valid until it changes
	have  int     // tokens
	tail  int32   // page of which the last tokens have to be copied; -1: none
	wait  bool    // a step or some later there will be more
}

// leastCopy is how many tokens are rather copied than computed again.
const leastCopy = 4

// find looks a waiting sequence up. into is memory for the pages.
func (t *tree) find(q *Seq, into []int32) match {
	m := match{pages: into[:0], tail: -1}
	var last *node // the last of whose tokens are there
	for _, n := range t.way(q) {
		m.pages = append(m.pages, n.pages...)
		m.have = n.ready
		if n.ready < n.end {
			m.wait = n.busy != nil && n.end-n.ready >= leastCopy
			if n.ready > n.up.end {
				last = n
			}
			break
		}
		last = n
	}
	rest := m.have % t.page
	switch {
	case m.wait:
	case rest >= leastCopy && last != nil && last.tail >= 0:
		if m.tail = last.tail; last.since == t.step {
			m.wait = true // it is copied before the step computes
		}
	default:
		m.have -= rest
	}
	return m
}

// starts says that a sequence runs, and computes what it does not have.
func (t *tree) starts(q *Seq) {
	t.began(q)
	for n := q.leaf; n.up != nil; n = n.up {
		if n.ready < n.end && n.busy == nil {
			n.busy = q
		}
	}
}

// reclaim frees the pages that nobody runs with.
func (t *tree) reclaim() {
	for i := len(t.held) - 1; i >= 0; i-- {
		if i >= len(t.held) { // the last ones were let go
			continue
		}
		n := t.held[i]
		if keep := slices.IndexFunc(n.pages, t.pages.onlyKept); keep >= 0 {
			t.cut(n, keep)
		}
		t.dropTail(n)
	}
}

// next returns a waiting sequence below the node that keeps pages for it and is best
// left soon: one whose pages nobody runs with, then the deepest. nil: there is none.
func (t *tree) next() *Seq {
	var best *node
	key := func(n *node) (idle bool, end int) {
		return len(n.pages) > 0 && t.pages.onlyKept(n.pages[len(n.pages)-1]), n.end
	}
	for _, n := range t.held {
		if n.waiting == 0 {
			continue
		}
		if best != nil {
			a, x := key(best)
			if b, y := key(n); a && !b || a == b && (x > y || x == y && slices.Compare(best.src, n.src) < 0) {
				continue
			}
		}
		best = n
	}
	for best != nil {
		for _, q := range best.seqs {
			if q.Seat < 0 {
				return q
			}
		}
		best = best.kids[slices.IndexFunc(best.kids, func(k *node) bool { return k.waiting > 0 })]
	}
	return nil
}
