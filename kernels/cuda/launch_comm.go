//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"glmbatch/kernels"
)

// allReduceNorm launches the sum over ranks with what follows it.
func allReduceNorm(d *device, c *kernels.Call, at uintptr) error {
	n, ranks := c.Dims.N, int64(len(d.group.ranks))
	if int64(c.Dims.Ranks) != ranks {
		return fmt.Errorf("%w: a collective of %d ranks in a group of %d", kernels.ErrKernel, c.Dims.Ranks, ranks)
	}
	if ranks == 1 {
		return addNorm(d, c, at)
	}
	p := d.comm(at)
	p.n, p.m, p.eps = n, c.Dims.M, c.Scalars[0]
	p.x, p.res, p.w, p.y = d.ptr(c.Args[0]), d.ptr(c.Args[1]), d.ptr(c.Args[2]), d.ptr(c.Args[3])
	p.ldx, p.ldr, p.ldy = ld(c.Args[0], n), ld(c.Args[1], n), ld(c.Args[3], n)
	p.wide = d.aligned(map[kernels.Buffer]int32{c.Args[0]: p.ldx, c.Args[1]: p.ldr, c.Args[2]: 0, c.Args[3]: p.ldy})
	p.panels = d.leave(p.y, p.m, n, p.ldy)
	p.cols = int32(round(int64(ceil(n, rowParts)), 4))
	threads := uint32(round(int64(p.cols/4), 32))
	if threads > 256 {
		return fmt.Errorf("%w: rows of %d values, at most %d", kernels.ErrKernel, n, 4*256*rowParts)
	}
	row := int64(rowParts*p.cols) * 4
	way := d.group.way(int64(p.m) * int64(n) * 4)
	switch {
	case way == OneShot || rowPairs*threads > 768: // which reduce_rows has registers for
		rows := inboxHalf / (ranks * row)
		return p.pieces(rows, func(p *commP) error {
			return d.exchange(&piece{kernel: "reduce_norm", threads: threads, units: int(p.m) * rowParts, clumps: rowParts,
				phases: []int{sendPhase, receivePhase}, waiting: 32 * rowParts, long: 4}, p)
		})
	case way == ViaNCCL && d.nccl != nil && p.ldx == n && p.wide != 0 && n%4 == 0:
		return d.reduceByNCCL(&p, threads)
	}
	parts := int64(ceil(rowParts, int32(ranks))) * ranks * int64(p.cols) * 4
	return p.pieces(inboxHalf/(parts+row), func(p *commP) error {
		return d.exchange(&piece{kernel: "reduce_rows", threads: rowPairs * threads, units: int(p.m), clumps: 1,
			phases: []int{sendPhase, sumPhase, receivePhase}, waiting: rowBlocks, long: 4}, p)
	})
}

// pieces calls f with parts of the call's rows, as few as an inbox of so many rows
// takes and about the same of each, as all blocks of a launch should have as many.
func (p *commP) pieces(rows int64, f func(*commP) error) error {
	if rows < 1 {
		return fmt.Errorf("%w: rows of %d values are too long for the ranks' inboxes", kernels.ErrKernel, p.n)
	}
	parts := max(1, (int64(p.m)+rows-1)/rows)
	rows = min(rows, round((int64(p.m)+parts-1)/parts, rowBlocks))
	for from := int32(0); from < p.m; from += int32(rows) {
		q := *p
		q.m, q.row0 = int32(min(rows, int64(p.m-from))), from
		at := uintptr(from) * 4
		q.x, q.y, q.res = p.x+at*uintptr(p.ldx), p.y+at*uintptr(p.ldy), p.res+at*uintptr(p.ldr)
		if err := f(&q); err != nil {
			return err
		}
	}
	return nil
}

// gather fills in what a gather of columns has.
func (d *device) gather(c *kernels.Call, p *commP) {
	each := c.Dims.N / p.ranks
	p.m, p.n, p.cols = c.Dims.M, c.Dims.N, int32(round(int64(each), 4))
	p.x, p.y, p.ldx, p.ldy = d.ptr(c.Args[0]), d.ptr(c.Args[1]), ld(c.Args[0], each), ld(c.Args[1], c.Dims.N)
	p.wide = d.aligned(map[kernels.Buffer]int32{c.Args[0]: p.ldx, c.Args[1]: p.ldy | each})
}

// allGather puts the ranks' columns side by side.
func allGather(d *device, c *kernels.Call, at uintptr) error {
	ranks := int32(len(d.group.ranks))
	if c.Dims.Ranks != ranks || c.Dims.N%ranks != 0 {
		return fmt.Errorf("%w: %d columns of %d ranks in a group of %d", kernels.ErrKernel, c.Dims.N, c.Dims.Ranks, ranks)
	}
	if ranks == 1 {
		p := commP{at: at, ranks: 1, early: 1, epoch: d.epoch + 8}
		d.gather(c, &p)
		return d.do("gather_columns", [3]uint32{ceil(p.m*p.cols/4, 256), 1, 1}, 256, 0, unsafe.Pointer(&p))
	}
	p := d.comm(at)
	d.gather(c, &p)
	rows := inboxHalf / (4 * int64(ranks*p.cols))
	return p.pieces(rows, func(p *commP) error {
		return d.exchange(&piece{kernel: "gather_columns", threads: 256, units: int(ceil(p.m*p.cols/4, 256)), clumps: 1,
			phases: []int{sendPhase, receivePhase}, waiting: 256, long: 8}, p)
	})
}
