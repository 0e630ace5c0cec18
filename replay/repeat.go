package replay

import (
	"glmbatch/datasets"
	"glmbatch/kernels"
	"glmbatch/replay/timeline"
)

// repeats are the runs of one list. As in a job they are launched ahead where lists
// run beside the host: then a run lasts from the landing of the one before to its
// own, and the host's work in it is that for the next.
type repeats struct {
	*restored
	calls  []kernels.Call
	ring   [kernels.MaxAhead]repeat // whose memory is used again
	flying []*repeat
	landed int64 // when the last one landed; 0: none has
}

// repeat is one run on its way.
type repeat struct {
	number  int64
	times   timeline.HostTimes
	spans   [][]kernels.Span
	sampled []kernels.Sampled
}

// ahead is how many runs are launched before the one before them has landed.
func (s *restored) ahead() int {
	if s.m.Group().Info().Beside {
		return kernels.MaxAhead - 1
	}
	return 0
}

// inPlace runs a list so many times and returns the rows of its timeline: step i
// is the i-th repeat. ahead is at most kernels.MaxAhead - 1.
func (s *restored) inPlace(calls []kernels.Call, warmup, times, ahead int) (rows []datasets.Span, err error) {
	r := repeats{restored: s, calls: calls}
	var origin int64
	for i := -warmup; i < times+ahead; i++ { // so that the host works in the last runs' time too
		if err = s.stopped(); err != nil {
			break
		}
		if err := r.launch(int64(i)); err != nil {
			return nil, err
		}
		if len(r.flying) <= ahead {
			continue
		}
		x, host, err := r.land()
		if err != nil {
			return nil, err
		}
		if x.number == 0 {
			origin = x.times.Begin
		}
		if x.number < 0 {
			continue
		}
		t := kernels.Trace{Step: x.number, Calls: calls, Spans: x.spans, Shared: s.m.Group().Info().Shared}
		rows = timeline.Rows(rows, t, timeline.Step{Kind: s.c.Kind, Start: x.times.Begin, End: x.times.End, Origin: origin}, host)
	}
	for len(r.flying) > 0 {
		if _, _, err := r.land(); err != nil {
			return nil, err
		}
	}
	return rows, err
}

// stopped is the error that ends the replay between two runs.
func (s *restored) stopped() error {
	if s.stop == nil {
		return nil
	}
	return s.stop()
}

// launch starts a run as the engine does.
func (r *repeats) launch(number int64) error {
	x := &r.ring[uint64(number)%kernels.MaxAhead]
	if x.spans == nil {
		x.spans, x.sampled = r.spans(len(r.calls)), make([]kernels.Sampled, len(r.sampled))
	}
	x.number = number
	h := &x.times
	h.Begin = kernels.Now()
	r.m.Program(&r.batch)
	h.Scheduled = kernels.Now()
	if err := r.m.Upload(&r.batch); err != nil {
		return err
	}
	h.Uploaded = kernels.Now()
	if err := r.m.Start(r.calls, x.spans, x.sampled); err != nil {
		return err
	}
	h.Launched = kernels.Now()
	r.flying = append(r.flying, x)
	return nil
}

// land waits for the oldest run and returns it with what the host did in its time.
func (r *repeats) land() (*repeat, []timeline.HostSpan, error) {
	x := r.flying[0]
	r.flying = r.flying[1:]
	if err := r.m.Group().Wait(); err != nil {
		return nil, nil, err
	}
	now := r.m.Group().Landed()
	did := x.times
	if len(r.flying) > 0 && r.landed > 0 {
		did = r.flying[0].times
	}
	if r.landed > x.times.Begin { // launched ahead
		x.times.Begin = r.landed
	}
	did.Ran, did.End, x.times.End = now, now, now
	r.landed = now
	copy(r.sampled, x.sampled)
	return x, did.Phases(x.spans), nil
}
