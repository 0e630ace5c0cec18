package engine

import (
	"glmbatch/engine/sched"
	"glmbatch/kernels"
)

// StepInfo is what one step was and where its time went. Times are nanoseconds
// of kernels.Now; the four phases follow each other and fill the step.
type StepInfo struct {
	Step      int64
	Kind      string // prefill, decode or mixed
	Sequences int
	Tokens    int // rows computed
	Sampled   int
	Waiting   int // sequences not admitted yet
	Pages     int // cache pages in use, before finished sequences gave theirs back
	Preempted int

	StartNS    int64
	WallNS     int64
	ScheduleNS int64 // choosing the batch and writing its list of calls
	UploadNS   int64
	DeviceNS   int64
	SampleNS   int64 // fetching tokens, stop rules
	Recorded   bool  // the step was timed call by call
}

// Stats are totals since the engine began, and how it stands.
type Stats struct {
	Steps     int64
	Computed  int64 // rows: tokens of prompts and generated ones, again after a preemption
	Sampled   int64
	Preempted int64
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

// phase is a part of a step on the host's clock.
type phase int

const (
	schedule phase = iota
	upload
	device
	sample
	phases
)

// recorder times a step.
type recorder struct {
	step   int64
	begin  int64
	ends   [phases]int64
	timed  [][]kernels.Span // a rank each; nil: this step is not timed
	memory [][]kernels.Span
	shared bool
}

func (r *recorder) start(step int64) { r.step, r.begin = step, kernels.Now() }

func (r *recorder) end(p phase) { r.ends[p] = kernels.Now() }

// spans returns room for the spans of n calls on each rank if the step is to be
// timed, else nil.
func (r *recorder) spans(policy func(int64) bool, ranks, n int) [][]kernels.Span {
	r.timed = nil
	if policy == nil || !policy(r.step) {
		return nil
	}
	if len(r.memory) != ranks {
		r.memory = make([][]kernels.Span, ranks)
	}
	for i, s := range r.memory {
		if cap(s) < n {
			s = make([]kernels.Span, n)
		}
		r.memory[i] = s[:n]
		clear(r.memory[i])
	}
	r.timed = r.memory
	return r.timed
}

// report counts the step and tells the observers.
func (e *Engine) report(b *sched.Batch, calls []kernels.Call) error {
	r := &e.recorder
	e.stats.Steps++
	e.stats.Computed += int64(b.Tokens)
	e.stats.Sampled += int64(len(e.tokens))
	e.stats.Preempted += int64(b.Preempted)
	trace := kernels.Trace{Step: r.step, Calls: calls, Spans: r.timed, Shared: r.shared}
	if r.timed != nil && e.o.OnTrace != nil {
		e.o.OnTrace(trace)
	}
	info := StepInfo{
		Step: r.step, Kind: string(b.Kind), Sequences: len(b.Items), Tokens: b.Tokens, Sampled: len(e.tokens),
		Waiting: e.sched.Waiting(), Pages: b.Pages, Preempted: b.Preempted,
		StartNS: r.begin, WallNS: r.ends[sample] - r.begin,
		ScheduleNS: r.ends[schedule] - r.begin, UploadNS: r.ends[upload] - r.ends[schedule],
		DeviceNS: r.ends[device] - r.ends[upload], SampleNS: r.ends[sample] - r.ends[device],
		Recorded: r.timed != nil,
	}
	if e.o.OnStep != nil {
		e.o.OnStep(info)
	}
	if e.o.OnStepDone != nil {
		return e.o.OnStepDone(Done{Info: info, Batch: &e.in, Trace: trace})
	}
	return nil
}
