package engine

import "slices"

// Guide says which tokens may come next in one request's output. It is asked and told
// from the engine's goroutine; what it works out may be worked out beside it.
//
// A guided request's row waits for the token before it: a step that is launched ahead
// has no part of it while its last token is on its way. Others stay ahead.
type Guide interface {
	// Ask begins to work out which tokens may come next: Mask will be called.
	Ask()
	// Mask sets the bits of the tokens that may come next, token t's bit t%64 of word
	// t/64; all are 0 before. False: any may, and the words do not count. After an error,
	// which ends the request, there is only Close.
	Mask(words []uint64) (bool, error)
	// Add takes the token that was sampled, end tokens and stop tokens too. It comes once
	// for each token, also where the request was computed again.
	Add(token int32)
	// Close says that the request has ended.
	Close()
}

// hold keeps guided requests whose last token is on its way out of the next step.
func (e *Engine) hold(held bool) {
	for s := range e.ring.Each {
		for _, q := range e.flight(s).wanted {
			if q.guide != nil {
				q.Held = held
			}
		}
	}
}

// ask has the guides of the next step work side by side.
func (e *Engine) ask(f *flight) {
	for _, it := range f.batch.Items {
		if q := e.live[it.Seq.ID]; it.Sample && q != nil && q.guide != nil {
			q.guide.Ask()
		}
	}
}

// mask gives q's row of logits the mask of its guide, if that has one now. A guide that
// fails ends the request when the step has landed.
func (f *flight) mask(q *sequence, words int) int32 {
	n := len(f.Batch.Masks)
	f.Batch.Masks = slices.Grow(f.Batch.Masks, words)[:n+words]
	clear(f.Batch.Masks[n:])
	some, err := q.guide.Mask(f.Batch.Masks[n:])
	if q.lost = err; err != nil || !some {
		f.Batch.Masks = f.Batch.Masks[:n]
		return -1
	}
	return int32(n / words)
}
