package engine_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"glmbatch/engine"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// one runs a request alone.
func one(t *testing.T, m *glm5.Model, o engine.Options, s engine.Sampling, prompt ...int32) answer {
	t.Helper()
	got, _ := answers(t, m, o, []engine.Request{{ID: 1, Prompt: prompt, Sampling: s}})
	return got[1]
}

// A prompt's log-probabilities are to the last bit those of the same tokens when they
// were generated, however the prompt is cut and whatever runs beside it.
func TestPromptLogprobs(t *testing.T) {
	m := load(t, 1, 1, glm5.Options{MaxRows: 64, MaxSeqs: 4, MaxLogits: 8, Context: 300, Pages: 20})
	prompt := make([]int32, 90)
	for i := range prompt {
		prompt[i] = int32(i * i % 1900)
	}
	made := one(t, m, engine.Options{}, engine.Sampling{Temperature: 1.3, Logprobs: 4, MaxTokens: 60, IgnoreEOS: true},
		prompt...)
	whole := slices.Concat(prompt, made.tokens)
	for name, o := range map[string]engine.Options{"": {}, "few rows": {MaxBatchTokens: 5},
		"no sharing": {NoSharing: true}, "ahead": {Ahead: 2},
		"preempted": {Ahead: 2, KVTokens: 5 * kernels.PageTokens}} {
		t.Run(name, func(t *testing.T) {
			var list []engine.Request
			for i := range 3 {
				s := engine.Sampling{PromptLogprobs: 4, PromptOnly: i != 1, MaxTokens: 20, IgnoreEOS: true}
				list = append(list, engine.Request{ID: int64(i), Prompt: whole, Sampling: s})
			}
			list = append(list, engine.Request{ID: 3, Prompt: prompt, Sampling: engine.Sampling{MaxTokens: 30}})
			got, _ := answers(t, m, o, list)
			for i := range int64(3) {
				a := got[i]
				if len(a.prompt) != len(whole)-1 || a.reason != engine.Length {
					t.Fatalf("%d tokens of a prompt of %d, and %q", len(a.prompt), len(whole), a.reason)
				}
				if only := list[i].Sampling.PromptOnly; only && !slices.Equal(a.tokens, []int32{-1}) || !only &&
					len(a.tokens) != 20 {
					t.Errorf("request %d gives %v", i, a.tokens)
				}
				for j, k := range a.prompt {
					if k.Token != whole[j+1] || k.Reason != engine.Going {
						t.Fatalf("place %d has token %d and %q, want %d", j+1, k.Token, k.Reason, whole[j+1])
					}
				}
				tail := a.prompt[len(prompt)-1:]
				for j, k := range tail {
					if k.Logprob != made.logprobs[j] || !slices.Equal(k.Top, made.top[3*j:3*j+3]) {
						t.Errorf("place %d: %g and %v, generated with %g and %v", j, k.Logprob, k.Top, made.logprobs[j],
							made.top[3*j:3*j+3])
					}
				}
			}
		})
	}
	if a := one(t, m, engine.Options{}, engine.Sampling{PromptLogprobs: 1, PromptOnly: true}, 5); len(a.prompt) != 0 ||
		a.reason != engine.Length {
		t.Errorf("a prompt of one token: %v", a)
	}
}

