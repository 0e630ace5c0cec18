package cpu

import (
	"fmt"

	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// Collectives run once for all ranks: all memory is at hand. What a rank keeps
// for itself is written on each rank, what the ranks share is written once.

// sumAtOnce is how many values of dense rows are summed at a time: they stay in
// the first cache.
const sumAtOnce = 1024

// allReduceNorm: x += Σ ranks part, in the ranks' order; y = x / rms(x) * w.
func allReduceNorm(x *frame, lo, hi int) error {
	if err := x.whole(); err != nil {
		return err
	}
	n := int(x.N)
	parts := x.onRanks(0, 0, x.ranks, x.M, x.N)
	sums := x.onRanks(1, 0, x.copies(1), x.M, x.N)
	outs := x.onRanks(3, 0, x.copies(3), x.M, x.N)
	w := x.vector(2, x.N)
	if x.err != nil {
		return x.err
	}
	each := 1
	if parts[0].Stride == n && sums[0].Stride == n {
		each = max(1, sumAtOnce/n)
	}
	for m := lo; m < hi; m += each {
		each = min(each, hi-m)
		total := x.s.floats(0, each*n)
		copy(total, parts[0].Data[m*parts[0].Stride:])
		for _, p := range parts[1:] {
			simd.Add(total, p.Data[m*p.Stride:][:each*n])
		}
		for _, sum := range sums {
			simd.Add(sum.Data[m*sum.Stride:][:each*n], total)
		}
		for i := m; i < m+each; i++ {
			for _, y := range outs {
				simd.RMSNorm(row(y, i, n), row(sums[0], i, n), w, x.scalar(0))
			}
		}
	}
	return nil
}

// allGather puts the ranks' columns side by side.
func allGather(x *frame, lo, hi int) error {
	if err := x.whole(); err != nil {
		return err
	}
	if int(x.N)%x.ranks != 0 {
		return fmt.Errorf("%w: %d columns for %d ranks", kernels.ErrKernel, x.N, x.ranks)
	}
	each := int(x.N) / x.ranks
	parts := x.onRanks(0, 0, x.ranks, x.M, int32(each))
	outs := x.onRanks(1, 0, x.copies(1), x.M, x.N)
	if x.err != nil {
		return x.err
	}
	for m := lo; m < hi; m++ {
		for _, y := range outs {
			for r, p := range parts {
				copy(row(y, m, int(x.N))[r*each:], row(p, m, each))
			}
		}
	}
	return nil
}

// allGatherRows makes one list of the ranks' rows.
func allGatherRows(x *frame, lo, hi int) error {
	if err := x.whole(); err != nil {
		return err
	}
	n := int(x.N)
	own := x.onRanks(0, 0, x.ranks, x.M, x.N)
	outs := x.onRanks(2, 0, x.copies(2), x.K, x.N)
	to := x.meeting(1, lo, hi)
	if x.err != nil {
		return x.err
	}
	for m := lo; m < hi; m++ {
		for r, at := range to[m*x.ranks:][:x.ranks] {
			for _, y := range outs {
				if at >= 0 {
					copy(row(y, int(at), n), row(own[r], m, n))
				}
			}
		}
	}
	return nil
}

// reduceScatterNorm gives each rank the sums of its own rows: x += Σ ranks part, in the
// ranks' order; y = x / rms(x) * w.
func reduceScatterNorm(x *frame, lo, hi int) error {
	if err := x.whole(); err != nil {
		return err
	}
	n := int(x.N)
	parts := x.onRanks(0, 0, x.ranks, x.K, x.N)
	sums := x.onRanks(2, 0, x.ranks, x.M, x.N)
	outs := x.onRanks(4, 0, x.ranks, x.M, x.N)
	to, w := x.meeting(1, lo, hi), x.vector(3, x.N)
	if x.err != nil {
		return x.err
	}
	total := x.s.floats(0, n)
	for m := lo; m < hi; m++ {
		for r, at := range to[m*x.ranks:][:x.ranks] {
			if at < 0 {
				continue
			}
			copy(total, row(parts[0], int(at), n))
			for _, p := range parts[1:] {
				simd.Add(total, row(p, int(at), n))
			}
			simd.Add(row(sums[r], m, n), total)
			simd.RMSNorm(row(outs[r], m, n), row(sums[r], m, n), w, x.scalar(0))
		}
	}
	return nil
}

// meeting returns argument i, for each of M rows where those of the ranks are among K,
// and checks those of rows [lo, hi).
func (x *frame) meeting(i, lo, hi int) []int32 {
	to := x.ints(i, x.M*x.Ranks)
	if x.err != nil {
		return nil
	}
	for _, at := range to[lo*x.ranks : hi*x.ranks] {
		if at < -1 || at >= x.K {
			x.fail(i, "row %d of %d", at, x.K)
		}
	}
	return to
}

// whole checks that the call is meant for this group.
func (x *frame) whole() error {
	if int(x.Ranks) != x.ranks {
		return fmt.Errorf("%w: a collective of %d ranks in a group of %d", kernels.ErrKernel, x.Ranks, x.ranks)
	}
	return nil
}

// copies returns how many copies of argument i there are to write.
func (x *frame) copies(i int) int {
	if a := x.call.Args[i]; a.Index == 0 || int(a.Index) > len(x.bufs) {
		return 1
	}
	return len(x.bufs[x.call.Args[i].Index-1].copies)
}

// onRanks returns argument i on n ranks from one on.
func (x *frame) onRanks(i, first, n int, rows, width int32) []simd.Rows {
	views := x.views[i][:0]
	for r := range n {
		views = append(views, x.rowsOn(i, first+r, rows, width))
	}
	x.views[i] = views
	return views
}
