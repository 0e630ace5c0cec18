package sched

import (
	"fmt"
	"slices"
)

// Scheduler holds the sequences that wait and those that run, and the pages of the
// cache. It is for one goroutine.
type Scheduler struct {
	o       Options
	pages   *pool
	tree    tree
	seats   []int // free ones
	waiting queue
	running []*Seq // in the order in which they began
	batch   Batch
	sources []source
	copies  int // the most in a step
	spare   int // rows of logits that the step at hand has beside one for each sequence
	added   int64
	begun   int64
	lengths lengths
	line    []*Seq // the queue as it was added, and sequences that have left it
	propose Proposal
	found   []int32   // scratch of find
	aside   []*Seq    // scratch of choose
	future  []lasting // scratch of lasts
}

// source is a page that the batch copies from for a sequence: nobody gets it before the
// batch is computed.
type source struct {
	page int32
	q    *Seq
}

// New returns a scheduler of nothing yet.
func New(o Options) (*Scheduler, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("scheduler options: %w", err)
	}
	o = o.withDefaults()
	s := &Scheduler{o: o, pages: newPool(o.Pages), copies: mostCopies}
	s.tree.pages, s.tree.page = s.pages, o.PageTokens
	s.tree.root.tail, s.tree.root.at = -1, -1
	for i := range o.MaxSeqs {
		s.seats = append(s.seats, o.MaxSeqs-1-i)
	}
	return s, nil
}

// Options returns the limits in force.
func (s *Scheduler) Options() Options { return s.o }

// Add queues a sequence. The error wraps ErrTooLong when it could never finish. The
// prompt must stay as it is until the sequence is finished.
func (s *Scheduler) Add(q *Seq) error {
	if err := s.o.prepare(q); err != nil {
		return err
	}
	s.enter(q)
	return nil
}

// prepare makes a sequence ready to wait, if it can finish at all.
func (o *Options) prepare(q *Seq) error {
	if q.Max == 0 || q.Max > o.Context {
		q.Max = o.Context
	}
	switch fits := o.Pages * o.PageTokens; {
	case len(q.Tokens) == 0:
		return fmt.Errorf("sequence %d: no tokens", q.ID)
	case len(q.Tokens) > q.Max, len(q.Tokens) == q.Max && !q.Whole:
		return fmt.Errorf("sequence %d: %w: %d tokens leave no room to answer in a context of %d", q.ID, ErrTooLong,
			len(q.Tokens), q.Max)
	case max(q.Max-1, len(q.Tokens)) > fits: // the last token is not cached, if it is generated
		return fmt.Errorf("sequence %d: %w: up to %d tokens, the cache holds %d", q.ID, ErrTooLong, q.Max, fits)
	}
	q.Prompt, q.Cached, q.Ready, q.Pages, q.Seat, q.Shared = len(q.Tokens), 0, 0, nil, -1, 0
	q.turn, q.leaf, q.place = unknown, nil, -1
	return nil
}

// enter queues a sequence that is ready.
func (s *Scheduler) enter(q *Seq) {
	q.order = s.added
	s.added++
	if !s.o.NoSharing && !q.Whole {
		s.tree.add(q)
	}
	s.lengths.guess(q)
	s.waiting.push(q)
	s.line = append(s.line, q)
}

// Next lays out a step. It has no items only when there are no sequences, or none
// that is not held.
func (s *Scheduler) Next() *Batch {
	b := &s.batch
	b.reset()
	s.tree.step++
	budget := s.o.MaxBatchTokens
	s.spare = s.o.MaxLogits - len(s.running)
	for i := 0; i < len(s.running) && budget > 0; i++ {
		if n := s.schedule(b, s.running[i], budget); n > 0 {
			budget -= n
			budget -= s.speculate(b, budget-(len(s.running)-i-1)) // the others have a row each
		}
	}
	for budget > 0 && s.spare > 0 && s.admit(b) {
		s.spare--
		if n := s.schedule(b, s.running[len(s.running)-1], budget); n > 0 {
			budget -= n
			s.speculate(b, 0)
		}
	}
	b.Pages = s.PagesUsed()
	return b
}

