//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"

	"gorgonia.org/cu"
)

const maxRanks = plan.MaxRanks

// group is what the ranks of one Open share.
type group struct {
	ranks   []*device
	perGPU  int // the most ranks that a GPU has
	options Options
	meeting meeting

	arrived uintptr           // the barrier's counter, on the first GPU
	inbox   [maxRanks]uintptr // of each rank: two halves of plan.InboxBytes
	hosted  []byte            // pinned: the inboxes, when they are the host's
	words   []byte            // pinned, 32-bit words: whether to stop, then why each rank gave up
	open    atomic.Int32      // ranks that are not closed
	trouble struct {
		sync.Mutex
		cause error // the first error that left ranks waiting for each other
	}
}

// word is one of the words that kernels and the host share.
func (g *group) word(i int) *uint32 { return (*uint32)(unsafe.Pointer(&g.words[4*i])) }

func (g *group) stop() uintptr           { return uintptr(unsafe.Pointer(g.word(0))) }
func (g *group) failed(rank int) uintptr { return uintptr(unsafe.Pointer(g.word(1 + rank))) }
func (g *group) shared() bool            { return g.perGPU > 1 }

// limit is how long a kernel waits, in ns. The host tells it to stop before that.
func (g *group) limit() uint64 { return 2 * uint64(g.options.StepTimeout) }

// fail ends the group with an error after which ranks may wait for each other
// in vain: kernels that do are told to stop. A rank whose list only ended for
// another's error returns that, as kernels.ErrPeer.
func (g *group) fail(err error) error {
	t := &g.trouble
	t.Lock()
	defer t.Unlock()
	if t.cause != nil && len(g.ranks) > 1 { // an address fault, say, ends every context of the process
		return fmt.Errorf("%w: %w", kernels.ErrPeer, t.cause)
	}
	t.cause = err
	if g.words != nil {
		atomic.StoreUint32(g.word(0), 1)
	}
	return err
}

// halt tells ranks that wait for another rank to stop, when a list takes too long:
// the rank whose list does not end even then is at fault. It returns whether it
// was the first to tell.
func (g *group) halt() bool {
	return g.words != nil && atomic.CompareAndSwapUint32(g.word(0), 0, 1)
}

// grace is how long ranks have to stop.
func (g *group) grace() time.Duration {
	if len(g.ranks) < 2 {
		return 0
	}
	return min(g.options.StepTimeout/4, time.Second)
}

// ended is nil, or the error that ended the group.
func (g *group) ended() error {
	t := &g.trouble
	t.Lock()
	defer t.Unlock()
	if t.cause == nil || len(g.ranks) < 2 {
		return t.cause
	}
	return fmt.Errorf("%w: %w", kernels.ErrPeer, t.cause)
}

// verdict says how the waits of a rank's list ended.
func (g *group) verdict(rank int) error {
	if len(g.ranks) < 2 {
		return nil
	}
	switch w := int32(atomic.LoadUint32(g.word(1 + rank))); {
	case w == 0:
		return nil
	case w < 0:
		if err := g.ended(); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w: rank %d was told to stop waiting after %v", kernels.ErrPeer, kernels.ErrDevice, rank,
			g.options.StepTimeout)
	case w <= maxRanks:
		return g.fail(fmt.Errorf("%w: rank %d waited for rank %d longer than %v", kernels.ErrDevice, rank, w-1,
			g.options.StepTimeout))
	}
	return g.fail(fmt.Errorf("%w: rank %d waited for another rank longer than %v", kernels.ErrDevice, rank,
		g.options.StepTimeout))
}

// meeting is where the ranks' host threads wait for each other: what a rank
// allocates, loads or uploads may wait for the whole GPU, so it must be over
// before any rank's kernels wait for another rank's.
type meeting struct {
	mu      sync.Mutex
	cond    *sync.Cond
	arrived int
	round   uint64
	late    bool  // some rank did not come
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
		return m.last
	}
	timer := time.AfterFunc(g.options.StepTimeout, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.round == round {
			m.late = true
			m.cond.Broadcast()
		}
	})
	defer timer.Stop()
	for m.round == round && !m.late {
		m.cond.Wait()
	}
	if m.late {
		return g.fail(fmt.Errorf("%w: %d of %d ranks were not ready for a list within %v", kernels.ErrDevice,
			n-m.arrived, n,
			g.options.StepTimeout))
	}
	return m.last
}

