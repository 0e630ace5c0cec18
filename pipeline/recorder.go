package pipeline

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"glmbatch/datasets"
	"glmbatch/engine"
	"glmbatch/kernels"
	"glmbatch/replay/timeline"
	"glmbatch/telemetry"
)

// Recorder writes the steps table and, for the steps that the engine timed, the
// timeline. Its OnTrace and OnStep are the engine's observers. Rows are made and
// written by a goroutine of its own, with bounded room before it: a step waits
// only if the disk is far behind.
type Recorder struct {
	policy  Policy
	gpu     func() *telemetry.GPU
	now     func() *telemetry.GPU
	meter   float64 // joules of the GPUs at the first step
	metered bool    // meter is known
	sampled timeline.Sampler
	origin  int64 // ns of kernels.Now at which the run began
	base    int64 // number of the first step: those of earlier runs come before
	clock   *hostClock

	pending   *recordedStep // the trace of the step whose OnStep comes next
	queue     chan *recordedStep
	free      chan *recordedStep
	wg        sync.WaitGroup
	err       error
	counted   atomic.Int64 // steps
	preempted atomic.Int64
	shared    atomic.Int64 // tokens of prompts that were not computed
	energyMu  sync.Mutex
	energy    energy

	steps    *datasets.Parts[datasets.Step]
	timeline *datasets.Parts[datasets.Span] // nil: no timeline
	began    time.Time
	flushed  time.Time // when what there was had its files
}

// recordedStep is a copy of what the engine told of a step.
type recordedStep struct {
	info  engine.StepInfo
	trace kernels.Trace
	host  []timeline.HostSpan // of the goroutines outside the step
	gpu   *telemetry.GPU
	timed bool
}

// Rows of one file. An Arrow file holds its rows in memory until it is complete.
const (
	stepRows     = 1 << 20
	spanRows     = 1 << 21
	spanArrow    = 1 << 18
	queuedTraces = 16
)

// RecorderOptions say where and what.
type RecorderOptions struct {
	Dir    string                // the job's folder
	Format string                // datasets.Parquet or datasets.Arrow; "": Parquet
	GPU    func() *telemetry.GPU // how the GPUs were a moment ago; nil, or a nil one: there are none
	Now    func() *telemetry.GPU // how they are now, which takes longer; nil: it is not asked
	Policy Policy
	Origin int64 // ns of kernels.Now; negative after a resume
	// Where a resumed job goes on, as [OpenFolder] found it.
	FirstStep               int64
	Preempted               int64 // sequences, in the steps before
	Shared                  int64 // tokens of prompts that were not computed, as the manifest has them
	StepsPart, TimelinePart int
	Sampled                 timeline.Sampler // what it chose
	Energy                  energy           // of the steps before
}

// done is what the engine did in earlier runs.
func (o *RecorderOptions) done() ManifestEngine {
	return ManifestEngine{Steps: o.FirstStep, Preemptions: o.Preempted, Shared: o.Shared}
}

// NewRecorder starts to record.
func NewRecorder(o RecorderOptions) *Recorder {
	if o.Format == "" {
		o.Format = datasets.Parquet
	}
	r := &Recorder{policy: o.Policy, gpu: o.GPU, now: o.Now, energy: o.Energy, sampled: o.Sampled, origin: o.Origin,
		base: o.FirstStep, queue: make(chan *recordedStep, queuedTraces), free: make(chan *recordedStep, queuedTraces),
		steps: &datasets.Parts[datasets.Step]{Dir: filepath.Join(o.Dir, datasets.StepsDir), Format: o.Format,
			MaxRows: stepRows, Next: o.StepsPart}}
	r.counted.Store(o.FirstStep)
	r.preempted.Store(o.Preempted)
	r.shared.Store(o.Shared)
	if o.Policy.On() {
		r.clock = &hostClock{}
		rows := spanRows
		if o.Format == datasets.Arrow {
			rows = spanArrow
		}
		r.timeline = &datasets.Parts[datasets.Span]{Dir: filepath.Join(o.Dir, datasets.TimelineDir), Format: o.Format,
			MaxRows: rows, Next: o.TimelinePart}
	}
	if r.timeline != nil { // a step that has spans is in the table of steps: what is after it has other numbers
		r.timeline.Before = r.steps.Flush
	}
	r.began = time.Now()
	r.flushed = r.began
	r.wg.Go(r.work)
	return r
}

// A file is finished after a twentieth of the time that the recorder has run, within
// these bounds: what a kill costs is little, and a long job has few hundreds of files.
const (
	leastAge = 5 * time.Second
	mostAge  = 5 * time.Minute
)

// flush finishes the open files when they are old enough. Steps come first.
func (r *Recorder) flush(now time.Time) error {
	if now.Sub(r.flushed) < min(max(now.Sub(r.began)/20, leastAge), mostAge) {
		return nil
	}
	r.flushed = now
	err := r.steps.Flush()
	if err == nil && r.timeline != nil {
		err = r.timeline.Flush()
	}
	return err
}

// begin reads the GPUs' meters before the first step, and finish after the last: a job
// may be over before they are read otherwise.
func (r *Recorder) begin() {
	if r.now == nil {
		return
	}
	if g := r.now(); g != nil {
		r.meter, r.metered = g.Joules, true
	}
}

