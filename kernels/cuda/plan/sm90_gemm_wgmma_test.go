package plan

import (
	"testing"

	"glmbatch/kernels"
)

// The products of one of GLM-5's eight ranks are shared by most of a GPU's blocks,
// whatever the number of rows.
func TestSplitKWays(t *testing.T) {
	const sms, limit = 132, 227 << 10
	h200 := Target{SMs: sms, Shared: limit}
	for _, c := range []struct {
		name        string
		n, k, heads int32
	}{
		{"front", 2784, 6144, 1}, {"q_b", 2048, 2048, 1}, {"wq_b", 4096, 2048, 1}, {"o_proj", 6144, 2048, 1},
		{"absorb", 512, 192, 8}, {"v_up", 256, 512, 8},
		{"router", 256, 6144, 1}, {"shared up", 512, 6144, 1}, {"shared down", 6144, 256, 1},
		{"dense up", 3072, 6144, 1},
		{"dense down", 6144, 1536, 1}, {"head", 19360, 6144, 1},
	} {
		for m := int32(9); m <= 300; m++ {
			blocks := sharesOf(c.n/16*c.heads, c.k/16)
			if c.name == "absorb" {
				blocks = 1
			}
			p := wgmmaP{m: m, n: c.n, k: c.k, heads: c.heads, blocks: blocks, per: int32(ceil(c.k/16, 8*blocks))}
			w := p.bestSplitK(kernels.BF16, &h200)
			if w.shared == 0 && m > 128 { // the parts would leave too much: all of k in a block
				continue
			}
			if w.shared == 0 || w.shared > limit || w.sums > mostSums {
				t.Fatalf("%s, %d rows: no way fits: %+v", c.name, m, w)
			}
			if w.parts*w.groups == 0 || w.groups > splitKGroups(w.parts) || 8%w.parts != 0 {
				t.Fatalf("%s, %d rows: %+v", c.name, m, w)
			}
			if all := w.blocks * c.heads * int32(ceil(m, w.tokens)); all < sms/5 {
				t.Errorf("%s, %d rows: %d blocks: %+v", c.name, m, all, w)
			}
			if m == 16 || m == 64 || m == 256 {
				t.Logf("%s, %d rows: %+v, or %+v", c.name, m, w, p.bestTiled(kernels.BF16, &h200))
			}
		}
	}
}
