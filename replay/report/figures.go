package report

import (
	"fmt"
	"strconv"
	"strings"

	"glmbatch/replay/attribute"
)

// mean is a sum over steps and ranks as the mean of one.
func mean(s *attribute.Section, ns int64) float64 {
	return float64(ns) / float64(max(1, s.RankSteps))
}

// perStep is how many calls a rank makes in a step, on average.
func perStep(s *attribute.Section, calls int64) float64 {
	return float64(calls) / float64(max(1, s.RankSteps))
}

// rate is an amount over the time of its spans, in 10^9 a second: a rank's, or
// the machine's where the ranks share it.
func rate(s *attribute.Section, amount, ns int64) float64 {
	if ns <= 0 {
		return 0
	}
	r := float64(amount) / float64(ns)
	if s.Shared {
		r *= float64(s.Ranks)
	}
	return r
}

func ms(ns float64) string { return fmt.Sprintf("%.3f", ns/1e6) }

// figure is a number with three figures or more.
func figure(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f >= 100:
		return thousands(int64(f + 0.5))
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	case f >= 0.01:
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.2g", f)
}

// thousands is a number with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// count is a number of calls a step.
func count(f float64) string {
	if f == float64(int64(f)) {
		return thousands(int64(f))
	}
	return fmt.Sprintf("%.1f", f)
}

func times(calls float64) string {
	if calls == 1 {
		return "1 call"
	}
	return count(calls) + " calls"
}
