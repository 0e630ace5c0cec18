package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"glmbatch/datasets"
	"glmbatch/engine"
	"glmbatch/engine/glm5"
	"glmbatch/pipeline"
	"glmbatch/replay"
	"glmbatch/telemetry"
	"glmbatch/units"
)

// captureFlags say which steps of a run to capture.
type captureFlags struct {
	steps    string
	kv       string
	calls    string
	maxBytes string

	capturer *replay.Capturer // once the model is loaded; nil: nothing is captured
	written  int              // captures, once closed
	since    func(time.Time) telemetry.Conditions
}

func (c *captureFlags) add(f *pflag.FlagSet) {
	f.StringVar(&c.steps, "capture", "",
		"steps to capture for glmbatch replay: every=N, step=N, first=K or slowest=K, each also as decode:every=N, "+
			"prefill: or mixed:; several with commas. With slowest, a GPU's steps are not launched ahead")
	f.StringVar(&c.kv, "capture-kv", replay.KVExact,
		"cache entries of a capture: exact, or seeded (a seed instead of them)")
	f.StringVar(&c.calls, "capture-calls", replay.DetailNone, "outputs of each call in a capture: none, hash, or data")
	f.StringVar(&c.maxBytes, "capture-max-bytes", "1GiB", "largest capture; a larger one is refused")
}

// options are those of a capturer, without what the model says.
func (c *captureFlags) options() (o replay.CaptureOptions, err error) {
	if c.steps == "" {
		return o, nil
	}
	var errs []error
	if o.Selectors, err = replay.ParseSelectors(c.steps); err != nil {
		errs = append(errs, fmt.Errorf("--capture: %w", err))
	}
	if o.MaxBytes, err = units.ParseBytes(c.maxBytes); err != nil {
		errs = append(errs, fmt.Errorf("--capture-max-bytes: %w", err))
	}
	o.KV, o.Detail = c.kv, c.calls
	errs = append(errs, o.Validate())
	return o, errors.Join(errs...)
}

// attach makes the engine's observers capture steps: those that the flags say, and those
// of rows with which a step ended badly.
func (c *captureFlags) attach(f *pipeline.Folder, p *pipeline.Manifest, o *engine.Options, m *glm5.Model) error {
	opt, err := c.options()
	if err != nil {
		return err
	}
	opt.Dir, opt.FirstStep, opt.Model, opt.Hash, opt.Versions = filepath.Join(f.Dir,
		datasets.CapturesDir), f.Recorder.FirstStep, p.Model.Name, p.Model.Hash, p.Program
	opt.Since = c.since
	if opt.Model != demoName {
		if opt.Model, err = filepath.Abs(opt.Model); err != nil {
			return err
		}
	}
	if m.Homes() > 1 { // checkApart has seen that none are asked for
		return nil
	}
	if c.steps != "" {
		if c.capturer, err = replay.NewCapturer(m, opt); err != nil {
			return err
		}
		c.capturer.Attach(o)
	}
	captureSuspects(f.Aboard(), opt, o, m)
	return nil
}

// captureSuspects writes each step of a row that runs alone, as a step ended badly with
// it before, to the row's capture before it runs. Such steps run one after the other.
func captureSuspects(aboard *pipeline.Aboard, opt replay.CaptureOptions, o *engine.Options, m *glm5.Model) {
	suspect := func() bool { _, ok := aboard.Alone(); return ok }
	if alone := o.Alone; alone != nil || o.OnStepDone == nil {
		o.Alone = func(step int64, kind string) bool { return alone != nil && alone(step, kind) || suspect() }
	}
	o.OnBegin = func(d engine.Done) error {
		row, ok := aboard.Alone()
		if !ok {
			return nil
		}
		path := filepath.Join(opt.Dir, datasets.RowCapture(row))
		if err := replay.WriteBegun(path, m, &replay.Step{Trace: d.Trace, Sequences: d.Info.Sequences, Batch: d.Batch},
			[]int64{row}, opt); err != nil {
			return fmt.Errorf("the capture of row %d: %w: %w", row, pipeline.ErrOutput, err)
		}
		return nil
	}
}

// close waits for the captures that are not written yet and says what came of them.
func (c *captureFlags) close(say *speaker) {
	if c.capturer == nil {
		return
	}
	n := c.capturer.Close()
	c.capturer, c.written = nil, int(n.Written)
	noun := "captures"
	if n.Written == 1 {
		noun = "capture"
	}
	say.line("%s %s, %s; the longest kept the job for %.1f ms", units.Digits(int64(n.Written)), noun,
		units.Bytes(n.Bytes), float64(n.Stall)/1e6)
	if n.Skipped > 0 {
		say.note("%s steps were not captured: those before them were not written yet", units.Digits(int64(n.Skipped)))
	}
	if n.Failed > 0 {
		say.note("%s captures failed: %v", units.Digits(int64(n.Failed)), n.Last)
	}
}
