//go:build cuda

package cuda

import (
	"fmt"
	"testing"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/kerneltest"
)

// Which launches of products of 8 rows are brief, and which have blocks that hold all
// their weights, with GLM-5's shapes, on an H200 and on a GPU with little shared memory.
func TestHeld(t *testing.T) {
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
		d := device{group: &group{}}
		for _, x := range c.products {
			tiles := int32(ceil(x.n, 16))
			steps := int32(ceil(x.k, columnsOf(x.format)))
			w := &weight{format: x.format, tiles: int(tiles), kt: int(steps)}
			if err := d.product(&gemmP{m: 8, n: x.n, k: x.k, heads: 1}, w, clusterOf(tiles, steps)); err != nil {
				t.Fatal(err)
			}
		}
		if brief(d.bundle) {
			t.Errorf("%s: brief", c.name)
		}
		if got := held(d.bundle, 132, c.limit); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
		blocks := uint32(0)
		for i, s := range d.bundle {
			blocks += s.blocks
			p := (*productP)(unsafe.Pointer(&d.bundle[i].params))
			bytes := uint32(p.k * 16 * 2 * heldTiles)
			if s.op == opProductFP8 {
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

// Slices of k of 128 columns are brief, those of more are not, nor is half a slice of sums.
func TestBrief(t *testing.T) {
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
		d, columns := device{group: &group{}}, columnsOf(c.format)
		steps := int32(ceil(c.k, columns))
		w := &weight{format: c.format, tiles: 16, kt: int(steps)}
		if err := d.product(&gemmP{m: 8, n: 256, k: c.k, heads: 8}, w, 1); err != nil {
			t.Fatal(err)
		}
		if got := brief(d.bundle); got != c.want {
			t.Errorf("%d columns in %s: %t, want %t", c.k, c.format, got, c.want)
		}
		if s := &d.bundle[0]; c.want && s.shared < uint32(8*s.steps*512) {
			t.Errorf("%d columns in %s: %d bytes have no room for the weights", c.k, c.format, s.shared)
		}
	}
}

func columnsOf(f kernels.Format) int32 {
	if f == kernels.FP8 {
		return 32
	}
	return 16
}

// Products that share launches have the bits that they have alone.
func TestProductsTogether(t *testing.T) {
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	open := likeHeld(t)
	for _, x := range []struct {
		kernel kernels.Name
		k      int32
		n      []int32
	}{
		{"gemm_bf16", 2048, []int32{2048, 4096}}, // q_b and wq_b: src/held.cuh
		{"gemm_bf16", 1964, []int32{2041, 4096}}, // likewise, nothing whole
		{"gemm_fp8", 2048, []int32{2048, 4096}},
		{"gemm_bf16", 6144, []int32{256, 512}},
	} {
		t.Run(fmt.Sprintf("%s/%v", x.kernel, x.n), func(t *testing.T) { kerneltest.Products(t, open, x.kernel, x.k, x.n, 1, 2, 5, 8) })
	}
}
