package engine

import "slices"

// thinking is where a sequence is between the marks of a [Thinking].
type thinking struct {
	*Thinking
	from   int // the first token behind the opening mark; unopened: it has not come
	prompt int // tokens that were there before the first
	over   bool
}

const unopened = -1

func newThinking(t *Thinking, prompt []int32) thinking {
	k := thinking{Thinking: t, from: unopened, prompt: len(prompt), over: t == nil}
	if t == nil {
		return k
	}
	for i := len(prompt); i > 0 && k.from == unopened; i-- {
		if slices.Equal(t.Close, tail(prompt[:i], len(t.Close))) {
			break
		}
		if slices.Equal(t.Open, tail(prompt[:i], len(t.Open))) {
			k.from = i
		}
	}
	return k
}

// tail is the last n of tokens, or all.
func tail(tokens []int32, n int) []int32 { return tokens[max(0, len(tokens)-n):] }

// took takes in the last of the tokens, which is behind the prompt.
func (k *thinking) took(tokens []int32) {
	switch n := len(tokens); {
	case k.over:
	case k.from == unopened && slices.Equal(k.Open, tail(tokens[k.prompt:], len(k.Open))):
		k.from = n
	case k.from != unopened && n-1 < k.close() &&
		slices.Equal(k.Close, tail(tokens[max(k.prompt, k.from):], len(k.Close))):
		k.over = true
	}
}

// close is the place from which on the closing mark is forced, once the opening one has
// come.
func (k *thinking) close() int { return max(k.from+k.Budget, k.prompt) }

// spent reports whether the token at a place is the first to be forced, if what came last is
// not the end: then it must be known.
func (k *thinking) spent(at int) bool {
	return !k.over && (k.from != unopened && at == k.close() || k.from == unopened && k.Budget == 0)
}

// hold keeps requests whose budget may be spent, which their last token decides, out of
// the next step while that token is on its way.
func (e *Engine) hold() {
	for s := range e.ring.Each {
		for _, q := range e.flight(s).wanted {
			q.Held = q.think.spent(len(q.Tokens))
		}
	}
}

// release lets them go.
func (e *Engine) release() {
	for s := range e.ring.Each {
		for _, q := range e.flight(s).wanted {
			q.Held = false
		}
	}
}

// force returns the token that comes at a place; -1: one is chosen.
func (k *thinking) force(at int) int32 {
	if k.over || k.from == unopened {
		return -1
	}
	if i := at - k.close(); i >= 0 && i < len(k.Close) {
		return k.Close[i]
	}
	return -1
}

// foretell puts tokens that will be forced in the places of drafts, of which there are so
// many at most.
func (q *sequence) foretell(most int) {
	if q.think.over {
		return
	}
	k, tokens := q.think, q.Tokens
	for i := range most {
		if t := k.force(len(tokens)); t >= 0 && (i == len(q.Drafts) || q.Drafts[i] != t) {
			q.Drafts = append(q.Drafts[:i], t)
		}
		if i == len(q.Drafts) {
			return
		}
		tokens = append(tokens, q.Drafts[i])
		k.took(tokens)
	}
}
