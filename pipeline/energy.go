package pipeline

import (
	"math"
	"strings"

	"glmbatch/datasets"
	"glmbatch/telemetry"
)

// onGPU fills in how the GPUs were, whose meter began at some joules. What they did not
// tell stays null.
func onGPU(row *datasets.Step, g *telemetry.GPU, began float64) {
	if g == nil {
		return
	}
	throttle := strings.Join(g.Throttle, "+")
	row.GPUThrottle = &throttle
	row.GPUWatts, row.GPUMemory = known(g.Watts), known(g.Memory)
	row.GPUClock, row.GPUMemoryClock, row.GPUCelsius = known(int32(g.Clock)), known(int32(g.MemoryClock)), known(
		int32(g.Celsius))
	if g.Joules > 0 {
		used := max(0, g.Joules-began) // the reading may be from before the first step
		row.GPUJoules = &used
	}
}

// known is a figure; nil: it is 0, which is that nobody knows.
func known[T int32 | int64 | float64](v T) *T {
	if v == 0 {
		return nil
	}
	return &v
}

// energy adds up what GPUs used in the runs of a job, from the steps' column, which
// begins anew with each run.
type energy struct {
	sum, last float64
	known     bool
}

func (e *energy) add(joules *float64) {
	if joules == nil {
		return
	}
	if *joules < e.last { // another run's
		e.sum += e.last
	}
	e.last, e.known = *joules, true
}

// total is nil where no step has any.
func (e *energy) total() *float64 {
	if !e.known {
		return nil
	}
	j := math.Round(1e3*(e.sum+e.last)) / 1e3
	return &j
}

// setEnergy fills in what the GPUs used; nil: nobody knows.
func (e *ManifestEngine) setEnergy(joules *float64, c *ManifestCounts) {
	e.Joules, e.PerToken = joules, nil
	if tokens := c.PromptTokens + c.CompletionTokens; joules != nil && tokens > 0 {
		each := math.Round(1e6**joules/float64(tokens)) / 1e6
		e.PerToken = &each
	}
}
