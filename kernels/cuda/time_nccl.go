//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
)

// TimeNCCL times NCCL's own all-reduce of float32 messages on n GPUs, in graphs
// of times of them, and returns the ns of one for each size, and the version.
func TimeNCCL(n int, o Options, bytes []int64, times int) (ns []int64, version string, err error) {
	o.Collective = ViaNCCL
	ds, err := Open(n, o)
	if err != nil {
		return nil, "", err
	}
	g := ds[0].(*device).group
	defer func() { err = errors.Join(err, g.closeAll()) }()
	if n < 2 {
		return nil, "", fmt.Errorf("%w: NCCL has nothing to do for one rank", kernels.ErrDevice)
	}
	ns = make([]int64, len(bytes))
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r, d := range g.ranks {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			own := make([]int64, len(bytes))
			if errs[r] = d.timeNCCL(bytes, times, own); r == 0 {
				copy(ns, own)
			}
		})
	}
	wg.Wait()
	return ns, g.ranks[0].nccl.Library().Version, errors.Join(errs...)
}

func (d *device) timeNCCL(bytes []int64, times int, ns []int64) error {
	if err := d.use(); err != nil {
		return d.group.meet(err)
	}
	var most int64
	for _, b := range bytes {
		most = max(most, b)
	}
	from, err := d.Alloc(most, kernels.Sharded)
	to, err2 := d.Alloc(most, kernels.Sharded)
	if err := d.group.meet(errors.Join(err, err2)); err != nil {
		return err
	}
	for i, b := range bytes {
		reduce := func() error { return d.nccl.Reduce(d.ptr(from), d.ptr(to), b/4, d.stream) }
		// The first call connects the ranks, which a graph could not.
		if err := d.group.meet(errors.Join(reduce(), driver.Sync(d.stream))); err != nil {
			return err
		}
		graph, err := driver.Capture(d.stream, func() error {
			for range times {
				if err := reduce(); err != nil {
					return err
				}
			}
			return nil
		})
		if err := d.group.meet(err); err != nil {
			return err
		}
		ns[i] = math.MaxInt64
		for range 5 {
			if err := d.group.meet(nil); err != nil {
				return err
			}
			start := time.Now()
			if err := errors.Join(graph.Launch(d.stream), driver.Sync(d.stream)); err != nil {
				return d.group.meet(err)
			}
			ns[i] = min(ns[i], time.Since(start).Nanoseconds()/int64(times))
		}
		if err := d.group.meet(graph.Close()); err != nil {
			return err
		}
	}
	return nil
}
