package pipeline

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestStopText: however the text is cut into pieces, it ends before the first
// stop string, or is whole if there is none.
func TestStopText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 1, 4, -1)
		stops := rapid.SliceOfN(letters, 1, 3).Draw(t, "stops")
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 0, 40, -1).Draw(t, "text")
		s := &stopText{stops: stops, with: rapid.Bool().Draw(t, "with")}
		found := false
		for _, r := range text {
			if found = s.grow(string(r)); found {
				break
			}
		}
		// The first stop string to be complete ends the text; of those complete
		// at once, the one that begins first.
		want, done := text, false
		for end := range len(text) + 1 {
			for _, stop := range stops {
				if at := strings.Index(text[:end], stop); at >= 0 && (!done || at < len(want)) {
					want, done = text[:at], true
				}
			}
			if done {
				break
			}
		}
		if done && s.with {
			want += s.by
		}
		if done && !slices.Contains(stops, s.by) {
			t.Fatalf("ended by %q", s.by)
		}
		if found != done || string(s.text) != want {
			t.Fatalf("%q with stops %q: %q, %v; want %q, %v", text, stops, s.text, found, want, done)
		}
	})
}
