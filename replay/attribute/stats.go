package attribute

import (
	"math"
	"slices"
)

// Stat is the median of a value over steps or repeats, with the 95 % bootstrap
// interval of the median. N is how many values there were; with fewer than two
// the interval is the value itself and says nothing.
type Stat struct {
	Median int64 `json:"median_ns"`
	Lo     int64 `json:"lo_ns"`
	Hi     int64 `json:"hi_ns"`
	N      int   `json:"n"`
}

// MedianOf returns the statistics of values, which it does not change.
//
// The interval is the percentile bootstrap's in the limit of infinitely many
// resamples, which for a median needs no random numbers: a resample's median is
// at most the k-th smallest of n values with the probability that at least half
// of n draws fall among the k smallest (Efron 1979, section 3).
func MedianOf(values []int64) Stat {
	n := len(values)
	if n == 0 {
		return Stat{}
	}
	v := slices.Clone(values)
	slices.Sort(v)
	s := Stat{Median: v[n/2], Lo: v[0], Hi: v[n-1], N: n}
	if n%2 == 0 {
		s.Median = v[n/2-1] + (v[n/2]-v[n/2-1])/2
	}
	lo, hi := medianRanks(n)
	s.Lo, s.Hi = v[lo], v[hi]
	return s
}

// medianRanks returns the positions, in n sorted values, of the 2.5 % and 97.5 %
// quantiles of a resample's median. They lie symmetrically.
func medianRanks(n int) (lo, hi int) {
	if n > 1000 {
		// The binomial is normal by now.
		k := max(1, int(float64(n)/2-1.96*math.Sqrt(float64(n))/2))
		return k - 1, n - k
	}
	need := (n + 1) / 2 // draws among the k smallest that put the median there
	k := 1 + searchFirst(n, func(i int) bool { return binomialTail(n, need, float64(i+1)/float64(n)) > 0.025 })
	return k - 1, n - k
}

// searchFirst returns the first i in [0, n) with ok(i), or n-1; ok must be
// monotonic.
func searchFirst(n int, ok func(int) bool) int {
	lo, hi := 0, n-1
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if ok(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// binomialTail is the probability of at least need successes in n draws.
func binomialTail(n, need int, p float64) float64 {
	if p >= 1 {
		return 1
	}
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	sum := 0.0
	for i := need; i <= n; i++ {
		term := math.Exp(lg(n) - lg(i) - lg(n-i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
		sum += term
		if term < 1e-18 && float64(i) > p*float64(n) {
			break
		}
	}
	return sum
}

// Apart says whether two medians differ for sure: their intervals do not overlap
// and each has enough values to have one.
func (s Stat) Apart(o Stat) bool {
	if s.N < minSteps || o.N < minSteps {
		return false
	}
	s, o = s.widened(), o.widened()
	return s.Hi < o.Lo || o.Hi < s.Lo
}

// minSteps is the least number of steps from which a difference can be told.
const minSteps = 3

// slack is the share of their range by which the interval of a few values is
// widened at both ends: so few lie too close together for 95 %, and Student's
// interval of normal values is about that much wider.
var slack = map[int]float64{3: 1, 4: 0.3, 5: 0.05}

func (s Stat) widened() Stat {
	by := int64(slack[s.N] * float64(s.Hi-s.Lo))
	s.Lo, s.Hi = s.Lo-by, s.Hi+by
	return s
}
