package pipeline

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"

	"glmbatch/datasets"
	"glmbatch/engine"
	"glmbatch/kernels"
	"glmbatch/pipeline/guide"
)

// Params are the sampling parameters of one row.
type Params struct {
	engine.Sampling          // Seed and the end tokens are set when the row is added
	N               int      // samples; 0: 1
	StopText        []string // the response ends before the first of them
	Seed            *int64   // nil: from the run's seed and the row

	// the stop text, or the text of a token of StopTokens, is part of the response
	IncludeStop bool     `json:",omitzero"`
	BadText     []string `json:",omitzero"` // texts whose tokens become BadWords when the row is prepared
	ThinkTokens *int     `json:",omitzero"` // the budget of Thinking, likewise; nil: none

	// Guide is what the response has to be, and GuidedBy the parameter that says so.
	Guide    guide.Spec `json:",omitzero"`
	GuidedBy string     `json:",omitempty"`
}

// Bounds that keep one row from taking the whole job's memory.
const (
	maxSamples   = 1024
	maxStopText  = 64
	maxStopBytes = 4096
	maxBadWords  = 256 // each is up to two sequences of tokens
)

// leastTopP stands for top_p 0, which leaves the likeliest token alone: the
// engine takes 0 for "off".
const leastTopP = 1e-30

// param is one parameter as columns, JSON and flags name it.
type param struct {
	names  []string         // the first is ours
	column []datasets.Shape // of a column with it; nil: it has none
	set    func(p *Params, v json.RawMessage) error
	usual  func(p *Params) bool // a value that a column may have which nobody named; nil: all
	within string               // the usual values in words
}

var (
	numbers = []datasets.Shape{datasets.Int, datasets.Float, datasets.Null}
	texts   = []datasets.Shape{datasets.Text, datasets.List, datasets.Null}
	lists   = []datasets.Shape{datasets.List, datasets.Text, datasets.Null} // text: JSON
	flags   = []datasets.Shape{datasets.Bool, datasets.Null}
	objects = []datasets.Shape{datasets.Struct, datasets.Text, datasets.Null} // text: JSON
	words   = []datasets.Shape{datasets.Text, datasets.Null}
)

