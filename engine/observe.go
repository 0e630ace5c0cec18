package engine

import "glmbatch/kernels"

// StepInfo is what one step was and where its time went. Times are nanoseconds
// of kernels.Now. The phases follow each other and fill the step.
//
// Of a step that was launched ahead, the host's work was done while the ranks
// computed the step before: then the step is the time from that one's landing to
// its own, and in it the host gave out that one's tokens (SampleNS, first),
// scheduled and launched the next (ScheduleNS, UploadNS, LaunchNS) and waited
// (DeviceNS, last). Between the first two is what the engine's caller did. In the time
// of one that was alone the host launched nothing: where that is less than its calls
// took, as the ranks had waited for the host, the step begins when the host began with
// it, as in lockstep.
type StepInfo struct {
	Step      int64
	Kind      string // prefill, decode or mixed
	Sequences int
	Tokens    int // rows computed
	Sampled   int
	Waiting   int // sequences not admitted yet
	Pages     int // cache pages in use, before finished sequences gave theirs back
	Preempted int
	Shared    int // tokens of prompts that began in it, which others had computed

	StartNS    int64
	WallNS     int64
	ScheduleNS int64 // choosing the batch and writing its list of calls
	UploadNS   int64 // its inputs
	LaunchNS   int64 // starting the list; 0 where that takes as long as it runs
	DeviceNS   int64 // until its end
	SampleNS   int64 // fetching tokens, stop rules
	Recorded   bool  // the step was timed call by call
	Ahead      bool  // the step was launched before the one before it had landed
}

// Stats are totals since the engine began, and how it stands.
type Stats struct {
	Steps     int64
	Computed  int64 // rows: tokens of prompts and generated ones, again after a preemption
	Sampled   int64
	Preempted int64
	Shared    int64 // tokens of prompts that were not computed, as others had
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
	launch
	device
	sample
	phases
)

// clock times a call of Step.
type clock struct {
	start, mark int64
	spent       [phases]int64
	landed      int64 // when the last step landed
	sampling    int64 // what its tokens took
}

func (c *clock) begin() {
	c.start = kernels.Now()
	c.mark, c.spent = c.start, [phases]int64{}
}

// marks are when the phases of a step's launch began and ended.
type marks struct{ begun, scheduled, uploaded, launched int64 }

// end says that the time since the last mark was a phase's.
func (c *clock) end(p phase) { c.endAt(p, kernels.Now()) }

func (c *clock) endAt(p phase, now int64) {
	c.spent[p] += now - c.mark
	c.mark = now
}

// times fills in where a step's time went, whose calls took so long; 0: unknown.
func (c *clock) times(i *StepInfo, m marks, busy int64) {
	ns := &c.spent
	i.ScheduleNS, i.UploadNS, i.LaunchNS, i.DeviceNS, i.SampleNS = ns[schedule], ns[upload], ns[launch], ns[device], ns[sample]
	i.StartNS, i.WallNS = c.start, c.mark-c.start
	landed := c.mark - ns[sample]
	switch i.Ahead = m.launched < c.landed; {
	case i.Ahead && landed-c.landed < busy:
		i.Ahead = false
		i.ScheduleNS, i.UploadNS, i.LaunchNS, i.DeviceNS = m.scheduled-m.begun, m.uploaded-m.scheduled, m.launched-m.uploaded, landed-m.launched
		i.StartNS, i.WallNS = m.begun, c.mark-m.begun
	case i.Ahead:
		i.SampleNS = c.sampling
		i.StartNS, i.WallNS = c.landed, landed-c.landed
	}
	c.landed, c.sampling = landed, ns[sample]
}

// report counts the step and tells the observers.
func (e *Engine) report(f *flight) error {
	b := &f.batch
	e.stats.Steps++
	e.stats.Computed += int64(b.Tokens)
	e.stats.Sampled += int64(len(e.tokens))
	e.stats.Preempted += int64(b.Preempted)
	e.stats.Shared += int64(b.Shared)
	trace := kernels.Trace{Step: f.step, Calls: f.calls, Spans: f.spans, Shared: e.shared}
	if f.spans != nil {
		trace.Asides = e.model.Group().Asides()
	}
	if f.spans != nil && e.o.OnTrace != nil {
		e.o.OnTrace(trace)
	}
	info := StepInfo{
		Step: f.step, Kind: string(b.Kind), Sequences: f.sequences, Tokens: b.Tokens, Sampled: len(e.tokens),
		Waiting: e.sched.Waiting(), Pages: b.Pages, Preempted: b.Preempted, Shared: b.Shared, Recorded: f.spans != nil,
	}
	busy := int64(0)
	if f.alone {
		busy = f.busy()
	}
	e.clock.times(&info, f.marks, busy)
	if e.o.OnStep != nil {
		e.o.OnStep(info)
	}
	if e.o.OnStepDone != nil && (e.o.Alone == nil || f.alone) {
		return e.o.OnStepDone(Done{Info: info, Trace: f.known(trace), Batch: &f.in})
	}
	return nil
}
