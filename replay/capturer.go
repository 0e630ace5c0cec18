package replay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"glmbatch/datasets"
	"glmbatch/engine"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/telemetry"
)

// CaptureOptions say what to capture and where to.
type CaptureOptions struct {
	Dir       string // of the files
	Selectors []Selector
	KV        string // "": KVExact
	Detail    string // "": DetailNone
	MaxBytes  int64  // of one capture; 0: DefaultMaxBytes
	FirstStep int64  // number of the engine's first step in the job
	Model     string // folder, or "demo"
	Hash      string // of the model
	Versions  map[string]string
	Since     func(time.Time) telemetry.Conditions // what the time since a moment was like; nil: nobody knows
}

// DefaultMaxBytes bounds a capture.
const DefaultMaxBytes = 1 << 30

// Validate reports every fault of o.
func (o *CaptureOptions) Validate() error {
	var errs []error
	if o.KV != "" && o.KV != KVExact && o.KV != KVSeeded {
		errs = append(errs, fmt.Errorf("cache entries %q are not exact or seeded", o.KV))
	}
	if o.Detail != "" && o.Detail != DetailNone && o.Detail != DetailHash && o.Detail != DetailData {
		errs = append(errs, fmt.Errorf("outputs of calls %q are not none, hash or data", o.Detail))
	}
	if o.MaxBytes < 0 {
		errs = append(errs, fmt.Errorf("a capture of at most %d bytes", o.MaxBytes))
	}
	return errors.Join(errs...)
}

// Counts are what a capturer did.
type Counts struct {
	Written int   // files
	Bytes   int64 // of them
	Skipped int   // steps that came while two captures were not on the disk yet
	Failed  int   // too large, not reproducible, or not written
	Last    error // the last failure
	Stall   int64 // ns that the longest capture kept the job from its next step
}

// Capturer captures steps of a job. Step is for the engine's goroutine.
type Capturer struct {
	o       CaptureOptions
	model   *glm5.Model
	watches []watch
	holders map[int64]int      // selectors that want the file of a step
	chosen  map[int64][]*watch // of steps that were chosen before they ran

	jobs   chan *Capture
	done   chan struct{}
	mu     sync.Mutex
	counts Counts
	old    []int64 // steps whose files no selector wants any more
}