// schedule puts up to budget of q's due tokens into the batch. It preempts
// newer sequences for the pages, and does nothing when there are none to take.
func (s *Scheduler) schedule(b *Batch, q *Seq, budget int) int {
	if q.Held {
		return 0
	}
	from := s.from(q)
	n := min(len(q.Tokens)-from, budget)
	if q.Whole && q.Cached < q.Prompt { // one row of logits is kept for each sequence
		n = min(n, 1+s.spare)
	}
	need := pagesFor(from+n, s.o.PageTokens)
	for need-len(q.Pages) > len(s.pages.free) {
		if newest := s.running[len(s.running)-1]; newest != q {
			s.preempt(b, newest)
		} else if len(s.running) == 1 && s.pages.idle > 0 {
			s.tree.reclaim() // what is kept for later is computed again
		} else {
			return 0
		}
	}
	if q.Whole && q.Cached < q.Prompt {
		s.spare -= n - 1
	}
	s.extend(b, q, need)
	b.add(Item{Seq: q, From: from, Count: n, Sample: from+n == len(q.Tokens)})
	if q.leaf != nil && q.Cached < q.Prompt {
		s.tree.computed(q, from+n)
	}
	return n
}

// admit starts a waiting sequence if there is a seat and pages for all of its tokens
// that no other has computed, and for what it and those that run will add to them:
// taking pages back costs the work done.
func (s *Scheduler) admit(b *Batch) bool {
	if len(s.waiting) == 0 || len(s.seats) == 0 {
		return false
	}
	q, m := s.choose()
	if q == nil {
		return false
	}
	need := pagesFor(len(q.Tokens), s.o.PageTokens) - len(m.pages)
	if len(s.running) > 0 && !s.lasts(q, need) {
		return false
	}
	s.pages.share(m.pages...)
	q.Pages = append(q.Pages[:0], m.pages...)
	if need > len(s.pages.free) { // nobody runs
		s.tree.reclaim()
		m.have, m.tail = len(m.pages)*s.o.PageTokens, -1
	}
	if len(b.Copies) >= s.copies { // the tokens of the page are computed instead
		m.have, m.tail = len(m.pages)*s.o.PageTokens, -1
	}
	s.waiting.remove(q)
	s.running = append(s.running, q)
	q.Seat = s.seats[len(s.seats)-1]
	s.seats = s.seats[:len(s.seats)-1]
	if q.turn == unknown {
		q.Shared = m.have
		b.Shared += m.have
	}
	q.turn, q.others = s.begun, len(m.pages)
	s.begun++
	q.Cached, q.Ready = m.have, s.pages.readyOf(q.Pages, s.o.PageTokens)
	if m.tail >= 0 {
		s.pages.share(m.tail)
		s.sources = append(s.sources, source{m.tail, q})
	}
	s.extend(b, q, len(m.pages)+need)
	if m.tail >= 0 {
		b.Copies = append(b.Copies, Copy{m.tail, q.Pages[len(m.pages)]})
		if whole := len(m.pages) * s.o.PageTokens; q.Ready == whole {
			// The prediction layer's entry of the last of them is of the token behind it, which is
			// another here.
			q.Ready += s.pages.copied(m.tail, q.Pages[len(m.pages)], m.have-whole-1)
		}
	}
	if q.leaf != nil {
		s.tree.starts(q)
	}
	return true
}

// mostCopies is how many pages a step copies: each is a call in every layer, and the calls
// of a step have a bound.
const mostCopies = 64

// mostAside is how many sequences that wait for a prefix are passed over in a step.
const mostAside = 64

// mostPassed is how many sequences that were added after one may begin before it: what
// is done out of order has to be kept by others.
const mostPassed = 1 << 16

// choose returns the sequence to start next, with what there is of its prompt; nil: all
// wait for what the step computes. While half of the pages are free the queue decides.
// After that a prefix is left before another is begun.
func (s *Scheduler) choose() (*Seq, match) {
	if q := s.oldest(); q.turn == unknown && s.added-q.order > mostPassed {
		if m := s.find(q); !m.wait {
			return q, m
		}
	}
	if q := s.waiting[0]; q.turn == unknown && 2*len(s.pages.free) < s.o.Pages && s.begins(q) {
		if q = s.tree.next(); q != nil {
			if m := s.find(q); !m.wait {
				return q, m
			}
		}
	}
	defer func() {
		for _, q := range s.aside {
			s.waiting.push(q)
		}
		s.aside = s.aside[:0]
	}()
	for len(s.waiting) > 0 && len(s.aside) < mostAside {
		q := s.waiting[0]
		m := s.find(q)
		if !m.wait {
			return q, m
		}
		s.waiting.remove(q)
		s.aside = append(s.aside, q)
	}
	return nil, match{}
}

