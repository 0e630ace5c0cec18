package datasets

import (
	"encoding/json"
	"fmt"
)

// PeriodsKey is the key under which a timeline's file metadata has the periods of
// its steps, as a JSON list of [Period].
const PeriodsKey = "glmbatch.periods"

// MaxPeriods bounds the periods of a timeline.
const MaxPeriods = 1 << 17

// Period is the time of a step on one rank, host and device together, and for how
// long the rank's device idled in it, by cause. Importers store it, since they see
// the calls of all threads and the work of all steps at once.
type Period struct {
	Step  int64            `json:"step"` // -1: the time between steps; it has no start and end
	Rank  int32            `json:"rank"`
	Start int64            `json:"start_ns"`
	End   int64            `json:"end_ns"`
	Idle  map[string]int64 `json:"idle_ns,omitempty"`  // cause -> ns
	Waits map[string]int64 `json:"waits_ns,omitempty"` // what of IdleWait was in which call
}

// The causes of idle time. They add up to all time in which no work of the rank ran.
const (
	IdleLaunch     = "launch"     // what came next was not launched yet
	IdleWait       = "wait"       // the same, and the host was in a call that waits for the device
	IdleQueue      = "queue"      // what came next was launched
	IdleDependency = "dependency" // the same, and its stream was free: work of another stream ended first
	IdleHost       = "host"       // nothing more came, and the host was still in the step
	IdleProfiler   = "profiler"   // a profiler held the host up
	IdleUnknown    = "unknown"    // the launch is not in the trace
)

// Periods returns what an importer stored about the time of the steps.
func (r *SpanReader) Periods() ([]Period, error) {
	text, ok := r.source.metadata(PeriodsKey)
	if !ok {
		return nil, nil
	}
	var p []Period
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, badFile(r.path, fmt.Errorf("metadata %s: %w", PeriodsKey, err))
	}
	for i := range p {
		if p[i].End < p[i].Start {
			return nil, badFile(r.path, fmt.Errorf("metadata %s: step %d of rank %d ends before it starts", PeriodsKey,
				p[i].Step, p[i].Rank))
		}
	}
	return p, nil
}
