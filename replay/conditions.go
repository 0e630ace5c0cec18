package replay

import (
	"fmt"
	"slices"
	"strings"

	"glmbatch/telemetry"
)

// Bounds of what is a difference between two whiles.
const (
	otherLoad  = 0.2  // CPUs that others had more
	otherClock = 0.03 // of the faster clock
)

// conditions says what was different about the machine when a step was recorded, from
// what was measured then and now; "": there is nothing to say.
func conditions(was, now *telemetry.Conditions, cause string) string {
	if cause == CauseNone {
		return ""
	}
	if was == nil || now == nil {
		if cause == CauseSlow {
			return "nothing was recorded of clocks and load, so why is not known"
		}
		return ""
	}
	var found, same []string
	if was.CPUs > 0 && now.CPUs > 0 {
		text := fmt.Sprintf("others had %.1f of %d CPUs around the step, %.1f now", was.Others, was.CPUs, now.Others)
		if by := was.Others - now.Others; by >= otherLoad || by <= -otherLoad {
			found = append(found, "other load: "+text)
		} else {
			same = append(same, text)
		}
	}
	if w, n := was.GPU, now.GPU; w != nil && n != nil {
		if w.Clock > 0 && n.Clock > 0 {
			text := fmt.Sprintf("the GPU's clock was %d MHz, %d MHz now", w.Clock, n.Clock)
			if by := float64(w.Clock-n.Clock) / float64(max(w.Clock, n.Clock)); by >= otherClock || by <= -otherClock {
				found = append(found, "clocks: "+text)
			} else {
				same = append(same, text)
			}
		}
		if more := missing(w.Throttle, n.Throttle); len(more) > 0 {
			found = append(found, "clocks were lowered for "+strings.Join(more, " and ")+", which they are not now")
		}
		if more := missing(n.Throttle, w.Throttle); len(more) > 0 {
			found = append(found, "clocks are lowered now for "+strings.Join(more, " and "))
		}
	}
	switch {
	case len(found) > 0:
		return strings.Join(found, "; ")
	case len(same) > 0:
		return "neither load nor clocks differ by much: " + strings.Join(same, ", ")
	}
	return ""
}

// missing are the entries of a that b lacks.
func missing(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}
