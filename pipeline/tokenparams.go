package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"glmbatch/engine"
	"glmbatch/kernels"
)

// Parameters that name texts or tokens.

// stringsOf reads a text or a list of texts. Empty ones are left out.
func stringsOf(v json.RawMessage, most int) ([]string, error) {
	var list, kept []string
	var one string
	if json.Unmarshal(v, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(v, &list) != nil {
		return nil, fmt.Errorf("%s is neither a string nor a list of strings", short(v))
	}
	if len(list) > most {
		return nil, fmt.Errorf("%d strings are more than %d", len(list), most)
	}
	for _, s := range list {
		switch {
		case s == "":
			continue
		case len(s) > maxStopBytes:
			return nil, fmt.Errorf("a string of %d bytes is longer than %d", len(s), maxStopBytes)
		}
		kept = append(kept, s)
	}
	return kept, nil
}

// tokensOf reads a list of token ids.
func tokensOf(v json.RawMessage, most int) ([]int32, error) {
	var ids []*int32 // null is not 0
	if json.Unmarshal(v, &ids) != nil || len(ids) > most {
		return nil, fmt.Errorf("%s is not a list of at most %d token ids", short(v), most)
	}
	var list []int32
	for _, id := range ids {
		if id == nil || *id < 0 {
			return nil, fmt.Errorf("%s has something that is not a token id", short(v))
		}
		list = append(list, *id)
	}
	return list, nil
}

func setIncludeStop(p *Params, v json.RawMessage) error {
	if json.Unmarshal(v, &p.IncludeStop) != nil {
		return fmt.Errorf("%s is not true or false", short(v))
	}
	return nil
}

// maxAllowed is more tokens than a vocabulary has.
const maxAllowed = 1 << 20

func setAllowed(p *Params, v json.RawMessage) error {
	list, err := tokensOf(v, maxAllowed)
	if err == nil && len(list) == 0 {
		return fmt.Errorf("%s allows no token", short(v))
	}
	slices.Sort(list)
	p.Allowed = slices.Compact(list)
	return err
}

func setLabels(p *Params, v json.RawMessage) (err error) {
	p.Labels, err = tokensOf(v, kernels.MaxLogprobs)
	return err
}

func setBadWords(p *Params, v json.RawMessage) (err error) {
	p.BadText, err = stringsOf(v, maxBadWords)
	return err
}

// setThinkTokens takes vLLM's -1 for none.
func setThinkTokens(p *Params, v json.RawMessage) error {
	return integer(-1, 1<<31-1, func(p *Params, v int64) {
		if p.ThinkTokens = nil; v >= 0 {
			n := int(v)
			p.ThinkTokens = &n
		}
	})(p, v)
}

// setPromptLogprobs takes a number of alternatives; true is vLLM's 1.
func setPromptLogprobs(p *Params, v json.RawMessage) error {
	switch string(v) {
	case "true":
		p.PromptLogprobs = 2
		return nil
	case "false":
		p.PromptLogprobs = 0
		return nil
	}
	return integer(0, kernels.MaxLogprobs, func(p *Params, v int64) { p.PromptLogprobs = int(v) + 1 })(p, v)
}

// mostBias is how far a bias goes: vLLM cuts what is beyond, as it is done here.
const mostBias = 100

// setLogitBias takes an object of token ids, or pairs of a map column, with numbers.
func setLogitBias(p *Params, v json.RawMessage) error {
	var text string
	if json.Unmarshal(v, &text) == nil { // of a column
		v = json.RawMessage(text)
	}
	var object map[string]*float64
	if json.Unmarshal(v, &object) != nil {
		return fmt.Errorf("%s is not an object of token ids and numbers", short(v))
	}
	if len(object) > kernels.MaxEntries/2 {
		return fmt.Errorf("%d tokens are more than %d", len(object), kernels.MaxEntries/2)
	}
	if key, twice := keyTwice(v); twice {
		return fmt.Errorf("it has token %s twice", short([]byte(key)))
	}
	p.Bias = nil
	for _, key := range slices.Sorted(maps.Keys(object)) {
		id, err := strconv.ParseInt(key, 10, 32)
		gain := object[key]
		switch {
		case err != nil || id < 0 || strconv.FormatInt(id, 10) != key: // "01" would be a second 1
			return fmt.Errorf("%s is not a token id", short(strconv.AppendQuote(nil, key)))
		case gain == nil:
			continue // of a struct column: other rows have it
		}
		p.Bias = append(p.Bias, engine.Bias{Token: int32(id), Gain: float32(max(-mostBias, min(mostBias, *gain)))})
	}
	return nil
}

// keyTwice returns the first key that an object of plain values has once more: JSON does
// not say which of the values it has then.
func keyTwice(object []byte) (key string, twice bool) {
	d := json.NewDecoder(bytes.NewReader(object))
	_, _ = d.Token() // it was read before: the object is whole
	for seen := map[string]bool{}; d.More(); {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			break
		}
		if seen[key] {
			return key, true
		}
		seen[key] = true
		_, _ = d.Token()
	}
	return "", false
}

