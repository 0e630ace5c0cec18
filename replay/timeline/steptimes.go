package timeline

import "glmbatch/kernels"

// StepTimes are when a step of an engine began and how long its phases took, in ns of
// [kernels.Now]; engine.StepInfo says what they are.
type StepTimes struct {
	Start, Wall                              int64
	Schedule, Upload, Launch, Device, Sample int64
	Ahead                                    bool
}

// Phases are what the driving thread did in the step.
func (t *StepTimes) Phases(spans [][]kernels.Span) []HostSpan {
	begin, end := t.Start, t.Start+t.Wall
	ran := end - t.Sample
	var before []HostSpan
	if t.Ahead { // it began with the tokens of the step before and ended with waiting
		before = []HostSpan{{Name: "sample", Start: begin, End: begin + t.Sample}}
		begin, ran = end-t.Device-t.Launch-t.Upload-t.Schedule, end
	}
	p := HostTimes{Begin: begin, Scheduled: begin + t.Schedule, Ran: ran, End: end}
	p.Uploaded = p.Scheduled + t.Upload
	p.Launched = p.Uploaded + t.Launch
	return append(before, p.Phases(spans)...)
}
