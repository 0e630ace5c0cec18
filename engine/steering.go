package engine

import (
	"math"
	"slices"

	"glmbatch/kernels"
)

// steering is what a sequence's parameters make of tokens that were and may come, in
// the form in which rows of logits take it.
type steering struct {
	always []kernels.Entry // biases of every row: Bias, and bad words of one token
	pairs  []kernels.Entry // bad words of two, behind a token of the output
	longer [][]int32       // bad words of more
	stops  []kernels.Entry // end and stop tokens, of rows before MinTokens
	labels []kernels.Entry

	counts    map[int32]uint16 // of the output's tokens, as far as they are known; nil: nobody asks
	permitted []uint64         // nil: all
	think     thinking
}

// Apart is how many tokens a row of logits may have to treat apart, which is at most
// kernels.MaxEntries. End and stop tokens are among them only where MinTokens holds them back.
func (s *Sampling) Apart() int {
	n := len(s.Bias) + len(s.BadWords) + len(s.Labels)
	if s.MinTokens > 0 {
		n += len(s.StopTokens) + len(s.EndTokens) + mostEnds
	}
	return n
}

// mostEnds is more end tokens than a model has.
const mostEnds = 16

// newSteering is of a request that was checked. ends are the model's end tokens.
func newSteering(r *Request, words, tokens int, ends []int32) (k steering) {
	s := &r.Sampling
	never := float32(math.Inf(-1))
	for _, b := range s.Bias {
		k.always = append(k.always, kernels.Entry{Token: b.Token, After: -1, Bias: b.Gain})
	}
	for _, w := range s.BadWords {
		switch last := w[len(w)-1]; len(w) {
		case 1:
			k.always = append(k.always, kernels.Entry{Token: last, After: -1, Bias: never})
		case 2:
			k.pairs = append(k.pairs, kernels.Entry{Token: last, After: w[0], Bias: never})
		default:
			k.longer = append(k.longer, w)
		}
	}
	for _, t := range s.Labels {
		k.labels = append(k.labels, kernels.Entry{Token: t, After: -1})
	}
	for _, t := range slices.Concat(ends, s.EndTokens, s.StopTokens) {
		if t >= 0 && int(t) < tokens && s.MinTokens > 0 {
			k.stops = append(k.stops, kernels.Entry{Token: t, After: -1, Bias: never})
		}
	}
	if s.Presence != 0 || s.Frequency != 0 {
		k.counts = map[int32]uint16{}
	}
	if s.Allowed != nil {
		k.permitted = make([]uint64, words)
		for _, t := range s.Allowed {
			k.permitted[t/64] |= 1 << (t % 64)
		}
	}
	k.think = newThinking(s.Thinking, r.Prompt)
	return k
}

// entries appends those of the row for the sequence's next token. The last token may not
// be known yet: then entries that hang on it say so.
func (q *sequence) entries(list []kernels.Entry) (all []kernels.Entry, biases int) {
	from := len(list)
	list = append(list, q.always...)
	made := len(q.Tokens) - q.Prompt
	if made >= 1 {
		list = append(list, q.pairs...)
	}
	never := float32(math.Inf(-1))
	for _, w := range q.longer {
		n := len(w) - 2 // tokens in front of the last but one
		if made > n && slices.Equal(w[:n], q.Tokens[len(q.Tokens)-1-n:len(q.Tokens)-1]) {
			list = append(list, kernels.Entry{Token: w[n+1], After: w[n], Bias: never})
		}
	}
	if made < q.sampling.MinTokens {
		list = append(list, q.stops...)
	}
	biases = len(list) - from
	return append(list, q.labels...), biases
}

// uploadSteering takes what changed of bitmaps and counts to the ranks. fed: they keep
// the last token by themselves, as they did those before it.
func (e *Engine) uploadSteering(q *sequence, fed bool) error {
	whole := q.fresh == all
	if q.permitted != nil && whole {
		if err := e.model.SetAllowed(q.Seat, q.permitted); err != nil {
			return err
		}
	}
	switch n := int(q.latest) &^ 3; {
	case q.counts == nil:
	case whole:
		dense := make([]uint16, e.model.Config.Vocab)
		for t, c := range q.counts {
			dense[t] = c
		}
		if err := e.model.SetCounts(q.Seat, 0, dense); err != nil {
			return err
		}
	case !fed && q.fresh == last:
		var four [4]uint16
		for i := range four {
			four[i] = q.counts[int32(n+i)]
		}
		if err := e.model.SetCounts(q.Seat, n, four[:]); err != nil {
			return err
		}
	}
	first, words := 0, q.seen
	switch n := int(q.latest / 64); {
	case len(words) == 0 || whole:
	case !fed && q.fresh == last:
		first, words = n, words[n:n+1]
	default:
		words = nil
	}
	q.fresh = none
	if len(words) == 0 {
		return nil
	}
	return e.model.SetSeen(q.Seat, first, words)
}