// params is the table of all parameters. Values are JSON.
var params = []param{
	{[]string{"temperature"}, numbers, number(0, 100, func(p *Params, v float64) {
		p.Temperature = float32(v)
	}), func(p *Params) bool { return p.Temperature <= 2 }, "from 0 to 2"},
	{[]string{"top_p"}, numbers, number(0, 1, func(p *Params, v float64) {
		p.TopP = float32(max(v, leastTopP))
	}), nil, "from 0 to 1"},
	{[]string{"min_p"}, numbers, number(0, 1, func(p *Params, v float64) { p.MinP = float32(v) }), nil, "from 0 to 1"},
	{[]string{"repetition_penalty"}, numbers, number(0.001, 1000, func(p *Params, v float64) {
		p.Repetition = float32(v)
	}), func(p *Params) bool { return p.Repetition >= .5 && p.Repetition <= 2 }, "from 0.5 to 2"},
	{[]string{"presence_penalty"}, numbers, number(-2, 2, func(p *Params, v float64) {
		p.Presence = float32(v)
	}), nil, "from -2 to 2"},
	{[]string{"frequency_penalty"}, numbers, number(-2, 2, func(p *Params, v float64) {
		p.Frequency = float32(v)
	}), nil, "from -2 to 2"},
	// -1 is vLLM's "off"
	{[]string{"top_k"}, numbers, integer(-1, math.MaxInt32, func(p *Params, v int64) {
		p.TopK = int(max(v, 0))
	}), func(p *Params) bool { return p.TopK <= 1000 }, "from -1 to 1000"},
	{[]string{"max_tokens", "max_new_tokens", "max_completion_tokens"}, numbers,
		integer(0, math.MaxInt32, func(p *Params, v int64) {
			p.MaxTokens, p.PromptOnly = int(v), v == 0
		}), nil, "from 0"},
	{[]string{"min_tokens", "min_new_tokens"}, numbers, integer(0, math.MaxInt32, func(p *Params, v int64) {
		p.MinTokens = int(v)
	}), nil, "from 0"},
	{[]string{"n"}, numbers, integer(1, maxSamples, func(p *Params, v int64) {
		p.N = int(v)
	}), func(p *Params) bool { return p.N <= 16 }, "from 1 to 16"},
	{[]string{"seed"}, numbers, integer(math.MinInt64, math.MaxInt64, func(p *Params, v int64) {
		p.Seed = &v
	}), nil, "a whole number"},
	{[]string{"stop"}, texts, setStop, nil, "text or a list of it"},
	{[]string{"stop_token_ids"}, lists, setStopTokens, nil, "a list of token ids"},
	{[]string{"ignore_eos"}, flags, setIgnoreEOS, nil, "true or false"},
	{[]string{"response_format"}, objects, guideBy("response_format", responseFormat), nil, "whatever they are"},
	{[]string{"structured_outputs", "guided_decoding"}, objects, guideBy("structured_outputs", structuredOutputs), nil,
		"whatever they are"},
	{[]string{"guided_json"}, objects, guideBy("guided_json", guidedJSON), nil, "whatever they are"},
	{[]string{"guided_regex"}, words, guideBy("guided_regex", guidedRegex), nil, "whatever they are"},
	{[]string{"guided_choice"}, texts, guideBy("guided_choice", guidedChoice), nil, "whatever they are"},
	{[]string{"guided_grammar"}, words, guideBy("guided_grammar", guidedGrammar), nil, "whatever they are"},
	{[]string{"include_stop_str_in_output"}, flags, setIncludeStop, nil, "true or false"},
	{[]string{"logit_bias"}, objects, setLogitBias, nil, "an object of token ids and numbers"},
	{[]string{"allowed_token_ids"}, lists, setAllowed, nil, "a list of token ids"},
	{[]string{"bad_words"}, texts, setBadWords, nil, "text or a list of it"},
	{[]string{"thinking_token_budget"}, numbers, setThinkTokens, nil, "from -1"},
	{[]string{"logprob_token_ids"}, lists, setLabels, nil, "a list of token ids"},
	{[]string{"prompt_logprobs"}, numbers, setPromptLogprobs, nil, "from 0 to 20"},
	{[]string{"logprobs"}, nil, setLogprobs, nil, ""},
	{[]string{"top_logprobs"}, nil, setTopLogprobs, nil, ""},
	{[]string{"do_sample"}, nil, setDoSample, nil, ""},
}

func findParam(name string) *param {
	for i := range params {
		if slices.Contains(params[i].names, name) {
			return &params[i]
		}
	}
	return nil
}

// SetJSON sets parameters from a JSON object. A null value leaves the default.
func (p *Params) SetJSON(text []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return errors.New("the sampling parameters are not a JSON object")
	}
	guides := oneGuide{}
	given := map[*param]string{}
	for _, name := range slices.Sorted(maps.Keys(object)) { // the same error whatever the map's order
		v := object[name]
		if string(v) == "null" {
			continue
		}
		to, err := guides.add(p, name, v)
		if err != nil {
			return err
		}
		known := findParam(name)
		if known == nil {
			if err := unknown(name, v); err != nil {
				return err
			}
			continue
		}
		if err := known.set(to, v); err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
		if other := given[known]; other != "" && !bytes.Equal(object[other], v) {
			return fmt.Errorf("parameters %s and %s are the same one, with different values", other, name)
		}
		given[known] = name
	}
	if v := object["do_sample"]; string(v) == "false" || string(v) == "0" {
		p.Temperature = 0 // whatever it says besides
	}
	return nil
}

