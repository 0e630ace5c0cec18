package pipeline

import (
	"sync"

	"glmbatch/kernels"
	"glmbatch/replay/timeline"
)

// hostPhase is a phase of the host outside the engine's steps.
type hostPhase struct{ name, lane string }

var (
	phaseRead       = hostPhase{"read", timeline.LaneRead}
	phaseTokenize   = hostPhase{"tokenize", timeline.LaneTokenize}
	phaseDetokenize = hostPhase{"detokenize", timeline.LaneHost}
	phaseWrite      = hostPhase{"write", timeline.LaneWrite}
)

// hostClock collects host phases from many goroutines until the recorder takes
// them. A nil clock takes nothing.
type hostClock struct {
	mu    sync.Mutex
	spans []timeline.HostSpan
}

// maxHostSpans bounds what is kept between two takes.
const maxHostSpans = 1 << 16

// add records a phase that began at start and ends now.
func (c *hostClock) add(p hostPhase, start int64) {
	if c == nil {
		return
	}
	end := kernels.Now()
	c.mu.Lock()
	if len(c.spans) < maxHostSpans {
		c.spans = append(c.spans, timeline.HostSpan{Name: p.name, Lane: p.lane,
			Interval: kernels.Interval{Start: start, End: end}})
	}
	c.mu.Unlock()
}

// take returns what was collected and starts anew, in the memory of spare.
func (c *hostClock) take(spare []timeline.HostSpan) []timeline.HostSpan {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.spans
	c.spans = spare[:0]
	return s
}
