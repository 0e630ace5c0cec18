package cpu

import (
	"math"

	"glmbatch/kernels"
	"glmbatch/kernels/cpu/simd"
)

// scoreBlock is how many positions of a row are a unit of the indexer.
const scoreBlock = 256

func logitUnits(d *kernels.Dims) int {
	return int(d.M) * ((int(d.N) + scoreBlock - 1) / scoreBlock)
}

// indexLogits: scores[m, s] = Σ heads hw · relu(q · k[s]) · scale for s <= pos[m],
// the first Rope values of each head of q rotated.
func indexLogits(f kernels.Format) work {
	return func(x *frame, lo, hi int) error {
		k, heads := int(x.K), int(x.Heads)
		q, hw, cache := x.rows(0, x.M, x.Heads*x.K), x.rows(1, x.M, x.Heads), x.bytes(3, x.rank)
		seq, pos, scores := x.ints(5, x.M), x.ints(6, x.M), x.rows(7, x.M, x.N)
		table := x.pageTable(4, cache, kernels.IndexEntry(f, k))
		if x.err == nil && x.Rope > x.K {
			x.fail(2, "%d rotary values of %d", x.Rope, x.K)
		}
		if x.err != nil {
			return x.err
		}
		// Rows of one sequence, or of several that share pages, have the same keys: a
		// block of positions is scored for all rows before the next is.
		x.s.simd.Forget()
		for ; lo < hi; lo++ {
			m, first := lo%int(x.M), lo/int(x.M)*scoreBlock
			if pos[m] >= x.N {
				x.fail(6, "position %d of row %d is past the scores' %d", pos[m], m, x.N)
			}
			pages := x.pagesOf(4, table, seq[m], pos[m])
			last := min(first+scoreBlock, int(pos[m])+1)
			if x.err == nil && first >= last {
				continue
			}
			turned := x.turned(row(q, m, heads*k), heads, pos[m])
			if x.err != nil {
				return x.err
			}
			simd.IndexScores(row(scores, m, int(x.N))[first:last], turned, heads, k, row(hw, m, heads), x.scalar(0),
				f, cache, x.slots(pages, first, last), &x.s.simd)
		}
		return nil
	}
}

// turned is q with the first Rope values of each head rotated, in scratch memory.
func (x *frame) turned(q []float32, heads int, pos int32) []float32 {
	a := x.angles(2, pos)
	if a == nil {
		return nil
	}
	y, k := x.s.floats(0, len(q)), len(q)/heads
	copy(y, q)
	for h := range heads {
		rotate(y[h*k:][:x.Rope], a)
	}
	return x.taken(simd.Rows{Data: y, Stride: len(y)}, 1, len(y)).Data
}

// indexTopK: the positions of the TopK best scores of each row, ascending.
func indexTopK(x *frame, lo, hi int) error {
	scores, pos, sel := x.rows(0, x.M, x.N), x.ints(1, x.M), x.intRows(2, x.M, x.TopK)
	if x.err != nil {
		return x.err
	}
	for m := lo; m < hi; m++ {
		if pos[m] < 0 || pos[m] >= x.N {
			x.fail(1, "position %d of row %d is not one of %d", pos[m], m, x.N)
			return x.err
		}
		topK(intRow(sel, m, int(x.TopK)), row(scores, m, int(x.N))[:pos[m]+1], x.s)
	}
	return nil
}

// topK writes the indices of the len(sel) largest scores, ascending, and -1
// where there are fewer. Ties go to the lower index; NaN is below all.
func topK(sel []int32, scores []float32, s *scratch) {
	if len(scores) <= len(sel) {
		for i := range sel {
			sel[i] = -1
			if i < len(scores) {
				sel[i] = int32(i)
			}
		}
		return
	}
	keys := s.ints(2, len(scores))
	for i, v := range scores {
		keys[i] = int32(sortKey(v))
	}
	least, ties := threshold(keys, len(sel), s)
	n := 0
	for i, k := range keys {
		if uint32(k) < least {
			continue
		}
		if uint32(k) == least {
			if ties == 0 {
				continue
			}
			ties--
		}
		sel[n] = int32(i)
		if n++; n == len(sel) {
			return
		}
	}
}

// threshold returns the n-th largest key (n >= 1) and how many of those equal to it are
// among the n. It narrows the key by 11, 11 and 10 bits; only keys that share the bits so
// far are looked at again.
func threshold(keys []int32, n int, s *scratch) (key uint32, ties int) {
	count, kept := s.ints(1, 1<<11), s.ints(3, len(keys))
	for _, digit := range [3]struct{ shift, width uint }{{21, 11}, {10, 11}, {0, 10}} {
		mask := uint32(1)<<digit.width - 1
		count := count[:mask+1]
		clear(count)
		low, high := mask, uint32(0)
		for _, k := range keys {
			d := uint32(k) >> digit.shift & mask
			low, high = min(low, d), max(high, d)
			count[d]++
		}
		b := high
		for int(count[b]) < n {
			n -= int(count[b])
			b--
		}
		key |= b << digit.shift
		if low == high {
			continue // all keys go on
		}
		have := 0
		for _, k := range keys { // without a branch that depends on the keys
			kept[have] = k
			if uint32(k)>>digit.shift&mask == b {
				have++
			}
		}
		keys = kept[:have]
	}
	return key, n
}

// sortKey orders like the values, NaN below all and both zeros alike.
func sortKey(v float32) uint32 {
	b := math.Float32bits(v + 0)
	b ^= uint32(int32(b)>>31) | 1<<31
	if v != v {
		b = 0
	}
	return b
}
