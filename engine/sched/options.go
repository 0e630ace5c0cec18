package sched

import (
	"errors"
	"fmt"
)

// ErrTooLong: a sequence cannot fit the model's context or the cache, whatever
// else runs. Nothing was added.
var ErrTooLong = errors.New("sequence too long")

// Options are the limits of a scheduler. The zero value is usable.
type Options struct {
	MaxBatchTokens int // rows of a step; 0: 512
	MaxSeqs        int // sequences that run at once; 0: 64. No more run than MaxBatchTokens
	Pages          int // pages of the cache; 0: as many as MaxSeqs contexts need
	MaxLogits      int // rows of logits of a step, at least MaxSeqs; 0: MaxSeqs
	PageTokens     int // tokens in a page; 0: 64
	Context        int // most tokens of a sequence, prompt and output; 0: 2048
	Drafts         int // most drafts of a step; 0: none are taken

	NoSharing bool // every sequence computes its whole prompt
}

// withDefaults fills in what is 0.
func (o Options) withDefaults() Options {
	if o.MaxBatchTokens == 0 {
		o.MaxBatchTokens = 512
	}
	if o.MaxSeqs == 0 {
		o.MaxSeqs = 64
	}
	if o.PageTokens == 0 {
		o.PageTokens = 64
	}
	if o.Context == 0 {
		o.Context = 2048
	}
	if o.Pages == 0 {
		o.Pages = o.MaxSeqs * pagesFor(o.Context, o.PageTokens)
	}
	// A step has a row for each running sequence, so that decoding never waits.
	o.MaxSeqs = min(o.MaxSeqs, o.MaxBatchTokens)
	o.MaxLogits = max(o.MaxLogits, o.MaxSeqs)
	return o
}

// Validate reports every limit that is below 0.
func (o Options) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int
	}{
		{"MaxBatchTokens", o.MaxBatchTokens}, {"MaxSeqs", o.MaxSeqs}, {"Pages", o.Pages}, {"MaxLogits", o.MaxLogits},
		{"PageTokens", o.PageTokens}, {"Context", o.Context}, {"Drafts", o.Drafts},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d: it must not be negative", f.name, f.value))
		}
	}
	return errors.Join(errs...)
}

func pagesFor(tokens, pageTokens int) int { return (tokens + pageTokens - 1) / pageTokens }