// badTokens are the sequences of tokens of bad words, as vLLM makes them: of the text and,
// where that has as many tokens and another first one, of the text behind a space.
func (t Text) badTokens(words []string) ([][]int32, error) {
	var list [][]int32
	for _, w := range words {
		w = strings.TrimLeft(w, " \t\n\r\v\f")
		ids, err := t.Tokenizer.TryEncode(nil, w)
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			return nil, fmt.Errorf("a bad word has no tokens")
		}
		list = append(list, ids)
		behind, err := t.Tokenizer.TryEncode(nil, " "+w)
		if err != nil {
			return nil, err
		}
		if len(behind) == len(ids) && behind[0] != ids[0] {
			list = append(list, behind)
		}
	}
	return list, nil
}

// The marks of thinking in GLM's chat templates.
const thinkOpen, thinkClose = "<think>", "</think>"

// resolve turns texts of the parameters into tokens, and checks what hangs on several of
// them. ends are the end tokens besides the model's.
func (t Text) resolve(p *Params, ends []int32) (err error) {
	if len(p.BadText) > 0 {
		if p.BadWords, err = t.badTokens(p.BadText); err != nil {
			return fmt.Errorf("bad_words: %w", err)
		}
	}
	if p.ThinkTokens != nil {
		p.Thinking = &engine.Thinking{Budget: *p.ThinkTokens, Open: t.Tokenizer.Encode(nil, thinkOpen),
			Close: t.Tokenizer.Encode(nil, thinkClose)}
	}
	if p.PromptOnly && p.PromptLogprobs == 0 {
		return fmt.Errorf("max_tokens 0 generates nothing: it is for prompt_logprobs")
	}
	if p.MinTokens > p.MaxTokens && p.MaxTokens > 0 {
		return fmt.Errorf("min_tokens %d is more than max_tokens %d", p.MinTokens, p.MaxTokens)
	}
	if n := max(0, p.Logprobs-1) + len(p.Labels); n > kernels.MaxLogprobs {
		return fmt.Errorf("%d alternatives and %d of logprob_token_ids are more than %d", p.Logprobs-1, len(p.Labels),
			kernels.MaxLogprobs)
	}
	return p.fewApart(ends)
}

// fewApart reports parameters that name more tokens together than a row of logits has room for.
func (p *Params) fewApart(ends []int32) error {
	s := p.Sampling
	s.EndTokens = ends
	over := s.Apart() - kernels.MaxEntries
	if over <= 0 {
		return nil
	}
	stops := 0
	if s.MinTokens > 0 {
		stops = len(s.StopTokens)
	}
	sum := len(s.Bias) + len(s.BadWords) + len(s.Labels) + stops
	return fmt.Errorf("logit_bias has %d tokens, bad_words %d sequences of them, logprob_token_ids %d and, with "+
		"min_tokens, "+
		"stop_token_ids %d: together %d, more than %d", len(s.Bias), len(s.BadWords), len(s.Labels),
		stops, sum, sum-over)
}
