package engine

import "slices"

// Guide says which tokens may come next in one request's output. It is asked and told
// from the engine's goroutine; what it works out may be worked out beside it.
//
// A step that is launched ahead computes a guided request's row like others. Its tokens are
// chosen when the guides know their masks, which they work out from the tokens of the
// step before while the ranks compute.
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

// ask has the guides of the next step work side by side.
func (e *Engine) ask(f *flight) {
	for _, it := range f.batch.Items {
		if q := e.live[it.Seq.ID]; it.Sample && q != nil && q.guide != nil && len(q.Tokens) < q.Max {
			q.guide.Ask()
		}
	}
}

// mask gives q's row of logits a mask of its guide, if that has one now. Where the token
// before is on its way the mask is not known, and the step is open.
func (f *flight) mask(q *sequence, words int, known bool) int32 {
	n := len(f.Batch.Masks)
	f.Batch.Masks = slices.Grow(f.Batch.Masks, words)[:n+words]
	if !known {
		f.Batch.Open = true
		return int32(n / words)
	}
	clear(f.Batch.Masks[n:])
	if !q.allowed(f.Batch.Masks[n:]) {
		f.Batch.Masks = f.Batch.Masks[:n]
		return -1
	}
	return int32(n / words)
}

// allowed sets the bits of the tokens that q's guide allows; false: it allows all. A guide
// that fails ends the request when the step has landed.
func (q *sequence) allowed(words []uint64) bool {
	some, err := q.guide.Mask(words)
	if err != nil {
		q.lost = err
	}
	return some && err == nil
}

// choose fills in the masks that were not known when an open step was launched, as the
// step before it has landed now, and has the ranks choose.
func (e *Engine) choose(f *flight) error {
	words := e.model.SeenWords()
	for _, q := range f.wanted {
		n := int(f.Batch.Params[q.first].Mask) * words
		if n < 0 || len(f.Batch.From) == 0 || f.Batch.From[q.first] < 0 {
			continue
		}
		row := f.Batch.Masks[n : n+words]
		clear(row)
		if q.ended || !q.allowed(row) {
			for k := range row {
				row[k] = ^uint64(0)
			}
		}
	}
	if err := e.ring.Choose(f.Step); err != nil {
		return f.failed(err)
	}
	return nil
}
