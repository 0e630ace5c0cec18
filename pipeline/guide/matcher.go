package guide

import (
	"errors"
	"math/bits"
	"slices"
)

// The token that ends what a model thinks, as text.
const thinkEnd = "</think>"

// Matcher follows one response: it is an engine's Guide. Its methods are for one
// goroutine; what they ask for is worked out on another.
type Matcher struct {
	g      *Guides
	spec   Spec
	bench  *bench     // where it is at home; nil: nothing was asked yet
	drafts []int32    // that were asked about
	sets   [][]uint64 // behind none of the drafts, the first, the first two …
	known  int        // of the sets
	may    chan int   // from the bench: how many of the drafts may come
	ready  chan error // from the bench: the sets are known
	asked  bool       // about what follows the last token
	state  state
	added  []int32 // tokens that the bench does not know
	err    error   // of the first that failed: there is none after it

	// The bench's, while something is asked.
	thinking bool    // the grammar begins behind </think>
	tokens   []int32 // of the grammar's text
	handle   int32   // of the matcher in the box
	number   int64   // of that box; -1: there is none
	taken    []int32 // by the box's matcher: tokens, and drafts that may not have come
}

// state is what the bench does for a matcher.
type state uint8

const (
	nothing  state = iota
	counting       // its result is to be taken from may
	masking        // from ready
)

// Start returns a matcher at the beginning of a response. Thinking: the model is thinking,
// and the grammar begins when it has ended that. It takes no memory to speak of before it
// is asked.
func (g *Guides) Start(s Spec, thinking bool) *Matcher {
	return &Matcher{g: g, spec: s, thinking: thinking && g.think >= 0, number: -1}
}

// Thinking reports whether the grammar is still to begin. It is for before the first question.
func (m *Matcher) Thinking() bool { return m.thinking }

// Ask begins to work out which tokens may come next. With drafts it is which of these may
// come, for May, and then what may come behind each of them. It does nothing where it was
// called since the last token.
func (m *Matcher) Ask(drafts ...int32) {
	if m.asked || m.err != nil {
		return
	}
	if m.bench == nil {
		if m.bench, m.err = m.g.least(); m.err != nil {
			return
		}
		m.may, m.ready = make(chan int, 1), make(chan error, 1)
	}
	m.wait()
	m.asked, m.drafts = true, append(m.drafts[:0], drafts...)
	if len(drafts) == 0 {
		m.mask()
		return
	}
	w, added := m.bench, m.added
	m.added, m.state = nil, counting
	w.do(func() { m.may <- m.count(w, added) })
}

// mask begins to work out the sets.
func (m *Matcher) mask() {
	w, added := m.bench, m.added
	m.added, m.state = nil, masking
	w.do(func() { m.ready <- m.next(w, added) })
}

// May is how many of the drafts may come, one after the other.
func (m *Matcher) May() int {
	if m.state == counting {
		select {
		case n := <-m.may:
			m.drafts = m.drafts[:n]
		case <-m.g.stop:
			m.drafts = m.drafts[:0]
		}
		m.mask()
	}
	return len(m.drafts)
}

func (m *Matcher) wait() {
	m.May()
	if m.state != masking {
		return
	}
	m.state = nothing
	if err := m.bench.result(m.ready); m.err == nil {
		m.err = err
	}
}

// Mask sets the bits of the tokens that may come next behind so many of the drafts, token
// t's bit t%64 of word t/64, which are all 0 before. After an error behind none of them the
// matcher is of no more use; behind some, a draft leads where the grammar cannot be followed.
func (m *Matcher) Mask(drafts int, words []uint64) (bool, error) {
	m.Ask()
	m.wait()
	switch {
	case m.err != nil:
		return false, m.err
	case drafts >= m.known:
		return false, errDrafts
	}
	copy(words, m.sets[drafts])
	return true, nil
}

var errDrafts = errors.New("no set of tokens behind these drafts")

// Add takes tokens that were sampled.
func (m *Matcher) Add(tokens ...int32) {
	m.added = append(m.added, tokens...)
	m.asked = false
}

