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
	t := kernels.Trace{Step: c.Step, Kind: c.Kind, Times: c.Times, Calls: c.Calls, Spans: c.Spans, Asides: c.Asides, Shared: c.Device.Shared}
	return timeline.Rows(nil, &t, 0)
}

// WriteTimeline writes the recorded spans of the captures in files as one timeline.
func WriteTimeline(path string, files []string) error {
	w, err := datasets.Create[datasets.Span](path, nil)
	if err != nil {
		return err
	}
	for _, file := range files {
		c, err := Load(file)
		var rows []datasets.Span
		if err == nil {
			if rows = c.Timeline(); rows == nil {
				err = fmt.Errorf("%s has no spans of its step as recorded", file)
			}
		}
		if err == nil {
			err = w.Write(rows)
		}
		if err != nil {
			w.Abort()
			return err
		}
	}
	return w.Close()
}
