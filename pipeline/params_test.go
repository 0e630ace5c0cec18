package pipeline

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/engine"
	"glmbatch/kernels"
)

func TestParamsJSON(t *testing.T) {
	seven := int64(7)
	for _, c := range []struct {
		text string
		want Params
	}{
		{`{}`, Params{}},
		{`{"temperature":null,"stop":null}`, Params{}},
		{`{"temperature":0.5,"top_p":0.9,"min_p":0.1,"repetition_penalty":1.5}`,
			Params{Sampling: engine.Sampling{Temperature: 0.5, TopP: 0.9, MinP: 0.1, Repetition: 1.5}}},
		{`{"top_k":-1,"max_new_tokens":64.0,"n":2,"seed":7}`,
			Params{Sampling: engine.Sampling{MaxTokens: 64}, N: 2, Seed: &seven}},
		{`{"top_p":0}`, Params{Sampling: engine.Sampling{TopP: leastTopP}}}, // not off, which the engine's 0 is
		{`{"stop":"x"}`, Params{StopText: []string{"x"}}},
		{`{"stop":["x","","yz"],"stop_token_ids":[1,2],"ignore_eos":true}`,
			Params{Sampling: engine.Sampling{StopTokens: []int32{1, 2}, IgnoreEOS: true},
				StopText: []string{"x", "yz"}}},
		{`{"frequency_penalty":0,"presence_penalty":0.0}`, Params{}},
		{`{"frequency_penalty":0.5,"presence_penalty":-2,"min_tokens":3}`,
			Params{Sampling: engine.Sampling{Frequency: .5, Presence: -2, MinTokens: 3}}},
		{`{"logit_bias":{"7":200,"5":-1.5,"6":null},"allowed_token_ids":[9,5,9]}`,
			Params{Sampling: engine.Sampling{Bias: []engine.Bias{{Token: 5, Gain: -1.5}, {Token: 7, Gain: 100}},
				Allowed: []int32{5, 9}}}},
		{`{"bad_words":"x","include_stop_str_in_output":true,"thinking_token_budget":0}`,
			Params{BadText: []string{"x"}, IncludeStop: true, ThinkTokens: new(int)}},
		{`{"logprob_token_ids":[3,1],"prompt_logprobs":0,"max_tokens":0}`,
			Params{Sampling: engine.Sampling{Labels: []int32{3, 1}, PromptLogprobs: 1, PromptOnly: true}}},
		{`{"max_tokens":5,"max_completion_tokens":5,"thinking_token_budget":-1}`,
			Params{Sampling: engine.Sampling{MaxTokens: 5}}},
	} {
		var p Params
		if err := p.SetJSON([]byte(c.text)); err != nil {
			t.Errorf("%s: %v", c.text, err)
		} else if d := cmp.Diff(c.want, p); d != "" {
			t.Errorf("%s: %s", c.text, d)
		}
	}
}