// unknown is why a parameter that is none of ours is refused; nil: its value changes
// nothing.
func unknown(name string, v json.RawMessage) error {
	f := findField(name)
	switch {
	case f == nil:
		return fmt.Errorf("parameter %s is not known: docs/parameters.md has the list",
			short(strconv.AppendQuote(nil, name)))
	case f.takes(v):
		return nil
	}
	return fmt.Errorf("parameter %s: %s is not supported: %s", name, short(v), f.why)
}

// Set sets one parameter from its JSON value. The error does not name it.
func (p *Params) Set(name string, v json.RawMessage) error {
	known := findParam(name)
	if known == nil {
		return fmt.Errorf("parameter %q is not supported", name)
	}
	return known.set(p, v)
}

func number(low, high float64, set func(*Params, float64)) func(*Params, json.RawMessage) error {
	return func(p *Params, v json.RawMessage) error {
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil || !(f >= low && f <= high) {
			return fmt.Errorf("%s is not a number from %g to %g", short(v), low, high)
		}
		set(p, f)
		return nil
	}
}

func integer(low, high int64, set func(*Params, int64)) func(*Params, json.RawMessage) error {
	return func(p *Params, v json.RawMessage) error {
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil { // 64.0, as data frames with nulls have it
			f, ferr := strconv.ParseFloat(string(v), 64)
			if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
				return fmt.Errorf("%s is not a whole number", short(v))
			}
			n = int64(f)
		}
		if n < low || n > high {
			return fmt.Errorf("%d is not in %d to %d", n, low, high)
		}
		set(p, n)
		return nil
	}
}

func setStop(p *Params, v json.RawMessage) (err error) {
	p.StopText, err = stringsOf(v, maxStopText)
	return err
}

func setStopTokens(p *Params, v json.RawMessage) (err error) {
	p.StopTokens, err = tokensOf(v, maxStopText)
	return err
}

func setIgnoreEOS(p *Params, v json.RawMessage) error {
	if json.Unmarshal(v, &p.IgnoreEOS) != nil {
		return fmt.Errorf("%s is not true or false", short(v))
	}
	return nil
}

// setLogprobs takes vLLM's number of alternatives and OpenAI's true.
func setLogprobs(p *Params, v json.RawMessage) error {
	switch string(v) {
	case "true":
		p.Logprobs = max(p.Logprobs, 1)
		return nil
	case "false":
		p.Logprobs = 0
		return nil
	}
	return integer(0, kernels.MaxLogprobs, func(p *Params, v int64) { p.Logprobs = int(v) + 1 })(p, v)
}

// setTopLogprobs is OpenAI's, and comes after logprobs.
func setTopLogprobs(p *Params, v json.RawMessage) error {
	return integer(0, kernels.MaxLogprobs, func(p *Params, v int64) {
		if p.Logprobs > 0 || v > 0 {
			p.Logprobs = int(v) + 1
		}
	})(p, v)
}

// setDoSample checks transformers' switch: false is temperature 0, which SetJSON
// sees to; with true the temperature decides.
func setDoSample(_ *Params, v json.RawMessage) error {
	if !slices.Contains([]string{"true", "false", "0", "1"}, string(v)) {
		return fmt.Errorf("%s is not true or false", short(v))
	}
	return nil
}

// short cuts a value for messages.
func short(v []byte) string {
	if len(v) > 40 {
		return strconv.QuoteToASCII(string(v[:40])) + "…"
	}
	return string(v)
}

// SampleSeed is the seed of one sample: a hash of the run's seed, the row's
// place in the whole input and the sample. A row that gives a seed has it for
// its first sample, and in place of the run's for the others. The result is not
// negative.
func SampleSeed(run int64, row int64, sample int, own *int64) int64 {
	if own != nil {
		if sample == 0 {
			return *own
		}
		run, row = *own, 0
	}
	h := fnv.New64a()
	var b [24]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(run))
	binary.LittleEndian.PutUint64(b[8:], uint64(row))
	binary.LittleEndian.PutUint64(b[16:], uint64(sample))
	h.Write(b[:])
	x := h.Sum64() // finished as in splitmix64, so that near inputs give far seeds
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int64((x ^ x>>31) >> 1)
}
