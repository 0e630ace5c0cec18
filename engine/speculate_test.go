package engine_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"glmbatch/engine"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// Whatever is asked, whenever it comes or is cancelled, and however many drafts are taken
// from wherever, requests get the tokens that they get without drafts, to the last bit.
func TestDraftsChangeNoBit(t *testing.T) {
	const most = 5
	m := load(t, 1, 1, glm5.Options{MaxRows: 60, MaxSeqs: 6, MaxLogits: 20, Context: 200, Pages: 8,
		MTP: true, Drafts: most})
	var drafted, accepted int64
	rapid.Check(t, func(t *rapid.T) {
		list := drawArrivals(t, 90)
		o := engine.Options{
			MaxBatchTokens: rapid.IntRange(1, 60).Draw(t, "rows"), MaxSeqs: rapid.IntRange(1, 6).Draw(t, "seqs"),
			KVTokens:  rapid.IntRange(3, 6).Draw(t, "pages") * kernels.PageTokens,
			NoSharing: rapid.Bool().Draw(t, "no sharing"),
		}
		want, _ := play(t, m, o, list)
		o.Speculate = engine.Speculation{Drafts: rapid.IntRange(1, most).Draw(t, "drafts"),
			NGram: rapid.IntRange(0, 3).Draw(t, "ngram") == 0,
			Auto:  rapid.IntRange(0, 2).Draw(t, "auto") == 0}
		o.Ahead = rapid.IntRange(1, 2).Draw(t, "ahead")
		got, stats := play(t, m, o, list)
		drafted, accepted = drafted+stats.Drafted, accepted+stats.Accepted
		for _, a := range list {
			if got[a.ID].String() != want[a.ID].String() {
				t.Errorf("request %d:\nwith drafts %v\nwithout     %v", a.ID, got[a.ID], want[a.ID])
			}
		}
	})
	if drafted == 0 || accepted == 0 || accepted == drafted {
		t.Errorf("%d of %d drafts were right: the test has lost its point", accepted, drafted)
	}
}

// pair allows two tokens, which the last one decides. They come round soon: drafts of
// n-grams are right then, and behind a right draft the mask must be its own.
type pair struct {
	last   int32
	drafts []int32
}

func (p *pair) Ask(drafts ...int32) { p.drafts = slices.Clone(drafts) }
func (p *pair) Close()              {}

func (p *pair) first(behind int) int32 {
	last := p.last
	if behind > 0 {
		last = p.drafts[behind-1]
	}
	return 3*last%8 + 1
}

func (p *pair) May() (n int) {
	for n < len(p.drafts) && (p.drafts[n] == p.first(n) || p.drafts[n] == p.first(n)+1) {
		n++
	}
	return n
}

func (p *pair) Mask(drafts int, words []uint64) (bool, error) {
	for _, t := range []int32{p.first(drafts), p.first(drafts) + 1} {
		words[t/64] |= 1 << (t % 64)
	}
	return true, nil
}

func (p *pair) Add(tokens ...int32) { p.last = tokens[len(tokens)-1] }

// arrival is a request and when it comes and goes.
type arrival struct {
	engine.Request
	after  int // tokens that were seen before it comes
	cancel int // after so many tokens; 0: never
	guided bool
}