// hostileParams are refused, each with an error that names the fault.
var hostileParams = []string{
	``, `null x`, `[]`, `1`, `"x"`, `{`, `{"temperature":}`, `{"temperature":"hot"}`, `{"temperature":-1}`,
	`{"temperature":1e999}`, `{"temperature":NaN}`, `{"temperature":[0.5]}`,
	`{"top_p":1.1}`, `{"top_p":-0.1}`, `{"top_k":-2}`, `{"top_k":1.5}`, `{"min_p":2}`, `{"repetition_penalty":0}`,
	`{"max_tokens":-5}`,
	`{"max_tokens":99999999999}`, `{"n":0}`, `{"n":1000000}`, `{"seed":"x"}`, `{"seed":1e30}`, `{"stop":5}`,
	`{"stop":[1]}`, `{"stop":{"a":1}}`,
	`{"stop_token_ids":"x"}`, `{"stop_token_ids":[1.5]}`, `{"stop_token_ids":[99999999999]}`, `{"stop_token_ids":[-1]}`,
	`{"stop_token_ids":[5,null]}`, `{"repetition_penalty":1e-38}`, `{"ignore_eos":1}`, `{"logprobs":21}`,
	`{"frequency_penalty":2.5}`, `{"presence_penalty":"x"}`, `{"max_tokens":4,"max_new_tokens":5}`, `{"min_tokens":-1}`,
	`{"logit_bias":[1]}`, `{"logit_bias":{"x":1}}`, `{"logit_bias":{"-1":1}}`, `{"logit_bias":{"01":1}}`,
	`{"logit_bias":{"+1":1}}`, `{"logit_bias":{"-0":1}}`, `{"logit_bias":{" 1":1}}`,
	`{"logit_bias":{"1":1,"2":0,"1":1}}`, `{"logit_bias":"{\"1\":1,\"1\":null}"}`, `{"logit_bias":{"1":"a"}}`,
	`{"allowed_token_ids":[]}`, `{"allowed_token_ids":[1.5]}`, `{"bad_words":[1]}`, `{"include_stop_str_in_output":1}`,
	`{"thinking_token_budget":-2}`, `{"logprob_token_ids":[1,-1]}`, `{"prompt_logprobs":21}`, `{"prompt_logprobs":-1}`,
	`{"guided_json":{"not":{}}}`, `{"guided_json":{},"guided_regex":"a"}`, `{"response_format":{"type":"xml"}}`,
	`{"response_format":{"type":"json_schema"}}`, `{"structured_outputs":{"jason":{}}}`,
	`{"structured_outputs":{"json":{},"choice":["a"]}}`, `{"structured_outputs":{"structural_tag":"x"}}`,
	`{"guided_choice":"a"}`, `{"guided_regex":["a"]}`,
	`{"stop":["` + strings.Repeat("x", maxStopBytes+1) + `"]}`, `{"stop":[` + strings.Repeat(`"x",`, maxStopText) +
		`"x"]}`, strings.Repeat(`{"a":`, 20000), strings.Repeat(`[`, 20000),
}

func TestHostileParams(t *testing.T) {
	for _, text := range hostileParams {
		var p Params
		if err := p.SetJSON([]byte(text)); err == nil {
			t.Errorf("%.60s: no error", text)
		} else if strings.Contains(err.Error(), "\n") || len(err.Error()) > 200 {
			t.Errorf("%.60s: the error is %q", text, err)
		}
	}
}

func FuzzParams(f *testing.F) {
	for _, text := range hostileParams {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p Params
		if p.SetJSON(text) == nil && (p.N < 0 || p.N > maxSamples || p.MaxTokens < 0 || p.Temperature < 0) {
			t.Errorf("%q gave %+v", text, p)
		}
	})
}

func TestSampleSeed(t *testing.T) {
	seen := map[int64]bool{}
	for run := range int64(10) {
		for row := range int64(100) {
			for sample := range 4 {
				s := SampleSeed(run, row, sample, nil)
				if s < 0 || seen[s] {
					t.Fatalf("seed %d of run %d, row %d, sample %d is negative or not new", s, run, row, sample)
				}
				seen[s] = true
			}
		}
	}
	own := int64(-5)
	if s := SampleSeed(1, 2, 0, &own); s != own {
		t.Errorf("a row's own seed is %d, want %d", s, own)
	}
	if SampleSeed(1, 2, 1, &own) != SampleSeed(3, 4, 1, &own) {
		t.Error("further samples of a row with a seed depend on more than it")
	}
}

