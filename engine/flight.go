package engine

import (
	"fmt"
	"slices"

	"glmbatch/engine/inflight"
	"glmbatch/engine/sched"
	"glmbatch/kernels"
)

// flight is what the engine knows of a step in flight. Its memory is used again.
type flight struct {
	*inflight.Step
	batch     sched.Batch // without items, which are the scheduler's
	sequences int
	ids       []int64  // of the requests
	wanted    []wanted // a row of logits each
	drafts    int      // most that it takes of a sequence, and makes for one; 0: none
	verified  int      // sequences with drafts
	accepted  int      // drafts that were right
}

// wanted is what a step samples for a sequence, and its place there. Its rows of
// logits are the first and those of its drafts behind it.
type wanted struct {
	*sequence
	at     int // in Tokens
	what   what
	first  int32
	drafts int
	sure   int  // of the drafts: behind those the masks are not known
	due    bool // its masks are filled in while the step runs
	tip    int  // among the batch's Tips; -1: the prediction layer does not go on from it
}

// what a row of logits is for.
type what uint8

const (
	next   what = iota // the token is sampled
	prompt             // it is the prompt's, and what it was given is reported
	ending             // the request ends without it
)

func (e *Engine) flight(s *inflight.Step) *flight {
	f := &e.flights[s.Number%int64(len(e.flights))]
	f.Step = s
	return f
}

func (f *flight) failed(err error) error {
	return fmt.Errorf("step %d of %d sequences, %d tokens: %w", f.Number, f.sequences, f.batch.Tokens, err)
}

// next lays the next step out; nil: nothing is due.
func (e *Engine) next() *flight {
	f := e.flight(e.ring.Next())
	e.hold()
	drafts := e.propose()
	batch := e.sched.Next()
	e.release()
	if len(batch.Items) == 0 {
		return nil
	}
	f.batch, f.sequences, f.drafts, f.verified, f.accepted = *batch, len(batch.Items), drafts, 0, 0
	f.Kind = batch.Kind
	f.ids = f.ids[:0]
	for i := range batch.Items {
		f.ids = append(f.ids, batch.Items[i].Seq.ID)
	}
	e.layOut(f)
	f.Calls = e.model.Program(&f.Batch)
	return f
}

// launch takes a step to the ranks. From here on its sequences have the tokens
// that it will sample, whatever they are.
func (e *Engine) launch(f *flight) error {
	f.Alone = e.o.Alone != nil && e.o.Alone(f.Number, f.Kind)
	if e.o.OnBegin != nil && f.Batch.Open && e.ring.Len() == 0 && (f.Alone || e.o.Alone == nil) {
		e.fill(f)
		f.Batch.Open = false
	}
	if err := e.announce(f); err != nil {
		return err
	}
	timed := e.o.Trace != nil && e.o.Trace(f.Number, f.Kind)
	err := e.ring.Launch(f.Step, timed, func() error {
		err := e.upload(f)
		if err == nil && e.o.OnBegin != nil && e.ring.Len() == 0 {
			err = e.o.OnBegin(f.begun())
		}
		return err
	})
	if err != nil {
		return f.failed(err)
	}
	e.sched.Commit(&f.batch)
	for _, q := range f.wanted {
		if q.what == prompt {
			continue
		}
		if q.what == next {
			q.Tokens = append(q.Tokens, 0)
			q.step, q.row = f.Number, q.first
		}
		if len(q.Tokens) >= q.Max { // this token is the last
			e.sched.Finish(&q.Seq)
		}
	}
	f.batch.Items, f.batch.Moved, f.batch.Copies = nil, nil, nil
	return nil
}

// begun is the step before it runs, when all of its tokens are known: none is fed.
func (f *flight) begun() Done {
	calls := f.Calls
	if len(calls) > 0 && calls[0].Kernel == "feed" {
		calls = calls[1:]
	}
	return Done{
		Info:  StepInfo{Step: f.Number, Kind: f.Kind, Sequences: f.sequences, Tokens: f.batch.Tokens},
		Batch: &f.Batch, Trace: kernels.Trace{Step: f.Number, Kind: f.Kind, Calls: calls},
	}
}

// announce says which requests the steps have that are on their way, with the one that
// is launched next.
func (e *Engine) announce(next *flight) error {
	ids := append(e.aboard[:0], next.ids...)
	for s := range e.ring.Each {
		ids = append(ids, e.flight(s).ids...)
	}
	return e.tell(ids)
}

// tell gives OnLaunch requests in order, if they are others than the last time.
func (e *Engine) tell(ids []int64) error {
	if e.o.OnLaunch == nil {
		return nil
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	e.aboard = ids
	if slices.Equal(ids, e.announced) {
		return nil
	}
	e.announced = append(e.announced[:0], ids...)
	return e.o.OnLaunch(ids)
}
