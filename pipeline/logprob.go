package pipeline

import (
	"bytes"
	"strconv"
)

// leastLogprob is what log-probabilities are at least, as in OpenAI's responses: of tokens
// that cannot be chosen, and where damaged weights give no number. So all are numbers,
// which JSON can have.
const leastLogprob = -9999

// logprob is a log-probability as JSON has it. Files of earlier versions may have one that
// is no number, which is text in JSON.
type logprob float32

func finiteLogprob(v float32) float32 {
	if v > leastLogprob { // NaN is not
		return v
	}
	return leastLogprob
}

// UnmarshalJSON also takes the text of a number that JSON does not have.
func (l *logprob) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(string(bytes.Trim(b, `"`)), 32)
	*l = logprob(finiteLogprob(float32(v)))
	return err
}
