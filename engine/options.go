package engine

import (
	"errors"
	"fmt"

	"glmbatch/engine/glm5"
	"glmbatch/engine/sched"
	"glmbatch/kernels"
)

// Options are an engine's limits and observers. The zero value is usable: the
// limits are then those that the model was loaded with, which they may not
// exceed: of each rank, where ranks have sequences of their own. No limit changes a request's
// tokens.
type Options struct {
	MaxBatchTokens int // rows of a step; 0: the model's MaxRows
	MaxSeqs        int // sequences that run at once; 0: the model's MaxSeqs
	KVTokens       int // tokens cached at once, a whole number of pages at least 1; 0: the model's pages

	// NoSharing: each request computes its whole prompt. Else what several have in
	// common is computed once, while one of them is in flight.
	NoSharing bool

	// Ahead is how many steps are on their way at once. With 2 a step is launched
	// before the tokens of the one before are known: the ranks take them on, and
	// what was computed for a sequence that they end is dropped. 0: 2 where lists
	// run beside the host and OnStepDone is nil or Alone is not, else 1.
	Ahead int

	// Speculate: steps take drafts of the tokens to come.
	Speculate Speculation

	// Trace says of a step that is about to be launched whether its calls are timed. It
	// is asked once of each. nil: none is.
	Trace func(step int64, kind string) bool
	// OnTrace gets each step that was timed. The trace is valid until it
	// returns: what is kept must be copied. nil: nobody.
	OnTrace func(kernels.Trace)
	// OnStep gets every step, after OnTrace. nil: nobody.
	OnStep func(StepInfo)
	// OnStepDone gets steps with what they computed, after OnStep and before the
	// next step begins. All of it is valid until it returns. The ranks are idle
	// meanwhile and may be used, if the caches are left as they
	// were. Its error ends the engine. nil: nobody.
	OnStepDone func(Done) error
	// OnLaunch gets the requests of the steps that are about to be on their way, before
	// a step is launched, where they are others than the last time, and none when none is
	// on its way any more. They are valid until it returns. Its error ends the engine.
	// nil: nobody.
	OnLaunch func(ids []int64) error
	// Alone says of a step that is about to be launched, before Trace is asked,
	// whether OnStepDone is to get it: then the next one is launched when it has
	// landed. nil: OnStepDone gets every step, and Ahead must be 1.
	Alone func(step int64, kind string) bool
	// OnBegin gets a step when its inputs are with the ranks and its calls are about to be
	// launched, if no other is on its way: the ranks are idle and may be used, as in
	// OnStepDone. All of it is valid until it returns; of Info and Trace there is what is
	// known then. Its error ends the engine. nil: nobody.
	OnBegin func(Done) error
}

// Done is a step that was computed, as observers of its contents get it.
type Done struct {
	Info  StepInfo
	Batch *glm5.Batch
	Trace kernels.Trace // Spans is nil where the step was not timed
}

// resolve fills in what is 0 and returns the scheduler's options for a model.
func (o Options) resolve(m glm5.Options, info kernels.Info) (Options, sched.Options, error) {
	var errs []error
	every := o.OnStepDone != nil && o.Alone == nil
	if o.Ahead < 0 || o.Ahead > kernels.MaxAhead || o.Ahead > 1 && every {
		errs = append(errs, fmt.Errorf("%d steps ahead: 0 to %d, at most 1 with OnStepDone of every step", o.Ahead,
			kernels.MaxAhead))
	}
	if o.Ahead == 0 {
		o.Ahead = 1
		if info.Beside && !every {
			o.Ahead = kernels.MaxAhead
		}
	}
	pick := func(name string, v, most int) int {
		if v < 0 || v > most {
			errs = append(errs, fmt.Errorf("%s %d is not in 0..%d, what the model was loaded for", name, v, most))
		}
		if v == 0 {
			return most
		}
		return v
	}
	s := sched.Options{
		MaxBatchTokens: pick("MaxBatchTokens", o.MaxBatchTokens, m.MaxRows),
		MaxSeqs:        pick("MaxSeqs", o.MaxSeqs, m.MaxSeqs),
		PageTokens:     kernels.PageTokens,
		Context:        m.Context,
		NoSharing:      o.NoSharing,
	}
	s.Pages = pick("KVTokens", o.KVTokens, m.Pages*kernels.PageTokens) / kernels.PageTokens
	if s.Pages == 0 {
		errs = append(errs, fmt.Errorf("KVTokens %d is less than a page of %d", o.KVTokens, kernels.PageTokens))
	}
	// Every sequence of a step may want logits. The rows of logits that are left are for
	// drafts and for prompts that are scored.
	s.MaxSeqs, s.MaxLogits = min(s.MaxSeqs, m.MaxLogits), m.MaxLogits
	s.Drafts = m.MaxLogits - s.MaxSeqs
	if err := o.Speculate.validate(m); err != nil {
		errs = append(errs, err)
	}
	return o, s, errors.Join(errs...)
}
