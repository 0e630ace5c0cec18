package engine_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"glmbatch/engine"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// Whatever is asked, and whenever it comes or is cancelled, steps that are launched
// ahead give each request the tokens of steps in lockstep, to the last bit.
func TestAheadIsLockstep(t *testing.T) {
	m := load(t, 1, 1, glm5.Options{MaxRows: 40, MaxSeqs: 6, Context: 200, Pages: 8})
	rapid.Check(t, func(t *rapid.T) {
		var list []arrival
		for i := range rapid.IntRange(1, 4).Draw(t, "requests") {
			s := engine.Sampling{MaxTokens: rapid.IntRange(1, 7).Draw(t, "max"), Seed: uint64(i),
				IgnoreEOS: rapid.Bool().Draw(t, "ignore"), Logprobs: rapid.IntRange(0, 2).Draw(t, "logprobs")}
			if rapid.Bool().Draw(t, "random") {
				s.Temperature, s.TopP = 1.2, .97
			}
			if rapid.Bool().Draw(t, "penalty") {
				s.Repetition = 1.4
			}
			if rapid.Bool().Draw(t, "stop") {
				s.StopTokens = rapid.SliceOfN(rapid.Int32Range(0, 40), 1, 20).Draw(t, "stops")
			}
			steer(t, &s)
			prompt := make([]int32, rapid.SampledFrom([]int{1, 3, 20, 62, 66}).Draw(t, "prompt"))
			for j := range prompt {
				prompt[j] = int32((j*j + 17*i) % 2000)
			}
			list = append(list, arrival{Request: engine.Request{ID: int64(i), Prompt: prompt, Sampling: s},
				after: rapid.IntRange(0, 12).Draw(t, "after"), cancel: rapid.IntRange(0, 8).Draw(t, "cancel") / 2})
		}
		o := engine.Options{
			MaxBatchTokens: rapid.IntRange(1, 40).Draw(t, "rows"), MaxSeqs: rapid.IntRange(1, 6).Draw(t, "seqs"),
			KVTokens: rapid.IntRange(2, 6).Draw(t, "pages") * kernels.PageTokens,
		}
		o.Ahead = 1
		want, _ := play(t, m, o, list)
		o.Ahead = 2
		got, _ := play(t, m, o, list)
		same(t, list, "ahead", got, want)
	})
}

// Of steps that are launched ahead, OnStepDone gets those that are to be alone, with
// the tokens that were not known when they were launched, as in lockstep.
func TestAloneKnowsTokens(t *testing.T) {
	m := load(t, 1, 1, glm5.Options{MaxRows: 40, MaxSeqs: 6, Context: 200, Pages: 16})
	landed := int64(0)
	run := func(o engine.Options) map[int64]string {
		got := map[int64]string{}
		landed = 0
		o.OnStep = func(engine.StepInfo) { landed++ }
		o.Trace = func(int64, string) bool { return true }
		o.OnStepDone = func(d engine.Done) error {
			b := d.Batch
			if len(b.From) > 0 || d.Trace.Calls[0].Kernel == "feed" || len(d.Trace.Spans[0]) != len(d.Trace.Calls) {
				t.Errorf("step %d: fed by %v, %d spans of %d calls, the first %s", d.Info.Step, b.From,
					len(d.Trace.Spans[0]), len(d.Trace.Calls), d.Trace.Calls[0].Kernel)
			}
			got[d.Info.Step] = fmt.Sprint(b.Tokens, b.Pos, b.Seq, b.Slots, b.Params)
			return nil
		}
		e, err := engine.New(m, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			s := engine.Sampling{MaxTokens: 9 + i, Seed: uint64(i), IgnoreEOS: true, Repetition: 1.1 * float32(i%2)}
			if err := e.Add(engine.Request{ID: int64(i), Prompt: []int32{5, int32(i), 70}, Sampling: s}); err != nil {
				t.Fatal(err)
			}
		}
		for !e.Idle() {
			if _, err := e.Step(); err != nil {
				t.Fatal(err)
			}
		}
		return got
	}
	want, ahead := run(engine.Options{}), 0
	got := run(engine.Options{Ahead: kernels.MaxAhead, Alone: func(step int64, kind string) bool {
		if kind != "decode" || step%3 != 0 {
			return false
		}
		if landed == step-1 { // the step before is on its way
			ahead++
		}
		return true
	}})
	if len(got) != 3 || ahead != len(got) {
		t.Errorf("%d steps were alone, %d launched ahead", len(got), ahead)
	}
	for step, b := range got {
		if b != want[step] {
			t.Errorf("step %d:\nahead    %s\nlockstep %s", step, b, want[step])
		}
	}
}

// steer draws parameters of all kinds.
func steer(t *rapid.T, s *engine.Sampling) {
	token, flag := rapid.Int32Range(0, 60), func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
	if flag("presence") {
		s.Presence = 1.5
	}
	if flag("frequency") {
		s.Frequency = rapid.SampledFrom([]float32{-.5, .75}).Draw(t, "frequency penalty")
	}
	if flag("min tokens") {
		s.MinTokens = rapid.IntRange(1, 5).Draw(t, "least")
	}
	if flag("labels") {
		s.Labels = rapid.SliceOfN(token, 1, 3).Draw(t, "label")
	}
	if flag("bias") {
		for id, gain := range rapid.MapOfN(token, rapid.Float32Range(-20, 20), 1, 9).Draw(t, "gains") {
			s.Bias = append(s.Bias, engine.Bias{Token: id, Gain: gain})
		}
	}
	if flag("allowed") {
		s.Allowed = rapid.SliceOfN(token, 1, 30).Draw(t, "those")
	}
	if flag("bad words") {
		s.BadWords = rapid.SliceOfN(rapid.SliceOfN(rapid.Int32Range(0, 6), 1, 4), 1, 12).Draw(t, "words")
		s.Allowed = []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10} // so that they come
	}
	if flag("thinking") {
		s.Thinking = &engine.Thinking{
			Budget: rapid.IntRange(0, 4).Draw(t, "budget"),
			Open:   rapid.SliceOfN(rapid.Int32Range(0, 3), 1, 2).Draw(t, "open"),
			Close:  rapid.SliceOfN(rapid.Int32Range(4, 8), 1, 3).Draw(t, "close"),
		}
	}
	if flag("prompt") {
		s.PromptLogprobs = rapid.IntRange(1, 3).Draw(t, "of the prompt")
		s.PromptOnly = rapid.Bool().Draw(t, "alone")
	}
}
