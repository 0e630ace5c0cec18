package engine

import "glmbatch/kernels"

// StepInfo is what one step was and when.
type StepInfo struct {
	Step      int64
	Kind      string // prefill, decode or mixed
	Sequences int
	Tokens    int // rows computed
	Sampled   int
	Waiting   int // sequences not admitted yet
	Pages     int // cache pages in use, before finished sequences gave theirs back
	Preempted int
	Shared    int  // tokens of prompts that began in it, which others had computed
	Verified  int  // sequences with drafts
	Drafted   int  // of the rows, drafts
	Accepted  int  // of the drafts, those that were right: each gave a token more
	Recorded  bool // the step was timed call by call
	Times     kernels.Times
}

// Stats are totals since the engine began, and how it stands.
type Stats struct {
	Steps     int64
	Computed  int64 // rows: tokens of prompts and generated ones, again after a preemption
	Sampled   int64
	Preempted int64
	Shared    int64 // tokens of prompts that were not computed, as others had
	Verified  int64 // sequences with drafts, over the steps
	Drafted   int64 // rows of drafts
	Accepted  int64 // drafts that were right
	Waiting   int
	Running   int
	Pages     int // in use
}

// Stats returns the engine's totals.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Waiting, s.Running, s.Pages = e.sched.Waiting(), e.sched.Running(), e.sched.PagesUsed()
	return s
}

// report counts the step and tells the observers.
func (e *Engine) report(f *flight) error {
	b := &f.batch
	e.stats.Steps++
	e.stats.Computed += int64(b.Tokens)
	sampled := 0
	for i := range e.tokens {
		if !e.tokens[i].Prompt && e.tokens[i].Token >= 0 || e.tokens[i].Reason == Failed {
			sampled++
		}
	}
	e.stats.Sampled += int64(sampled)
	e.stats.Preempted += int64(b.Preempted)
	e.stats.Shared += int64(b.Shared)
	e.stats.Verified += int64(f.verified)
	e.stats.Drafted += int64(b.Drafts)
	e.stats.Accepted += int64(f.accepted)
	trace := f.Trace()
	if f.Spans != nil && e.o.OnTrace != nil {
		e.o.OnTrace(trace)
	}
	info := StepInfo{
		Step: f.Number, Kind: f.Kind, Sequences: f.sequences, Tokens: b.Tokens, Sampled: sampled,
		Waiting: e.sched.Waiting(),
		Pages:   b.Pages, Preempted: b.Preempted, Shared: b.Shared,
		Verified: f.verified, Drafted: b.Drafts, Accepted: f.accepted, Recorded: f.Spans != nil, Times: f.Times,
	}
	if e.spec.o.Auto {
		e.spec.auto.landed(&info, f.drafts)
	}
	if e.o.OnStep != nil {
		e.o.OnStep(info)
	}
	if e.o.OnStepDone != nil && (e.o.Alone == nil || f.Alone) {
		return e.o.OnStepDone(Done{Info: info, Trace: f.known(trace), Batch: &f.Batch})
	}
	return nil
}
