package kernels

import "math"

// What a step computes: its kind, as files and reports name it.
const (
	Prefill = "prefill" // prompts only
	Decode  = "decode"  // each sequence computes the one token that it generated last
	Mixed   = "mixed"   // both
)

// StepKinds are the kinds of steps, in the order of reports.
var StepKinds = []string{Prefill, Mixed, Decode}

// Interval is the time [Start, End), in nanoseconds of [Now].
type Interval struct {
	Start int64 `json:"start_ns"`
	End   int64 `json:"end_ns"`
}

// NS is the interval's length.
func (i Interval) NS() int64 { return i.End - i.Start }

// Times are when a step was, and what the thread that drives the ranks did in that
// time: the one record of a step's times, from the ranks to files and reports. What
// lies in none of the phases is the caller's.
//
// The step is the time from the start of Schedule to the end of Sample, and its
// phases follow each other. Of a step that was launched before the one before it had
// landed, the host's work was done while the ranks computed that one: then the step
// is the time from that one's landing to its own, and in it the host gave out that
// one's tokens (Sample, first), scheduled and launched the next (Schedule, Upload,
// Launch) and waited (Device, last).
type Times struct {
	Wall     Interval `json:"wall"`     // the step
	Schedule Interval `json:"schedule"` // choosing the batch and writing its list of calls
	Upload   Interval `json:"upload"`   // its inputs
	Launch   Interval `json:"launch"`   // starting the list; empty where that takes as long as it runs
	Device   Interval `json:"device"`   // from then on until its end
	Sample   Interval `json:"sample"`   // fetching tokens, stop rules
}

// Ahead reports whether the step was launched before the one before it had landed.
func (t *Times) Ahead() bool { return t.Sample.Start < t.Schedule.Start }

// Busy is the time from the start of the first call to the end of the last, on any
// rank; ok: there is one.
func (t *Trace) Busy() (busy Interval, ok bool) {
	busy = Interval{math.MaxInt64, math.MinInt64}
	for _, rank := range t.Spans {
		for _, s := range rank {
			if s.End > s.Start {
				busy = Interval{min(busy.Start, s.Start), max(busy.End, s.End)}
			}
		}
	}
	return busy, busy.Start < busy.End
}
