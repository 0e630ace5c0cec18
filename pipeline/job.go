package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"glmbatch/datasets"
)

// Job is everything that a run needs.
type Job struct {
	Plan     *Plan
	Text     Text
	Engine   Engine
	Recorder *Recorder // nil: steps are not recorded. Run closes it
	Folder   *Folder
	Counts   *Counts           // updated while the job runs
	Print    *datasets.Printer // prints all rows in their order, as they are written; nil: they are not printed
	Stop     Stop              // what happens when the context ends
}

// ErrInterrupted: the context ended before the job did. What was finished is saved in
// the folder; the same job goes on from there.
var ErrInterrupted = errors.New("interrupted")

// ErrInput: the input could not be read, or was not what it had been, when rows were
// done already. They are saved.
var ErrInput = errors.New("the input failed while the job ran")

// ErrOutput: the folder could not be written.
var ErrOutput = errors.New("the output cannot be written")

// Run does the job and leaves the folder's manifest with how it ended. The error
// is ErrInterrupted when ctx ended it, or wraps ErrInput, ErrOutput, or is the engine's.
func (j *Job) Run(ctx context.Context) error { return j.End(j.run(ctx)) }

// Finish ends a job of which only the end is missing; see [Folder.Finished].
func (j *Job) Finish() error {
	j.Counts.add(&j.Folder.tally)
	return j.End(nil)
}

// End is how Run ends with err, for jobs that get no engine to run with.
func (j *Job) End(err error) error {
	if j.Recorder != nil {
		err = errors.Join(err, j.Recorder.close(j.Folder.started))
	}
	if err == nil && j.Recorder != nil {
		if terr := j.Recorder.thin(); terr != nil {
			err = fmt.Errorf("%s: %w: %w", j.Folder.Dir, ErrOutput, terr)
		}
	}
	status := StatusComplete
	switch {
	case errors.Is(err, ErrInterrupted):
		status = StatusInterrupted
	case err != nil:
		status = StatusFailed
	}
	j.Counts.Rows.Store(max(j.Counts.Rows.Load(), j.Folder.Done()))
	counts, engine := j.totals()
	if ferr := j.Folder.finish(status, counts, engine, err); ferr != nil {
		return errors.Join(err, fmt.Errorf("finishing %s: %w: %w", j.Folder.Dir, ErrOutput, ferr))
	}
	return err
}

// totals are how far the job is.
func (j *Job) totals() (ManifestCounts, ManifestEngine) {
	e, joules := j.Folder.Recorder.done(), j.Folder.Recorder.Energy.total()
	if j.Recorder != nil {
		e, joules = j.Recorder.totals(), j.Recorder.joules()
	}
	c := j.Counts.snapshot(j.Plan.To - j.Plan.From)
	e.setEnergy(joules, &c)
	return c, e
}

// run is the job: records are read and tokenized, the engine answers them, what is
// finished is saved and written.
func (j *Job) run(ctx context.Context) error {
	if err := j.Plan.Check(j.Text); err != nil {
		return err
	}
	if err := j.Folder.begin(); err != nil {
		return fmt.Errorf("%s: %w: %w", j.Folder.Dir, ErrOutput, err)
	}
	reads, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var clock *hostClock // nil: nobody records
	if j.Recorder != nil {
		clock = j.Recorder.clock
		j.Recorder.begin()
	}
	o, saved := &j.Plan.Options, j.Folder.saved
	prep := &preparer{cols: j.Plan.cols, text: j.Text, o: o}
	k := j.keeper(prep, clock)
	j.Counts.Rows.Store(j.Folder.Done())
	j.Counts.add(&j.Folder.tally)
	j.Counts.add(&saved.tally)

	rows, readErr := reading(reads, j.Plan.in, j.Folder.NextRow, j.Plan.To, prep, saved.has, clock)
	done, dead, written := make(chan finished, 4), make(chan struct{}), make(chan error, 1)
	go func() { written <- k.writing(done, dead, j.report()) }()
	aboard := j.Folder.aboard
	f := &flow{o: o, aboard: aboard, attempts: saved.attempts, engine: j.Engine, text: j.Text, clock: clock,
		stop: j.Stop, rows: rows, live: map[int64]*sample{}, saved: saved.samples, out: done, dead: dead}
	aboard.find = f.rowOf
	err := f.run(ctx)

	cancel()
	for range rows { // until the readers have ended
	}
	k.whole.Store(err == nil && readErr() == nil)
	close(done)
	werr := <-written
	if eerr := aboard.end(); werr == nil {
		werr = eerr
	}
	return cause(err, readErr(), werr)
}

// keeper makes what saves and writes the job's rows.
func (j *Job) keeper(prep *preparer, clock *hostClock) *keeper {
	p := j.Plan
	s := &sink{o: &p.Options, schema: p.schema, text: j.Text, cols: p.cols,
		dir:   filepath.Join(j.Folder.Dir, datasets.OutputsDir),
		runID: j.Folder.manifest.RunID, count: j.Counts, next: j.Folder.NextPart, at: j.Folder.NextRow, print: j.Print}
	return &keeper{o: &p.Options, text: j.Text, prep: prep, in: p.in, to: p.To, sink: s,
		journal: j.Folder.saved.journal, saved: j.Folder.saved, began: j.Folder.saved.journal.End(),
		count: j.Counts, clock: clock, ring: make([]*row, p.Options.Window)}
}

// reportEvery is how often the manifest says how far the job is.
const reportEvery = 5 * time.Second

// report returns what brings the manifest up to date now and then.
func (j *Job) report() func() error {
	last := time.Now()
	return func() error {
		if time.Since(last) < reportEvery {
			return nil
		}
		last = time.Now()
		return j.Folder.report(j.totals())
	}
}

// butWriter is an error, which may be several, without errWriter.
func butWriter(err error) error {
	several, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == errWriter:
		return nil
	case !ok || !errors.Is(err, errWriter):
		return err
	}
	var left error
	for _, e := range several.Unwrap() {
		left = errors.Join(left, butWriter(e))
	}
	return left
}

// cause is why a job ended, from what its three parts say.
func cause(answered, read, written error) error {
	if read != nil && !errors.Is(read, errGuides) {
		read = fmt.Errorf("%w: %w", ErrInput, read)
	}
	if written != nil && !errors.Is(written, ErrInput) {
		written = fmt.Errorf("%w: %w", ErrOutput, written)
	}
	switch {
	case errors.Is(answered, context.Canceled), errors.Is(answered, context.DeadlineExceeded):
		answered = ErrInterrupted
	case errors.Is(answered, errWriter):
		answered = butWriter(answered) // the keeper says why
	case answered == nil:
		answered = read
	}
	return errors.Join(answered, written)
}
