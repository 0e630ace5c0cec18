package attribute

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLengths holds the least, the middle and the most of any spans' lengths.
func TestLengths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1<<40), 1, 300).Draw(t, "lengths")
		var c cost
		for _, v := range values {
			c.length(v)
		}
		slices.Sort(values)
		want := values[(len(values)-1)/2]
		if c.lengths.min != values[0] || c.lengths.max != values[len(values)-1] {
			t.Fatalf("from %d to %d, want %d to %d", c.lengths.min, c.lengths.max, values[0], values[len(values)-1])
		}
		if got := c.lengths.median(); got > want || float64(got) < float64(want)*(1-1.0/512) || want < 1024 &&
			got != want {
			t.Fatalf("median %d, want %d", got, want)
		}
	})
}
