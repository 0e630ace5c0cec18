package pipeline

// Policy says which steps are timed call by call, for the timeline. The zero value
// is none.
type Policy struct {
	Every  int64 // each step with a number that this divides; 0: see Sample
	Sample bool  // of each kind of step some, evenly over the job: see [timeline.Sampler]
}

// On reports whether there is a timeline.
func (p Policy) On() bool { return p.Every > 0 || p.Sample }

// Trace returns the recorder's choice of steps, for engine.Options.Trace; nil: none
// is timed.
func (r *Recorder) Trace() func(step int64, kind string) bool {
	switch {
	case r.policy.Every > 0:
		return func(step int64, _ string) bool { return (step+r.base)%r.policy.Every == 0 }
	case r.policy.Sample:
		return func(step int64, kind string) bool { return r.sampled.Choose(step+r.base, kind) }
	}
	return nil
}
