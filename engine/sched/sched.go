package sched

import (
	"fmt"
	"slices"
)

// Scheduler holds the sequences that wait and those that run, each in the order
// of Add, and the pages of the cache. It is for one goroutine.
type Scheduler struct {
	o       Options
	pages   *pool
	seats   []int  // free ones
	waiting []*Seq // older first; all newer than those that run
	running []*Seq // older first
	batch   Batch
	added   int64
}

// New returns a scheduler of nothing yet.
func New(o Options) (*Scheduler, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("scheduler options: %w", err)
	}
	o = o.withDefaults()
	s := &Scheduler{o: o, pages: newPool(o.Pages)}
	for i := range o.MaxSeqs {
		s.seats = append(s.seats, o.MaxSeqs-1-i)
	}
	return s, nil
}

// Options returns the limits in force.
func (s *Scheduler) Options() Options { return s.o }

// Add queues a sequence. The error wraps ErrTooLong when it could never finish.
func (s *Scheduler) Add(q *Seq) error {
	if q.Max == 0 || q.Max > s.o.Context {
		q.Max = s.o.Context
	}
	switch fits := s.o.Pages * s.o.PageTokens; {
	case len(q.Tokens) == 0:
		return fmt.Errorf("sequence %d: no tokens", q.ID)
	case len(q.Tokens) >= q.Max:
		return fmt.Errorf("sequence %d: %w: %d tokens leave no room to answer in a context of %d", q.ID, ErrTooLong, len(q.Tokens), q.Max)
	case q.Max-1 > fits: // the last token is never cached
		return fmt.Errorf("sequence %d: %w: up to %d tokens, the cache holds %d", q.ID, ErrTooLong, q.Max, fits)
	}
	q.Prompt, q.Cached, q.Pages, q.Seat = len(q.Tokens), 0, nil, -1
	q.order = s.added
	s.added++
	s.waiting = append(s.waiting, q)
	return nil
}

// Next lays out a step. It has no items only when there are no sequences.
func (s *Scheduler) Next() *Batch {
	b := &s.batch
	b.reset()
	budget := s.o.MaxBatchTokens
	for i := 0; i < len(s.running) && budget > 0; i++ {
		budget -= s.schedule(b, s.running[i], budget)
	}
	for budget > 0 && s.admit(b) {
		budget -= s.schedule(b, s.running[len(s.running)-1], budget)
	}
	b.Pages = s.PagesUsed()
	return b
}

// schedule puts up to budget of q's due tokens into the batch. It preempts
// newer sequences for the pages, and does nothing when there are none to take.
func (s *Scheduler) schedule(b *Batch, q *Seq, budget int) int {
	n := min(q.due(), budget)
	need := pagesFor(q.Cached+n, s.o.PageTokens)
	for need-len(q.Pages) > len(s.pages.free) {
		newest := s.running[len(s.running)-1]
		if newest == q {
			return 0
		}
		s.preempt(b, newest)
	}
	s.extend(b, q, need)
	b.add(Item{Seq: q, From: q.Cached, Count: n, Sample: n == q.due()})
	return n
}

// admit starts the oldest waiting sequence if there is a seat and pages for all
// of its tokens, and one more page for each running sequence: they will want it
// soon, and taking the pages back costs the work done.
func (s *Scheduler) admit(b *Batch) bool {
	if len(s.waiting) == 0 || len(s.seats) == 0 {
		return false
	}
	q := s.waiting[0]
	need := pagesFor(len(q.Tokens), s.o.PageTokens)
	if len(s.running) > 0 && need+len(s.running) > len(s.pages.free) {
		return false
	}
	s.waiting = s.waiting[1:]
	s.running = append(s.running, q)
	q.Seat = s.seats[len(s.seats)-1]
	s.seats = s.seats[:len(s.seats)-1]
	s.extend(b, q, need)
	return true
}

// extend gives q pages until it has n.
func (s *Scheduler) extend(b *Batch, q *Seq, n int) {
	if len(q.Pages) >= n {
		return
	}
	for len(q.Pages) < n {
		q.Pages = append(q.Pages, s.pages.take())
	}
	b.Moved = append(b.Moved, q)
}

// preempt sends the newest running sequence back to the head of the queue. It
// is not in the batch yet: sequences are scheduled from the oldest on.
func (s *Scheduler) preempt(b *Batch, q *Seq) {
	s.running = s.running[:len(s.running)-1]
	s.release(q)
	s.waiting = slices.Insert(s.waiting, 0, q)
	b.Preempted++
}

// release takes q's pages and seat.
func (s *Scheduler) release(q *Seq) {
	s.pages.give(q.Pages)
	s.seats = append(s.seats, q.Seat)
	q.Cached, q.Pages, q.Seat = 0, q.Pages[:0], -1
}

// Commit says that the batch was computed.
func (s *Scheduler) Commit(b *Batch) {
	for _, it := range b.Items {
		it.Seq.Cached += it.Count
	}
}

// Finish ends a sequence, wherever it is. A sequence that is not here is left alone.
func (s *Scheduler) Finish(q *Seq) {
	if i := slices.Index(s.running, q); i >= 0 {
		s.running = slices.Delete(s.running, i, i+1)
		s.release(q)
	} else if i := slices.Index(s.waiting, q); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
}

// Idle reports that there are no sequences.
func (s *Scheduler) Idle() bool { return len(s.running)+len(s.waiting) == 0 }

// Running, Waiting and PagesUsed are for reports.
func (s *Scheduler) Running() int   { return len(s.running) }
func (s *Scheduler) Waiting() int   { return len(s.waiting) }
func (s *Scheduler) PagesUsed() int { return s.pages.total - len(s.pages.free) }
