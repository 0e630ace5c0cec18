//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"

	"gorgonia.org/cu"
)

// group is what the ranks of one Open share.
type group struct {
	ranks   []*device
	arrived uintptr // the barrier's counter, on the first GPU
	options Options
	meeting meeting
}

// meeting is where the ranks' host threads wait for each other: what a rank
// allocates, loads or uploads may wait for the whole GPU, so it must be over
// before any rank's kernels wait for another rank's.
type meeting struct {
	mu      sync.Mutex
	cond    *sync.Cond
	arrived int
	round   uint64
	err     error // of this round
	last    error // of the round before
}

// meet returns when every rank is here: nil, or the first error that one brought.
func (g *group) meet(err error) error {
	n := len(g.ranks)
	if n < 2 {
		return err
	}
	m := &g.meeting
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cond == nil {
		m.cond = sync.NewCond(&m.mu)
	}
	if m.err == nil {
		m.err = err
	}
	round := m.round
	if m.arrived++; m.arrived == n {
		m.arrived, m.last, m.err = 0, m.err, nil
		m.round++
		m.cond.Broadcast()
	}
	for m.round == round {
		m.cond.Wait()
	}
	return m.last
}

// Open returns one device a rank. Ranks are placed on the GPUs in turn, several
// on one where there are fewer GPUs than ranks. Each device's methods must be
// called from one OS thread.
func Open(ranks int, o Options) ([]kernels.Device, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := driver.Status(); err != nil {
		return nil, fmt.Errorf("%w: %w", kernels.ErrDevice, err)
	}
	gpus, err := cu.NumDevices()
	if err != nil || gpus == 0 {
		return nil, fmt.Errorf("%w: no GPU (%v)", kernels.ErrDevice, err)
	}
	per := o.RanksPerGPU
	if per == 0 {
		per = (ranks + gpus - 1) / gpus
	}
	if per*gpus < ranks {
		return nil, fmt.Errorf("%w: %d ranks on %d GPUs with %d a GPU: raise --ranks-per-gpu", kernels.ErrDevice, ranks, gpus, per)
	}
	if o.StepTimeout == 0 {
		o.StepTimeout = time.Minute
	}
	// Contexts are current per thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := &group{options: o}
	for r := range ranks {
		d, err := newDevice(g, r, r/per)
		if err != nil {
			closeAll(g.ranks)
			return nil, fmt.Errorf("rank %d on GPU %d: %w", r, r/per, err)
		}
		g.ranks = append(g.ranks, d)
	}
	if err := g.link(); err != nil {
		closeAll(g.ranks)
		return nil, err
	}
	out := make([]kernels.Device, ranks)
	for i, d := range g.ranks {
		out[i] = d
	}
	return out, nil
}

func closeAll(ds []*device) {
	for _, d := range ds {
		d.Close()
	}
}

// link gives the ranks a barrier, and each GPU sight of the others' memory.
func (g *group) link() error {
	first := g.ranks[0]
	if err := first.use(); err != nil {
		return err
	}
	var err error
	if g.arrived, err = first.malloc(8); err != nil {
		return err
	}
	if err := errors.Join(driver.Set(g.arrived, 0, 8, first.stream), driver.Sync(first.stream)); err != nil {
		return fmt.Errorf("%w: %w", kernels.ErrDevice, err)
	}
	for _, a := range g.ranks {
		for _, b := range g.ranks {
			if a.gpu == b.gpu {
				continue
			}
			ok, err := cu.Device(a.gpu).CanAccessPeer(cu.Device(b.gpu))
			if err == nil && ok == 0 {
				err = fmt.Errorf("no peer access")
			}
			if err == nil {
				if err = a.use(); err == nil {
					// Already enabled by a rank on the same GPU is no error.
					_ = b.ctx.EnablePeerAccess(0)
				}
			}
			if err != nil {
				return fmt.Errorf("%w: GPU %d cannot reach GPU %d: %w", kernels.ErrDevice, a.gpu, b.gpu, err)
			}
		}
	}
	return nil
}
