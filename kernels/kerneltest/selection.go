package kerneltest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"glmbatch/kernels"
)

// hardScores are rows of scores that are hard to select from: score i of n, a random one
// being v.
var hardScores = []func(i int, v float64) float64{
	func(i int, v float64) float64 { return v },
	func(i int, v float64) float64 { return 1 },
	func(i int, v float64) float64 { return float64(i) },
	func(i int, v float64) float64 { return -float64(i) },
	func(i int, v float64) float64 { return float64(i % 600) },
	func(i int, v float64) float64 { return math.Round(v * 8) },
	func(i int, v float64) float64 { return math.Ldexp(v, -(i % 140)) },
	func(i int, v float64) float64 { return 1 + math.Ldexp(math.Round(v*1000), -23) }, // few bits apart
	func(i int, v float64) float64 { return math.Copysign(0, v) },
	func(i int, v float64) float64 { return 1e30 + v*1e24 },
	func(i int, v float64) float64 { // some are none
		if i%3 == 0 {
			return math.NaN()
		}
		return v
	},
	func(i int, v float64) float64 { // one is far away
		if i == 5 {
			return 1e30
		}
		return v
	},
	func(i int, v float64) float64 { // most are equal
		if i%997 != 0 {
			return 0
		}
		return v
	},
	func(i int, v float64) float64 {
		switch {
		case i%100 == 0:
			return math.Inf(1)
		case i%7 == 0:
			return math.Inf(-1)
		}
		return v
	},
}

// testSelection compares index_topk with a sort, for rows that select all, nearly all
// and few of their positions.
func testSelection(t *testing.T, open Open) {
	b := opened(t, open(t, 1))
	rng := rand.New(rand.NewPCG(3, 4))
	rows := len(hardScores)
	for _, width := range []int{700, 2500, 8189, 8192, 16384, 20000} {
		scores, pos := make([]float32, rows*width), make([]int32, rows)
		for m, f := range hardScores {
			pos[m] = int32(width - 1 - m*11)
			for i := range width {
				scores[m*width+i] = float32(f(i, rng.NormFloat64()))
			}
		}
		for _, topk := range []int{64, 2048} {
			if topk == 2048 { // rows about as long as what is selected
				pos[0], pos[5] = int32(min(width-1, topk)), int32(min(width-1, topk+2))
			}
			sel := b.alloc(int64(4 * rows * topk))
			got := b.do(kernels.Call{Kernel: "index_topk",
				Dims: kernels.Dims{M: int32(rows), N: int32(width), TopK: int32(topk), Ctx: int64(rows * width)},
				Args: []kernels.Buffer{b.put(putFloats(scores)), b.put(putInts(pos)), sel}}, sel)[0][0]
			for m := range rows {
				if err := selects(got[4*m*topk:][:4*topk], scores[m*width:][:pos[m]+1], topk); err != nil {
					t.Errorf("%d scores, the best %d, row %d: %v", width, topk, m, err)
				}
			}
		}
	}
}

// selects checks a row's selection: positions ascending, ties to the lower; -1 past the end.
func selects(sel []byte, scores []float32, topk int) error {
	want := make([]int32, len(scores))
	for i := range want {
		want[i] = int32(i)
	}
	slices.SortStableFunc(want, func(a, b int32) int { return cmp.Compare(scores[b], scores[a]) })
	want = want[:min(topk, len(want))]
	slices.Sort(want)
	for i := range topk {
		w := int32(-1)
		if i < len(want) {
			w = want[i]
		}
		if g := int32(binary.LittleEndian.Uint32(sel[4*i:])); g != w {
			return fmt.Errorf("position %d of the selection is %d, want %d", i, g, w)
		}
	}
	return nil
}

// put is a buffer with such contents.
func (b *bench) put(data []byte) kernels.Buffer {
	b.Helper()
	buf := b.alloc(int64(len(data)))
	if err := b.g.Upload(buf, data); err != nil {
		b.Fatal(err)
	}
	return buf
}