// NewCapturer starts the goroutine that writes steps of a model. Close ends it.
func NewCapturer(m *glm5.Model, o CaptureOptions) (*Capturer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.KV == "" {
		o.KV = KVExact
	}
	if o.Detail == "" {
		o.Detail = DetailNone
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	c := &Capturer{o: o, model: m, holders: map[int64]int{}, chosen: map[int64][]*watch{}, jobs: make(chan *Capture, 1),
		done: make(chan struct{})}
	for _, s := range o.Selectors {
		c.watches = append(c.watches, watch{Selector: s})
	}
	go c.write()
	return c, nil
}

// Attach makes an engine's observers capture its steps, beside what they did before.
//
// A capture has the spans of its step. Where it may be wanted only when the step is
// over, all steps are timed, one after the other. The observer of traces that was there
// gets those that it asked for.
func (c *Capturer) Attach(o *engine.Options) {
	timed, onTrace := o.Trace, o.OnTrace
	recorded := map[int64]bool{} // of steps that have not landed
	asked := func(step int64, kind string) bool {
		if timed == nil || onTrace == nil || !timed(step, kind) {
			return false
		}
		recorded[step] = true
		return true
	}
	o.Trace = func(step int64, kind string) bool {
		asked(step, kind)
		return true
	}
	if c.foresees() {
		o.Alone = c.choose
		o.Trace = func(step int64, kind string) bool { return asked(step, kind) || c.isChosen(step) }
	}
	o.OnTrace = nil
	if timed != nil && onTrace != nil {
		o.OnTrace = func(t kernels.Trace) {
			if recorded[t.Step] {
				delete(recorded, t.Step)
				onTrace(t)
			}
		}
	}
	o.OnStepDone = func(d engine.Done) error {
		if c.foresees() && !c.isChosen(d.Info.Step) {
			return nil // it was alone for another reason
		}
		return c.Step(Step{d.Trace, d.Info.Sequences, d.Batch})
	}
}

// foresees reports whether all selectors can choose steps before they run: then
// every step is to be asked for with choose.
func (c *Capturer) foresees() bool {
	return !slices.ContainsFunc(c.watches, func(w watch) bool { return w.Rule == "slowest" })
}

// choose reports whether a step will be captured. step is the engine's number.
func (c *Capturer) choose(step int64, kind string) bool {
	wanted := c.wanting(step+c.o.FirstStep, kind, 0)
	if len(wanted) > 0 {
		c.chosen[step+c.o.FirstStep] = wanted
	}
	return len(wanted) > 0
}

// isChosen reports whether choose said so of a step that has not run yet.
func (c *Capturer) isChosen(step int64) bool { return len(c.chosen[step+c.o.FirstStep]) > 0 }

// wanting are the selectors that want a step, which are asked once.
func (c *Capturer) wanting(step int64, kind string, wall int64) []*watch {
	var wanted []*watch
	for i := range c.watches {
		if c.watches[i].wants(step, kind, wall) {
			wanted = append(wanted, &c.watches[i])
		}
	}
	return wanted
}

// Step captures a step that has just run, if a selector wants it. Its error means
// that the model's caches are no longer what they were.
func (c *Capturer) Step(s Step) error {
	s.Step += c.o.FirstStep
	wanted := c.chosen[s.Step]
	delete(c.chosen, s.Step)
	if wanted == nil {
		wanted = c.wanting(s.Step, s.Kind, s.Times.Wall.NS())
	}
	if len(wanted) == 0 {
		return nil
	}
	if len(c.jobs) == cap(c.jobs) {
		c.count(func(n *Counts) { n.Skipped++ })
		return nil
	}
	begin := kernels.Now()
	capture, err := take(c.model, &s, &c.o)
	c.count(func(n *Counts) { n.Stall = max(n.Stall, kernels.Now()-begin) })
	if err != nil {
		c.fail(fmt.Errorf("step %d: %w", s.Step, err))
		if errors.Is(err, errCachesChanged) {
			return err
		}
		return nil
	}
	c.jobs <- capture
	for _, w := range wanted {
		c.holders[s.Step]++
		if old := w.keep(s.Step, s.Times.Wall.NS()); old >= 0 {
			c.release(old)
		}
	}
	return nil
}

// release drops a selector's claim on a file. Its capture has been handed to the
// writer before, who removes files only between captures.
func (c *Capturer) release(step int64) {
	if c.holders[step]--; c.holders[step] > 0 {
		return
	}
	delete(c.holders, step)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.old = append(c.old, step)
}

// Close waits for what is left to be written.
func (c *Capturer) Close() Counts {
	close(c.jobs)
	<-c.done
	return c.counts
}

func (c *Capturer) count(f func(*Counts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.counts)
}

func (c *Capturer) fail(err error) {
	c.count(func(n *Counts) { n.Failed, n.Last = n.Failed+1, err })
}

// FileName is the file of a captured step.
func FileName(step int64) string { return fmt.Sprintf("step-%08d.arrow", step) }

func (c *Capturer) write() {
	defer close(c.done)
	for x := range c.jobs {
		path := filepath.Join(c.o.Dir, FileName(x.Step))
		if err := x.Write(path); err != nil {
			c.fail(err)
		} else {
			c.note(path, 1)
		}
		c.remove()
	}
	c.remove()
}

// note counts a file that was written, or is about to be removed.
func (c *Capturer) note(path string, files int) {
	info, err := os.Stat(path)
	if err == nil {
		c.count(func(n *Counts) { n.Written, n.Bytes = n.Written+files, n.Bytes+int64(files)*info.Size() })
	}
}

func (c *Capturer) remove() {
	c.mu.Lock()
	old := c.old
	c.old = nil
	c.mu.Unlock()
	for _, step := range old {
		path := filepath.Join(c.o.Dir, FileName(step))
		c.note(path, -1)
		os.Remove(path) // it is not there if it could not be written
	}
}

// Write writes the capture to a file, which is there only when it is whole.
func (c *Capture) Write(path string) error {
	rows, err := c.rows()
	if err != nil {
		return err
	}
	return datasets.WriteCapture(path, rows)
}
