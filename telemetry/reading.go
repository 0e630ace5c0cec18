package telemetry

import (
	"slices"
	"time"
)

// Reading is how things were at a moment.
type Reading struct {
	At   time.Time
	Host Host
	GPU  *GPU // nil: there is none, or it cannot be asked
}

// Host is what the machine's CPUs did so far. CPUs is 0 where that is not known.
type Host struct {
	CPUs int           // of the machine
	Own  time.Duration // that this process computed
	All  time.Duration // that anybody did, time that a virtual machine was refused included
}

// GPU is how the GPUs of a job are, taken together. 0 is unknown.
type GPU struct {
	Count       int      `json:"count"`
	Watts       float64  `json:"watts"`            // of all
	Joules      float64  `json:"joules"`           // of all, since some time in the past
	Clock       int      `json:"clock_mhz"`        // of the multiprocessors, of the slowest
	MemoryClock int      `json:"memory_clock_mhz"` // of the slowest
	Celsius     int      `json:"celsius"`          // of the hottest
	Memory      int64    `json:"memory_bytes"`     // in use, of all
	Throttle    []string `json:"throttle"`         // why a clock is lower than it could be; sorted
}

// Join takes one more GPU into g.
func (g *GPU) Join(o GPU) {
	least := func(a, b int) int {
		if g.Count == 0 {
			return b
		}
		return min(a, b)
	}
	g.Clock, g.MemoryClock = least(g.Clock, o.Clock), least(g.MemoryClock, o.MemoryClock)
	g.Count += max(1, o.Count)
	g.Watts, g.Joules, g.Memory, g.Celsius = g.Watts+o.Watts, g.Joules+o.Joules, g.Memory+
		o.Memory, max(g.Celsius, o.Celsius)
	for _, t := range o.Throttle {
		if !slices.Contains(g.Throttle, t) {
			g.Throttle = append(g.Throttle, t)
		}
	}
	slices.Sort(g.Throttle)
}

// Conditions are what a while was like.
type Conditions struct {
	Seconds float64 `json:"seconds"`
	CPUs    int     `json:"cpus"`   // of the machine; 0: what follows is unknown
	Own     float64 `json:"own"`    // CPUs that this process had in the mean
	Others  float64 `json:"others"` // CPUs that all else had
	GPU     *GPU    `json:"gpu"`    // at the end; Watts and Joules are of the while. nil: none
}

// Between says what the time between two readings was like.
func Between(a, b Reading) Conditions {
	c := Conditions{Seconds: b.At.Sub(a.At).Seconds()}
	if c.Seconds <= 0 {
		return c
	}
	if a.Host.CPUs > 0 && b.Host.CPUs > 0 {
		c.CPUs = b.Host.CPUs
		own, all := (b.Host.Own - a.Host.Own).Seconds(), (b.Host.All - a.Host.All).Seconds()
		c.Own, c.Others = max(0, own)/c.Seconds, max(0, all-own)/c.Seconds
	}
	if a.GPU != nil && b.GPU != nil {
		g := *b.GPU
		g.Throttle = slices.Clone(g.Throttle)
		if g.Joules = 0; b.GPU.Joules > a.GPU.Joules && a.GPU.Joules > 0 {
			g.Joules = b.GPU.Joules - a.GPU.Joules
			g.Watts = g.Joules / c.Seconds
		}
		for _, t := range a.GPU.Throttle {
			if !slices.Contains(g.Throttle, t) {
				g.Throttle = append(g.Throttle, t)
			}
		}
		slices.Sort(g.Throttle)
		g.Clock = min(g.Clock, a.GPU.Clock)
		c.GPU = &g
	}
	return c
}
