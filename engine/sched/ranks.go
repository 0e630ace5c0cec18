package sched

import (
	"slices"

	"glmbatch/kernels"
)

// Ranks is the schedulers of ranks that have sequences, seats and pages of their own; of one,
// where all ranks compute the same. A step is what all ranks do at once. It is for one
// goroutine.
//
// Sequences that were added find their ranks when the next step is laid out, and how much there
// is to do is known: a rank that has some of the prompt's tokens, if it does not have too much
// to do already, else the one that has the least. Ranks without anybody who waits get sequences of others.
type Ranks struct {
	of    []*Scheduler
	work  []int  // tokens that each has to compute: see weigh
	fresh []*Seq // have no rank yet
	batch Batch
}

// NewRanks returns schedulers of nothing yet, each with the limits of o. The first seat of the
// r-th is r·apart.
func NewRanks(n, apart int, o Options) (*Ranks, error) {
	r := &Ranks{work: make([]int, n)}
	for i := range n {
		s, err := New(o)
		if err != nil {
			return nil, err
		}
		for j := range s.seats {
			s.seats[j] += i * apart
		}
		if n > 1 {
			s.copies = 0 // a copy of a page is one on all ranks
		}
		r.of = append(r.of, s)
	}
	return r, nil
}

// decoding is how many tokens of a prompt take as long as one of an answer, as measured on
// H200s with 8,192 tokens in and 1,024 out, and usual is how long an answer is taken to be that
// may be of any length.
const (
	decoding = 3
	usual    = 512
)

// detour is how much more than its part a rank may have to do, for each token of a prompt that
// it need not compute.
const detour = 4

// weigh is what a sequence adds to a rank that has so many of its prompt's tokens.
func weigh(q *Seq, known int) int {
	answer := q.Max - q.Prompt
	if !q.Exact {
		answer = min(answer, usual)
	}
	return q.Prompt - known + decoding*answer
}

// Add queues a sequence: see Scheduler.Add.
func (r *Ranks) Add(q *Seq) error {
	if len(r.of) == 1 {
		return r.of[0].Add(q)
	}
	if err := r.of[0].o.prepare(q); err != nil {
		return err
	}
	r.fresh = append(r.fresh, q)
	return nil
}

// assign gives sequences their ranks.
func (r *Ranks) assign() {
	all := 0
	for _, w := range r.work {
		all += w
	}
	for _, q := range r.fresh {
		all += weigh(q, 0)
	}
	for _, q := range r.fresh {
		best, most := -1, 0
		for i, s := range r.of {
			n := s.known(q)
			if best >= 0 && (n < most || n == most && r.work[i] >= r.work[best]) {
				continue
			}
			if n == 0 || r.work[i] <= all/len(r.of)+detour*n {
				best, most = i, n
			}
		}
		if best < 0 {
			best = slices.Index(r.work, slices.Min(r.work))
		}
		r.enter(q, best)
	}
	clear(r.fresh)
	r.fresh = r.fresh[:0]
}

// enter queues a sequence on a rank.
func (r *Ranks) enter(q *Seq, rank int) {
	q.Rank, q.work = rank, weigh(q, r.of[rank].known(q))
	r.work[rank] += q.work
	r.of[rank].enter(q)
}

// known is how many whole pages' tokens of a sequence's prompt others have in front of it.
func (s *Scheduler) known(q *Seq) int {
	if s.o.NoSharing || q.Whole || len(q.Tokens) == 0 {
		return 0
	}
	tokens := q.Tokens[:len(q.Tokens)-1]
	n := &s.tree.root
	for n.end < len(tokens) {
		k, _ := n.kid(tokens[n.end])
		if k == nil {
			break
		}
		if same := n.end + common(k.src[n.end:k.end], tokens[n.end:]); same < k.end {
			return same / s.o.PageTokens * s.o.PageTokens
		}
		n = k
	}
	return n.end / s.o.PageTokens * s.o.PageTokens
}

