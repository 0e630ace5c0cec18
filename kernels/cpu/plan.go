package cpu

import (
	"fmt"
	"sync/atomic"

	"glmbatch/kernels"
)

// plan checks the list and cuts it into stages.
func (j *job) plan(e *executor, bufs []*buffer, calls []kernels.Call, spans [][]kernels.Span) error {
	j.tasks, j.stages, j.bufs, j.wide = j.tasks[:0], j.stages[:0], bufs, false
	j.err, j.times = nil, nil
	j.failed.Store(false)
	for i := range calls {
		c := &calls[i]
		t, err := newTask(c, e.ranks, bufs)
		if err != nil {
			return fmt.Errorf("cpu: call %d, layer %d: %w", i, c.Layer, err)
		}
		parts := t.parts(len(e.workers))
		j.tasks = append(j.tasks, t)
		if n := len(j.stages); parts == 1 && n > 0 && j.stages[n-1].parts == 1 {
			j.stages[n-1].end = i + 1
			continue
		}
		j.wide = j.wide || parts > 1
		j.stages = append(j.stages, stage{first: i, end: i + 1, parts: uint32(parts)})
	}
	if len(j.stages) == 0 {
		return nil
	}
	j.left.Store(int32(j.stages[0].parts))
	j.state.Store(0)
	for _, s := range spans {
		if s != nil {
			j.clock(len(calls))
			break
		}
	}
	return nil
}

// clock prepares the recording of n calls and starts the first.
func (j *job) clock(n int) {
	j.times = make([]int64, 2*n)
	j.groups = make([]atomic.Int32, n)
	j.times[0] = kernels.Now()
}

// newTask checks a call against its row of the table and the buffers.
func newTask(c *kernels.Call, ranks int, bufs []*buffer) (task, error) {
	if err := c.Check(); err != nil {
		return task{}, err
	}
	im := implementations[c.Kernel]
	if im == nil {
		return task{}, fmt.Errorf("%w: the CPU device has no %s", kernels.ErrKernel, c.Kernel)
	}
	t := task{call: c, impl: im, ranks: ranks, rounds: c.RoundsInputs()}
	if d := c.Dims; min(d.M, d.N, d.K, d.Groups, d.Heads, d.Rope, d.TopK, d.Ranks) < 0 || d.Slots < 0 || d.Ctx < 0 {
		return task{}, fmt.Errorf("%w: %s has a negative dimension: %+v", kernels.ErrKernel, c.Kernel, d)
	}
	k := kernels.Lookup(c.Kernel)
	once := c.Replicated || k.Class == kernels.Comm
	for i := range c.Args {
		a := &c.Args[i]
		if a.Index == 0 {
			continue
		}
		if int(a.Index) > len(bufs) {
			return task{}, fmt.Errorf("%w: argument %s of %s: no buffer %d", kernels.ErrKernel, k.Args[i].Name,
				c.Kernel, a.Index)
		}
		if n := bufs[a.Index-1].bytes; a.Offset < 0 || a.Len < 0 || a.Offset > n || a.Len > n-a.Offset {
			return task{}, fmt.Errorf("%w: argument %s of %s: [%d, %d) is outside buffer %d of %d bytes",
				kernels.ErrKernel, k.Args[i].Name, c.Kernel, a.Offset, a.Offset+a.Len, a.Index, n)
		}
		if ranks == 1 || k.Class == kernels.Comm {
			continue
		}
		written := k.Args[i].Role == kernels.Out || k.Args[i].Role == kernels.InOut
		shared := bufs[a.Index-1].sharing == kernels.Replicated
		if once && !shared {
			return task{}, fmt.Errorf("%w: %s is replicated, but its argument %s is not", kernels.ErrKernel, c.Kernel,
				k.Args[i].Name)
		}
		if written && shared && !once {
			return task{}, fmt.Errorf("%w: %s is not replicated, but its argument %s is written and is",
				kernels.ErrKernel, c.Kernel, k.Args[i].Name)
		}
	}
	if once {
		t.ranks = 1
	}
	t.units, t.times = im.units(&c.Dims), t.ranks
	if im.joint != nil && t.ranks > 1 && im.joint(c, bufs) {
		t.units, t.ranks, t.joint = t.units*t.ranks, 1, true
	}
	return t, nil
}

// How fast one core is, roughly: only to judge what is worth cutting.
const (
	bytesPerNs = 8
	flopsPerNs = 16
	partNs     = 2000 // work that makes up for the hand-over between cores
	partsEach  = 4    // parts for each worker, for balance
)

// parts returns into how many parts the call is cut.
func (t *task) parts(workers int) int {
	most := min(t.units*t.ranks, partsEach*workers)
	if most <= 1 || workers == 1 {
		return 1
	}
	c := t.call.Cost(0)
	ns := max(c.HBM/bytesPerNs, c.FLOPs/flopsPerNs)*int64(t.times) + int64(t.units*t.ranks)*t.impl.unitNs
	return max(1, int(min(ns/partNs, int64(most))))
}
