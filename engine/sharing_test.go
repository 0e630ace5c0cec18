package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"glmbatch/engine"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// families are requests whose prompts share prefixes: some that end within a page,
// on its last token and behind it, one within another, and the same prompt many times.
func families(vocab int32) []engine.Request {
	r := rand.New(rand.NewPCG(7, 8))
	text := func(n int) []int32 {
		t := make([]int32, n)
		for i := range t {
			t[i] = r.Int32N(vocab)
		}
		return t
	}
	var rs []engine.Request
	add := func(prompt []int32, samples int) {
		for range samples {
			i := len(rs)
			s := engine.Sampling{MaxTokens: 3 + 5*(i%3), Seed: uint64(i), IgnoreEOS: true, Logprobs: 2}
			if samples > 4 { // grows over a page, and that is not known before
				s.MaxTokens, s.StopTokens = 80, []int32{2040}
			}
			if i%2 == 1 {
				s.Temperature = 1
			}
			if i%5 == 0 {
				s.Repetition = 1.2
			}
			rs = append(rs, engine.Request{ID: int64(i), Prompt: prompt, Sampling: s})
		}
	}
	system := text(171) // past the demo's top-k of 64
	few := slices.Concat(system, text(50))
	for i := range 4 {
		add(slices.Concat(system, text(3+20*i)), 1)
		add(slices.Concat(few, text(1+9*i)), 1)
	}
	add(system, 2)
	add(few[:3*kernels.PageTokens], 1)
	add(text(50), 8)
	add(text(kernels.PageTokens+1), 3)
	add(text(1), 2)
	return rs
}

// What prompts share is computed once, and no bit tells: not with any limit, order,
// preemption, format of the caches or number of ranks.
func TestSharingChangesNoBit(t *testing.T) {
	rs := families(2048)
	shuffled := slices.Clone(rs)
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(rs), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for _, c := range []struct {
		tp    int
		cache kernels.Format
		cases int
	}{{1, kernels.BF16, 6}, {8, kernels.FP8, 1}, {2, kernels.F32, 1}} {
		m := load(t, c.tp, 2, glm5.Options{MaxRows: 400, MaxSeqs: 32, Pages: 64, Context: 320, KVCache: c.cache})
		want, plain := answers(t, m, engine.Options{NoSharing: true}, rs)
		if plain.Shared != 0 {
			t.Fatalf("%d tokens shared without sharing", plain.Shared)
		}
		few := 6 * kernels.PageTokens
		for _, k := range []struct {
			name string
			o    engine.Options
			rs   []engine.Request
		}{
			{"few pages, ahead", engine.Options{Ahead: 2, KVTokens: few, MaxBatchTokens: 50}, rs},
			{"shuffled", engine.Options{}, shuffled},
			{"all at once", engine.Options{}, rs},
			{"chunks", engine.Options{MaxBatchTokens: 23}, shuffled},
			{"few pages", engine.Options{KVTokens: few}, shuffled},
			{"ahead", engine.Options{Ahead: 2}, rs},
		}[:c.cases] {
			got, stats := answers(t, m, k.o, k.rs)
			for id := range want {
				if got[id].String() != want[id].String() {
					t.Errorf("TP%d, %s caches, %s: request %d:\n got %v\nwant %v", c.tp, c.cache, k.name, id,
						got[id], want[id])
				}
			}
			if k.o.KVTokens == 0 && stats.Computed+stats.Shared != plain.Computed {
				t.Errorf("TP%d, %s caches, %s: %d tokens computed and %d shared, %d without sharing", c.tp, c.cache,
					k.name, stats.Computed, stats.Shared, plain.Computed)
			}
			if stats.Shared < plain.Computed/3 {
				t.Errorf("TP%d, %s caches, %s: only %d tokens of %d shared", c.tp, c.cache, k.name, stats.Shared,
					plain.Computed)
			}
			if k.o.KVTokens > 0 && stats.Preempted == 0 {
				t.Errorf("TP%d, %s caches, %s: no sequence was preempted: the case has lost its point", c.tp,
					c.cache, k.name)
			}
		}
	}
}

// The samples of a prompt compute it once, but its last token.
func TestSamplesComputeThePromptOnce(t *testing.T) {
	m := load(t, 1, 2, glm5.Options{MaxRows: 400, MaxSeqs: 16, Pages: 64, Context: 320})
	for _, tokens := range []int{20, 64, 65, 200} {
		prompt := make([]int32, tokens)
		for i := range prompt {
			prompt[i] = int32(i * i % 2000)
		}
		var rs []engine.Request
		const n, output = 8, 4
		for i := range n {
			rs = append(rs, engine.Request{ID: int64(i), Prompt: prompt,
				Sampling: engine.Sampling{MaxTokens: output, IgnoreEOS: true, Seed: uint64(i), Temperature: 1}})
		}
		e, err := engine.New(m, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rs {
			if err := e.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		for !e.Idle() {
			if _, err := e.Step(); err != nil {
				t.Fatal(err)
			}
		}
		stats := e.Stats()
		if want := int64(tokens + (n - 1) + n*(output-1)); stats.Computed > want+(n-1)*3 {
			t.Errorf("%d tokens: %d computed, %d if the prompt is computed once: %s", tokens, stats.Computed, want,
				fmt.Sprint(stats))
		}
	}
}

// Withdraw takes back what no step has begun with.
func TestWithdraw(t *testing.T) {
	m := load(t, 1, 1, glm5.Options{MaxRows: 64, MaxSeqs: 2, Pages: 16, Context: 100})
	e, err := engine.New(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := e.Add(engine.Request{ID: int64(i), Prompt: []int32{int32(i), 3, 4},
			Sampling: engine.Sampling{MaxTokens: 4, IgnoreEOS: true}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Step(); err != nil {
		t.Fatal(err)
	}
	if ids := e.Withdraw(); !slices.Equal(ids, []int64{2, 3, 4}) || e.Withdraw() != nil {
		t.Errorf("withdrew %v", ids)
	}
	if s := e.Stats(); s.Running != 2 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}