// Next lays out a step of all ranks, one after the other. It has no items only when there are
// no sequences, or none that is not held.
func (r *Ranks) Next() *Batch {
	if len(r.of) == 1 {
		return r.of[0].Next()
	}
	r.assign()
	r.balance()
	b := &r.batch
	b.reset()
	for _, s := range r.of {
		b.join(s.Next())
	}
	return b
}

// join adds another rank's part of a step.
func (b *Batch) join(o *Batch) {
	switch {
	case len(b.Items) == 0:
		b.Kind = o.Kind
	case len(o.Items) > 0 && b.Kind != o.Kind:
		b.Kind = kernels.Mixed
	}
	b.Items, b.Moved, b.Copies = append(b.Items, o.Items...), append(b.Moved, o.Moved...), append(b.Copies, o.Copies...)
	b.Tokens, b.Drafts, b.Preempted = b.Tokens+o.Tokens, b.Drafts+o.Drafts, b.Preempted+o.Preempted
	b.Pages, b.Shared = b.Pages+o.Pages, b.Shared+o.Shared
}

// balance gives sequences that wait to ranks that have seats and nobody who waits for them,
// while that rank then has no more to do than the other.
func (r *Ranks) balance() {
	for i, s := range r.of {
		for len(s.waiting) == 0 && len(s.seats) > 0 {
			from := 0
			for j := range r.of {
				if r.work[j] > r.work[from] {
					from = j
				}
			}
			q := r.of[from].newest()
			if q == nil || from == i || r.work[i]+q.work > r.work[from]-q.work {
				break
			}
			r.move(q, i)
		}
	}
}

// newest is the sequence that was added last of those that have not begun; nil: there is none.
func (s *Scheduler) newest() *Seq {
	for i := len(s.line) - 1; i >= 0; i-- {
		if q := s.line[i]; q.place >= 0 && q.turn == unknown {
			return q
		}
	}
	return nil
}

// move takes a sequence that has not begun to another rank.
func (r *Ranks) move(q *Seq, to int) {
	s := r.of[q.Rank]
	s.Finish(q)
	i := slices.Index(s.line, q)
	s.line = slices.Delete(s.line, i, i+1)
	r.work[q.Rank] -= q.work
	r.enter(q, to)
}

// Commit says that the batch of the last Next was computed.
func (r *Ranks) Commit(b *Batch) {
	if len(r.of) == 1 {
		r.of[0].Commit(b)
		return
	}
	for _, s := range r.of {
		s.Commit(&s.batch)
	}
}

// Finish ends a sequence, wherever it is. A sequence that is not here is left alone.
func (r *Ranks) Finish(q *Seq) {
	if i := slices.Index(r.fresh, q); i >= 0 {
		r.fresh = slices.Delete(r.fresh, i, i+1)
		return
	}
	r.of[q.Rank].Finish(q)
	r.work[q.Rank] -= q.work
	q.work = 0
}

// Propose, Behind, Accept, Common and Begun are those of the ranks.
func (r *Ranks) Propose(p Proposal) {
	for _, s := range r.of {
		s.Propose(p)
	}
}

func (r *Ranks) Behind() (n int) {
	for _, s := range r.of {
		n += s.Behind()
	}
	return n
}

func (r *Ranks) Accept(q *Seq, n int)  { r.of[q.Rank].Accept(q, n) }
func (r *Ranks) Common(q *Seq) []int32 { return r.of[q.Rank].Common(q) }
func (r *Ranks) Begun(q *Seq) bool     { return r.of[q.Rank].Begun(q) }

// Options returns the limits in force of each rank.
func (r *Ranks) Options() Options { return r.of[0].o }

// Idle reports that there are no sequences.
func (r *Ranks) Idle() bool { return r.Running()+r.Waiting() == 0 }

// Running, Waiting and PagesUsed are for reports.
func (r *Ranks) Running() int   { return r.sum((*Scheduler).Running) }
func (r *Ranks) Waiting() int   { return len(r.fresh) + r.sum((*Scheduler).Waiting) }
func (r *Ranks) PagesUsed() int { return r.sum((*Scheduler).PagesUsed) }

func (r *Ranks) sum(of func(*Scheduler) int) (n int) {
	for _, s := range r.of {
		n += of(s)
	}
	return n
}
