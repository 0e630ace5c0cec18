package engine

import (
	"fmt"
	"slices"

	"glmbatch/engine/glm5"
	"glmbatch/engine/inflight"
	"glmbatch/engine/sched"
	"glmbatch/kernels"
)

// Engine runs requests through a model. It is for one goroutine.
type Engine struct {
	o     Options
	model *glm5.Model
	sched *sched.Ranks
	live  map[int64]*sequence
	ends  []int32 // the model's end tokens
	stats Stats
	err   error // of the step that failed: there is none after it

	ring    *inflight.Ring
	flights [kernels.MaxAhead]flight // what the engine knows of the ring's steps

	// Of the step at hand; the memory is kept.
	tokens []Token
	aboard []int64 // requests of the steps that are on their way

	announced []int64 // as OnLaunch got them last
	spec      speculation
}

// New returns an engine on a loaded model, which no other engine uses. The
// model's ranks stay the caller's to close.
func New(model *glm5.Model, o Options) (*Engine, error) {
	info := model.Group().Info()
	o, limits, err := o.resolve(model.Options(), info)
	if err != nil {
		return nil, fmt.Errorf("engine options: %w", err)
	}
	s, err := sched.NewRanks(model.Homes(), model.Options().MaxSeqs, limits)
	if err != nil {
		return nil, err
	}
	e := &Engine{o: o, model: model, sched: s, live: map[int64]*sequence{}, ends: model.Config.EOS,
		ring: inflight.New(model)}
	e.spec.o, e.spec.auto.most = o.Speculate, o.Speculate.Drafts
	return e, nil
}

// Add queues a request. The error wraps ErrRequest, or ErrTooLong when it could
// not finish even alone; the engine goes on without it.
func (e *Engine) Add(r Request) error {
	if err := r.validate(e.model.Config.Vocab, e.model.Options().Tokens); err != nil {
		return fmt.Errorf("request %d: %w: %w", r.ID, ErrRequest, err)
	}
	if e.live[r.ID] != nil {
		return fmt.Errorf("request %d: %w: another of that ID is in flight", r.ID, ErrRequest)
	}
	q := newSequence(r, e.model.SeenWords(), e.model.Options().Tokens, e.ends)
	if err := e.sched.Add(&q.Seq); err != nil {
		return err
	}
	e.live[r.ID] = q
	return nil
}

// Step waits for one batch and returns the tokens that it gave: at most one a
// request, or several in their order where drafts were right. The slice is valid until the next
// Step. It is empty while prompts are being read in. Where steps are launched ahead, the batch
// after it is on its way before Step waits. After an error, which wraps kernels.ErrDevice or
// kernels.ErrMemory where a device failed, the engine is of no more use.
func (e *Engine) Step() ([]Token, error) {
	if e.err != nil {
		return nil, e.err
	}
	if s := e.ring.Oldest(); s != nil && s.Batch.Open {
		e.err = e.choose(e.flight(s))
	}
	for e.ring.Len() < e.o.Ahead && e.err == nil {
		if s := e.ring.Newest(); s != nil && e.waits(s) {
			break
		}
		f := e.next()
		if f == nil {
			break
		}
		e.err = e.launch(f)
	}
	if s := e.ring.Oldest(); s != nil && s.Batch.Open && e.err == nil { // it was launched just now
		e.err = e.choose(e.flight(s))
	}
	if e.err != nil || e.ring.Len() == 0 {
		return nil, e.err
	}
	s, err := e.ring.Land()
	f := e.flight(s)
	if err != nil {
		e.err = f.failed(err)
		return nil, e.err
	}
	e.commit(f)
	if e.ring.Len() == 0 { // what goes wrong from here on is no step's
		if err := e.tell(e.aboard[:0]); err != nil {
			e.err = err
			return nil, e.err
		}
	}
	e.ring.Sampled()
	if err := e.report(f); err != nil {
		e.err = fmt.Errorf("after step %d: %w", f.Number, err)
		return nil, e.err
	}
	return e.tokens, nil
}

// Idle reports that no request is in flight.
func (e *Engine) Idle() bool { return e.sched.Idle() && e.ring.Len() == 0 }

// Cancel drops a request, wherever it is; no more of its tokens come. It
// reports whether the request was in flight.
func (e *Engine) Cancel(id int64) bool {
	q := e.live[id]
	if q != nil {
		e.finish(q)
	}
	return q != nil
}

// Withdraw drops the requests that no step has begun with, and returns their IDs in
// ascending order.
func (e *Engine) Withdraw() []int64 {
	var ids []int64
	for id, q := range e.live {
		if !e.sched.Begun(&q.Seq) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		e.Cancel(id)
	}
	return ids
}

// finish ends a sequence. What steps on their way compute for it is dropped.
func (e *Engine) finish(q *sequence) {
	e.sched.Finish(&q.Seq)
	delete(e.live, q.ID)
	if q.ended = true; q.guide != nil {
		q.guide.Close()
	}
}
