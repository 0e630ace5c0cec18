package engine

import (
	"fmt"
	"math"
	"slices"

	"glmbatch/engine/glm5"
	"glmbatch/engine/sched"
	"glmbatch/kernels"
)

// flight is a step from its launch until its tokens are there. Its memory is
// used again.
type flight struct {
	step      int64
	marks     marks       // of its launch
	batch     sched.Batch // without items, which are the scheduler's
	sequences int
	ids       []int64 // of the requests
	in        glm5.Batch
	wanted    []wanted // a row of logits each
	sampled   []kernels.Sampled
	alone     bool // the next step is launched when this one has landed
	calls     []kernels.Call
	spans     [][]kernels.Span // a rank each; nil: this step is not timed
	memory    [][]kernels.Span
}

// wanted is a sequence whose next token a step samples, and its place there.
type wanted struct {
	*sequence
	at int // in Tokens
}

func (e *Engine) flight(step int64) *flight { return &e.flights[step%int64(len(e.flights))] }

func (f *flight) failed(err error) error {
	return fmt.Errorf("step %d of %d sequences, %d tokens: %w", f.step, f.sequences, f.batch.Tokens, err)
}

// next lays the next step out; nil: nothing is due.
func (e *Engine) next() *flight {
	begun := e.clock.mark
	batch := e.sched.Next()
	if len(batch.Items) == 0 {
		return nil
	}
	f := e.flight(e.launched)
	f.step, f.batch, f.sequences = e.launched, *batch, len(batch.Items)
	f.ids = f.ids[:0]
	for i := range batch.Items {
		f.ids = append(f.ids, batch.Items[i].Seq.ID)
	}
	e.layOut(f)
	f.calls = e.model.Program(&f.in)
	e.clock.end(schedule)
	f.marks = marks{begun: begun, scheduled: e.clock.mark}
	return f
}

// launch takes a step to the ranks. From here on its sequences have the tokens
// that it will sample, whatever they are.
func (e *Engine) launch(f *flight) error {
	f.alone = e.o.Alone != nil && e.o.Alone(f.step, string(f.batch.Kind))
	if err := e.announce(); err != nil {
		return err
	}
	err := e.upload(f)
	e.clock.end(upload)
	f.marks.uploaded = e.clock.mark
	if err == nil {
		err = e.model.Start(f.calls, f.timed(e.o.Trace, e.model.Group().Ranks()), f.sampled)
	}
	if err != nil {
		return f.failed(err)
	}
	e.sched.Commit(&f.batch)
	for i, q := range f.wanted {
		q.Tokens = append(q.Tokens, 0)
		q.step, q.row = f.step, int32(i)
		if len(q.Tokens) >= q.Max { // this token is the last
			e.sched.Finish(&q.Seq)
		}
	}
	f.batch.Items, f.batch.Moved, f.batch.Copies = nil, nil, nil
	e.launched++
	if e.beside {
		e.clock.end(launch)
	} else { // the list has run
		e.clock.end(device)
	}
	f.marks.launched = e.clock.mark
	return nil
}

// announce says which requests the steps have that are on their way, with the one that
// is launched next.
func (e *Engine) announce() error {
	if e.o.OnLaunch == nil {
		return nil
	}
	ids := e.aboard[:0]
	for s := e.landed; s <= e.launched; s++ {
		ids = append(ids, e.flight(s).ids...)
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

// busy is the time from the start of the first call to the end of the last.
func (f *flight) busy() int64 {
	first, last := int64(math.MaxInt64), int64(0)
	for _, rank := range f.spans {
		for _, s := range rank {
			if s.End > s.Start {
				first, last = min(first, s.Start), max(last, s.End)
			}
		}
	}
	return max(0, last-first)
}

// timed returns room for the spans of the calls on each rank if the step is to
// be timed, else nil.
func (f *flight) timed(policy func(int64, string) bool, ranks int) [][]kernels.Span {
	f.spans = nil
	if policy == nil || !policy(f.step, string(f.batch.Kind)) {
		return nil
	}
	if len(f.memory) != ranks {
		f.memory = make([][]kernels.Span, ranks)
	}
	for i, s := range f.memory {
		if cap(s) < len(f.calls) {
			s = make([]kernels.Span, len(f.calls))
		}
		f.memory[i] = s[:len(f.calls)]
		clear(f.memory[i])
	}
	f.spans = f.memory
	return f.spans
}
