package plan

import "testing"

// Messages of every size have a way that their ranks can go.
func TestWay(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8} {
		g := &Target{Ranks: n}
		if w := g.Way(4 * 6144); w != OneShot {
			t.Errorf("a row of %d ranks goes %s", n, w)
		}
		if w := g.Way(64 << 20); n > 2 && w == OneShot {
			t.Errorf("64 MiB of %d ranks go %s", n, w)
		}
		g.Collective = TwoShot
		if w := g.Way(8); w != TwoShot {
			t.Errorf("forced to %s, %d ranks go %s", TwoShot, n, w)
		}
	}
}
