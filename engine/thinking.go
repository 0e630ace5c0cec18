package engine

import "slices"

// thinking is where a sequence is between the marks of a [Thinking].
type thinking struct {
	*Thinking
	from   int // the first token behind the opening mark; unopened: it has not come
	forced int // tokens of the closing mark that were forced; -1: none is
	over   bool
}

const unopened = -1

func newThinking(t *Thinking, prompt []int32) thinking {
	k := thinking{Thinking: t, from: unopened, forced: -1, over: t == nil}
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
func (k *thinking) took(tokens []int32, prompt int) {
	switch {
	case k.over:
	case k.from == unopened && slices.Equal(k.Open, tail(tokens[prompt:], len(k.Open))):
		k.from = len(tokens)
	case k.from != unopened && k.forced < 0 && slices.Equal(k.Close, tail(tokens[max(prompt, k.from):], len(k.Close))):
		k.over = true
	}
}

// spent reports whether the token at a place is to be forced, if what came last is not
// the end: then it must be known.
func (k *thinking) spent(at int) bool {
	return !k.over && k.forced < 0 && (k.from != unopened && at-k.from >= k.Budget ||
		k.from == unopened && k.Budget == 0)
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

// force returns the token that comes at a place; -1: one is chosen. It is asked once for
// each.
func (k *thinking) force(at int) int32 {
	switch {
	case k.over || k.forced < 0 && (k.from == unopened || at-k.from < k.Budget):
		return -1
	case k.forced < 0:
		k.forced = 0
	}
	k.forced++
	k.over = k.forced == len(k.Close)
	return k.Close[k.forced-1]
}
