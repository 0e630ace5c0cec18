package main

import (
	"slices"

	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/replay"
	"glmbatch/replay/timeline"
)

// clockMarks are the times at which the phases of a step ended.
type clockMarks struct{ begin, schedule, upload, launch, run, fetch int64 }

func (m clockMarks) hostTimes() timeline.HostTimes {
	return timeline.HostTimes{Begin: m.begin, Scheduled: m.schedule, Uploaded: m.upload, Launched: m.launch, Ran: m.run, End: m.fetch}
}

// benchTrace is a step that ran, with spans if it was recorded.
type benchTrace struct {
	clockMarks
	host    clockMarks // what the host did in the step's time
	calls   []kernels.Call
	spans   [][]kernels.Span
	asides  [][]kernels.Aside
	sampled []kernels.Sampled
	pass    *benchPass // nil: none
}

// plus adds up the phases of steps that make up one pass.
func (m clockMarks) plus(o clockMarks) clockMarks {
	return clockMarks{schedule: m.schedule + o.schedule - o.begin, upload: m.upload + o.upload - o.begin,
		launch: m.launch + o.launch - o.begin, run: m.run + o.run - o.begin, fetch: m.fetch + o.fetch - o.begin}
}

// ahead is how many steps are on their way at once, as in the engine.
func (b *bench) ahead() int {
	if b.group.Info().Beside && !b.flags.lockstep {
		return kernels.MaxAhead
	}
	return 1
}

// benchFlow is the steps of a case, one after the other. Where steps are
// launched ahead, a step lasts from the landing of the one before to its own, and
// the host's work for the next is in it.
type benchFlow struct {
	*bench
	r      *benchResult
	ahead  int
	passes []*benchPass
	flying []*benchTrace
	landed int64 // when the last step landed
}

// benchPass is a decode step or the steps of a prompt.
type benchPass struct {
	sum    clockMarks
	record bool
	traces []*benchTrace
}

// pass launches the steps of a pass; kept says whether it counts.
func (f *benchFlow) pass(ins []glm5.Batch, record, kept bool) error {
	p := &benchPass{record: record}
	if kept {
		f.passes = append(f.passes, p)
	}
	for i := range ins {
		in := &ins[i]
		if f.ahead > 1 && len(in.Logits) > 0 { // as in the engine, but tokens stay random
			in.From = slices.Repeat([]int32{-1}, len(in.Logits))
		}
		t, err := f.launch(f.r, in, record)
		if err != nil {
			return err
		}
		p.traces = append(p.traces, t)
		t.pass = p
		f.flying = append(f.flying, t)
		if err := f.land(f.ahead - 1); err != nil {
			return err
		}
	}
	return nil
}

// land waits for the oldest steps until only n are on their way.
func (f *benchFlow) land(n int) error {
	for len(f.flying) > n {
		t := f.flying[0]
		f.flying = f.flying[1:]
		if err := f.wait(t); err != nil {
			return err
		}
		t.host = t.clockMarks
		if f.landed > t.begin { // launched ahead
			t.host = clockMarks{begin: f.landed, schedule: f.landed, upload: f.landed, launch: f.landed}
			if len(f.flying) > 0 { // what the host did meanwhile was for the next step
				t.host = f.flying[0].clockMarks
			}
			t.host.run, t.host.fetch = t.run, t.fetch
			m := t.clockMarks
			t.begin, t.schedule, t.upload, t.launch = f.landed, f.landed+m.schedule-m.begin, f.landed+m.upload-m.begin, f.landed+m.launch-m.begin
		}
		f.landed = t.fetch
		t.pass.sum = t.pass.sum.plus(t.clockMarks)
	}
	return nil
}

// results are the times of passes without spans, and the recorded steps.
func (f *benchFlow) results() (plain []clockMarks, traces []benchTrace) {
	for _, p := range f.passes {
		if !p.record {
			plain = append(plain, p.sum)
			continue
		}
		for _, t := range p.traces {
			traces = append(traces, *t)
		}
	}
	return plain, traces
}

// run does one step.
func (b *bench) run(r *benchResult, in *glm5.Batch, record bool) (benchTrace, error) {
	t, err := b.launch(r, in, record)
	if err == nil {
		err = b.wait(t)
	}
	return *t, err
}

func (b *bench) launch(r *benchResult, in *glm5.Batch, record bool) (*benchTrace, error) {
	t := &benchTrace{}
	m := b.model
	t.begin = kernels.Now()
	calls := m.Program(in)
	paused := kernels.Now() // what follows is no part of a step
	if r.of.cast {
		if r.changed == nil { // all steps of a case have the same calls
			var err error
			if r.changed, err = replay.WithCast(m, calls, b.slots(), b.copied); err != nil {
				return t, err
			}
		}
		calls = r.changed
	}
	if record {
		t.spans = make([][]kernels.Span, b.group.Ranks())
		for i := range t.spans {
			t.spans[i] = make([]kernels.Span, len(calls))
		}
		t.calls = slices.Clone(calls)
	}
	t.sampled = make([]kernels.Sampled, len(in.Logits))
	t.begin += kernels.Now() - paused
	t.schedule = kernels.Now()
	if err := m.Upload(in); err != nil {
		return t, err
	}
	t.upload = kernels.Now()
	err := m.Start(calls, t.spans, t.sampled)
	t.launch = kernels.Now()
	return t, err
}

func (b *bench) wait(t *benchTrace) error {
	err := b.group.Wait()
	t.run = b.group.Landed()
	t.fetch = t.run
	if t.spans != nil {
		for _, a := range b.group.Asides() {
			t.asides = append(t.asides, slices.Clone(a))
		}
	}
	return err
}