func (r *Recorder) finish() {
	if r.now == nil || !r.metered {
		return
	}
	if g := r.now(); g != nil && g.Joules > r.meter {
		used := g.Joules - r.meter
		r.count(&used)
	}
}

// OnTrace copies a step's calls and spans.
func (r *Recorder) OnTrace(t kernels.Trace) {
	if r.timeline == nil {
		return
	}
	s := r.take()
	s.timed = true
	s.trace.Step, s.trace.Kind, s.trace.Times, s.trace.Shared = t.Step+r.base, t.Kind, t.Times, t.Shared
	s.trace.Calls = append(s.trace.Calls[:0], t.Calls...)
	if len(s.trace.Spans) != len(t.Spans) {
		s.trace.Spans = make([][]kernels.Span, len(t.Spans))
	}
	for i := range t.Spans {
		s.trace.Spans[i] = append(s.trace.Spans[i][:0], t.Spans[i]...)
	}
	if len(s.trace.Asides) != len(t.Asides) {
		s.trace.Asides = make([][]kernels.Aside, len(t.Asides))
	}
	for i := range t.Asides {
		s.trace.Asides[i] = append(s.trace.Asides[i][:0], t.Asides[i]...)
	}
	r.pending = s
}

// OnStep hands a step on to the goroutine that writes.
func (r *Recorder) OnStep(i engine.StepInfo) {
	s := r.pending
	r.pending = nil
	if s == nil {
		s = r.take()
		s.timed = false
	}
	s.info = i
	s.info.Step += r.base
	r.counted.Store(s.info.Step + 1)
	r.preempted.Add(int64(i.Preempted))
	r.shared.Add(int64(i.Shared))
	s.host = r.clock.take(s.host)
	if s.gpu = nil; r.gpu != nil {
		s.gpu = r.gpu()
	}
	r.queue <- s
}

func (r *Recorder) take() *recordedStep {
	select {
	case s := <-r.free:
		return s
	default:
		return &recordedStep{}
	}
}

// totals are those of all runs of the job.
func (r *Recorder) totals() ManifestEngine {
	return ManifestEngine{Steps: r.counted.Load(), Preemptions: r.preempted.Load(), Shared: r.shared.Load()}
}

func (r *Recorder) count(joules *float64) {
	r.energyMu.Lock()
	defer r.energyMu.Unlock()
	r.energy.add(joules)
}

// joules are what the GPUs used in all runs of the job so far; nil: nobody knows.
func (r *Recorder) joules() *float64 {
	r.energyMu.Lock()
	defer r.energyMu.Unlock()
	return r.energy.total()
}

// close writes what is left, or drops it where nothing is to be written. The error is
// the first of all.
func (r *Recorder) close(write bool) error {
	close(r.queue)
	r.wg.Wait()
	r.finish()
	if !write && r.err == nil {
		r.steps.Abort()
		if r.timeline != nil {
			r.timeline.Abort()
		}
		return nil
	}
	if r.timeline != nil && r.err == nil {
		r.err = r.timeline.Write(timeline.HostRows(nil, -1, r.clock.take(nil), r.origin))
	}
	if r.err != nil {
		r.steps.Abort()
		if r.timeline != nil {
			r.timeline.Abort()
		}
		return r.err
	}
	err := r.steps.Close()
	if r.timeline != nil {
		err = errors.Join(err, r.timeline.Close())
	}
	return err
}

func (r *Recorder) work() {
	var rows []datasets.Span
	for s := range r.queue {
		if r.err == nil { // after an error the queue is only emptied
			if rows, r.err = r.write(rows[:0], s); r.err == nil {
				r.err = r.flush(time.Now())
			}
		}
		select {
		case r.free <- s:
		default:
		}
	}
}

func (r *Recorder) write(rows []datasets.Span, s *recordedStep) ([]datasets.Span, error) {
	i, t := &s.info, &s.info.Times
	row := datasets.Step{
		Step: i.Step, Kind: i.Kind, Sequences: int32(i.Sequences), Tokens: int32(i.Tokens), Sampled: int32(i.Sampled),
		Waiting: int32(i.Waiting),
		Pages:   int32(i.Pages), Preempted: int32(i.Preempted), StartNS: t.Wall.Start - r.origin, WallNS: t.Wall.NS(),
		ScheduleNS: t.Schedule.NS(), UploadNS: t.Upload.NS(), LaunchNS: t.Launch.NS(), DeviceNS: t.Device.NS(),
		SampleNS: t.Sample.NS(), Recorded: s.timed,
	}
	if s.gpu != nil && !r.metered {
		r.meter, r.metered = s.gpu.Joules, true
	}
	onGPU(&row, s.gpu, r.meter)
	r.count(row.GPUJoules)
	err := r.steps.Write([]datasets.Step{row})
	if err != nil || r.timeline == nil {
		return rows, err
	}
	if s.timed {
		rows = timeline.Rows(rows, &s.trace, r.origin)
	}
	rows = timeline.HostRows(rows, -1, s.host, r.origin)
	return rows, r.timeline.Write(rows)
}
