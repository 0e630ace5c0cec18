package replay

import (
	"fmt"

	"glmbatch/datasets"
	"glmbatch/kernels"
	"glmbatch/replay/timeline"
)

// Timeline is the step as it was recorded: the rows that its job's timeline has of it.
// It is nil if the capture has no spans.
func (c *Capture) Timeline() []datasets.Span {
	if len(c.Spans) == 0 {
		return nil
	}
	t := kernels.Trace{Step: c.Step, Kind: c.Kind, Times: c.Times, Calls: c.Calls, Spans: c.Spans, Asides: c.Asides,
		Shared: c.Device.Shared}
	return timeline.Rows(nil, &t, 0)
}

// Timeline returns the recorded spans of the captures in files as one timeline.
func Timeline(files []string) ([]datasets.Span, error) {
	var rows []datasets.Span
	for _, file := range files {
		c, err := Load(file)
		if err != nil {
			return nil, err
		}
		of := c.Timeline()
		if of == nil {
			return nil, fmt.Errorf("%s has no spans of its step as recorded", file)
		}
		rows = append(rows, of...)
	}
	return rows, nil
}
