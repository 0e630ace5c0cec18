package pipeline

import (
	"context"
	"errors"
	"fmt"

	"glmbatch/engine"
	"glmbatch/kernels"
)

// Engine is what the pipeline needs of an engine.Engine.
type Engine interface {
	Add(engine.Request) error
	Step() ([]engine.Token, error)
	Cancel(id int64) bool
	Idle() bool
}

// windowBytes bounds the rows that are read but not written, besides Options.Window.
const windowBytes = 256 << 20

// flow drives the engine: rows in, in input order; rows out in the same order.
type flow struct {
	o      *Options
	engine Engine
	text   Text
	clock  *hostClock

	rows    <-chan []*row // from the tokenizing workers
	pending []*row        // taken from rows, not yet admitted
	ended   bool          // rows is closed
	window  []*row        // admitted, not yet handed on: a reorder buffer
	bytes   int           // of the rows in window
	live    map[int64]*sample
	nextID  int64

	out  chan<- []*row
	dead <-chan struct{} // the writer failed
}

var errWriter = errors.New("the writer stopped")

// run is the heart of a job. It ends when all rows have been handed on, when ctx
// is done (rows that are complete up to the first that is not are handed on), or
// with an engine's or the writer's error.
func (f *flow) run(ctx context.Context) error {
	for {
		if err := f.admit(ctx); err != nil {
			return err
		}
		if err := f.emit(); err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if f.ended && len(f.pending) == 0 && len(f.window) == 0 {
			return nil
		}
		if len(f.live) == 0 {
			continue
		}
		if f.engine.Idle() {
			return fmt.Errorf("the engine is idle with %d sequences unfinished", len(f.live))
		}
		tokens, err := f.engine.Step()
		if err != nil {
			return err
		}
		start := kernels.Now()
		for _, t := range tokens {
			f.take(t)
		}
		f.clock.add(phaseDetokenize, start)
	}
}

// admit gives rows to the engine while it and the window have room. It waits for
// rows only when the engine has nothing to do.
func (f *flow) admit(ctx context.Context) error {
	for len(f.live) < f.o.InFlight && len(f.window) < f.o.Window && f.bytes < windowBytes {
		if len(f.pending) == 0 && !f.pull(ctx) {
			return nil
		}
		r := f.pending[0]
		f.pending = f.pending[1:]
		f.window = append(f.window, r)
		f.bytes += r.bytes()
		if err := f.start(r); err != nil {
			return err
		}
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
		if len(f.live) > 0 || len(f.window) > 0 {
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
	for i := range r.params.N {
		s := &sample{row: r, index: i, seed: SampleSeed(f.o.Seed, r.record.Index, i, r.params.Seed)}
		if len(r.params.StopText) > 0 {
			s.text = newStopText(f.text.Tokenizer.NewDecoder(true), r.params.StopText)
		}
		id := f.nextID
		f.nextID++
		sampling := r.params.Sampling
		sampling.Seed = uint64(s.seed)
		if !sampling.IgnoreEOS && len(f.o.EndTokens) > 0 {
			sampling.StopTokens = append(sampling.StopTokens[:len(sampling.StopTokens):len(sampling.StopTokens)], f.o.EndTokens...)
		}
		if err := f.engine.Add(engine.Request{ID: id, Prompt: r.prompt, Sampling: sampling}); err != nil {
			return f.refuse(r, err)
		}
		f.live[id] = s
		r.samples = append(r.samples, s)
		r.left++
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

func (f *flow) take(t engine.Token) {
	s := f.live[t.ID]
	if s == nil {
		return
	}
	stop := s.accept(t)
	if s.reason == engine.Going {
		return
	}
	if stop {
		f.engine.Cancel(t.ID)
	}
	delete(f.live, t.ID)
}

// emit hands the finished rows at the head of the window to the writer.
func (f *flow) emit() error {
	n := 0
	for n < len(f.window) && f.window[n].left == 0 {
		f.bytes -= f.window[n].bytes()
		n++
	}
	if n == 0 {
		return nil
	}
	done := make([]*row, n)
	copy(done, f.window)
	rest := copy(f.window, f.window[n:])
	clear(f.window[rest:])
	f.window = f.window[:rest]
	select {
	case f.out <- done:
		return nil
	case <-f.dead:
		return errWriter
	}
}

func (r *row) bytes() int { return r.record.Bytes() + 4*len(r.prompt) }
