package inflight

import (
	"slices"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
)

// Step is a step from its launch until it has landed. Its memory is used again by the
// step that is launched kernels.MaxAhead later.
type Step struct {
	Number  int64  // of launches, from 0
	Kind    string // prefill, decode or mixed
	Batch   glm5.Batch
	Calls   []kernels.Call
	Alone   bool // the next one is launched when this one has landed
	Spans   [][]kernels.Span
	Asides  [][]kernels.Aside // until the next one lands; nil: not timed, or the ranks tell none
	Sampled []kernels.Sampled // of each row of logits, and behind them of drafts, once it has landed
	Times   kernels.Times     // once it has landed

	host   kernels.Times // what the host did to launch it
	halves bool          // it was started open: it is two lists
	memory [][]kernels.Span
	shared bool // see kernels.Trace
}

// Trace is the step as it ran, in the step's memory.
func (s *Step) Trace() kernels.Trace {
	return kernels.Trace{Step: s.Number, Kind: s.Kind, Times: s.Times, Calls: s.Calls, Spans: s.Spans, Asides: s.Asides,
		Shared: s.shared}
}

// Ring is the steps of a model that are in flight. It is for one goroutine.
type Ring struct {
	model            *glm5.Model
	info             kernels.Info
	steps            [kernels.MaxAhead]Step
	launched, landed int64

	last   int64            // when the step that landed last had landed; 0: none has
	sample kernels.Interval // what its tokens took
	ahead  bool             // it was launched before the one before it had landed
	did    *kernels.Times   // the launch since then; nil: none
}

// New returns a ring for a model, in which nothing is in flight.
func New(m *glm5.Model) *Ring { return &Ring{model: m, info: m.Group().Info()} }

// Len is how many steps are in flight.
func (r *Ring) Len() int { return int(r.launched - r.landed) }

// Each yields the steps in flight, the oldest first.
func (r *Ring) Each(yield func(*Step) bool) {
	for n := r.landed; n < r.launched && yield(r.at(n)); n++ {
	}
}

// Newest is the step that was launched last; nil: none is in flight.
func (r *Ring) Newest() *Step {
	if r.Len() == 0 {
		return nil
	}
	return r.at(r.launched - 1)
}

func (r *Ring) at(n int64) *Step { return &r.steps[n%kernels.MaxAhead] }

// Next returns the step that is launched next, for its Batch and Calls to be filled in:
// the time until Launch is its Schedule. Fewer than kernels.MaxAhead may be in flight.
func (r *Ring) Next() *Step {
	s := r.at(r.launched)
	s.Number, s.Alone, s.Spans, s.Asides, s.shared = r.launched, false, nil, nil, r.info.Shared
	s.host.Schedule.Start = kernels.Now()
	return s
}

// Launch takes the step of Next to the ranks: upload takes its inputs there (nil: those
// of its Batch), then its calls are started, each timed where timed is set.
func (r *Ring) Launch(s *Step, timed bool, upload func() error) error {
	h := &s.host
	h.Schedule.End = kernels.Now()
	h.Upload.Start = h.Schedule.End
	var err error
	if upload != nil {
		err = upload()
	} else {
		err = r.model.Upload(&s.Batch)
	}
	if err != nil {
		return err
	}
	h.Upload.End = kernels.Now()
	h.Launch.Start, h.Launch.End = h.Upload.End, h.Upload.End
	if timed {
		s.time(r.model.Group().Ranks())
	}
	n := s.Batch.Samples()
	s.Sampled = slices.Grow(s.Sampled[:0], n)[:n]
	if s.Batch.Open {
		err = r.model.StartOpen(s.Calls, s.Spans)
	} else {
		err = r.model.Start(s.Calls, s.Spans, s.Sampled)
	}
	if err != nil {
		return err
	}
	s.halves = s.Batch.Open
	if r.info.Beside {
		h.Launch.End = kernels.Now()
	}
	r.launched++
	r.did = h
	return nil
}

// Oldest is the step that lands next; nil: none is in flight.
func (r *Ring) Oldest() *Step {
	if r.Len() == 0 {
		return nil
	}
	return r.at(r.landed)
}

// Choose starts the choice of tokens of an open step, whose masks are known now. It must be
// the newest.
func (r *Ring) Choose(s *Step) error {
	if err := r.model.Choose(&s.Batch, s.Calls, s.Spans, s.Sampled); err != nil {
		return err
	}
	s.Batch.Open = false
	return nil
}

// time gives the step room for the spans of its calls.
func (s *Step) time(ranks int) {
	if len(s.memory) != ranks {
		s.memory = make([][]kernels.Span, ranks)
	}
	for i, m := range s.memory {
		s.memory[i] = slices.Grow(m[:0], len(s.Calls))[:len(s.Calls)]
		clear(s.memory[i])
	}
	s.Spans = s.memory
}

// Land waits for the oldest step in flight. The step is what it returns, after an
// error too.
func (r *Ring) Land() (*Step, error) {
	s := r.at(r.landed)
	waiting := kernels.Now()
	var asides [][]kernels.Aside // of the first half
	if s.halves {
		if err := r.model.Group().Wait(); err != nil {
			return s, err
		}
		for _, a := range r.asides(s) {
			asides = append(asides, slices.Clone(a))
		}
	}
	if err := r.model.Group().Wait(); err != nil {
		return s, err
	}
	r.landed++
	s.Asides = r.asides(s)
	for i, a := range asides {
		s.Asides[i] = append(a, s.Asides[i]...)
	}
	r.record(s, waiting, max(waiting, r.model.Group().Landed()))
	return s, nil
}

// asides are what the ranks did besides calls for the list that landed last, of a step; nil:
// it is not timed, or they do not tell.
func (r *Ring) asides(s *Step) [][]kernels.Aside {
	if s.Spans == nil {
		return nil
	}
	return r.model.Group().Asides()
}

// record says when a step was that has landed, for which the host waited since a
// moment.
func (r *Ring) record(s *Step, waiting, landed int64) {
	t := &s.Times
	*t, r.ahead = s.host, r.wasAhead(s, landed)
	if r.ahead {
		if r.did != nil {
			*t = *r.did
			waiting = t.Launch.End
		} else { // the host had no step to launch
			idle := kernels.Interval{Start: waiting, End: waiting}
			t.Schedule, t.Upload, t.Launch = idle, idle, idle
		}
		t.Wall, t.Sample = kernels.Interval{Start: r.last, End: landed}, r.sample
		t.Device = kernels.Interval{Start: waiting, End: landed}
	} else {
		t.Wall = kernels.Interval{Start: t.Schedule.Start, End: landed}
		t.Device = kernels.Interval{Start: t.Launch.End, End: landed}
		t.Sample = kernels.Interval{Start: landed, End: landed}
	}
	r.last, r.sample, r.did = landed, kernels.Interval{Start: landed, End: landed}, nil
}

// wasAhead reports whether a step was launched before the one before it had landed. In the
// time of one that was alone the host launched nothing: where that is less than its
// calls took, as the ranks had waited for the host, the step begins when the host began
// with it, as if it had not been launched ahead.
func (r *Ring) wasAhead(s *Step, landed int64) bool {
	if s.host.Launch.End >= r.last {
		return false
	}
	trace := s.Trace()
	busy, ok := trace.Busy()
	return !s.Alone || !ok || landed-r.last >= busy.NS()
}

// Sampled says that the tokens of the step that landed last have been given out.
func (r *Ring) Sampled() {
	r.sample.End = kernels.Now()
	if t := &r.at(r.landed - 1).Times; !r.ahead {
		t.Sample, t.Wall.End = r.sample, r.sample.End
	}
}
