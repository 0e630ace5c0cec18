package engine

// Guide says which tokens may come next in one request's output. It is asked and told
// from the engine's goroutine.
//
// A guided request's row waits for the token before it: a step that is launched ahead
// has no part of it while its last token is on its way. Others stay ahead.
type Guide interface {
	// Mask sets the bits of the tokens that may come next, token t's bit t%64 of word
	// t/64; all are 0 before. False: any may, and the words do not count.
	Mask(words []uint64) bool
	// Add takes the token that was sampled, end tokens and stop tokens too. It comes once
	// for each token, also where the request was computed again.
	Add(token int32)
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

// mask gives q's row of logits the mask of its guide, if that has one now.
func (f *flight) mask(q *sequence, words int) int32 {
	n := len(f.Batch.Masks)
	f.Batch.Masks = append(f.Batch.Masks, make([]uint64, words)...)
	if !q.guide.Mask(f.Batch.Masks[n:]) {
		f.Batch.Masks = f.Batch.Masks[:n]
		return -1
	}
	return int32(n / words)
}
