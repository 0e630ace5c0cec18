package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// Job is everything that a run needs.
type Job struct {
	Plan     *Plan
	Text     Text
	Engine   Engine
	Recorder *Recorder // nil: steps are not recorded. Run closes it
	Folder   *Folder
	Counts   *Counts // updated while the job runs
}

// ErrInterrupted: the context ended before the job did. What was complete is in
// the folder; the same job goes on from there.
var ErrInterrupted = errors.New("interrupted")

// Run does the job and leaves the folder's manifest with how it ended. The error
// is ErrInterrupted when ctx ended it, or the input's, the engine's or the disk's.
func (j *Job) Run(ctx context.Context) error { return j.End(j.run(ctx)) }

// End is how Run ends with err, for jobs that get no engine to run with.
func (j *Job) End(err error) error {
	if j.Recorder != nil {
		err = errors.Join(err, j.Recorder.Close())
	}
	status := StatusComplete
	switch {
	case errors.Is(err, ErrInterrupted):
		status = StatusInterrupted
	case err != nil:
		status = StatusFailed
	}
	j.Counts.Rows.Store(max(j.Counts.Rows.Load(), j.Folder.NextRow-j.Plan.From))
	counts := j.Counts.snapshot(j.Plan.To - j.Plan.From)
	if ferr := j.Folder.finish(status, counts, err); ferr != nil {
		return errors.Join(err, fmt.Errorf("finishing %s: %w", j.Folder.Dir, ferr))
	}
	return err
}

// run is the job: records are read and tokenized, the engine answers them, rows
// are written.
func (j *Job) run(ctx context.Context) error {
	if err := j.Plan.Check(j.Text); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var clock *hostClock // nil: nobody records
	if j.Recorder != nil {
		clock = j.Recorder.clock
	}
	o, out := &j.Plan.Options, j.sink(clock)
	j.Counts.Rows.Store(j.Folder.NextRow - j.Plan.From)

	rows, readErr := reading(ctx, j.Plan.in, j.Folder.NextRow, j.Plan.To, &preparer{cols: j.Plan.cols, text: j.Text, o: o}, clock)
	finished, dead, written := make(chan []*row, 4), make(chan struct{}), make(chan error, 1)
	go func() { written <- writing(out, finished, dead) }()
	f := &flow{o: o, engine: j.Engine, text: j.Text, clock: clock, rows: rows, live: map[int64]*sample{}, out: finished, dead: dead}
	err := f.run(ctx)

	cancel()
	for range rows { // until the readers have ended
	}
	close(finished)
	return cause(err, readErr(), <-written)
}

// sink makes the writer of the job's rows.
func (j *Job) sink(clock *hostClock) *sink {
	p := j.Plan
	return &sink{o: &p.Options, schema: p.schema, text: j.Text, cols: p.cols, dir: filepath.Join(j.Folder.Dir, outputsDir),
		runID: j.Folder.manifest.RunID, clock: clock, count: j.Counts, next: j.Folder.NextPart, at: j.Folder.NextRow}
}

// cause is why a job ended, from what its three parts say.
func cause(answered, read, written error) error {
	switch {
	case errors.Is(answered, context.Canceled), errors.Is(answered, context.DeadlineExceeded):
		answered = ErrInterrupted
	case errors.Is(answered, errWriter):
		answered = nil // the writer says why
	case answered == nil:
		answered = read
	}
	return errors.Join(answered, written)
}

// writing writes rows until they end. On an error it says so by closing dead,
// and takes no more.
func writing(s *sink, rows <-chan []*row, dead chan<- struct{}) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		var err error
		select {
		case done, ok := <-rows:
			if !ok {
				return s.close()
			}
			err = s.write(done)
		case <-tick.C:
			err = s.tick()
		}
		if err != nil {
			s.abort()
			close(dead)
			return err
		}
	}
}
