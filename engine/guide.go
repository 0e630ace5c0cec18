package engine

import "slices"

// Guide says which tokens may come next in one request's output. It is asked and told
// from the engine's goroutine; what it works out may be worked out beside it.
//
// A step that is launched ahead computes a guided request's row like others. Its tokens are
// chosen when the guides know their masks, which they work out from the tokens of the
// step before while the ranks compute. So are those of a step with drafts, each of which
// has a mask of its own.
type Guide interface {
	// Ask begins to work out which tokens may come next, and with drafts which of these may
	// come, one after the other, and which tokens behind each. It comes behind Add, once.
	Ask(drafts ...int32)
	// May is how many of the drafts may come. It waits for no more than that.
	May() int
	// Mask sets the bits of the tokens that may come behind so many of the drafts, at most
	// May, token t's bit t%64 of word t/64; all are 0 before. False: any may, and the words do
	// not count. After an error behind no draft, which ends the request, there is only Close;
	// an error behind some ends the drafts.
	Mask(drafts int, words []uint64) (bool, error)
	// Add takes tokens that were sampled, end tokens and stop tokens too. Each comes once,
	// also where the request was computed again.
	Add(tokens ...int32)
	// Close says that the request has ended.
	Close()
}

// ask has the guides of requests that begin with the next step work side by side.
func (e *Engine) ask(f *flight) {
	for _, it := range f.batch.Items {
		if q := e.live[it.Seq.ID]; it.Sample && q != nil && !q.asked && len(q.Tokens) < q.Max {
			q.ask()
		}
	}
}

// ask asks the guide what may come behind the last token.
func (q *sequence) ask() {
	if q.guide != nil {
		q.guide.Ask(q.Drafts...)
	}
	q.asked = true
}

// masks gives rows of logits, the first of q's and those behind its drafts, masks of its
// guide. Where the token before is on its way they are not known, and where steps may be
// open they are worked out while the ranks compute.
func (e *Engine) masks(f *flight, q *wanted, known bool) {
	words := e.model.SeenWords()
	q.due = !known || f.drafts > 0 && e.o.Ahead > 1
	for i := range q.drafts + 1 {
		n := len(f.Batch.Masks)
		f.Batch.Masks = slices.Grow(f.Batch.Masks, words)[:n+words]
		f.Batch.Params[int(q.first)+i].Mask = int32(n / words)
		if q.due {
			f.Batch.Open = true
			continue
		}
		if q.allowed(i, f.Batch.Masks[n:]) {
			continue
		}
		f.Batch.Masks, f.Batch.Params[int(q.first)+i].Mask = f.Batch.Masks[:n], -1
	}
}

// allowed sets the bits of the tokens that q's guide allows behind so many drafts; false: it
// allows all. A guide that fails ends the request when the step has landed, and one that
// fails behind drafts has them count for nothing.
func (q *wanted) allowed(drafts int, words []uint64) bool {
	clear(words)
	if drafts > q.sure {
		return false
	}
	some, err := q.guide.Mask(drafts, words)
	switch {
	case err == nil:
	case drafts == 0:
		q.lost = err
	default:
		q.sure = drafts - 1
	}
	return some && err == nil
}

// fill fills in the masks that were not known when an open step was laid out.
func (e *Engine) fill(f *flight) {
	words := e.model.SeenWords()
	for i := range f.wanted {
		q := &f.wanted[i]
		if !q.due {
			continue
		}
		for i := range q.drafts + 1 {
			n := int(f.Batch.Params[int(q.first)+i].Mask) * words
			row := f.Batch.Masks[n : n+words]
			if q.ended || !q.allowed(i, row) {
				for k := range row {
					row[k] = ^uint64(0)
				}
			}
		}
	}
}

// choose has the ranks choose the tokens of an open step.
func (e *Engine) choose(f *flight) error {
	e.fill(f)
	if err := e.ring.Choose(f.Step); err != nil {
		return f.failed(err)
	}
	return nil
}
