package timeline

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestSamplerIsEven: of each kind, of whatever order of kinds, at most SampleSteps are
// kept, all where there are no more, else about half as many at least, and in each
// quarter of a kind's steps about as many.
func TestSamplerIsEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Sampler
		period := rapid.Int64Range(1, 9).Draw(t, "period")
		steps := rapid.Int64Range(1, 20_000).Draw(t, "steps")
		first := rapid.Int64Range(0, 1<<40).Draw(t, "first")
		kindOf := func(step int64) string {
			switch {
			case step-first == 0:
				return "prefill"
			case step%period == 0:
				return "mixed"
			}
			return "decode"
		}
		all, taken := map[string][]int64{}, map[int64]bool{}
		most := map[string]int{}
		for step := first; step < first+steps; step++ {
			kind := kindOf(step)
			all[kind] = append(all[kind], step)
			if s.Choose(step, kind) {
				taken[step] = true
				most[kind]++
			}
		}
		for kind, of := range all {
			kept := [4]int{}
			n := 0
			for i, step := range of {
				if taken[step] && s.Keeps(step, kind) {
					kept[4*i/len(of)]++
					n++
				}
			}
			if len(of) <= SampleSteps && n != len(of) {
				t.Fatalf("%d of %d %s steps", n, len(of), kind)
			}
			if len(of) <= SampleSteps {
				continue
			}
			if n > SampleSteps || n < SampleSteps/4 {
				t.Fatalf("%d of %d %s steps", n, len(of), kind)
			}
			for _, quarter := range kept {
				if math.Abs(float64(quarter)-float64(n)/4) > 5*math.Sqrt(float64(n)/4) {
					t.Fatalf("%s: %v of its quarters", kind, kept)
				}
			}
			if most[kind] > SampleSteps*(2+int(math.Log2(float64(len(of))/SampleSteps))) {
				t.Fatalf("%d of %d %s steps were taken", most[kind], len(of), kind)
			}
		}
	})
}

// TestSamplerGoesOn: a sampler that has seen the same steps chooses the same.
func TestSamplerGoesOn(t *testing.T) {
	var a, b Sampler
	for step := range int64(5000) {
		if a.Choose(step, "decode") != b.Choose(step, "decode") {
			t.Fatal(step)
		}
	}
	if !a.Dropped() {
		t.Error("5,000 steps, and nothing was dropped")
	}
}
