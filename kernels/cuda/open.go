//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"

	"gorgonia.org/cu"
)

// Open returns one device a rank. Ranks are placed on the GPUs in turn, several
// on one where there are fewer GPUs than ranks. Each device's methods must be
// called from one OS thread.
func Open(ranks int, o Options) ([]kernels.Device, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if ranks < 1 || ranks > maxRanks {
		return nil, fmt.Errorf("%w: %d ranks: give 1 to %d", kernels.ErrDevice, ranks, maxRanks)
	}
	if err := driver.Status(); err != nil {
		return nil, fmt.Errorf("%w: %w", kernels.ErrDevice, err)
	}
	gpus, err := cu.NumDevices()
	if err != nil || gpus == 0 {
		return nil, fmt.Errorf("%w: no GPU (%v)", kernels.ErrDevice, err)
	}
	at, err := placement(ranks, gpus, o.RanksPerGPU)
	if err != nil {
		return nil, err
	}
	if o.StepTimeout == 0 {
		o.StepTimeout = time.Minute
	}
	// Contexts are current per thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := &group{options: o}
	if g.ranks, err = g.openRanks(at); err != nil {
		g.closeAll()
		return nil, err
	}
	if err := g.link(); err != nil {
		g.closeAll()
		return nil, err
	}
	out := make([]kernels.Device, ranks)
	for i, d := range g.ranks {
		out[i] = d
	}
	return out, nil
}

// openRanks opens the ranks on their GPUs, all GPUs at once. With an error it
// returns those that it opened.
func (g *group) openRanks(at []int) ([]*device, error) {
	ranks, errs := make([]*device, len(at)), make([]error, len(at))
	var wg sync.WaitGroup
	for first, gpu := range at {
		if first > 0 && at[first-1] == gpu {
			continue // the first rank's goroutine opens all of the GPU
		}
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for r := first; r < len(at) && at[r] == gpu; r++ {
				if ranks[r], errs[r] = newDevice(g, r, gpu, ranks[first:r]); errs[r] != nil {
					ranks[r] = nil
					errs[r] = fmt.Errorf("rank %d on GPU %d: %w", r, gpu, errs[r])
					return
				}
			}
		})
	}
	wg.Wait()
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i < 0 {
		return ranks, nil
	}
	return slices.DeleteFunc(ranks, func(d *device) bool { return d == nil }), errs[i]
}

// placement returns each rank's GPU: per ranks on each, from the first on; 0: as
// few as place all of them.
func placement(ranks, gpus, per int) ([]int, error) {
	if per == 0 {
		per = (ranks + gpus - 1) / gpus
	}
	if per*gpus < ranks {
		return nil, fmt.Errorf("%w: %d ranks on %d GPUs with %d a GPU: raise --ranks-per-gpu", kernels.ErrDevice, ranks,
			gpus, per)
	}
	at := make([]int, ranks)
	for r := range at {
		at[r] = r / per
	}
	return at, nil
}

func (g *group) closeAll() error {
	var errs []error
	for _, d := range g.ranks {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// peers lets every GPU read and write the others' memory.
func (g *group) peers() error {
	done := map[[2]int]bool{}
	var apart []error
	for _, a := range g.ranks {
		for _, b := range g.ranks {
			if a.gpu == b.gpu || done[[2]int{a.gpu, b.gpu}] {
				continue
			}
			done[[2]int{a.gpu, b.gpu}] = true
			ok, err := cu.Device(a.gpu).CanAccessPeer(cu.Device(b.gpu))
			switch f := g.options.Fault; {
			case err != nil:
				return fmt.Errorf("%w: ask whether GPU %d reaches GPU %d: %w", kernels.ErrDevice, a.gpu, b.gpu, err)
			case ok == 0 || f.Kind == Apart && f.Rank == a.rank:
				apart = append(apart, fmt.Errorf("GPU %d cannot reach the memory of GPU %d", a.gpu, b.gpu))
				continue
			}
			if err := a.use(); err != nil {
				return err
			}
			if err := b.ctx.EnablePeerAccess(0); err != nil && !errors.Is(err, cu.PeerAccessAlreadyEnabled) {
				return fmt.Errorf("%w: open the memory of GPU %d to GPU %d: %w", kernels.ErrDevice, b.gpu, a.gpu, err)
			}
		}
	}
	if len(apart) == 0 {
		return nil
	}
	more := ""
	if n := len(apart) - 1; n > 0 {
		more = fmt.Sprintf(" (nor can %d other pairs)", n)
	}
	return fmt.Errorf("%w: %w%s: pick GPUs that are linked with CUDA_VISIBLE_DEVICES, put the ranks on one with "+
		"--ranks-per-gpu %d, or exchange through the host with --collective "+
		"host", kernels.ErrDevice, apart[0], more, len(g.ranks))
}
