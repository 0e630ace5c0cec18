package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"glmbatch/datasets"
	"glmbatch/engine"
	"glmbatch/pipeline/chat"
	"glmbatch/pipeline/guide"
)

// The values of error_code.
const (
	NullPrompt    = "null_prompt"
	EmptyPrompt   = "empty_prompt"
	BadUTF8       = "bad_utf8"
	BadMessages   = "bad_messages"
	TemplateError = "template_error"
	BadParams     = "bad_params"
	TooLong       = "too_long"
	BadRequest    = "bad_request"
	ModelError    = "model_error"
	GuideError    = "guide_error"
	Crashed       = "crashed"
	StepFailed    = "step_failed"
)

// errorCode is what an error_code means, and whether the row may do better when it is
// run again.
type errorCode struct {
	code, means string
	passes      bool
}

// errorCodes says what they mean.
var errorCodes = []errorCode{
	{NullPrompt, "the prompt, or the list of messages, is null", false},
	{EmptyPrompt, "the prompt has no tokens", false},
	{BadUTF8, "a text that is needed is not UTF-8", false},
	{BadMessages, "messages or tools that are no list, or no valid JSON", false},
	{TemplateError, "the chat template refused the messages", false},
	{BadParams, "a sampling parameter that is unknown or cannot have this value", false},
	{TooLong, "the context has no room for the prompt and one token", false},
	{BadRequest, "the engine refused the row", false},
	{ModelError, "the model gave nothing to choose a token from: damaged weights", false},
	{GuideError, "what the response has to follow is too large, or allows no token that the row's other parameters do",
		false},
	{Crashed,
		"the program crashed twice in a step with this row, the second time with this row alone, or in making its " +
			"prompt", true},
	{StepFailed,
		"a step with this row failed or took longer than --step-timeout, twice, the second time with this row alone",
		true},
}

// mayPass reports whether a row with an error may do better when it is run again.
func mayPass(code string) bool {
	return slices.ContainsFunc(errorCodes, func(e errorCode) bool { return e.code == code && e.passes })
}

// reasonError is the finish_reason of rows with an error; engine.Reason has the others.
const reasonError = "error"

// finishReasons says what the values of finish_reason mean.
var finishReasons = [][2]string{
	{string(engine.Stop), "an end token, a token of stop_token_ids, or a stop text"},
	{string(engine.Length), "max_tokens, or the end of the context"},
	{reasonError, "there is no response: error_code says why"},
}

// rowError is why a row cannot be run.
type rowError struct {
	code, text string
}

func badRow(code, format string, args ...any) *rowError {
	return &rowError{code, fmt.Sprintf(format, args...)}
}

// row is one input row on its way through the job.
type row struct {
	record  datasets.Record
	prompt  []int32
	params  Params
	tools   []byte        // JSON of those that the model was given; nil: none
	input   *chat.Input   // that the prompt was made of, if it may be cut; nil: it is raw
	cut     int           // tokens cut from the prompt's content
	open    bool          // the prompt ends inside <think>
	guides  *guide.Guides // that its response follows; nil: it is free
	err     *rowError
	samples []*sample
	left    int // samples that are not finished
	made    int // bytes of the samples' tokens and of their log-probabilities so far
	scoring scoring

	written  []*saved // the output rows, as a file had them; nil: they are to be made
	identity uint64   // of what is asked of the engine; 0: the row cannot be run
}

// given is how many tokens the model was given: of a row that was not run, none.
func (r *row) given() int {
	if r.err != nil && r.err.code != ModelError {
		return 0
	}
	return len(r.prompt)
}

// sample is one response to a row.
type sample struct {
	row    *row
	index  int
	seed   int64
	tokens []int32
	chosen []datasets.TokenLogprob   // with that of the end token, which is no output; without text
	top    [][]datasets.TokenLogprob // of each of chosen
	prompt promptLogprobs
	text   *stopText // nil: the row has no stop strings, the text is made when it is written
	reason engine.Reason
	by     string // what ended it, as stop_reason has it; "": nothing that it names
	saved  bool   // an earlier run made it
}

