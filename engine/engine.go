package engine

import (
	"fmt"

	"glmbatch/engine/glm5"
	"glmbatch/engine/sched"
	"glmbatch/kernels"
)

// Engine runs requests through a model. It is for one goroutine.
type Engine struct {
	o     Options
	model *glm5.Model
	sched *sched.Scheduler
	live  map[int64]*sequence
	ends  map[int32]bool // the model's end tokens
	stats Stats
	err   error // of the step that failed: there is none after it

	// Of the step at hand; the memory is kept.
	in       glm5.Batch
	wanted   []*sequence // whose next tokens are sampled, a row of logits each
	sampled  []kernels.Sampled
	tokens   []Token
	recorder recorder
}

// New returns an engine on a loaded model, which no other engine uses. The
// model's ranks stay the caller's to close.
func New(model *glm5.Model, o Options) (*Engine, error) {
	limits, err := o.limits(model.Options())
	if err != nil {
		return nil, fmt.Errorf("engine options: %w", err)
	}
	s, err := sched.New(limits)
	if err != nil {
		return nil, err
	}
	e := &Engine{o: o, model: model, sched: s, live: map[int64]*sequence{}, ends: map[int32]bool{}}
	for _, t := range model.Config.EOS {
		e.ends[t] = true
	}
	e.recorder.shared = model.Group().Info().Shared
	return e, nil
}

// Add queues a request. The error wraps ErrRequest, or ErrTooLong when it could
// not finish even alone; the engine goes on without it.
func (e *Engine) Add(r Request) error {
	if err := r.validate(e.model.Config.Vocab); err != nil {
		return fmt.Errorf("request %d: %w: %w", r.ID, ErrRequest, err)
	}
	if e.live[r.ID] != nil {
		return fmt.Errorf("request %d: %w: another of that ID is in flight", r.ID, ErrRequest)
	}
	q := newSequence(r, e.model.SeenWords())
	if err := e.sched.Add(&q.Seq); err != nil {
		return err
	}
	e.live[r.ID] = q
	return nil
}

// Step computes one batch and returns the tokens that it gave, at most one a
// request. The slice is valid until the next Step. It is empty while prompts
// are being read in. After an error, which wraps
// kernels.ErrDevice or kernels.ErrMemory where a device failed, the engine is
// of no more use.
func (e *Engine) Step() ([]Token, error) {
	if e.err != nil {
		return nil, e.err
	}
	e.recorder.start(e.stats.Steps)
	batch := e.sched.Next()
	if len(batch.Items) == 0 {
		return nil, nil
	}
	e.layOut(batch)
	calls := e.model.Program(&e.in)
	e.recorder.end(schedule)

	err := e.upload(batch)
	e.recorder.end(upload)
	if err == nil {
		err = e.model.Group().Run(calls, e.recorder.spans(e.o.Trace, e.model.Group().Ranks(), len(calls)))
	}
	e.recorder.end(device)
	if err == nil {
		err = e.model.Sampled(e.sampled)
	}
	if err != nil {
		e.err = fmt.Errorf("step %d of %d sequences, %d tokens: %w", e.stats.Steps, len(batch.Items), batch.Tokens, err)
		return nil, e.err
	}
	e.commit(batch)
	e.recorder.end(sample)
	if err := e.report(batch, calls); err != nil {
		e.err = fmt.Errorf("after step %d: %w", e.stats.Steps-1, err)
		return nil, e.err
	}
	return e.tokens, nil
}

// Idle reports that no request is in flight.
func (e *Engine) Idle() bool { return e.sched.Idle() }

// Cancel drops a request, wherever it is; no more of its tokens come. It
// reports whether the request was in flight.
func (e *Engine) Cancel(id int64) bool {
	q := e.live[id]
	if q != nil {
		e.finish(q)
	}
	return q != nil
}

// finish ends a sequence.
func (e *Engine) finish(q *sequence) {
	e.sched.Finish(&q.Seq)
	delete(e.live, q.ID)
}
