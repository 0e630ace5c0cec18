package engine_test

import (
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
		same(t, list, "with drafts", got, want)
	})
	if drafted == 0 || accepted == 0 || accepted == drafted {
		t.Errorf("%d of %d drafts were right: the test has lost its point", accepted, drafted)
	}
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
		switch rapid.IntRange(0, 12).Draw(t, "steered") { // or not
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
		case 9, 10:
			steer(t, &s)
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
		a := arrival{Request: engine.Request{ID: int64(i), Prompt: prompt, Sampling: s}}
		if lost := rapid.IntRange(0, 5).Draw(t, "guided"); lost < 3 && s.Allowed == nil {
			narrow := rapid.Bool().Draw(t, "narrow")
			a.guide = func() engine.Guide { return &few{narrow: narrow, lost: lost} }
		}
		a.after, a.cancel = rapid.IntRange(0, 12).Draw(t, "after"), rapid.IntRange(0, 16).Draw(t, "cancel")/2
		list = append(list, a)
	}
	return list
}
