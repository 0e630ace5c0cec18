package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"glmbatch/engine/sched"
	"glmbatch/kernels"
)

var (
	// ErrRequest: a request that no engine could run: bad tokens or parameters.
	ErrRequest = errors.New("bad request")
	// ErrTooLong: a request that cannot finish in the model's context or in the cache.
	ErrTooLong = sched.ErrTooLong
)

// validate reports every fault of a request to a model with vocab tokens, the first of
// which, tokens, are no padding.
func (r *Request) validate(vocab, tokens int) error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(r.Prompt) == 0 {
		fault("the prompt has no tokens")
	}
	for i, t := range r.Prompt {
		if t < 0 || int(t) >= vocab {
			fault("token %d of the prompt is %d, the vocabulary has %d", i, t, vocab)
			break
		}
	}
	s := &r.Sampling
	for _, f := range []struct {
		name     string
		value    float32
		low, top float32
	}{
		{"temperature", s.Temperature, 0, math.MaxFloat32}, {"top_p", s.TopP, 0, 1}, {"min_p", s.MinP, 0, 1},
		{"repetition_penalty", s.Repetition, 0, math.MaxFloat32},
		{"presence_penalty", s.Presence, -math.MaxFloat32, math.MaxFloat32},
		{"frequency_penalty", s.Frequency, -math.MaxFloat32, math.MaxFloat32},
	} {
		if !(f.value >= f.low && f.value <= f.top) {
			fault("%s %g is not in %g..%g", f.name, f.value, f.low, f.top)
		}
	}
	for _, f := range []struct {
		name  string
		value int
		top   int
	}{
		{"top_k", s.TopK, math.MaxInt32}, {"max_tokens", s.MaxTokens, math.MaxInt32},
		{"logprobs", s.Logprobs, kernels.MaxLogprobs + 1},
		{"prompt_logprobs", s.PromptLogprobs, kernels.MaxLogprobs + 1}, {"min_tokens", s.MinTokens, math.MaxInt32},
		{"logprobs with logprob_token_ids", max(0, s.Logprobs-1) + len(s.Labels), kernels.MaxLogprobs},
		{"tokens that are treated apart", s.Apart(), kernels.MaxEntries},
	} {
		if f.value < 0 || f.value > f.top {
			fault("%s %d is not in 0..%d", f.name, f.value, f.top)
		}
	}
	s.validateTokens(tokens, fault)
	if i := slices.IndexFunc(r.Prompt, func(t int32) bool { return int(t) >= tokens }); i >= 0 && s.PromptLogprobs > 0 {
		fault("token %d of the prompt is %d, of %d that have log-probabilities", i, r.Prompt[i], tokens)
	}
	return errors.Join(errs...)
}

// validateTokens reports tokens that are none.
func (s *Sampling) validateTokens(vocab int, fault func(string, ...any)) {
	check := func(name string, list ...int32) {
		if i := slices.IndexFunc(list, func(t int32) bool { return t < 0 || int(t) >= vocab }); i >= 0 {
			fault("%s has token %d, the vocabulary has %d", name, list[i], vocab)
		}
	}
	check("logprob_token_ids", s.Labels...)
	check("allowed_token_ids", s.Allowed...)
	if s.Allowed != nil && len(s.Allowed) == 0 {
		fault("allowed_token_ids has no token")
	}
	given := map[int32]bool{}
	for _, b := range s.Bias {
		check("logit_bias", b.Token)
		if given[b.Token] || !(math.Abs(float64(b.Gain)) <= math.MaxFloat32) {
			fault("logit_bias has token %d twice, or with %g", b.Token, b.Gain)
		}
		given[b.Token] = true
	}
	for _, w := range s.BadWords {
		check("bad_words", w...)
		if len(w) == 0 {
			fault("bad_words has one without tokens")
		}
	}
	if k := s.Thinking; k != nil {
		check("the marks of thinking", slices.Concat(k.Open, k.Close)...)
		if k.Budget < 0 || len(k.Open) == 0 || len(k.Close) == 0 {
			fault("a budget of %d thinking tokens between marks of %d and %d", k.Budget, len(k.Open), len(k.Close))
		}
	}
	if s.PromptOnly && s.PromptLogprobs == 0 {
		fault("a request for its prompt alone that asks for nothing of it")
	}
}

