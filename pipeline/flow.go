package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"glmbatch/engine"
	"glmbatch/kernels"
	"glmbatch/pipeline/guide"
)

// Engine is what the pipeline needs of an engine.Engine.
type Engine interface {
	Add(engine.Request) error
	Step() ([]engine.Token, error)
	Cancel(id int64) bool
	Withdraw() []int64 // drops the requests that have not begun, and says which
	Idle() bool
}

// flow drives the engine: rows in, in input order; rows out as they finish.
type flow struct {
	o      *Options
	engine Engine
	text   Text
	clock  *hostClock
	stop   Stop

	rows     <-chan []*row // from the tokenizing workers
	pending  []*row        // taken from rows, not yet admitted
	ended    bool          // rows is closed
	live     map[int64]*sample
	bytes    int  // of the rows of live
	withdrew bool // rows that the engine had not begun with: the job ends without them
	nextID   int64
	saved    map[int64][]*saved // samples of unfinished rows, from earlier runs
	done     finished

	aboard   *Aboard
	attempts map[int64]*attempts // of rows that are not complete, from earlier runs
	suspects []*row              // they run alone, when all others are done

	out  chan<- finished
	dead <-chan struct{} // the keeper failed
}

var errWriter = errors.New("the writer stopped")

// Stop says how long a job may go on with the rows that it has begun when its context
// ends. The zero value: not at all.
type Stop struct {
	Grace time.Duration
	Hurry <-chan struct{} // closed: the grace is over
}

// over reports whether a job that was told to stop at a time has to end now.
func (s *Stop) over(at time.Time) bool {
	select {
	case <-s.Hurry:
		return true
	default:
		return time.Since(at) >= s.Grace
	}
}

// run is the heart of a job. It ends when all rows have been handed on, when ctx
// is done and so are the rows that were begun, or the grace is over, or with an
// engine's or the keeper's error.
func (f *flow) run(ctx context.Context) error {
	var told time.Time // to stop
	for {
		if ctx.Err() == nil {
			if err := f.admit(ctx); err != nil {
				return err
			}
		} else if told.IsZero() {
			told = time.Now()
			for _, id := range f.engine.Withdraw() {
				delete(f.live, id)
				f.withdrew = true
			}
		}
		if err := f.emit(); err != nil {
			return err
		}
		if f.ended && len(f.pending)+len(f.live)+len(f.suspects) == 0 && !f.withdrew {
			return nil
		}
		if !told.IsZero() && (len(f.live) == 0 || f.stop.over(told)) {
			return context.Cause(ctx)
		}
		if len(f.live) == 0 {
			continue
		}
		if f.engine.Idle() {
			return fmt.Errorf("the engine is idle with %d sequences unfinished", len(f.live))
		}
		tokens, err := f.engine.Step()
		if err != nil {
			if blames(err) && ctx.Err() == nil { // else it is the stop that ended the step
				f.blame(err)
				err = errors.Join(err, f.emit())
			}
			return err
		}
		start := kernels.Now()
		for _, t := range tokens {
			if err := f.take(t); err != nil {
				return err
			}
		}
		f.clock.add(phaseDetokenize, start)
	}
}

// rowsAtOnce bounds the rows that end without the engine before they are handed on.
const rowsAtOnce = 1024

// inFlightBytes bounds the rows that the engine has, besides Options.InFlight.
const inFlightBytes = 256 << 20

// admit gives rows to the engine while it has room. It waits for rows only when the
// engine has nothing to do.
func (f *flow) admit(ctx context.Context) error {
	for len(f.live) < f.o.InFlight && (f.bytes < inFlightBytes || len(f.live) == 0) && len(f.done.rows) < rowsAtOnce {
		if len(f.pending) == 0 && !f.pull(ctx) {
			return f.alone()
		}
		r := f.pending[0]
		f.pending = f.pending[1:]
		if f.suspect(r) {
			f.suspects = append(f.suspects, r)
			continue
		}
		if err := f.start(r); err != nil {
			return err
		}
		if r.left == 0 {
			f.done.rows = append(f.done.rows, r)
		} else {
			f.bytes += r.bytes()
		}
	}
	return nil
}

// alone begins with the next suspect when all else is done.
func (f *flow) alone() error {
	if !f.ended || len(f.pending)+len(f.live) > 0 || len(f.suspects) == 0 {
		return nil
	}
	r := f.suspects[0]
	f.suspects = f.suspects[1:]
	f.aboard.alone = r
	err := f.start(r)
	if r.left == 0 {
		f.done.rows = append(f.done.rows, r)
		return errors.Join(err, f.aboard.ended(r))
	}
	f.bytes += r.bytes()
	return err
}

// rowOf is the row that a request is of.
func (f *flow) rowOf(id int64) *row {
	if s := f.live[id]; s != nil {
		return s.row
	}
	return nil
}

// pull takes the next batch of rows, and returns false if there is none now.
func (f *flow) pull(ctx context.Context) bool {
	if f.ended {
		return false
	}
	var ok bool
	select {
	case f.pending, ok = <-f.rows:
	default:
		if len(f.live) > 0 || !f.done.empty() {
			return false // there is something else to do
		}
		select {
		case f.pending, ok = <-f.rows:
		case <-ctx.Done():
			return false
		}
	}
	f.ended = !ok
	return len(f.pending) > 0
}

