package cpu

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"glmbatch/kernels"
)

// executor runs lists of calls on a fixed set of workers: the caller of run is
// worker 0, the others park between lists.
type executor struct {
	ranks   int
	workers []*worker
	wg      sync.WaitGroup
	idle    *job // of an earlier run, for its memory
	runs    uint64
}

type worker struct {
	x       frame
	scratch scratch
	wake    chan *job // nil for worker 0
}

func newExecutor(ranks, threads int) *executor {
	e := &executor{ranks: ranks}
	for i := range threads {
		w := &worker{}
		w.x.s, w.x.ranks = &w.scratch, ranks
		e.workers = append(e.workers, w)
		if i > 0 {
			w.wake = make(chan *job, 1)
			e.wg.Go(func() {
				for j := range w.wake {
					j.work(w)
					j.inside.Add(-1)
				}
			})
		}
	}
	return e
}

func (e *executor) close() {
	for _, w := range e.workers[1:] {
		close(w.wake)
	}
	e.wg.Wait()
}

// run executes calls in order. spans has one slice a rank, nil where untimed.
func (e *executor) run(bufs []*buffer, calls []kernels.Call, spans [][]kernels.Span) error {
	j := e.idle
	if j == nil || j.inside.Load() > 0 {
		j = &job{} // a worker that woke late still looks at the last one
	}
	e.idle = j
	e.runs++
	j.id = e.runs
	if err := j.plan(e, bufs, calls, spans); err != nil || len(j.stages) == 0 {
		return err
	}
	if j.wide {
		for _, w := range e.workers[1:] {
			select {
			case old := <-w.wake: // it has not even woken for that one
				old.inside.Add(-1)
			default:
			}
			j.inside.Add(1)
			w.wake <- j
		}
	}
	j.work(e.workers[0])
	j.report(spans)
	return j.err
}

// job is one list on its way. Its stages run one after the other; the parts of
// a stage run side by side. A worker claims parts from state and the one that
// ends a stage's last part opens the next stage. So a worker that is kept from
// running, by the host's goroutines say, is waited for only amid a part.
type job struct {
	id     uint64 // 1, 2, …
	tasks  []task
	stages []stage
	bufs   []*buffer
	wide   bool // some stage has several parts

	state  atomic.Uint64 // the open stage, and below it 32 bits for its next part
	_      [56]byte
	left   atomic.Int32 // parts of the open stage that have not ended
	_      [60]byte
	inside atomic.Int32 // background workers that may look at this job

	failed atomic.Bool
	mu     sync.Mutex
	err    error // the first; under mu

	times  []int64 // [2i], [2i+1]: start and end of call i; nil: untimed
	groups []atomic.Int32
}

// task is a call with what plan found out about it.
type task struct {
	call   *kernels.Call
	impl   *impl
	units  int  // into which one rank's share can be cut
	ranks  int  // 1: once for all
	times  int  // how many ranks' work it is
	joint  bool // one pass for all ranks, see impl
	rounds bool // its inputs to BF16
}

// stage is a call that is cut into parts, or a run of calls too small to cut.
type stage struct {
	first, end int // tasks
	parts      uint32
}

// work claims and runs parts until the list has ended.
func (j *job) work(w *worker) {
	w.x.bufs = j.bufs
	last := uint64(len(j.stages))
	for spins := 0; ; {
		s := j.state.Load()
		open, part := s>>32, uint32(s)
		if open == last {
			w.x.bufs = nil
			return
		}
		st := &j.stages[open]
		if part >= st.parts {
			spins++
			pause(spins)
			continue
		}
		if !j.state.CompareAndSwap(s, s+1) {
			continue
		}
		spins = 0
		for {
			j.runPart(w, st, part)
			if j.left.Add(-1) > 0 {
				break
			}
			if open, st = j.next(open); st == nil {
				break
			}
			part = 0 // its opener keeps the first part: its cache is warm
		}
	}
}

// pause is what a worker does while there is nothing to claim: it spins for as
// long as a short call takes, then lets the host's goroutines have its core, and
// at last other processes too: one of them may keep the worker it waits for.
func pause(spins int) {
	const short, long = 2000, 4000
	switch {
	case spins > long:
		time.Sleep(20 * time.Microsecond)
	case spins > short:
		runtime.Gosched()
	}
}

// next closes a stage and opens the one after it, with part 0 claimed. It
// returns nil at the list's end.
func (j *job) next(open uint64) (uint64, *stage) {
	st := &j.stages[open]
	open++
	if j.failed.Load() {
		open = uint64(len(j.stages))
	}
	if j.times != nil {
		now := kernels.Now()
		j.times[2*st.end-1] = now
		if open < uint64(len(j.stages)) {
			j.times[2*st.end] = now
		}
	}
	if open == uint64(len(j.stages)) {
		j.state.Store(open << 32)
		return open, nil
	}
	st = &j.stages[open]
	j.left.Store(int32(st.parts))
	j.state.Store(open<<32 | 1)
	return open, st
}

// runPart runs one part of a stage. A failure ends the list after this stage.
func (j *job) runPart(w *worker, st *stage, part uint32) {
	at := st.first
	defer func() {
		if p := recover(); p != nil {
			j.fail(at, w.x.rank, fmt.Errorf("%w: panic: %v\n%s", kernels.ErrDevice, p, debug.Stack()))
		}
	}()
	if j.failed.Load() {
		return
	}
	if st.parts > 1 {
		t := &j.tasks[at]
		total, parts := int64(t.units*t.ranks), int64(st.parts)
		j.runUnits(w, at, int(total*int64(part)/parts), int(total*int64(part+1)/parts))
		return
	}
	for ; at < st.end; at++ {
		if j.times != nil && at > st.first {
			now := kernels.Now()
			j.times[2*at-1], j.times[2*at] = now, now
		}
		if !j.runUnits(w, at, 0, j.tasks[at].units*j.tasks[at].ranks) {
			return
		}
	}
}

// runUnits runs units [lo, hi) of a call, counted over its ranks.
func (j *job) runUnits(w *worker, at, lo, hi int) bool {
	t := &j.tasks[at]
	for lo < hi {
		rank := lo / t.units
		first := rank * t.units
		w.x.bind(t, j.id<<32|uint64(at), rank)
		end := min(hi-first, t.units)
		err := t.impl.run(&w.x, lo-first, end)
		if err == nil {
			err = w.x.err
		}
		if err != nil {
			j.fail(at, rank, err)
			return false
		}
		if w.x.groups > 0 {
			if j.times != nil {
				j.groups[at].Store(w.x.groups)
			}
			w.x.groups = 0
		}
		lo = first + end
	}
	return true
}

func (j *job) fail(at, rank int, err error) {
	c := j.tasks[at].call
	j.mu.Lock()
	if j.err == nil {
		j.err = fmt.Errorf("cpu: call %d, %s of layer %d on rank %d: %w", at, c.Kernel, c.Layer, rank, err)
	}
	j.mu.Unlock()
	j.failed.Store(true)
}

// report copies the times to every rank that asked for them.
func (j *job) report(spans [][]kernels.Span) {
	if j.times == nil {
		return
	}
	for _, ss := range spans {
		for i := range ss {
			ss[i] = kernels.Span{Start: j.times[2*i], End: j.times[2*i+1], Groups: j.groups[i].Load()}
		}
	}
}
