package replay

import (
	"glmbatch/datasets"
	"glmbatch/engine/inflight"
	"glmbatch/kernels"
	"glmbatch/replay/timeline"
)

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
	ring := inflight.New(s.m)
	var origin int64
	for i := -warmup; i < times+ahead; i++ { // so that the host works in the last runs' time too
		if err = s.stopped(); err != nil {
			break
		}
		if err := s.launch(ring, calls, true); err != nil {
			return nil, err
		}
		if ring.Len() <= ahead {
			continue
		}
		t, err := s.land(ring)
		if err != nil {
			return nil, err
		}
		if t.Step -= int64(warmup); t.Step == 0 {
			origin = t.Times.Wall.Start
		}
		if t.Step >= 0 {
			rows = timeline.Rows(rows, &t, origin)
		}
	}
	for ring.Len() > 0 {
		if _, err := s.land(ring); err != nil {
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
func (s *restored) launch(ring *inflight.Ring, calls []kernels.Call, timed bool) error {
	x := ring.Next()
	x.Kind, x.Batch, x.Calls = s.c.Kind, s.batch, calls
	s.m.Program(&x.Batch) // takes its time, though other calls may run
	return ring.Launch(x, timed, nil)
}

// land waits for the oldest run.
func (s *restored) land(ring *inflight.Ring) (kernels.Trace, error) {
	x, err := ring.Land()
	if err != nil {
		return kernels.Trace{}, err
	}
	copy(s.sampled, x.Sampled)
	ring.Sampled()
	return x.Trace(), nil
}

// once runs a list once, without spans.
func (s *restored) once(calls []kernels.Call) (kernels.Trace, error) {
	ring := inflight.New(s.m)
	if err := s.launch(ring, calls, false); err != nil {
		return kernels.Trace{}, err
	}
	return s.land(ring)
}