// leave frees what the group has on a rank, and what the ranks share with the
// last of them.
func (g *group) leave(d *device) {
	cu.MemFree(cu.DevicePtr(d.Group.Epoch))
	if g.hosted == nil {
		cu.MemFree(cu.DevicePtr(g.inbox[d.rank]))
	}
	if d.rank == 0 {
		cu.MemFree(cu.DevicePtr(g.arrived))
	}
	if d.nccl != nil {
		d.nccl.Close()
	}
	if g.open.Add(-1) == 0 {
		driver.FreePinned(g.words)
		driver.FreePinned(g.hosted)
		g.words, g.hosted = nil, nil
	}
}

// link gives the ranks sight of each other's memory, inboxes and a barrier, and tells
// their plans.
func (g *group) link() error {
	if err := g.join(); err != nil {
		return err
	}
	for r, d := range g.ranks {
		t, m := &d.target, &d.Group
		t.Rank, t.Ranks, t.PerGPU, t.Collective, t.NCCL = r, len(g.ranks), g.perGPU, g.options.Collective, d.nccl != nil
		m.Inbox, m.Arrived, m.Limit = g.inbox, g.arrived, g.limit()
		if g.words != nil {
			m.Failed, m.Stop = g.failed(r), g.stop()
		}
	}
	return nil
}

func (g *group) join() error {
	n := len(g.ranks)
	g.open.Store(int32(n))
	on := map[int]int{}
	for _, d := range g.ranks {
		on[d.gpu]++
		g.perGPU = max(g.perGPU, on[d.gpu])
	}
	if n < 2 {
		return nil
	}
	err := g.ranks[0].use() // the ranks were opened on other threads
	if err != nil {
		return err
	}
	if g.words, err = driver.Pinned(4096); err != nil {
		return fmt.Errorf("%w: pinned host memory: %w", kernels.ErrMemory, err)
	}
	clear(g.words)
	if g.options.Collective == ViaHost {
		if g.perGPU > 1 && len(on) > 1 {
			return fmt.Errorf("%w: ranks that share GPUs exchange through the host only on one GPU: give each a GPU, "+
				"or "+
				"leave --collective host out", kernels.ErrDevice)
		}
		if g.hosted, err = driver.Pinned(n * 2 * plan.InboxBytes); err != nil {
			return fmt.Errorf("%w: pinned host memory for inboxes: %w", kernels.ErrMemory, err)
		}
		for i := range g.hosted {
			g.hosted[i] = 0xFF
		}
	} else if err := g.peers(); err != nil {
		return err
	}
	for r, d := range g.ranks {
		if err := d.use(); err != nil {
			return err
		}
		if r == 0 {
			if g.arrived, err = d.malloc(8); err != nil {
				return err
			}
			if err := errors.Join(driver.Set(g.arrived, 0, 8, d.stream), driver.Sync(d.stream)); err != nil {
				return fmt.Errorf("%w: %w", kernels.ErrDevice, err)
			}
		}
		if g.hosted != nil {
			g.inbox[r] = uintptr(unsafe.Pointer(&g.hosted[r*2*plan.InboxBytes]))
			continue
		}
		if g.inbox[r], err = d.malloc(2 * plan.InboxBytes); err != nil {
			return fmt.Errorf("inbox of rank %d: %w", r, err)
		}
		if err := errors.Join(driver.Set(g.inbox[r], 0xFF, 2*plan.InboxBytes, d.stream),
			driver.Sync(d.stream)); err != nil {
			return fmt.Errorf("%w: clear the inbox of rank %d: %w", kernels.ErrDevice, r, err)
		}
	}
	return g.joinNCCL()
}

// target is what the first rank's plans follow from.
func (g *group) target() *plan.Target {
	t := g.ranks[0].target
	t.Ranks, t.Collective = len(g.ranks), g.options.Collective
	return &t
}
