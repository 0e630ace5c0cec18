package pipeline

import (
	"unsafe"

	"glmbatch/datasets"
	"glmbatch/engine"
)

// promptLogprobs are those of the prompt's tokens from the second on; without text.
type promptLogprobs struct {
	chosen []datasets.TokenLogprob
	top    [][]datasets.TokenLogprob
}

// scoring is how a row comes to its prompt's log-probabilities. They are the same for all
// samples: one of them asks for them, and all have its lists. The zero value: nobody asks.
type scoring struct {
	by      *sample   // has them, or its request asks for them
	known   bool      // they are all there
	waiting []*sample // finished before they were
}

// share gives a sample that is finished the prompt's log-probabilities, if they are known.
// Else it waits for them: the journal's records are whole.
func (c *scoring) share(s *sample) (whole bool) {
	switch {
	case c.by == nil:
		return true
	case !c.known:
		c.waiting = append(c.waiting, s)
		return false
	}
	s.prompt = c.by.prompt
	return true
}

// took is told of each token of a row. It returns the samples that waited, when they do
// no longer: a token behind the prompt's is the first to say that these have all come.
func (c *scoring) took(s *sample, t engine.Token) (whole []*sample) {
	if c.known || c.by != s || t.Prompt {
		return nil
	}
	c.known = true
	whole, c.waiting = c.waiting, nil
	for _, w := range whole {
		w.prompt = s.prompt
	}
	return whole
}

// scoreBytes is what the log-probabilities of the prompt take, once for all samples. It
// does not change while the row runs.
func (r *row) scoreBytes() int {
	if r.params.PromptLogprobs == 0 || len(r.prompt) == 0 {
		return 0
	}
	return (len(r.prompt) - 1) * placeBytes(r.params.PromptLogprobs) // the token's own, and the rest others
}

// tokenBytes is what a token of a response takes.
const tokenBytes = 4

// placeBytes is what n log-probabilities at one place take, the token's own among them.
func placeBytes(n int) int {
	var one datasets.TokenLogprob
	var list []datasets.TokenLogprob
	return n*int(unsafe.Sizeof(one)+unsafe.Sizeof(*one.Rank)) + int(unsafe.Sizeof(list))
}

// bytes is what a sample's tokens and their log-probabilities take.
func (s *sample) bytes() int {
	n := tokenBytes * len(s.tokens)
	for _, top := range s.top {
		n += placeBytes(1 + len(top))
	}
	return n
}
