package engine

import (
	"errors"
	"fmt"
	"slices"

	"glmbatch/engine/glm5"
	"glmbatch/engine/inflight"
	"glmbatch/engine/sched"
)

// Speculation says how steps take drafts. A step computes a sequence's last token and, in
// the same pass, drafts of those to come; each of these rows samples the token behind it as
// it would have been sampled alone, with the random number of its own position. A draft is
// right if it is the token that was sampled in front of it, and then the token behind it
// holds too. What is sampled behind a wrong draft is dropped. So tokens have the bits that
// they have without drafts, however many there are and wherever they come from.
//
// The cache entries of wrong drafts are written again by the rows that take their places,
// before anything reads them.
//
// Where drafts are taken, a step is launched when the one before it has landed: what it
// computes follows from which drafts were right.
//
// The zero value takes none.
type Speculation struct {
	Drafts int // most of a request in a step; 0: none

	// NGram: drafts are what followed the last tokens where these came before, in the
	// prompt or in the answer. Else the prediction layer makes them, in the step that
	// samples the tokens in front of them.
	NGram bool

	// Auto: drafts are taken while so few requests are there that they pay, as steps are
	// measured.
	Auto bool
}

// MaxDrafts is the most drafts of a request in a step.
const MaxDrafts = glm5.MaxDrafts

func (s *Speculation) validate(m glm5.Options) error {
	switch {
	case s.Drafts < 0 || s.Drafts > MaxDrafts:
		return fmt.Errorf("%d drafts are not in 0..%d", s.Drafts, MaxDrafts)
	case s.NGram && s.Drafts == 0:
		return errors.New("drafts of n-grams, but none is to be taken")
	case !s.NGram && s.Drafts > m.Drafts:
		return fmt.Errorf("%d drafts of the prediction layer: the model was loaded for %d", s.Drafts, m.Drafts)
	}
	return nil
}

// speculation is what an engine knows of its drafts.
type speculation struct {
	o    Speculation
	auto chooser
}

// propose says how many drafts the next step takes of a request, at most.
func (e *Engine) propose() int {
	n, behind := e.spec.drafts(e)
	if n > 0 {
		e.spec.auto.begin(behind)
	}
	e.sched.Propose(sched.Proposal{Most: n, Layer: n > 0 && !e.spec.o.NGram})
	return n
}

// drafts is how many the next step takes of a request, at most, and how many rows are computed
// again if it takes any.
func (s *speculation) drafts(e *Engine) (n, behind int) {
	if !s.o.Auto {
		return s.o.Drafts, 0
	}
	if !s.o.NGram {
		behind = e.sched.Behind()
	}
	seats := e.model.Homes() * e.sched.Options().MaxSeqs
	return s.auto.choose(min(e.sched.Running()+e.sched.Waiting(), seats), behind), behind
}

// waits reports that the next step is launched only when those in flight have landed, of
// which the newest is this one.
func (e *Engine) waits(newest *inflight.Step) bool {
	if newest.Alone || e.flight(newest).drafts > 0 {
		return true
	}
	n, _ := e.spec.drafts(e)
	return n > 0
}

// tips lists the sequences that the prediction layer goes on from, those first that attend
// to all of their context wherever the step comes to.
func (e *Engine) tips(f *flight) {
	in, c := &f.Batch, &e.model.Config
	in.Drafts = f.drafts
	for _, long := range []bool{false, true} {
		if long {
			in.LongTips = len(in.Tips)
		}
		for i := range f.wanted {
			q := &f.wanted[i]
			if q.tip < 0 || c.IsLong(q.at-1+q.drafts+f.drafts-1) != long {
				continue
			}
			q.tip = len(in.Tips)
			in.Tips = append(in.Tips, glm5.Tip{First: q.first, Rows: int32(q.drafts) + 1})
		}
	}
}

// draft sets what may follow the tokens of a sequence that a step has just given some, and
// asks its guide.
func (e *Engine) draft(f *flight, q *wanted) {
	q.Drafts = q.Drafts[:0]
	switch {
	case f.drafts == 0:
	case e.spec.o.NGram:
		q.Drafts = ngram(q.Drafts, q.Tokens, f.drafts)
	case q.tip >= 0:
		for i := range f.drafts {
			q.Drafts = append(q.Drafts, f.Sampled[len(f.Batch.Logits)+i*len(f.Batch.Tips)+q.tip].Token)
		}
	}
	// Nothing comes behind an end, or a token that is never sampled.
	never := func(t int32) bool { return t < 0 || int(t) >= e.model.Options().Tokens }
	if i := slices.IndexFunc(q.Drafts, func(t int32) bool { return never(t) || q.ends(t, 0, e.ends) == Stop }); i >= 0 {
		q.Drafts = q.Drafts[:i]
	}
	q.foretell(f.drafts)
	q.ask()
}

// sift leaves the drafts that the guides allow. These were asked all at once, and what may
// come behind each draft is worked out when it is known which there are.
func (e *Engine) sift(f *flight) {
	for i := range f.wanted {
		if q := &f.wanted[i]; len(q.Drafts) > 0 && q.guide != nil && q.what == next && !q.ended {
			q.Drafts = q.Drafts[:min(len(q.Drafts), q.guide.May())]
		}
	}
}