// sequence is a request in flight.
type sequence struct {
	sched.Seq
	sampling Sampling
	guide    Guide    // nil: any token may come
	asked    bool     // the guide, for the first time
	lost     error    // that its guide ended with
	seen     []uint64 // bit t: token t is in Seq.Tokens; nil: the request does not ask
	told     int      // tokens that the ranks' bitmaps and counts know; untold: they may be another's
	step     int64    // that samples the last of Tokens, which is 0 until it has landed; never: no step
	row      int32    // of logits of that step
	ended    bool
	scored   int // tokens of the prompt whose log-probabilities were asked for, with the first
	steering
}

// untold is no number of tokens: the seat may be new.
const untold = -1

// never is no step, and not the one before the first.
const never = -2

func newSequence(r Request, seenWords, tokens int, ends []int32) *sequence {
	q := &sequence{sampling: r.Sampling, guide: r.Guide, step: never, told: untold}
	q.ID = r.ID
	q.Tokens = slices.Clip(r.Prompt)
	if n := r.Sampling.MaxTokens; n > 0 {
		q.Max = len(r.Prompt) + n
	}
	if r.Sampling.PromptOnly {
		q.Max = len(r.Prompt)
	}
	q.Whole = r.Sampling.PromptLogprobs > 0
	q.scored = 1
	q.Exact = r.Sampling.IgnoreEOS && len(r.Sampling.StopTokens) == 0
	q.steering = newSteering(&r, seenWords, tokens, ends)
	if r.Sampling.Repetition != 0 && r.Sampling.Repetition != 1 {
		q.seen = make([]uint64, seenWords)
		for _, t := range r.Prompt {
			q.seen[t/64] |= 1 << (t % 64)
		}
	}
	return q
}

// set says which token was sampled for a place.
func (q *sequence) set(at int, t int32) {
	q.Tokens[at] = t
	if q.seen != nil {
		q.seen[t/64] |= 1 << (t % 64)
	}
	if q.counts != nil {
		q.counts[t] = uint16(min(int(q.counts[t])+1, kernels.MaxCount))
	}
	q.think.took(q.Tokens[:at+1])
}

// params steer the choice of the sequence's next token. The random number's key
// is the request's seed and the token's position, nothing of the batch.
func (q *sequence) params() kernels.SampleParams {
	s := &q.sampling
	p := kernels.Greedy()
	p.Temperature, p.MinP, p.TopK, p.Logprobs = s.Temperature, s.MinP, int32(s.TopK), int32(s.Logprobs)-1
	p.Seed, p.Counter, p.Last = s.Seed, uint64(len(q.Tokens)), q.Tokens[len(q.Tokens)-1]
	if s.TopP != 0 {
		p.TopP = s.TopP
	}
	if len(s.Labels) > 0 {
		p.Logprobs = max(0, p.Logprobs)
	}
	if q.seen != nil {
		p.Repetition, p.Seen = s.Repetition, int32(q.Seat)
	}
	if q.counts != nil {
		p.Presence, p.Frequency, p.Counts = s.Presence, s.Frequency, int32(q.Seat)
	}
	return p
}

// ends reports why the sequence ends with a token at a place, if it does.
func (q *sequence) ends(t int32, at int, endTokens []int32) Reason {
	switch {
	case !q.sampling.IgnoreEOS && (slices.Contains(endTokens, t) || slices.Contains(q.sampling.EndTokens, t)),
		slices.Contains(q.sampling.StopTokens, t):
		return Stop
	case at+1 >= q.Max:
		return Length
	}
	return Going
}
