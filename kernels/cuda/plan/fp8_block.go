package plan

import (
	"fmt"

	"glmbatch/kernels"
)

// Products with FP8 weights that have scales for blocks: src/mma/fp8_block.cuh. They have the
// bits of products with the same weights as BF16.

// blockRows is the most rows that read such a weight as it is. For more it is made BF16
// first, which products on warpgroups read: that takes less than reading the rows again
// for each 16 outputs.
const blockRows = 16

func isFp8Block(_ *builder, c *call) bool { return c.Dims.M <= blockRows }

func planFp8Block(b *builder, c *call) error {
	entry := fmt.Sprintf("gemm_fp8b_%d_%d", ceil(c.gemm.m, 8), c.slices)
	return b.do(entry, grid1(uint32(c.w.Tiles)*uint32(c.slices)), 256, 0, &c.gemm)
}

// planUnpacked makes a weight BF16, in scratch memory, and plans the product with that.
// Products ask for their weights before the kernels in front have ended: the first launch
// behind waits.
func planUnpacked(b *builder, c *call) error {
	w := c.w
	plain := &Weight{Format: kernels.BF16, Use: w.Use, Count: 1, Rows: w.Rows, Cols: w.Cols, Global: 1}
	bytes, err := plain.Layout()
	if err != nil {
		return err
	}
	p := &fp8BlockP{data: c.weight, out: b.work(ScratchBlocks, bytes), at: c.at, rows: int32(w.Rows),
		cols:  int32(w.Cols),
		tiles: int32(w.Tiles), kt: int32(w.Steps)}
	blocks := min((int64(w.Tiles)*int64(w.Steps)*32+255)/256, 8192)
	if err := b.do("unpack_fp8b", grid1(uint32(blocks)), 256, 0, p); err != nil {
		return err
	}
	b.late = true
	q := *c
	q.w, q.weight, q.kernel = plain, p.out, kernels.Lookup(kernels.With(kernels.Name(c.kernel.Op), kernels.BF16))
	if err := resolveProduct(b, &q); err != nil {
		return err
	}
	v := b.pick(&q)
	b.by = v.Name
	return v.Build(b, &q)
}

// packFp8Block is Pack for such a weight.
func (w *Weight) packFp8Block(data, scales, out uintptr) Launch {
	return Launch{Entry: "pack_fp8b", Grid: grid1(uint32(min(w.Each/256+1, 8192))), Threads: 256,
		Params: &fp8BlockP{data: data, scales: scales, out: out, rows: int32(w.Rows), cols: int32(w.Cols),
			tiles: int32(w.Tiles), kt: int32(w.Steps)}}
}