// oldest is the waiting sequence that was added first. There is one.
func (s *Scheduler) oldest() *Seq {
	if len(s.line) > 2*len(s.waiting)+mostAside { // forget those that left it
		s.line = slices.DeleteFunc(s.line, func(q *Seq) bool { return q.place < 0 })
	}
	n := 0
	for s.line[n].place < 0 {
		n++
	}
	clear(s.line[:n])
	s.line = s.line[n:]
	return s.line[0]
}

// begins reports whether a waiting sequence would be the first to compute whole pages of
// a prefix that others have too.
func (s *Scheduler) begins(q *Seq) bool {
	if q.leaf == nil {
		return false
	}
	n := q.leaf
	for n.up != nil && n.live == 1 {
		n = n.up
	}
	return n.end/s.o.PageTokens > s.find(q).have/s.o.PageTokens
}

func (s *Scheduler) find(q *Seq) match {
	if q.leaf == nil {
		return match{tail: -1}
	}
	m := s.tree.find(q, s.found)
	s.found = m.pages
	return m
}

// extend gives q pages until it has n.
func (s *Scheduler) extend(b *Batch, q *Seq, n int) {
	if len(q.Pages) >= n {
		return
	}
	for len(q.Pages) < n {
		q.Pages = append(q.Pages, s.pages.take())
	}
	if n := len(b.Moved); n == 0 || b.Moved[n-1] != q {
		b.Moved = append(b.Moved, q)
	}
}

// preempt sends the newest running sequence back to the head of the queue. It
// is not in the batch yet: sequences are scheduled from the oldest on.
func (s *Scheduler) preempt(b *Batch, q *Seq) {
	s.running = s.running[:len(s.running)-1]
	s.release(q)
	if q.leaf != nil {
		s.tree.stopped(q)
	}
	s.waiting.push(q)
	s.line = slices.Insert(s.line, 0, q)
	b.Preempted++
}

// release takes q's pages and seat.
func (s *Scheduler) release(q *Seq) {
	s.pages.give(q.Pages...)
	s.seats = append(s.seats, q.Seat)
	q.Cached, q.Ready, q.Pages, q.Seat = 0, 0, q.Pages[:0], -1
}

// Commit says that the batch was computed. Of drafts nothing is known yet: see Accept.
func (s *Scheduler) Commit(b *Batch) {
	for _, it := range b.Items {
		it.Seq.Cached = max(it.Seq.Cached, it.From+it.Count)
		if s.propose.Layer {
			s.predicted(it.Seq, it.From, it.From+it.Count)
		}
	}
	for _, c := range s.sources {
		s.pages.give(c.page)
		s.tree.letGoOf(c.q)
	}
	s.sources = s.sources[:0]
}

// Common returns the first pages of a sequence that others run with too.
func (s *Scheduler) Common(q *Seq) []int32 {
	n := 0
	for n < len(q.Pages) && s.pages.shared(q.Pages[n]) {
		n++
	}
	return q.Pages[:n:n]
}

// Finish ends a sequence, wherever it is. A sequence that is not here is left alone.
func (s *Scheduler) Finish(q *Seq) {
	if i := slices.Index(s.running, q); i >= 0 {
		s.running = slices.Delete(s.running, i, i+1)
		s.release(q)
		if s.lengths.ended(q) {
			for _, w := range s.waiting {
				s.lengths.guess(w)
			}
			s.waiting.sort()
		}
	} else if i := q.place; i >= 0 && i < len(s.waiting) && s.waiting[i] == q {
		s.waiting.remove(q)
		if q.leaf != nil {
			s.tree.began(q)
		}
	} else {
		return
	}
	if q.leaf != nil {
		s.tree.remove(q)
	}
}

// Begun reports whether a sequence has run.
func (s *Scheduler) Begun(q *Seq) bool { return q.turn != unknown }

// Idle reports that there are no sequences.
func (s *Scheduler) Idle() bool { return len(s.running)+len(s.waiting) == 0 }

// Running, Waiting and PagesUsed are for reports.
func (s *Scheduler) Running() int   { return len(s.running) }
func (s *Scheduler) Waiting() int   { return len(s.waiting) }
func (s *Scheduler) PagesUsed() int { return s.pages.used() }
