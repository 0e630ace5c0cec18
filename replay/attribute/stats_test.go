package attribute

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMedianOf(t *testing.T) {
	for _, c := range []struct {
		values []int64
		want   Stat
	}{
		{nil, Stat{}},
		{[]int64{7}, Stat{7, 7, 7, 1}},
		{[]int64{9, 1, 5}, Stat{5, 1, 9, 3}},
		{[]int64{4, 1, 3, 2}, Stat{2, 1, 4, 4}},
	} {
		if got := MedianOf(c.values); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.values, got, c.want)
		}
	}
}

// The interval without random numbers is the one that resampling tends to.
func TestIntervalIsTheBootstraps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{5, 11, 30, 101, 400, 1501} {
		values := make([]int64, n)
		for i := range values {
			values[i] = int64(i) // a value is its own rank
		}
		const resamples = 4000
		medians := make([]int64, resamples)
		draw := make([]int64, n)
		for i := range medians {
			for j := range draw {
				draw[j] = int64(rng.IntN(n))
			}
			slices.Sort(draw)
			medians[i] = draw[n/2]
		}
		slices.Sort(medians)
		s := MedianOf(values)
		near := int64(1 + n/100)
		if d := s.Lo - medians[resamples*25/1000]; d < -near || d > near {
			t.Errorf("n %d: lower end %d, resampling gives %d", n, s.Lo, medians[resamples*25/1000])
		}
		if d := s.Hi - medians[resamples*975/1000]; d < -near || d > near {
			t.Errorf("n %d: upper end %d, resampling gives %d", n, s.Hi, medians[resamples*975/1000])
		}
	}
}

func TestIntervalHoldsTheMedian(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(-1000, 1000), 1, 60).Draw(t, "values")
		before := slices.Clone(values)
		s := MedianOf(values)
		if s.Lo > s.Median || s.Median > s.Hi || s.N != len(values) {
			t.Fatalf("%+v", s)
		}
		if !slices.Equal(before, values) {
			t.Fatal("the values were changed")
		}
		if s.Apart(s) {
			t.Fatal("a median differs from itself")
		}
	})
}