// accept adds a token that the engine gave. It returns true when the response
// ends here although the engine would go on: at a stop string.
func (s *sample) accept(t engine.Token) (stop bool) {
	if t.Reason == engine.Failed {
		s.row.err = s.failed(t.Err)
		s.end(t.Reason)
		return false
	}
	if t.Prompt {
		if n := len(s.row.prompt) - 1; s.prompt.chosen == nil {
			s.prompt = promptLogprobs{make([]datasets.TokenLogprob, 0, n), make([][]datasets.TokenLogprob, 0, n)}
		}
		chosen, top := logprobs(t)
		s.prompt.chosen, s.prompt.top = append(s.prompt.chosen, chosen), append(s.prompt.top, top)
		return false
	}
	if t.Token < 0 { // nothing was to be generated
		s.end(t.Reason)
		return false
	}
	if s.row.params.wantsLogprobs() {
		chosen, top := logprobs(t)
		s.chosen, s.top = append(s.chosen, chosen), append(s.top, top)
		s.row.made += placeBytes(1 + len(top))
	}
	if t.Reason == engine.Stop { // an end token is no output
		if slices.Contains(s.row.params.StopTokens, t.Token) {
			s.by = strconv.Itoa(int(t.Token))
			if s.row.params.IncludeStop {
				s.tokens = append(s.tokens, t.Token)
				s.row.made += tokenBytes
				if s.text != nil {
					s.text.add(t.Token)
				}
			}
		}
		s.end(t.Reason)
		return false
	}
	s.tokens = append(s.tokens, t.Token)
	s.row.made += tokenBytes
	if s.text != nil && s.text.add(t.Token) {
		s.end(engine.Stop)
		return t.Reason == engine.Going
	}
	if t.Reason != engine.Going {
		s.end(t.Reason)
	}
	return false
}

// failed is why the engine gave no token.
func (s *sample) failed(err error) *rowError {
	p, made := &s.row.params, len(s.tokens)
	if err != nil {
		return badRow(GuideError, "%s: after %d tokens: %s", p.GuidedBy, made, oneLine(err))
	}
	by := p.restrictions(made)
	if s.row.guides != nil && len(by) > 0 {
		return badRow(BadParams, "after %d tokens %s leaves none of those that %s allows", made,
			strings.Join(by, " with "), p.GuidedBy)
	}
	if len(by) > 0 {
		return badRow(BadParams, "after %d tokens %s leaves no token to choose", made, strings.Join(by, " with "))
	}
	return badRow(ModelError,
		"after %d tokens no logit is a number: the checkpoint's weights are damaged; see glmbatch model verify", made)
}

// logprobs are a token's own and those of others at its place: the likeliest, then labels
// that are not among them.
func logprobs(t engine.Token) (chosen datasets.TokenLogprob, top []datasets.TokenLogprob) {
	chosen = datasets.TokenLogprob{ID: t.Token, Logprob: finiteLogprob(t.Logprob)}
	top = make([]datasets.TokenLogprob, len(t.Top))
	for i, l := range t.Top {
		rank := int32(i + 1)
		top[i] = datasets.TokenLogprob{ID: l.Token, Logprob: finiteLogprob(l.Logprob), Rank: &rank}
		if l.Token == t.Token {
			chosen.Rank = &rank
		}
	}
	for _, l := range t.Labels {
		if !slices.ContainsFunc(top, func(o datasets.TokenLogprob) bool { return o.ID == l.Token }) {
			top = append(top, datasets.TokenLogprob{ID: l.Token, Logprob: finiteLogprob(l.Logprob)})
		}
	}
	return chosen, top
}

func (s *sample) end(r engine.Reason) {
	if s.text != nil && s.text.finish() {
		r = engine.Stop
	}
	if s.text != nil && s.text.found {
		s.by = s.text.by
	}
	s.reason = r
	s.row.left--
}
