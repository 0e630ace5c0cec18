package cpu

import (
	"fmt"
	"sync"

	"glmbatch/kernels"
)

// shape is what all ranks must agree on when they allocate a buffer.
type shape struct {
	bytes   int64
	sharing kernels.Sharing

	// Of loaded weights; count is 0 for plain memory.
	name              string
	format            kernels.Format
	use               kernels.Use
	count, rows, cols int
}

// storage is one copy of a buffer: plain bytes, or packed weights too.
type storage struct {
	data    []byte
	weights []matrix // one each; nil for plain memory and for tables that are only looked up
	free    func()   // nil: the garbage collector's
}

// buffer is an allocation of all ranks: one copy each, or one for all.
type buffer struct {
	shape
	copies []cell // one a rank, or a single one when replicated
	users  int    // ranks that have it; the hub's lock guards it
}

type cell struct {
	sync.Mutex
	storage
	made bool
}

func newBuffer(s shape, ranks int) *buffer {
	if s.sharing == kernels.Replicated {
		ranks = 1
	}
	return &buffer{shape: s, copies: make([]cell, ranks)}
}

// on returns a rank's copy.
func (b *buffer) on(rank int) *storage { return &b.cell(rank).storage }

func (b *buffer) cell(rank int) *cell { return &b.copies[b.slot(rank)] }

func (b *buffer) slot(rank int) int {
	if len(b.copies) == 1 {
		return 0
	}
	return rank
}

// fill makes the rank's copy unless it is there.
func (b *buffer) fill(rank int, f func() (storage, error)) error {
	c := &b.copies[b.slot(rank)]
	c.Lock()
	defer c.Unlock()
	if c.made {
		return nil
	}
	s, err := f()
	if err != nil {
		return err
	}
	c.storage, c.made = s, true
	return nil
}

// memory reserves zeroed bytes within the hub's limit, aligned to 64.
func (h *hub) memory(n int64) (storage, error) {
	h.mu.Lock()
	used := h.used
	if h.limit > 0 && n > h.limit-used {
		h.mu.Unlock()
		return storage{}, fmt.Errorf("%w: %d bytes wanted, %d of %d in use", kernels.ErrMemory, n, used, h.limit)
	}
	h.used += n
	h.mu.Unlock()
	data, free, err := allocate(n)
	if err != nil {
		h.mu.Lock()
		h.used -= n
		h.mu.Unlock()
		return storage{}, fmt.Errorf("%w: %d bytes wanted: %w", kernels.ErrMemory, n, err)
	}
	return storage{data: data, free: free}, nil
}

func (h *hub) release(s storage) {
	h.mu.Lock()
	h.used -= int64(len(s.data))
	h.mu.Unlock()
	if s.free != nil {
		s.free()
	}
}

// heap returns zeroed memory of the Go heap that starts on a cache line.
func heap(n int64) []byte {
	const line = 64
	b := make([]byte, n+line-1)
	skip := int(-address(b) & (line - 1))
	return b[skip : skip+int(n) : skip+int(n)]
}
