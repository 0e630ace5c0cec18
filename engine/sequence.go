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

// validate reports every fault of a request to a model with vocab tokens.
func (r *Request) validate(vocab int) error {
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
		{"top_k", s.TopK, math.MaxInt32}, {"max_tokens", s.MaxTokens, math.MaxInt32}, {"logprobs", s.Logprobs, kernels.MaxLogprobs + 1},
	} {
		if f.value < 0 || f.value > f.top {
			fault("%s %d is not in 0..%d", f.name, f.value, f.top)
		}
	}
	return errors.Join(errs...)
}

// sequence is a request in flight.
type sequence struct {
	sched.Seq
	sampling Sampling
	guide    Guide    // nil: any token may come
	lost     error    // that its guide ended with
	seen     []uint64 // bit t: token t is in Seq.Tokens; nil: the request does not ask
	fresh    int      // the word of seen that the ranks lack; all: all of them; none
	step     int64    // that samples the last of Tokens, which is 0 until it has landed; never: no step
	row      int32    // of logits of that step
	ended    bool
}

// What fresh can be besides a word.
const (
	all  = -1
	none = -2
)

// never is no step, and not the one before the first.
const never = -2

func newSequence(r Request, seenWords int) *sequence {
	q := &sequence{sampling: r.Sampling, guide: r.Guide, fresh: all, step: never}
	q.ID = r.ID
	q.Tokens = slices.Clip(r.Prompt)
	if n := r.Sampling.MaxTokens; n > 0 {
		q.Max = len(r.Prompt) + n
	}
	q.Exact = r.Sampling.IgnoreEOS && len(r.Sampling.StopTokens) == 0
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
		if q.fresh != all {
			q.fresh = int(t / 64)
		}
	}
}

// unseen returns the words of seen that the ranks lack, from word first on. fed:
// they set the last token's bit by themselves, as they did those before it.
func (q *sequence) unseen(fed bool) (first int, words []uint64) {
	switch {
	case q.seen == nil, q.fresh == none, fed && q.fresh != all:
	case q.fresh == all:
		words = q.seen
	default:
		first, words = q.fresh, q.seen[q.fresh:q.fresh+1]
	}
	q.fresh = none
	return first, words
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
	if q.seen != nil {
		p.Repetition, p.Seen = s.Repetition, int32(q.Seat)
	}
	return p
}

// ends reports why the sequence ends with a token at a place, if it does.
func (q *sequence) ends(t int32, at int, endTokens map[int32]bool) Reason {
	switch {
	case endTokens[t] && !q.sampling.IgnoreEOS, slices.Contains(q.sampling.StopTokens, t):
		return Stop
	case at+1 >= q.Max:
		return Length
	}
	return Going
}