// Labels have the log-probabilities that alternatives have, whatever their rank, and all
// of the vocabulary's make 1.
func TestLabels(t *testing.T) {
	m := load(t, 1, 1, glm5.Options{MaxRows: 16, MaxSeqs: 2, Context: 64, Pages: 4})
	want := map[int32]float32{}
	for _, l := range one(t, m, engine.Options{}, engine.Sampling{MaxTokens: 1, Logprobs: kernels.MaxLogprobs + 1}, 7,
		8).top {
		want[l.Token] = l.Logprob
	}
	sum, met := 0.0, 0
	for from := 0; from < m.Config.Vocab; from += kernels.MaxLogprobs {
		var labels []int32
		for id := from; id < min(from+kernels.MaxLogprobs, m.Options().Tokens); id++ {
			labels = append(labels, int32(id))
		}
		if len(labels) == 0 {
			break
		}
		a := one(t, m, engine.Options{}, engine.Sampling{MaxTokens: 1, Labels: labels}, 7, 8)
		for i, l := range a.labels {
			if sum += math.Exp(float64(l.Logprob)); l.Token != labels[i] {
				t.Fatalf("label %d is %d, want %d", i, l.Token, labels[i])
			}
			if w, ok := want[l.Token]; ok {
				if met++; w != l.Logprob {
					t.Errorf("token %d has %g as a label, %g as an alternative", l.Token, l.Logprob, w)
				}
			}
		}
	}
	if math.Abs(sum-1) > 1e-5 || met != len(want) {
		t.Errorf("all labels have a probability of %g, and %d of %d alternatives are among them", sum, met, len(want))
	}
}

// What each parameter forbids does not come, and what it demands does.
func TestSteering(t *testing.T) {
	m := load(t, 1, 1, glm5.Options{MaxRows: 32, MaxSeqs: 4, Context: 128, Pages: 8})
	few := []int32{11, 12, 13, 14}
	base := engine.Sampling{Temperature: 3, MaxTokens: 100, IgnoreEOS: true, Allowed: few}
	count := func(a answer, word ...int32) (n int) {
		for i := range a.tokens {
			if i+len(word) <= len(a.tokens) && slices.Equal(a.tokens[i:i+len(word)], word) {
				n++
			}
		}
		return n
	}
	for _, ahead := range []int{1, 2} {
		o := engine.Options{Ahead: ahead}
		free := one(t, m, o, base, 12, 13)
		for _, id := range free.tokens {
			if !slices.Contains(few, id) {
				t.Fatalf("token %d is not allowed", id)
			}
		}
		for _, w := range [][]int32{{13}, {12, 13}, {11, 11}, {13, 14, 13}, {11, 12, 11, 12}} {
			s := base
			s.BadWords = [][]int32{w}
			if with, without := count(one(t, m, o, s, 12, 13), w...), count(free, w...); with != 0 ||
				without == 0 && len(w) < 4 {
				t.Errorf("bad word %v comes %d times, without the parameter %d times", w, with, without)
			}
		}
		s := base
		s.BadWords, s.Temperature, s.Bias = [][]int32{{12, 11}}, 0, []engine.Bias{{Token: 11, Gain: 90}}
		if a := one(t, m, o, s, 12); a.tokens[0] != 11 {
			t.Errorf("a bad word that begins in the prompt: %v", a.tokens[:3])
		}
		s = base
		s.MinTokens, s.StopTokens = 37, few
		if a := one(t, m, o, s, 12); len(a.tokens) != 1 || a.reason != engine.Failed {
			t.Errorf("nothing may come, and %d tokens came: %s", len(a.tokens), a.reason)
		}
		s.StopTokens, s.EndTokens, s.IgnoreEOS, s.MinTokens = few[:2], few[2:3], false, 37
		if a := one(t, m, o, s, 12); len(a.tokens) < 38 || slices.ContainsFunc(a.tokens[:37], func(id int32) bool {
			return id != 14
		}) || a.reason != engine.Stop {
			t.Errorf("%d tokens before 37: %v, %s", len(a.tokens), a.tokens, a.reason)
		}
		s = engine.Sampling{MaxTokens: 60, IgnoreEOS: true, Presence: 1000}
		a := one(t, m, o, s, 12, 13)
		if slices.Sort(a.tokens); len(slices.Compact(a.tokens)) != 60 {
			t.Error("a token comes again in spite of the presence penalty")
		}
		s = engine.Sampling{MaxTokens: 60, IgnoreEOS: true, Presence: -1000}
		if a := one(t, m, o, s, 12, 13); count(a, a.tokens[0]) != 60 {
			t.Errorf("with a negative penalty %v", a.tokens)
		}
		s = base
		s.Temperature, s.Frequency = 0, 100
		if a := one(t, m, o, s, 12, 13); count(a, 11) != 25 || count(a, 14) != 25 {
			t.Errorf("four tokens by turns: %v", a.tokens)
		}
	}
}

