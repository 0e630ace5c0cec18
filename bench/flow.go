package bench

import (
	"slices"

	"glmbatch/engine/glm5"
	"glmbatch/engine/inflight"
	"glmbatch/kernels"
	"glmbatch/replay"
)

// ahead is how many steps are on their way at once, as in the engine.
func (b *Bench) ahead() int {
	if b.group.Info().Beside && !b.o.Lockstep {
		return kernels.MaxAhead
	}
	return 1
}

// flow is the steps of a case, one after the other.
type flow struct {
	*Bench
	r      *Result
	ahead  int
	ring   *inflight.Ring
	flying []*pass // of each step in flight
	passes []*pass // that count
}

func (b *Bench) flow(r *Result) *flow {
	return &flow{Bench: b, r: r, ahead: b.ahead(), ring: inflight.New(b.model)}
}

// pass is a decode step or the steps of a prompt.
type pass struct {
	wall, schedule, upload, launch int64 // ns
	record                         bool
	traces                         []kernels.Trace
}

// pass launches the steps of a pass; kept says whether it counts.
func (f *flow) pass(ins []glm5.Batch, record, kept bool) error {
	p := &pass{record: record}
	if kept {
		f.passes = append(f.passes, p)
	}
	for i := range ins {
		in := &ins[i]
		if f.ahead > 1 && len(in.Logits) > 0 { // as in the engine, but tokens stay random
			in.From = slices.Repeat([]int32{-1}, len(in.Logits))
		}
		if err := f.launch(in, p); err != nil {
			return err
		}
		if err := f.land(f.ahead - 1); err != nil {
			return err
		}
	}
	return nil
}

func (f *flow) launch(in *glm5.Batch, p *pass) error {
	if f.r.of.cast && f.r.changed == nil { // all steps of a case have the same calls
		var err error
		if f.r.changed, err = replay.WithCast(f.model, f.model.Program(in), f.slots(), f.copied); err != nil {
			return err
		}
	}
	s := f.ring.Next()
	s.Kind, s.Batch, s.Calls = f.r.Kind, *in, f.model.Program(in)
	if f.r.of.cast {
		s.Calls = f.r.changed
	}
	f.flying = append(f.flying, p)
	return f.ring.Launch(s, p.record, nil)
}

// land waits for the oldest steps until only n are on their way.
func (f *flow) land(n int) error {
	for f.ring.Len() > n {
		s, err := f.ring.Land()
		if err != nil {
			return err
		}
		p, t := f.flying[0], &s.Times
		f.flying = f.flying[1:]
		p.wall, p.schedule, p.upload, p.launch = p.wall+t.Wall.NS(), p.schedule+t.Schedule.NS(), p.upload+
			t.Upload.NS(), p.launch+t.Launch.NS()
		if p.record {
			p.traces = append(p.traces, copyOf(s.Trace()))
		}
	}
	return nil
}

// step does one step, with spans.
func (f *flow) step(in *glm5.Batch) (kernels.Trace, error) {
	p := &pass{record: true}
	if err := f.launch(in, p); err != nil {
		return kernels.Trace{}, err
	}
	if err := f.land(0); err != nil {
		return kernels.Trace{}, err
	}
	return p.traces[0], nil
}

// copyOf is a trace in memory of its own; the calls' arguments are the model's.
func copyOf(t kernels.Trace) kernels.Trace {
	t.Calls = slices.Clone(t.Calls)
	t.Spans, t.Asides = slices.Clone(t.Spans), slices.Clone(t.Asides)
	for i := range t.Spans {
		t.Spans[i] = slices.Clone(t.Spans[i])
	}
	for i := range t.Asides {
		t.Asides[i] = slices.Clone(t.Asides[i])
	}
	return t
}
