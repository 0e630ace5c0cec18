//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/nccl"
)

// joinNCCL makes the ranks a group of NCCL's, if they are to use it. Where the
// table only prefers it, ranks do without a library that is not there.
func (g *group) joinNCCL() error {
	forced := g.options.Collective == ViaNCCL
	if !forced && g.way(1<<62) != ViaNCCL {
		return nil
	}
	if g.shared() {
		if forced {
			return fmt.Errorf("%w: NCCL wants a GPU for each rank, %d share one", kernels.ErrDevice, g.perGPU)
		}
		return nil
	}
	lib, err := nccl.Open(g.options.NCCL)
	if err != nil {
		if forced {
			return fmt.Errorf("%w: %w", kernels.ErrDevice, err)
		}
		return nil
	}
	comms, err := lib.Join(len(g.ranks), func(r int) error { return g.ranks[r].use() })
	if err != nil {
		return fmt.Errorf("%w: join the ranks: %w", kernels.ErrDevice, err)
	}
	for r, c := range comms {
		g.ranks[r].nccl = c
	}
	return nil
}

// reduceByNCCL lets NCCL move what each rank sums, and the sums: the ranks' own
// rows of p, whose rows must be dense. NCCL's own sums are in another order.
func (d *device) reduceByNCCL(p *commP, threads uint32) error {
	ranks := int64(p.ranks)
	rows := (int64(p.m) + ranks - 1) / ranks // of each rank, fewer of the last
	of := func(r int64) int64 { return max(0, min(rows, int64(p.m)-r*rows)) * int64(p.n) }
	part := uintptr(rows*int64(p.n)) * 4
	parts := d.work(scratchComm, 2*ranks*int64(part))
	sums := parts + uintptr(ranks)*part
	if d.dry {
		return nil
	}
	mine := of(int64(p.rank))
	err := d.nccl.Library().Group(func() error {
		var errs []error
		for r := range ranks {
			if n := of(r); n > 0 {
				errs = append(errs, d.nccl.Send(p.x+uintptr(r)*part, n, int(r), d.stream))
			}
			if mine > 0 {
				errs = append(errs, d.nccl.Recv(parts+uintptr(r*mine)*4, mine, int(r), d.stream))
			}
		}
		return errors.Join(errs...)
	})
	if err == nil && mine > 0 {
		s := sumP{parts: parts, y: sums + uintptr(p.rank)*part, at: p.at, n: mine, ranks: p.ranks}
		err = d.do("sum_parts", [3]uint32{uint32(min(1024, (mine/4+255)/256)), 1, 1}, 256, 0, unsafe.Pointer(&s))
	}
	if err == nil {
		err = d.nccl.Gather(sums+uintptr(p.rank)*part, sums, int64(part)/4, d.stream)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", kernels.ErrDevice, err)
	}
	q := *p
	q.x, q.ldx, q.ranks, q.phases, q.early = sums, p.n, 1, receivePhase, 1
	return d.do("reduce_rows", [3]uint32{uint32(p.m), 1, 1}, rowPairs*threads, 0, unsafe.Pointer(&q))
}
