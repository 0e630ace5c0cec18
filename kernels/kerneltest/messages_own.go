package kerneltest

import (
	"bytes"
	"slices"

	"glmbatch/kernels"
)

// ownMessage gathers and scatters the rows of ranks that have up to m of their own, the first
// of which has none, where there are others. Sums have the bits of additions in the ranks'
// order, whatever rank a row is on.
func (b *bench) ownMessage(m, n int32) {
	b.Helper()
	ranks, row := b.g.Ranks(), 4*int64(n)
	to, all := make([]int32, int(m)*ranks), int32(0)
	random := seeded(0x6f776e, uint64(m), uint64(ranks))
	for i := range to { // in the rows' order, rank by rank: what a rank lacks is anywhere
		if to[i] = -1; (i%ranks > 0 || ranks == 1) && (i == len(to)-1 || random.IntN(5) > 0) {
			to[i] = all
			all++
		}
	}
	turn := random.Perm(int(all))
	for i, at := range to {
		if at >= 0 {
			to[i] = int32(turn[at])
		}
	}
	x, met, old, y := b.alloc(int64(m)*row), b.alloc(int64(all)*row), b.alloc(int64(m)*row), b.alloc(int64(m)*row)
	part, w, where := b.alloc(int64(all)*row), b.alloc(row), b.alloc(4*int64(len(to)))
	weight, before := noiseFrom(5, row), noiseFrom(3, int64(m)*row)
	var own, parts [][]byte
	for r := range ranks {
		own, parts = append(own, noiseFrom(11+7919*r, int64(m)*row)), append(parts, noiseFrom(1+7919*r, int64(all)*row))
		for _, u := range []struct {
			to   kernels.Buffer
			from []byte
		}{{x, own[r]}, {part, parts[r]}, {w, weight}, {where, putInts(to)}, {old, before}} {
			if err := b.g.UploadTo(r, u.to, u.from); err != nil {
				b.Fatal(err)
			}
		}
	}
	d := kernels.Dims{M: m, N: n, K: all, Ranks: int32(ranks)}
	gather := kernels.Call{Kernel: "all_gather_rows", Dims: d, Args: []kernels.Buffer{x, where, met}}
	scatter := kernels.Call{Kernel: "reduce_scatter_norm", Dims: d, Args: []kernels.Buffer{part, where, old, w, y},
		Scalars: [4]float32{1e-5}}
	got := b.run([]kernels.Call{gather, gather, scatter, gather}, met, old, y)
	zero := make([]byte, len(parts[0]))
	sums := sumsInOrder(zero, parts)
	for i, at := range to {
		if at < 0 {
			continue
		}
		rank, from := i%ranks, int64(i/ranks)*row
		sent, a := own[rank][from:from+row], int64(at)*row
		for r := range ranks {
			if !bytes.Equal(got[0][r][a:a+row], sent) {
				b.Fatalf("%dx%d: row %d of rank %d is another on rank %d", m, n, i/ranks, rank, r)
			}
		}
		want := sumsInOrder(before[from:from+row], [][]byte{sums[a : a+row]})
		if j := firstDifference(got[1][rank][from:from+row], want); j >= 0 {
			b.Fatalf("%dx%d: sum %d of row %d of rank %d is %g, want %g", m, n, j/4, i/ranks, rank,
				float32At(got[1][rank][from:], j/4), float32At(want, j/4))
		}
		normed := norm(getFloats(want), getFloats(weight), 1e-5)
		if _, err := within(getFloats(got[2][rank][from:from+row]), normed, 2e-6); err != nil {
			b.Fatalf("%dx%d: row %d of rank %d: %v", m, n, i/ranks, rank, err)
		}
	}
	if slices.Max(to) != all-1 {
		b.Fatalf("%d rows of %d", slices.Max(to)+1, all)
	}
}