func TestParseGeneration(t *testing.T) {
	for _, c := range []struct {
		text        string
		temperature float32
		max         int
		eos         int
	}{
		{`{"do_sample":false,"temperature":0.7,"max_new_tokens":64,"eos_token_id":[1,2]}`, 0, 64, 2},
		{`{"do_sample":true,"eos_token_id":3}`, 1, 0, 1},
		{`{"temperature":0.6,"top_p":0.95}`, 0.6, 0, 0},
		{`{}`, 0, 0, 0},
	} {
		g, err := ParseGeneration([]byte(c.text))
		if err != nil || g.Params.Temperature != c.temperature || g.Params.MaxTokens != c.max || len(g.EOS) != c.eos {
			t.Errorf("%s: %+v, %v", c.text, g, err)
		}
	}
	for _, text := range []string{`[]`, `{"do_sample":1}`, `{"temperature":-1}`, `{"max_new_tokens":"x"}`,
		`{"eos_token_id":"x"}`, `{`} {
		if _, err := ParseGeneration([]byte(text)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

// TestApart: tokens that are fine by each parameter may be too many together. The error
// names them all, and what is let through the engine takes.
func TestApart(t *testing.T) {
	text := demoText(t)
	some := func(n int) []int32 { return make([]int32, n) }
	for _, c := range []struct {
		bias, words, labels, stops, least int
		want                              string // of the error; "": none
	}{
		{bias: 512, words: 512},
		{bias: 512, words: 512, stops: 64},
		{bias: 512, words: 512, labels: 1,
			want: "logprob_token_ids 1 and, with min_tokens, stop_token_ids 0: together 1025, more than 1024"},
		{bias: 512, words: 432, stops: 62, least: 1},
		{bias: 512, words: 432, stops: 63, least: 1,
			want: "logit_bias has 512 tokens, bad_words 432 sequences of them, logprob_token_ids 0 and, with " +
				"min_tokens, stop_token_ids 63: together 1007, more than 1006"},
		{bias: 512, words: 512, labels: 20, stops: 64, least: 1, want: "together 1108, more than 1006"},
	} {
		p := Params{Sampling: engine.Sampling{Labels: some(c.labels), StopTokens: some(c.stops), MinTokens: c.least,
			Bias: make([]engine.Bias, c.bias), BadWords: make([][]int32, c.words)}}
		ends := []int32{1, 2}
		err := text.resolve(&p, ends)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
		p.EndTokens = ends
		if takes := p.Apart() <= kernels.MaxEntries; takes != (err == nil) {
			t.Errorf("%+v: %v, and the engine counts %d", c, err, p.Apart())
		}
	}
}

// TestTextIsNoGuide: a response format of type text frees a row of what the flags say, and
// leaves a guide beside it alone, whichever comes first. It is still checked.
func TestTextIsNoGuide(t *testing.T) {
	all := Params{GuidedBy: "guided_regex"}
	if err := all.Set("guided_regex", []byte(`"x"`)); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{}`:                                  "guided_regex",
		`{"response_format":{"type":"text"}}`: "",
		`{"response_format":"{\"type\":\"text\"}"}`:                                             "",
		`{"guided_json":{"type":"object"},"response_format":{"type":"text"}}`:                   "guided_json",
		`{"response_format":{"type":"text"},"structured_outputs":{"regex":"a"}}`:                "structured_outputs",
		`{"guided_choice":["a"],"response_format":{"type":"text"},"guided_regex":"a"}`:          "both",
		`{"guided_json":{"type":"object"},"response_format":{"type":"json_object"}}`:            "both",
		`{"guided_json":{"type":"object"},"response_format":{"type":"text","schema":{}}}`:       "response_format",
		`{"response_format":{"type":"text","schema":{}},"structured_outputs":{"regex":"a"}}`:    "response_format",
		`{"response_format":{"type":"text"},"structured_outputs":{"regex":"a","choice":["a"]}}`: "structured_outputs: both",
	} {
		p := all
		switch err := p.SetJSON([]byte(text)); {
		case err == nil && (p.Guide.IsZero() != (want == "") || want != "" && p.GuidedBy != want):
			t.Errorf("%s: the guide is %q's, want %q's", text, p.GuidedBy, want)
		case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestTextColumnIsNoGuide: so it is with columns, in whose order of the table text comes first.
func TestTextColumnIsNoGuide(t *testing.T) {
	in := linesOf(t, `{"prompt":"a","guided_regex":"ab","response_format":{"type":"text"}}`)
	p, prepare := firstRow(t, in)
	for range 2 {
		got := prepare()
		if got.err != nil || got.params.Guide.IsZero() || got.params.GuidedBy != "guided_regex" {
			t.Errorf("%+v, %+v", got.params, got.err)
		}
		slices.Reverse(p.cols.single)
	}
}
