package guide

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// What a matcher says of drafts, it says of the same tokens when they have come: which of
// them may come and what may follow each, wherever they end, and whether or not they come.
func TestDrafts(t *testing.T) {
	g, _ := newGuides(t, Options{Boxes: 1})
	right, wrong := 0, 0
	for i, s := range some(t) {
		for seed := range 6 {
			rng, thinking := seeded(uint64(10*i+seed)), seed%2 == 1
			m := g.Start(s, thinking)
			var text []int32
			for len(text) < 40 {
				next := onward(t, g, s, thinking, text, rng)
				if len(next) == 0 {
					break
				}
				drafts := onward(t, g, s, thinking, text, rng) // mostly another way
				if rng.IntN(2) == 0 {
					drafts = next[:rng.IntN(len(next))]
				}
				drafts = slices.Clone(drafts)
				if n := len(drafts); n > 0 && rng.IntN(2) == 0 {
					drafts[rng.IntN(n)] = rng.Int32N(int32(g.vocab.tokens))
				}
				if rng.IntN(2) == 0 { // nothing is behind an end
					drafts = slices.Concat(drafts, demoEnds[:1], next)
				}
				sets := setsBehind(t, g, s, thinking, text, drafts)
				m.Ask(drafts...)
				if n := m.May(); n != len(sets)-1 {
					t.Fatalf("%v behind %v: %d may come, want %d", drafts, text, n, len(sets)-1)
				}
				for k, want := range sets {
					if got := setOf(t, m, k); !slices.Equal(got, want) {
						t.Fatalf("behind %v and %v: other sets of tokens", text, drafts[:k])
					}
				}
				if _, err := m.Mask(len(sets), make([]uint64, len(sets[0]))); err == nil {
					t.Fatal("there is a set behind drafts that cannot come")
				}
				right, wrong = right+len(sets)-1, wrong+len(drafts)-len(sets)+1
				if rng.IntN(4) == 0 { // the box is another from here on
					done := make(chan struct{})
					g.benches[0].jobs <- func() {
						if g.benches[0].box != nil {
							g.benches[0].drop()
						}
						close(done)
					}
					<-done
				}
				came := next[:1+rng.IntN(len(next))]
				m.Add(came...)
				text = append(text, came...)
			}
			m.Close()
		}
	}
	if right == 0 || wrong == 0 {
		t.Errorf("%d drafts may come, %d may not", right, wrong)
	}
}

func setOf(t *testing.T, m *Matcher, drafts int) []uint64 {
	t.Helper()
	set := make([]uint64, (m.g.vocab.tokens+63)/64)
	if _, err := m.Mask(drafts, set); err != nil {
		t.Fatalf("behind %d drafts: %v", drafts, err)
	}
	return set
}

// onward draws some tokens that may follow a text, up to the end.
func onward(t *testing.T, g *Guides, s Spec, thinking bool, text []int32, rng *rand.Rand) (next []int32) {
	t.Helper()
	m := g.Start(s, thinking)
	defer m.Close()
	m.Add(text...)
	for len(next) < 5 {
		id := drawFrom(setOf(t, m, 0), rng)
		if thinking && len(text)+len(next) == 7 {
			id = g.think
		}
		if slices.Contains(demoEnds, id) {
			break
		}
		next = append(next, id)
		m.Add(id)
	}
	return next
}

// setsBehind are the sets of a matcher that is told tokens one by one: behind a text, and
// behind each of the drafts that it allows.
func setsBehind(t *testing.T, g *Guides, s Spec, thinking bool, text, drafts []int32) (sets [][]uint64) {
	t.Helper()
	m := g.Start(s, thinking)
	defer m.Close()
	m.Add(text...)
	for i := 0; ; i++ {
		set := setOf(t, m, 0)
		sets = append(sets, set)
		if i == len(drafts) || slices.Contains(demoEnds, drafts[i]) || set[drafts[i]/64]>>(drafts[i]%64)&1 == 0 {
			return sets
		}
		m.Add(drafts[i])
	}
}