// Close lets go of the matcher.
func (m *Matcher) Close() {
	w := m.bench
	if w == nil {
		return
	}
	m.bench, m.err, m.state = nil, errClosed, nothing
	w.do(func() { m.drop(w) })
	m.g.release(w)
}

// next works out the sets behind further tokens, and behind those and drafts.
func (m *Matcher) next(w *bench, added []int32) error {
	for _, t := range added {
		m.take(t)
	}
	m.known = 0
	if err := w.twice(func() error { return m.work(w) }, m.spec); err != nil {
		return err
	}
	thinking, tokens := m.thinking, len(m.tokens)
	for _, t := range m.drafts {
		m.take(t)
		if err := m.work(w); err != nil {
			w.clean(err, m.spec)
			break
		}
	}
	m.thinking, m.tokens = thinking, m.tokens[:tokens]
	return nil
}

// take goes on by a token.
func (m *Matcher) take(t int32) {
	switch {
	case !m.thinking:
		m.tokens = append(m.tokens, t)
	case t == m.g.think:
		m.thinking = false
	}
}

// count is how many of the drafts may come behind further tokens, one after the other: no
// end token is one.
func (m *Matcher) count(w *bench, added []int32) (n int) {
	for _, t := range added {
		m.take(t)
	}
	drafts := m.drafts
	end := slices.IndexFunc(drafts, func(t int32) bool { return slices.Contains(m.g.vocab.ends, t) })
	if end >= 0 {
		drafts = drafts[:end]
	}
	for thinking := m.thinking; thinking && n < len(drafts); n++ {
		thinking = drafts[n] != m.g.think
	}
	if n == len(drafts) {
		return n
	}
	more := 0
	if err := w.twice(func() (err error) {
		if err = m.catchUp(w); err == nil {
			more, err = w.box.follow(m.handle, drafts[n:])
		}
		return err
	}, m.spec); err != nil {
		m.drop(w)
		return n
	}
	return n + more
}

// work adds the set behind the tokens to those that are known.
func (m *Matcher) work(w *bench) error {
	if m.known == len(m.sets) {
		m.sets = append(m.sets, make([]uint64, (m.g.vocab.tokens+63)/64))
	}
	if m.thinking {
		m.free(m.sets[m.known])
	} else if err := m.follow(w, m.sets[m.known]); err != nil {
		return err
	}
	m.known++
	return nil
}

// free is the set while the model thinks: all but the end.
func (m *Matcher) free(set []uint64) {
	n := m.g.vocab.tokens
	for i := range set {
		set[i] = ^uint64(0)
	}
	if n%64 > 0 {
		set[n/64] = 1<<(n%64) - 1
	}
	for _, id := range m.g.vocab.ends {
		set[id/64] &^= 1 << (id % 64)
	}
}

// follow brings the box's matcher up to date and asks it. Where the box has none, as it is
// new or the grammar was read anew, it is given all tokens again.
func (m *Matcher) follow(w *bench, set []uint64) error {
	err := m.catchUp(w)
	if err == nil {
		err = w.box.mask(m.handle, set, m.g.vocab.tokens)
	}
	if err != nil {
		m.drop(w)
	}
	return err
}

// catchUp has the box's matcher take the tokens, in place of drafts that did not come.
func (m *Matcher) catchUp(w *bench) error {
	if m.number != w.number || w.box == nil {
		g, err := w.grammar(m.spec)
		if err != nil {
			return err
		}
		if m.handle, err = w.box.do("matcher", uint64(g)); err != nil {
			return err
		}
		m.number, m.taken = w.number, m.taken[:0]
	}
	same := 0
	for same < min(len(m.taken), len(m.tokens)) && m.taken[same] == m.tokens[same] {
		same++
	}
	if n := len(m.taken) - same; n > 0 {
		if _, err := w.box.do("rollback", uint64(m.handle), uint64(n)); err != nil {
			return err
		}
		m.taken = m.taken[:same]
	}
	for _, t := range m.tokens[same:] {
		if _, err := w.box.do("accept", uint64(m.handle), uint64(uint32(t))); err != nil {
			return err
		}
		m.taken = append(m.taken, t)
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
