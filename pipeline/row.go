package pipeline

import (
	"fmt"

	"glmbatch/datasets"
	"glmbatch/engine"
)

// The values of error_code.
const (
	NullPrompt    = "null_prompt"    // the prompt is null
	EmptyPrompt   = "empty_prompt"   // the prompt has no tokens
	BadUTF8       = "bad_utf8"       // a text column is not UTF-8
	BadMessages   = "bad_messages"   // messages that are not a list of messages
	TemplateError = "template_error" // the chat template refused the messages
	BadParams     = "bad_params"     // sampling parameters that cannot be
	TooLong       = "too_long"       // no room for the prompt and one token
	BadRequest    = "bad_request"    // the engine refused it
	ModelError    = "model_error"    // the model gave nothing to choose a token from
)

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
	cut     int  // tokens cut from the prompt's front
	open    bool // the prompt ends inside <think>
	err     *rowError
	samples []*sample
	left    int // samples that are not finished
}

// sample is one response to a row.
type sample struct {
	row    *row
	index  int
	seed   int64
	tokens []int32
	chosen []float32
	top    [][]datasets.TopLogprob
	text   *stopText // nil: the row has no stop strings, the text is made when it is written
	reason engine.Reason
}

// accept adds a token that the engine gave. It returns true when the response
// ends here although the engine would go on: at a stop string.
func (s *sample) accept(t engine.Token) (stop bool) {
	if t.Reason == engine.Failed {
		s.row.err = badRow(ModelError, "after %d tokens no logit is a number: the checkpoint's weights are damaged; see glmbatch model verify", len(s.tokens))
	}
	if t.Reason == engine.Stop || t.Reason == engine.Failed { // an end token is no output
		s.end(t.Reason)
		return false
	}
	s.tokens = append(s.tokens, t.Token)
	if s.row.params.Logprobs > 0 {
		s.chosen = append(s.chosen, t.Logprob)
		top := make([]datasets.TopLogprob, len(t.Top))
		for i, l := range t.Top {
			top[i] = datasets.TopLogprob{Token: l.Token, Logprob: l.Logprob}
		}
		s.top = append(s.top, top)
	}
	if s.text != nil && s.text.add(t.Token) {
		s.end(engine.Stop)
		return t.Reason == engine.Going
	}
	if t.Reason != engine.Going {
		s.end(t.Reason)
	}
	return false
}

func (s *sample) end(r engine.Reason) {
	if s.text != nil && s.text.finish() {
		r = engine.Stop
	}
	s.reason = r
	s.row.left--
}
