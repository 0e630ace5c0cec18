package replay

import (
	"strings"
	"testing"

	"glmbatch/telemetry"
)

// TestConditions: why a step was slow is said from what was measured then and now.
func TestConditions(t *testing.T) {
	host := func(others float64) *telemetry.Conditions {
		return &telemetry.Conditions{Seconds: 1, CPUs: 8, Others: others}
	}
	gpu := func(clock int, throttle ...string) *telemetry.Conditions {
		return &telemetry.Conditions{Seconds: 1, GPU: &telemetry.GPU{Count: 1, Clock: clock, Throttle: throttle}}
	}
	for _, c := range []struct {
		was, now    *telemetry.Conditions
		cause, says string
	}{
		{host(3), host(0.1), CauseSlow, "other load: others had 3.0 of 8 CPUs around the step, 0.1 now"},
		{host(0.1), host(0.2), CauseSlow, "neither load nor clocks differ by much: others had 0.1"},
		{gpu(1200, "power cap"), gpu(1980), CauseSlow,
			"clocks: the GPU's clock was 1200 MHz, 1980 MHz now; clocks were lowered for power cap, which they are " +
				"not now"},
		{gpu(1980), gpu(1980), CauseStall, "the GPU's clock was 1980 MHz, 1980 MHz now"},
		{gpu(1980), gpu(1500, "thermal (driver)"), CauseShort, "clocks are lowered now for thermal (driver)"},
		{nil, host(0), CauseSlow, "nothing was recorded of clocks and load"},
		{nil, host(0), CauseStall, ""},
		{host(3), host(0), CauseNone, ""},
	} {
		if got := conditions(c.was, c.now, c.cause); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%+v, %+v: %q, want %q", c.was, c.now, got, c.says)
		}
	}
}
