package report

import (
	"fmt"

	"glmbatch/datasets"
)

// Energy is what a job's GPUs used, by their meters, from its first step to its last.
type Energy struct {
	Joules     float64 `json:"joules"`
	PerToken   float64 `json:"joules_per_token"`   // computed
	PerSampled float64 `json:"joules_per_sampled"` // and of those that are output
	Watts      float64 `json:"watts"`              // while steps ran
}

// energyBook adds up the steps' column, which begins anew with each run and shard.
type energyBook struct {
	sum, last float64
	seconds   float64 // of the steps that have it
	known     bool
}

func (b *energyBook) add(s *datasets.Step) {
	if s.GPUJoules == nil {
		return
	}
	if *s.GPUJoules < b.last {
		b.sum += b.last
	}
	b.last, b.known = *s.GPUJoules, true
	b.seconds += float64(s.WallNS) / 1e9
}

// of is the energy of a job's steps; nil: no step has any.
func (b *energyBook) of(all *StepKind) *Energy {
	if !b.known || all == nil {
		return nil
	}
	e := &Energy{Joules: b.sum + b.last}
	if all.Tokens > 0 {
		e.PerToken = e.Joules / float64(all.Tokens)
	}
	if all.Sampled > 0 {
		e.PerSampled = e.Joules / float64(all.Sampled)
	}
	if b.seconds > 0 {
		e.Watts = e.Joules / b.seconds
	}
	return e
}

// text says it in a line.
func (e *Energy) text() string {
	if e == nil {
		return "energy: not measured, as no GPU told what it used"
	}
	return fmt.Sprintf("energy: %s J, %s J a token computed, %s J a token sampled, %s W in the mean", figure(e.Joules),
		figure(e.PerToken), figure(e.PerSampled), figure(e.Watts))
}
