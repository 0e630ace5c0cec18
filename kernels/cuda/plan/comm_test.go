package plan

import (
	"testing"

	"glmbatch/kernels"
)

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

// A sum over one rank is an add_norm, by the first row that holds: an architecture's own too.
func TestReduceOfOneRank(t *testing.T) {
	arch := Architecture{Name: "sm777", Variants: []Variant{{Name: "add_norm sm777", Op: "add_norm",
		When:  func(_ *builder, c *call) bool { return c.Dims.N == 6144 },
		Build: func(b *builder, c *call) error { return b.do("add_norm_sm777", grid1(c.Dims.M), 384, 0, &rowwiseP{}) },
		Why:   "nothing was measured"}}}
	g := &Target{Architecture: &arch, SMs: 200, Shared: 232448, Ranks: 1, PerGPU: 1}
	for n, entry := range map[int32]string{6144: "add_norm_sm777", 2048: "add_norm"} {
		calls, m := example(t, kernels.Lookup("all_reduce_norm"), kernels.Dims{M: 3, N: n, Ranks: 1}, No4)
		p, err := Each(calls, g, m)
		if err != nil || len(p.Launches) != 1 || p.Launches[0].Entry != entry {
			t.Errorf("rows of %d: %v, %v", n, p, err)
		}
	}
}
