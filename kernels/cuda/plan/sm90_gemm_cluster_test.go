package plan

import "testing"

// Clusters share k so that every slice is in one block and blocks have slices that are
// added first, or the second four of eight; and all blocks of a layer's products run
// at once.
func TestClusterGemmSplit(t *testing.T) {
	const sms = 132
	for _, c := range []struct {
		name           string
		n, k           int32
		parts, tiles   int32
		second, tiles2 int32 // rows of a product beside it, and tiles of both
	}{
		{"front", 2784, 6144, 4, 6, 0, 0},
		{"q_b, wq_b", 2048, 2048, 2, 2, 4096, 6},
		{"o_proj", 6144, 2048, 2, 6, 0, 0},
		{"router", 256, 6144, 8, 2, 0, 0},
		{"shared up", 512, 6144, 8, 3, 256, 4},
		{"dense up", 3072, 6144, 4, 7, 0, 0},
		{"dense down", 6144, 1536, 2, 6, 0, 0},
	} {
		p := clusterGemmP{m: 64, n: c.n, k: c.k}
		if !p.share(sharesOf(c.n/16, c.k/16), sms) {
			t.Errorf("%s: no cluster", c.name)
			continue
		}
		p.tiles = fewestTiles([]clusterGemmP{p}, mostClusters(sms, p.parts))
		if p.parts*p.slices*p.per != c.k/16 || p.slices != 8 && p.slices != 4 || p.slices*p.per%4 != 0 ||
			p.parts != c.parts || p.tiles != c.tiles || p.clusters() > mostClusters(sms, p.parts) {
			t.Errorf("%s: %+v, %d clusters", c.name, p, p.clusters())
		}
		if c.second > 0 {
			q := p
			q.n = c.second
			if got := fewestTiles([]clusterGemmP{p, q}, mostClusters(sms, p.parts)); got != c.tiles2 {
				t.Errorf("%s: %d tiles", c.name, got)
			}
		}
	}
	for _, k := range []int32{64, 192, 1000} {
		if p := (clusterGemmP{m: 64, n: 64, k: k}); p.share(1, sms) {
			t.Errorf("%d columns: %+v", k, p)
		}
	}
}
