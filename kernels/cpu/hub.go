package cpu

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"glmbatch/kernels"
)

var errClosed = errors.New("cpu: the device is closed")

// hub is what the ranks of a group share.
type hub struct {
	ranks   int
	threads int
	limit   int64 // bytes; 0: none
	exec    *executor

	mu    sync.Mutex
	used  int64
	bufs  []*buffer // append only
	open  int       // ranks not closed yet
	round *round    // the ranks that wait in Start
}

func newHub(ranks int, o Options) *hub {
	return &hub{ranks: ranks, threads: o.Threads, limit: o.Memory, open: ranks, exec: newExecutor(ranks, o.Threads)}
}

// buffer returns allocation number i, which the first rank to come makes.
func (h *hub) buffer(i int, want shape) (*buffer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open < h.ranks {
		return nil, errClosed
	}
	if i == len(h.bufs) {
		h.bufs = append(h.bufs, newBuffer(want, h.ranks))
	}
	b := h.bufs[i]
	if b.shape != want {
		return nil, fmt.Errorf("buffer %d is %v here and %v on another rank", i+1, want, b.shape)
	}
	b.users++
	return b, nil
}

// drop undoes buffer for a rank that could not fill its copy. When none could,
// the index is free again.
func (h *hub) drop(i int, b *buffer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.users--; b.users == 0 && i == len(h.bufs)-1 {
		h.bufs = slices.Clip(h.bufs[:i])
	}
}

func (h *hub) table() []*buffer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bufs
}

// round is one list on its way through all ranks.
type round struct {
	calls   []kernels.Call
	spans   [][]kernels.Span // one a rank, nil: untimed
	arrived int
	err     error
	done    chan struct{}
}

// meet waits for all ranks to bring the same list; the last to come executes it.
func (h *hub) meet(rank int, calls []kernels.Call, spans []kernels.Span) error {
	h.mu.Lock()
	if h.open < h.ranks {
		h.mu.Unlock()
		return errClosed
	}
	r := h.round
	if r == nil {
		r = &round{calls: calls, spans: make([][]kernels.Span, h.ranks), done: make(chan struct{})}
		h.round = r
	} else if !same(r.calls, calls) {
		r.err = fmt.Errorf("%w: rank %d brought another list of calls", kernels.ErrKernel, rank)
	}
	r.spans[rank] = spans
	if r.arrived++; r.arrived < h.ranks {
		h.mu.Unlock()
		<-r.done
		return r.err
	}
	h.round = nil
	bufs := h.bufs
	h.mu.Unlock()
	if r.err == nil {
		r.err = h.exec.run(bufs, r.calls, r.spans)
	}
	close(r.done)
	return r.err
}

// same reports whether two ranks brought one list. Ranks that are driven
// together share the slice, so the comparison is rarely made.
func same(a, b []kernels.Call) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true
	}
	return slices.EqualFunc(a, b, func(x, y kernels.Call) bool {
		return x.Kernel == y.Kernel && x.Layer == y.Layer && x.Replicated == y.Replicated && x.Dims == y.Dims &&
			x.Scalars == y.Scalars && slices.Equal(x.Args, y.Args)
	})
}

// leave closes one rank. Ranks that wait for it are sent away; the last one
// ends the workers and frees the memory.
func (h *hub) leave() error {
	h.mu.Lock()
	if r := h.round; r != nil {
		r.err = errClosed
		close(r.done)
		h.round = nil
	}
	h.open--
	last := h.open == 0
	bufs := h.bufs
	if last {
		h.bufs = nil
	}
	h.mu.Unlock()
	if !last {
		return nil
	}
	h.exec.close()
	for _, b := range bufs {
		for i := range b.copies {
			if b.copies[i].made {
				h.release(b.copies[i].storage)
			}
		}
	}
	return nil
}
