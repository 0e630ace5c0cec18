package timeline

import (
	"slices"

	"glmbatch/kernels"
)

// HostSpan is a phase of the host.
type HostSpan struct {
	Name string // read, tokenize, schedule, upload, launch, wait, sample, detokenize, write
	Lane string // "": [LaneHost]
	kernels.Interval
}

// phases are what the thread that drives the ranks did in a step.
//
// While calls run it has no phase: wait begins when the last has ended on all ranks,
// and where a list was over as soon as it was launched, launch ends when the first
// starts. Without spans the two are not told, nor where
// nobody knows when it waited. What took no time is left out.
func phases(t *kernels.Trace) []HostSpan {
	h := &t.Times
	host := []HostSpan{{Name: "schedule", Interval: h.Schedule}, {Name: "upload", Interval: h.Upload}}
	uploaded, launched, ended := h.Upload.End, h.Launch.End, h.Device.End
	busy, _ := t.Busy()
	first, last := min(ended, busy.Start), max(uploaded, busy.End)
	if first < last && ended > 0 {
		if launched >= last || launched <= uploaded {
			launched = max(uploaded, first)
		}
		host = append(host, HostSpan{Name: "launch", Interval: kernels.Interval{Start: uploaded, End: launched}})
		host = append(host, HostSpan{Name: "wait", Interval: kernels.Interval{Start: max(launched, min(last, ended)),
			End: ended}})
	}
	sample := HostSpan{Name: "sample", Interval: h.Sample}
	if h.Ahead() { // of the step before
		host = slices.Insert(host, 0, sample)
	} else {
		host = append(host, sample)
	}
	return slices.DeleteFunc(host, func(s HostSpan) bool { return s.NS() <= 0 })
}
