package guide

import (
	"math/bits"
	"slices"
)

// The token that ends what a model thinks, as text.
const thinkEnd = "</think>"

// Matcher follows one response: it is an engine's Guide. Its methods are for one
// goroutine; what they ask for is worked out on another.
type Matcher struct {
	g       *Guides
	spec    Spec
	bench   *bench     // where it is at home; nil: nothing was asked yet
	set     []uint64   // that was worked out last
	ready   chan error // from the bench
	asked   bool       // it is being worked out, or has been
	waiting bool       // its end has not been taken from ready
	added   []int32    // tokens that the bench does not know
	err     error      // of the first that failed: there is none after it

	// The bench's, while something is asked.
	thinking bool    // the grammar begins behind </think>
	tokens   []int32 // of the grammar's text
	handle   int32   // of the matcher in the box
	number   int64   // of that box; -1: there is none
	at       int     // tokens that the box's matcher has taken
}

// Start returns a matcher at the beginning of a response. Thinking: the model is thinking,
// and the grammar begins when it has ended that. It takes no memory to speak of before it
// is asked.
func (g *Guides) Start(s Spec, thinking bool) *Matcher {
	return &Matcher{g: g, spec: s, thinking: thinking && g.think >= 0, number: -1}
}

// Ask begins to work out which tokens may come next.
func (m *Matcher) Ask() {
	if m.asked || m.err != nil {
		return
	}
	if m.bench == nil {
		if m.bench, m.err = m.g.least(); m.err != nil {
			return
		}
		m.ready = make(chan error, 1)
		m.set = make([]uint64, (m.g.vocab.tokens+63)/64)
	}
	m.wait()
	w, added := m.bench, m.added
	m.added = nil
	m.asked, m.waiting = true, true
	w.do(func() { m.ready <- m.next(w, added) })
}

func (m *Matcher) wait() {
	if !m.waiting {
		return
	}
	m.waiting = false
	if err := m.bench.result(m.ready); m.err == nil {
		m.err = err
	}
}

// Mask sets the bits of the tokens that may come next, token t's bit t%64 of word t/64,
// which are all 0 before. After an error the matcher is of no more use.
func (m *Matcher) Mask(words []uint64) (bool, error) {
	m.Ask()
	m.wait()
	if m.err != nil {
		return false, m.err
	}
	copy(words, m.set)
	return true, nil
}

// Add takes the token that was sampled, and begins to work out which may follow it.
func (m *Matcher) Add(token int32) {
	m.added = append(m.added, token)
	m.asked = false
	if !slices.Contains(m.g.vocab.ends, token) {
		m.Ask()
	}
}

// Close lets go of the matcher.
func (m *Matcher) Close() {
	w := m.bench
	if w == nil {
		return
	}
	m.bench, m.err = nil, errClosed
	w.do(func() { m.drop(w) })
	m.g.release(w)
}

// next works out the set behind further tokens.
func (m *Matcher) next(w *bench, added []int32) error {
	for _, t := range added {
		switch {
		case !m.thinking:
			m.tokens = append(m.tokens, t)
		case t == m.g.think:
			m.thinking = false
		}
	}
	if m.thinking {
		m.free()
		return nil
	}
	return w.twice(func() error { return m.follow(w) }, m.spec)
}

// free is the set while the model thinks: all but the end.
func (m *Matcher) free() {
	n := m.g.vocab.tokens
	for i := range m.set {
		m.set[i] = ^uint64(0)
	}
	if n%64 > 0 {
		m.set[n/64] = 1<<(n%64) - 1
	}
	for _, id := range m.g.vocab.ends {
		m.set[id/64] &^= 1 << (id % 64)
	}
}

// follow brings the box's matcher up to date and asks it. Where the box has none, as it is
// new or the grammar was read anew, it is given all tokens again.
func (m *Matcher) follow(w *bench) error {
	err := m.catchUp(w)
	if err == nil {
		err = w.box.mask(m.handle, m.set, m.g.vocab.tokens)
	}
	if err != nil {
		m.drop(w)
	}
	return err
}

func (m *Matcher) catchUp(w *bench) error {
	if m.number != w.number || w.box == nil {
		g, err := w.grammar(m.spec)
		if err != nil {
			return err
		}
		if m.handle, err = w.box.do("matcher", uint64(g)); err != nil {
			return err
		}
		m.number, m.at = w.number, 0
	}
	for ; m.at < len(m.tokens); m.at++ {
		if _, err := w.box.do("accept", uint64(m.handle), uint64(uint32(m.tokens[m.at]))); err != nil {
			return err
		}
	}
	return nil
}

// drop lets go of the box's matcher. What the box says no longer matters: one that broke
// is found out by whoever is next.
func (m *Matcher) drop(w *bench) {
	if m.number == w.number && w.box != nil {
		_, _ = w.box.call("drop_matcher", uint64(m.handle))
	}
	m.number = -1
}

// count is how many tokens a set has.
func count(set []uint64) (n int) {
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return n
}