// drawArrivals draws some requests with prompts that share beginnings.
func drawArrivals(t *rapid.T, longest int) []arrival {
	var list []arrival
	for i := range rapid.IntRange(1, 3).Draw(t, "requests") {
		s := engine.Sampling{MaxTokens: rapid.SampledFrom([]int{1, 2, 7, 20}).Draw(t, "max"), Seed: uint64(i),
			IgnoreEOS: rapid.Bool().Draw(t, "ignore"), Logprobs: rapid.IntRange(0, 2).Draw(t, "logprobs")}
		switch rapid.IntRange(0, 3).Draw(t, "random") {
		case 0:
			s.Temperature, s.TopP = 1.2, .97
		case 1:
			s.Temperature, s.TopK = .7, 12
		}
		if rapid.IntRange(0, 3).Draw(t, "penalty") == 0 {
			s.Repetition = 1.4
		}
		switch rapid.IntRange(0, 11).Draw(t, "steered") { // or not
		case 0:
			s.Presence, s.Frequency = .7, rapid.SampledFrom([]float32{.4, -.5, -2}).Draw(t, "frequency")
		case 1:
			s.Bias = []engine.Bias{{Token: 100, Gain: 9}, {Token: 7, Gain: -3}, {Token: 44, Gain: 8}}
		case 2:
			s.BadWords = [][]int32{{41}, {44, 40}, {40, 44, 42}, {100}}
		case 3:
			s.MinTokens, s.StopTokens = 5, []int32{40, 41, 42, 43}
		case 4:
			s.Labels = []int32{3, 900}
		case 5:
			s.Allowed = []int32{40, 41, 42, 43, 44, 45, 46, 47, 900, 901}
		case 6:
			s.PromptLogprobs = 2
		case 7:
			s.Thinking = &engine.Thinking{Budget: rapid.IntRange(0, 6).Draw(t, "budget"), Open: []int32{40},
				Close: []int32{44, 41}}
		case 8:
			s.PromptLogprobs, s.PromptOnly = 3, true
		}
		if rapid.Bool().Draw(t, "stop") && s.MinTokens == 0 {
			s.StopTokens = rapid.SliceOfN(rapid.Int32Range(0, 2000), 1, 20).Draw(t, "stops")
		}
		prompt := make([]int32, rapid.SampledFrom([]int{1, 3, 20, 62, 66, longest}).Draw(t, "prompt"))
		from := rapid.SampledFrom([]int{0, 10, 64}).Draw(t, "shared")
		for j := range prompt {
			if prompt[j] = int32(j*j%7 + 40); j >= from {
				prompt[j] = int32((j*j + 17*i) % 2000)
			}
		}
		a := arrival{Request: engine.Request{ID: int64(i), Prompt: prompt, Sampling: s},
			guided: rapid.IntRange(0, 3).Draw(t, "guided") == 0 && s.Allowed == nil}
		a.after, a.cancel = rapid.IntRange(0, 12).Draw(t, "after"), rapid.IntRange(0, 16).Draw(t, "cancel")/2
		list = append(list, a)
	}
	return list
}

// play runs requests to their ends.
func play(t *rapid.T, m *glm5.Model, o engine.Options, list []arrival) (map[int64]answer, engine.Stats) {
	e, err := engine.New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]answer{}
	next, seen := 0, 0
	for next < len(list) || !e.Idle() {
		for next < len(list) && (seen >= list[next].after || e.Idle()) {
			r := list[next].Request
			if list[next].guided {
				r.Guide = &pair{last: 1} // each run has its own
			}
			if err := e.Add(r); err != nil {
				t.Fatal(err)
			}
			next++
		}
		tokens, err := e.Step()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range tokens {
			seen++
			a := got[k.ID]
			if k.Prompt {
				a.prompt = append(a.prompt, k)
				got[k.ID] = a
				continue
			}
			if a.reason != engine.Going {
				t.Fatalf("request %d goes on after its end", k.ID)
			}
			if c := list[k.ID].cancel; c > 0 && len(a.tokens) == c {
				continue // what the step gave behind it
			}
			a.tokens, a.logprobs, a.top, a.reason = append(a.tokens, k.Token), append(a.logprobs,
				k.Logprob), append(append(a.top, k.Top...), k.Labels...), k.Reason
			got[k.ID] = a
			if a.reason == engine.Going && len(a.tokens) == list[k.ID].cancel {
				e.Cancel(k.ID)
			}
		}
	}
	if s := e.Stats(); s.Pages != 0 || s.Running+s.Waiting != 0 {
		t.Fatalf("idle with %+v", s)
	}
	return got, e.Stats()
}