func TestThinking(t *testing.T) {
	m := load(t, 1, 1, glm5.Options{MaxRows: 32, MaxSeqs: 4, Context: 128, Pages: 8})
	const open, end1, end2 = 40, 41, 42
	for _, c := range []struct {
		name    string
		budget  int
		prompt  []int32
		bias    []engine.Bias
		at      int // where the closing mark comes; -1: it does not
		natural bool
	}{
		{"opened in the prompt", 5, []int32{9, open}, nil, 5, false},
		{"tokens of the prompt count", 5, []int32{9, open, 8, 8}, nil, 3, false},
		{"spent in the prompt", 2, []int32{open, 8, 8, 8}, nil, 0, false},
		{"none", 0, []int32{9, open}, nil, 0, false},
		{"closed in the prompt", 5, []int32{open, 3, end1, end2, 9}, nil, -1, false},
		{"never opened", 5, []int32{9, 8}, []engine.Bias{{Token: open, Gain: -1e9}}, -1, false},
		{"opened in the output", 5, []int32{9, 8}, []engine.Bias{{Token: open, Gain: 1e9}}, 6, false},
		{"opened in the output, none", 0, []int32{9, 8}, []engine.Bias{{Token: open, Gain: 1e9}}, 1, false},
	} {
		for _, ahead := range []int{1, 2} {
			s := engine.Sampling{MaxTokens: 20, IgnoreEOS: true, Bias: c.bias, Logprobs: 1,
				Thinking: &engine.Thinking{Budget: c.budget, Open: []int32{open}, Close: []int32{end1, end2}}}
			a := one(t, m, engine.Options{Ahead: ahead}, s, c.prompt...)
			at := slices.Index(a.tokens, end1)
			if at != c.at || at >= 0 && (a.tokens[at+1] != end2 || slices.Contains(a.tokens[at+2:], end1)) ||
				len(a.tokens) != 20 {
				t.Errorf("%s, ahead %d: %v, want the end at %d", c.name, ahead, fmt.Sprint(a.tokens), c.at)
			}
		}
	}
}

// Marks that come by themselves where a budget ends: before that they are the end, from there
// on the whole mark is forced.
func TestThinkingAtItsEnd(t *testing.T) {
	m := load(t, 1, 1, glm5.Options{MaxRows: 32, MaxSeqs: 4, Context: 128, Pages: 8})
	for name, c := range map[string]struct {
		budget int
		close  []int32
		s      engine.Sampling
		want   []int32
	}{
		"the last token that it has": {2, []int32{41, 42}, engine.Sampling{Presence: 1000, Bias: []engine.Bias{
			{Token: 41, Gain: 50}, {Token: 42, Gain: 40}, {Token: 7, Gain: 30}}}, []int32{41, 42, 7}},
		"a mark that begins too early": {1, []int32{44, 44}, engine.Sampling{BadWords: [][]int32{{44, 44}},
			Bias: []engine.Bias{{Token: 44, Gain: 50}, {Token: 7, Gain: 30}}}, []int32{44, 44, 44, 7}},
	} {
		for _, ahead := range []int{1, 2} {
			c.s.MaxTokens, c.s.IgnoreEOS = len(c.want), true
			c.s.Thinking = &engine.Thinking{Budget: c.budget, Open: []int32{9}, Close: c.close}
			if a := one(t, m, engine.Options{Ahead: ahead}, c.s, 5, 9); !slices.Equal(a.tokens, c.want) {
				t.Errorf("%s, ahead %d: %v, want %v", name, ahead, a.tokens, c.want)
			}
		}
	}
}
