package plan

import (
	"fmt"
	"strings"
	"testing"

	"glmbatch/kernels"
)

// Which blocks products of GLM-5's ranks have on an H200, by their rows: those that took
// least there, or a few percent more.
func TestPersistentBlocks(t *testing.T) {
	gpu := GPU("h200")
	for _, c := range []struct {
		name string
		n, k int32
		want string // rows:outputs x tokens of blocks; k: a cluster's share k
	}{
		{"front", 2784, 6144, "128:192x64k 192:192x128k 256:192x128k 384:128x64 512:192x64 768:128x128 8192:128x128"},
		{"q_b", 2048, 2048, "128:64x64 256:64x64 384:128x64 512:128x64 768:192x64 2048:128x128"},
		{"o_proj", 6144, 2048, "128:128x64 192:192x64 256:192x64 384:192x128 512:192x128 1024:128x128 8192:128x128"},
		{"shared up", 512, 6144, "128:64x64k 256:64x64k 384:64x64k 512:192x64k 768:128x128k 1024:192x128k 2048:128x64"},
		{"shared down", 6144, 256, "384:192x128 512:192x128 2048:128x128"},
		{"dense up", 3072, 6144, "128:128x128k 256:128x128k 512:192x64 1024:192x128 2048:128x128"},
		{"head", 19360, 6144, "64:192x64 128:192x128 256:128x128"},
	} {
		var got []string
		for _, word := range strings.Fields(c.want) {
			var m int32
			if _, err := fmt.Sscanf(word, "%d:", &m); err != nil {
				t.Fatal(err)
			}
			blocks := sharesOf(int32(ceil(c.n, 16)), c.k/16)
			d := persistent{of: []persistentOneP{{m: m, n: c.n, k: c.k}},
				p:      persistentGemmP{per: int32(ceil(c.k/16, 8*blocks)), blocks: blocks},
				format: productFormat{weights: kernels.BF16}}
			w := d.best(gpu)
			word = fmt.Sprintf("%d:%dx%d", m, w.outputs(), w.tokens)
			if w.share > 1 {
				word += "k"
			}
			got = append(got, word)
			if w.shared > gpu.Shared || (w.shared+1024)*w.each() > gpu.Shared+1024 || w.stages[0] < 2 ||
				w.stages[1] < w.stages[0] {
				t.Errorf("%s, %d rows: %+v", c.name, m, w)
			}
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
