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
// be known yet: then entries that hang on it say so. The last so many tokens are drafts,
// which bitmaps and counts do not know.
func (q *sequence) entries(list []kernels.Entry, drafts int) (all []kernels.Entry, biases, assumed int) {
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
	list = append(list, q.labels...)
	if q.counts != nil || q.seen != nil {
		assumed = drafts
		for _, t := range q.Tokens[len(q.Tokens)-drafts:] {
			list = append(list, kernels.Entry{Token: t, After: -1})
		}
	}
	return list, biases, assumed
}

// uploadSteering takes what changed of bitmaps and counts to the ranks. fed: they keep
// the last token by themselves, as they did those before it.
func (e *Engine) uploadSteering(q *sequence, fed bool) error {
	from, n := q.told, len(q.Tokens)
	q.told = n
	if from == untold {
		return e.uploadTables(q)
	}
	if fed {
		n--
	}
	for at := from; at < n; at++ { // the last of several in one word takes them all
		t, rest := q.Tokens[at], q.Tokens[at+1:n]
		four, word := int(t&^3), int(t/64)
		if q.counts != nil && !slices.ContainsFunc(rest, func(o int32) bool { return int(o&^3) == four }) {
			var counts [4]uint16
			for i := range counts {
				counts[i] = q.counts[int32(four+i)]
			}
			if err := e.model.SetCounts(q.Seat, four, counts[:]); err != nil {
				return err
			}
		}
		if q.seen != nil && !slices.ContainsFunc(rest, func(o int32) bool { return int(o/64) == word }) {
			if err := e.model.SetSeen(q.Seat, word, q.seen[word:word+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// uploadTables takes a sequence's bitmaps and counts to the ranks whole.
func (e *Engine) uploadTables(q *sequence) error {
	if q.permitted != nil {
		if err := e.model.SetAllowed(q.Seat, q.permitted); err != nil {
			return err
		}
	}
	if q.counts != nil {
		dense := make([]uint16, e.model.Config.Vocab)
		for t, c := range q.counts {
			dense[t] = c
		}
		if err := e.model.SetCounts(q.Seat, 0, dense); err != nil {
			return err
		}
	}
	if q.seen != nil {
		return e.model.SetSeen(q.Seat, 0, q.seen)
	}
	return nil
}
