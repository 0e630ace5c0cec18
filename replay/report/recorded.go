package report

import (
	"fmt"
	"math"

	"glmbatch/replay/attribute"
)

// Recorded says of the steps of one kind which of them a timeline has, and how far
// their mean may be from that of all.
type Recorded struct {
	Kind      string  `json:"kind"`
	Steps     int64   `json:"steps"`      // in the timeline
	Of        int64   `json:"of"`         // in the job; 0: there is no table of steps
	MeanNS    float64 `json:"mean_ns"`    // of those in the timeline
	LoNS      float64 `json:"lo_ns"`      // with HiNS, the 99 % interval of the mean of so many steps, drawn at random
	HiNS      float64 `json:"hi_ns"`      // from the job's; equal where all were recorded
	AllNS     float64 `json:"all_ns"`     // mean of the job's
	WorstNS   int64   `json:"worst_ns"`   // of the job's steps, or of those in the timeline
	WorstStep int64   `json:"worst_step"` // its number
}

// deviations that a mean is farther off in one of a hundred draws only.
const deviations99 = 2.576

// Agrees reports whether the job's mean is inside the interval.
func (r *Recorded) Agrees() bool {
	const rounding = 1 // ns, of means over ranks
	return r.Of == 0 || r.AllNS >= r.LoNS-rounding && r.AllNS <= r.HiNS+rounding
}

// recordedOf sums the steps of the timeline.
func recordedOf(found []stepInfo) []Recorded {
	var list []Recorded
	for _, s := range found {
		r := recordedKind(list, s.Kind)
		if r == nil {
			list = append(list, Recorded{Kind: s.Kind, WorstNS: -1})
			r = &list[len(list)-1]
		}
		r.Steps++
		r.MeanNS += float64(s.Wall)
		if s.Wall > r.WorstNS {
			r.WorstNS, r.WorstStep = s.Wall, s.Step
		}
	}
	for i := range list {
		list[i].MeanNS /= float64(list[i].Steps)
		list[i].LoNS, list[i].HiNS = list[i].MeanNS, list[i].MeanNS
	}
	return list
}

func recordedKind(list []Recorded, kind string) *Recorded {
	for i := range list {
		if list[i].Kind == kind {
			return &list[i]
		}
	}
	return nil
}

// Beside sets the recorded steps beside all of the job, and says so where they differ
// by more than the choice of steps explains.
func (r *Report) Beside(t *Throughput) {
	if t == nil {
		return
	}
	r.Throughput = t.Kinds
	for i := range r.Recorded {
		k, all := &r.Recorded[i], t.of(r.Recorded[i].Kind)
		if all == nil || all.Steps < k.Steps {
			continue // steps of a table that lacks some, as a kill leaves it
		}
		k.Of, k.AllNS = all.Steps, float64(all.WallNS)/float64(all.Steps)
		k.WorstNS, k.WorstStep = all.MaxNS, all.MaxStep
		half := deviations99 * all.deviation * math.Sqrt((1-float64(k.Steps)/float64(k.Of))/float64(k.Steps))
		k.LoNS, k.HiNS = k.MeanNS-half, k.MeanNS+half
		if !k.Agrees() {
			longer := "longer"
			if k.MeanNS < k.AllNS {
				longer = "shorter"
			}
			r.Warnings = append(r.Warnings, fmt.Sprintf("the %s %ss that were recorded took %s ms in the mean, all "+
				"%s %s ms: they are %s than the choice of steps explains",
				thousands(k.Steps), stepName(k.Kind), ms(k.MeanNS), thousands(k.Of), ms(k.AllNS), longer))
		}
	}
}

// text says how many of a kind's steps were recorded, and what that makes of the mean.
func (r *Recorded) text() string {
	switch {
	case r.Of == 0:
		return ""
	case r.Of == r.Steps && r.Of == 1:
		return "; the only one was recorded"
	case r.Of == r.Steps:
		return fmt.Sprintf("; all %s steps were recorded", thousands(r.Of))
	}
	return fmt.Sprintf("; %s of %s steps were recorded, so that the mean of all is within %s to %s ms (99 %%): it "+
		"is %s ms",
		thousands(r.Steps), thousands(r.Of), ms(max(0, r.LoNS)), ms(r.HiNS), ms(r.AllNS))
}

// worst says how long the longest step took, which a mean hides.
func (r *Report) worst(s *attribute.Section) string {
	k := recordedKind(r.Recorded, s.Kind)
	if k == nil || s.Steps < 2 && k.Of < 2 {
		return ""
	}
	return fmt.Sprintf("; worst %s, step %d", ms(float64(k.WorstNS)), k.WorstStep)
}