// start adds a row's samples to the engine.
func (f *flow) start(r *row) error {
	if r.err != nil {
		return nil
	}
	f.restoreAll(r)
	for i, s := range r.samples {
		if s != nil {
			continue
		}
		s = &sample{row: r, index: i, seed: SampleSeed(f.o.Seed, r.record.Index, i, r.params.Seed)}
		if len(r.params.StopText) > 0 {
			s.text = newStopText(f.text.Tokenizer.NewDecoder(true), &r.params)
		}
		r.samples[i] = s
		r.left++
		sampling := r.params.Sampling
		if c := &r.scoring; sampling.PromptLogprobs > 0 && c.by == nil {
			c.by = s
		} else if sampling.PromptLogprobs = 0; sampling.PromptOnly {
			if c.known {
				f.finish(s, c.by.reason)
			}
			continue // it ends with the one that asks
		}
		id := f.nextID
		f.nextID++
		sampling.Seed = uint64(s.seed)
		sampling.EndTokens = f.o.EndTokens
		request := engine.Request{ID: id, Prompt: r.prompt, Sampling: sampling}
		if r.guides != nil && !sampling.PromptOnly {
			m := r.guides.Start(r.params.Guide, r.open)
			if request.Guide = m; !m.Thinking() {
				request.Sampling.Thinking = nil // the grammar has begun, and has no marks of it
			}
			request.Sampling.IgnoreEOS = false // an end token is the end of the text
		}
		if err := f.engine.Add(request); err != nil {
			return f.refuse(r, err)
		}
		f.live[id] = s
	}
	return nil
}

// restoreAll sets the samples of a row that an earlier run made, the others are nil. One of
// them has the prompt's log-probabilities for all.
func (f *flow) restoreAll(r *row) {
	before := f.saved[r.record.Index]
	delete(f.saved, r.record.Index)
	r.samples = make([]*sample, r.params.N)
	for i := range r.samples {
		s := f.restore(r, before, i)
		if r.samples[i] = s; s != nil {
			r.made += s.bytes()
		}
		if s == nil || r.params.PromptLogprobs == 0 {
			continue
		}
		if r.scoring.by == nil {
			r.scoring = scoring{by: s, known: true}
		}
		r.scoring.share(s)
	}
}

// finish ends a sample that has no request of its own.
func (f *flow) finish(s *sample, reason engine.Reason) {
	s.end(reason)
	f.finished(s)
}

// finished hands on a sample of a row with several, when it is whole.
func (f *flow) finished(s *sample) {
	if s.row.scoring.share(s) && s.row.params.N > 1 {
		f.done.samples = append(f.done.samples, s)
	}
}

// restore returns a sample that an earlier run made of the same request; nil: there
// is none.
func (f *flow) restore(r *row, before []*saved, index int) *sample {
	for _, s := range before {
		if s.index == index && s.identity == r.identity {
			return s.sample(r, f.text, SampleSeed(f.o.Seed, r.record.Index, index, r.params.Seed))
		}
	}
	return nil
}

// refuse turns a request that the engine cannot run into a row with an error.
func (f *flow) refuse(r *row, err error) error {
	switch {
	case errors.Is(err, engine.ErrTooLong):
		r.err = badRow(TooLong, "%s", oneLine(err))
	case errors.Is(err, engine.ErrRequest):
		r.err = badRow(BadRequest, "%s", oneLine(err))
	default:
		return err
	}
	for id, s := range f.live {
		if s.row == r {
			f.engine.Cancel(id)
			delete(f.live, id)
		}
	}
	r.samples, r.left = nil, 0
	return nil
}

func (f *flow) take(t engine.Token) error {
	s := f.live[t.ID]
	if s == nil {
		return nil
	}
	if errors.Is(t.Err, guide.ErrMachine) {
		return s.row.unguided(t.Err)
	}
	r := s.row
	before := r.made
	stop := s.accept(t)
	f.bytes += r.made - before
	f.done.samples = append(f.done.samples, r.scoring.took(s, t)...)
	if s.reason == engine.Going {
		return nil
	}
	if stop {
		f.engine.Cancel(t.ID)
	}
	delete(f.live, t.ID)
	f.finished(s)
	if r.params.PromptOnly && r.scoring.by == s {
		for _, o := range r.samples {
			if o.reason == engine.Going {
				f.finish(o, s.reason)
			}
		}
	}
	if r.left > 0 {
		return nil
	}
	f.done.rows = append(f.done.rows, r)
	f.bytes -= r.bytes()
	return f.aboard.ended(r)
}

// emit hands what is finished to the keeper.
func (f *flow) emit() error {
	if f.done.empty() {
		return nil
	}
	select {
	case f.out <- f.done:
		f.done = finished{}
		return nil
	case <-f.dead:
		return errWriter
	}
}

// bytes is what a row takes now: what is made of it grows until it is finished.
func (r *row) bytes() int { return r.record.Bytes() + 4*len(r.prompt) + r.scoreBytes() + r.made }
