package plan

import (
	"testing"

	"glmbatch/kernels"
)

// Which products of GLM-5's ranks have blocks with several tiles: those have launches
// of their own.
func TestMultiTile(t *testing.T) {
	for _, c := range []struct {
		kernel  kernels.Name
		m, n, k int32
		want    bool
	}{
		{"gemm_bf16", 1, 2784, 6144, true},
		{"gemm_bf16", 8, 2784, 6144, true},
		{"gemm_bf16", 9, 2784, 6144, false}, // many rows
		{"gemm_bf16", 8, 19360, 6144, true},
		{"gemm_bf16", 1, 6144, 2048, false}, // all blocks run at once
		{"gemm_bf16", 1, 512, 6144, false},
		{"gemm_fp8", 1, 6464, 2048, true},
		{"gemm_fp4", 1, 19360, 6144, false},
	} {
		call := kernels.Call{Kernel: c.kernel, Dims: kernels.Dims{M: c.m, N: c.n, K: c.k},
			Args: make([]kernels.Buffer, 3)}
		if got := multiTile(&call); got != c.want {
			t.Errorf("%s of %d rows, %dx%d: %t, want %t", c.kernel, c.m, c.n, c.k, got, c.want)
		}
		if multiTile(&call) && segmentsOf(&call) != 0 {
			t.Errorf("%s of %d rows, %dx%d has segments of a horizontal fusion too", c.kernel, c.m, c.n, c.k)
		}
	}
}

// Which launches of products of 8 rows have short slices of k, and which have blocks that hold all
// their weights, with GLM-5's shapes, on an H200 and on a GPU with little shared memory.
func TestPrefetch(t *testing.T) {
	type product struct {
		n, k   int32
		format kernels.Format
	}
	qb, wqb := product{2048, 2048, kernels.BF16}, product{4096, 2048, kernels.BF16}
	for _, c := range []struct {
		name     string
		products []product
		limit    uint32
		want     bool
		blocks   uint32
	}{
		{"q_b and wq_b", []product{qb, wqb}, 232448, true, 129},
		{"little memory", []product{qb, wqb}, 101376, false, 384},
		{"in 8 bits", []product{{2048, 2048, kernels.FP8}, {4096, 2048, kernels.FP8}}, 232448, true, 129},
		{"all blocks run at once", []product{qb, qb}, 232448, false, 256},
		{"too many tiles", []product{wqb, wqb}, 232448, false, 512},
		{"o_proj", []product{{6144, 2048, kernels.BF16}}, 232448, true, 128},
		{"blocks that share k", []product{{256, 6144, kernels.BF16}, {512, 6144, kernels.BF16}}, 232448, false, 256},
	} {
		b := builder{}
		for _, x := range c.products {
			tiles := int32(ceil(x.n, 16))
			steps := int32(ceil(x.k, columnsOf(x.format)))
			w := &Weight{Format: x.format, Tiles: int(tiles), Steps: int(steps)}
			if err := planGemv(&b, &call{gemm: gemmP{m: 8, n: x.n, k: x.k, heads: 1}, w: w,
				slices: sharesOf(tiles, steps)}); err != nil {
				t.Fatal(err)
			}
		}
		if shortK(b.segments) {
			t.Errorf("%s: short k", c.name)
		}
		if got := prefetched(b.segments, 132, c.limit); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
		blocks := uint32(0)
		for i, s := range b.segments {
			blocks += s.blocks
			p := b.segments[i].gemv
			bytes := uint32(p.k * 16 * 2 * prefetchTiles)
			if s.op == opGemvFp8 {
				bytes /= 2
			}
			if c.want && s.shared < bytes {
				t.Errorf("%s: %d bytes a block have no room for its weights of %d", c.name, s.shared, bytes)
			}
		}
		if blocks != c.blocks {
			t.Errorf("%s: %d blocks, want %d", c.name, blocks, c.blocks)
		}
	}
}

// Slices of k of 128 columns are short, those of more are not, nor is half a slice of sums.
func TestShortK(t *testing.T) {
	for _, c := range []struct {
		k      int32
		format kernels.Format
		want   bool
	}{
		{512, kernels.BF16, true}, // v_up
		{1024, kernels.BF16, true},
		{1040, kernels.BF16, false},
		{128, kernels.BF16, false},
		{1024, kernels.FP8, true},
		{1056, kernels.FP8, false},
	} {
		b, columns := builder{}, columnsOf(c.format)
		steps := int32(ceil(c.k, columns))
		w := &Weight{Format: c.format, Tiles: 16, Steps: int(steps)}
		if err := planGemv(&b, &call{gemm: gemmP{m: 8, n: 256, k: c.k, heads: 8}, w: w, slices: 1}); err != nil {
			t.Fatal(err)
		}
		if got := shortK(b.segments); got != c.want {
			t.Errorf("%d columns in %s: %t, want %t", c.k, c.format, got, c.want)
		}
		if s := &b.segments[0]; c.want && s.shared < uint32(8*s.steps*512) {
			t.Errorf("%d columns in %s: %d bytes have no room for the weights", c.k, c.format, s.shared)
		}
	}
}
