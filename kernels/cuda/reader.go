//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"

	"gorgonia.org/cu"
)

// loading is what weights come to the GPU through, until the first list.
type loading struct {
	pinned []byte                 // cut into slots for the matrices of a weight
	free   [loadingSlots]cu.Event // a slot's copies are over
	plain  [2][]byte              // for matrices that are too large for a slot
	stage  struct {               // where packing reads
		ptr   uintptr
		bytes int64
	}
}

const (
	loadingBytes = 64 << 20
	loadingSlots = 24
	leastSlots   = 6 // fewer are no pipeline: the matrix goes another way
)

// slot is memory that a matrix is read to.
type slot struct {
	memory []byte    // pinned; nil: plain
	free   *cu.Event // the GPU has copied; nil: it does not copy from here
	plain  *[]byte   // for one part, made when it is needed and kept
}

// slots are for matrices of some bytes.
func (l *loading) slots(bytes int) (ss []slot, err error) {
	if bytes = max(bytes, 1); loadingBytes/bytes < leastSlots {
		for i := range l.plain {
			ss = append(ss, slot{plain: &l.plain[i]})
		}
		return ss, nil
	}
	if l.pinned == nil {
		if l.pinned, err = driver.Pinned(loadingBytes); err != nil {
			return nil, fmt.Errorf("%w: pinned host memory: %w", kernels.ErrMemory, err)
		}
		for i := range l.free {
			if l.free[i], err = cu.MakeEvent(cu.DisableTiming); err != nil {
				return nil, fmt.Errorf("%w: make an event: %w", kernels.ErrDevice, err)
			}
		}
	}
	ss = make([]slot, min(loadingSlots, loadingBytes/bytes))
	for i := range l.free { // the last weight's copies, cut in another way
		if err := l.free[i].Synchronize(); err != nil {
			return nil, fmt.Errorf("%w: copy to the GPU: %w", kernels.ErrDevice, err)
		}
	}
	for i := range ss {
		at := i * (loadingBytes / len(ss)) &^ 63
		ss[i] = slot{memory: l.pinned[at : at+bytes], free: &l.free[i]}
	}
	return ss, nil
}

// end frees all of it and reports whether there was any. Every Load has waited for
// its copies.
func (l *loading) end() bool {
	some := l.pinned != nil || l.stage.ptr != 0
	if l.pinned != nil {
		driver.FreePinned(l.pinned)
		for i := range l.free {
			cu.DestroyEvent(&l.free[i])
		}
	}
	if l.stage.ptr != 0 {
		cu.MemFree(cu.DevicePtr(l.stage.ptr))
	}
	*l = loading{}
	return some
}

// reader reads the matrices of a weight ahead of the GPU, some at once.
type reader struct {
	room    chan slot
	using   []slot // of matrices that were taken, oldest first
	slots   int
	results []chan read
	stop    chan struct{}
	wg      sync.WaitGroup
}

type read struct {
	kernels.Matrix
	slot slot
	err  error
}

// maxReaders bounds the goroutines of a rank; more are no faster than the link to
// the GPU.
const maxReaders = 8

func newReader(w *kernels.Weights, ranks int, slots []slot) *reader {
	r := &reader{room: make(chan slot, len(slots)), slots: len(slots), results: make([]chan read, w.Count),
		stop: make(chan struct{})}
	for i := range r.results {
		r.results[i] = make(chan read, 1)
	}
	for _, s := range slots {
		r.room <- s
	}
	var mu sync.Mutex
	next := 0
	// Who has room takes the first index that nobody has, so that matrix i never
	// waits for the use of a later one.
	take := func() (int, slot) {
		select {
		case <-r.stop:
			return w.Count, slot{}
		case s := <-r.room:
			mu.Lock()
			defer mu.Unlock()
			next++
			return next - 1, s
		}
	}
	for range max(1, min(maxReaders, runtime.GOMAXPROCS(0)/ranks, w.Count, len(slots))) {
		r.wg.Go(func() {
			for i, s := take(); i < w.Count; i, s = take() {
				r.results[i] <- s.read(w, i)
			}
		})
	}
	return r
}

// read reads a matrix; into pinned memory all of it.
func (s slot) read(w *kernels.Weights, i int) read {
	if s.plain != nil {
		given := false
		m, err := w.Read(i, func(n int) []byte {
			if given || n > loadingBytes {
				return make([]byte, n)
			}
			given = true
			if len(*s.plain) < n {
				*s.plain = make([]byte, n)
			}
			return (*s.plain)[:n]
		})
		return read{m, s, err}
	}
	left := s.memory
	alloc := func(n int) []byte {
		if n > len(left) {
			return make([]byte, n)
		}
		b := left[:n:n]
		left = left[n:]
		return b
	}
	m, err := w.Read(i, alloc)
	if s.free == nil || err != nil {
		return read{m, s, err}
	}
	for _, part := range []*[]byte{&m.Data, &m.Scales} {
		if len(*part) > 0 && !within(*part, s.memory) {
			b := alloc(len(*part))
			copy(b, *part)
			*part = b
			if !within(b, s.memory) { // Read took more than the matrix is large
				s.free = nil
			}
		}
	}
	return read{m, s, nil}
}

func within(b, memory []byte) bool {
	p, q := uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	return p >= q && p+uintptr(len(b)) <= q+uintptr(len(memory))
}

// matrix returns matrix i, which is valid until it is called again; it is called
// for each in order.
func (r *reader) matrix(i int) (read, error) {
	if len(r.using) > r.slots/2 {
		s := r.using[0]
		if s.free != nil {
			if err := s.free.Synchronize(); err != nil {
				return read{}, fmt.Errorf("%w: copy to the GPU: %w", kernels.ErrDevice, err)
			}
		}
		r.using = r.using[1:]
		r.room <- s
	}
	x := <-r.results[i]
	r.using = append(r.using, x.slot)
	return x, x.err
}

// close ends the goroutines, whether or not all was read.
func (r *reader) close() {
	close(r.stop)
	r.wg.Wait()
}

// bring copies a part of a matrix to the GPU.
func (d *device) bring(ptr uintptr, part []byte, from slot) error {
	switch {
	case from.free == nil && len(part) > 2*pieceBytes:
		return d.bringLarge(ptr, part)
	case from.free == nil:
		return d.copyIn(ptr, part)
	}
	d.markCopies()
	if err := driver.ToDevice(ptr, part, d.stream); err != nil {
		return fmt.Errorf("%w: copy to the GPU: %w", kernels.ErrDevice, err)
	}
	return nil
}

const pieceBytes = 8 << 20

// bringLarge copies in pieces, as if they were matrices.
func (d *device) bringLarge(ptr uintptr, src []byte) error {
	piece := func(i int) []byte { return src[i*pieceBytes : min((i+1)*pieceBytes, len(src))] }
	w := kernels.Weights{Count: (len(src) + pieceBytes - 1) / pieceBytes,
		Read: func(i int, _ kernels.Alloc) (kernels.Matrix, error) { return kernels.Matrix{Data: piece(i)}, nil }}
	slots, err := d.loading.slots(pieceBytes)
	if err != nil {
		return err
	}
	r := newReader(&w, len(d.group.ranks), slots)
	defer r.close()
	for i := range w.Count {
		x, err := r.matrix(i)
		if err == nil {
			err = errors.Join(d.bring(ptr+uintptr(i*pieceBytes), x.Data, x.slot), x.slot.used(d.stream))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// used marks the end of the copies from a slot.
func (s slot) used(stream cu.Stream) error {
	if s.free == nil {
		return nil
	}
	if err := s.free.Record(stream); err != nil {
		return fmt.Errorf("%w: copy to the GPU: %w", kernels.ErrDevice, err)
	}
	return nil
}

// stageFor returns memory for a matrix as it comes, before it is packed. Weights
// follow each other on the stream, so they share it.
func (d *device) stageFor(bytes int64) (uintptr, error) {
	s := &d.loading.stage
	if s.bytes >= bytes {
		return s.ptr, nil
	}
	if s.ptr != 0 {
		cu.MemFree(cu.DevicePtr(s.ptr)) // every Load ends with its stream's work
		s.ptr, s.bytes = 0, 0
	}
	var err error
	if s.ptr, err = d.malloc(bytes); err == nil {
		s.bytes = bytes
	}
	return s.ptr, err
}

const (
	copiers   = 4
	copyLeast = 1 << 20 // bytes that are worth a goroutine, together
)

// spread copies as copy does, on some goroutines where it is much: one of them is
// slower than the link to the GPU.
func spread(dst, src []byte) int {
	n := min(len(dst), len(src))
	if n < copyLeast {
		return copy(dst, src)
	}
	var wg sync.WaitGroup
	each := (n + copiers - 1) / copiers
	for at := each; at < n; at += each {
		wg.Go(func() { copy(dst[at:min(at+each, n)], src[at:min(at+each, n)]) })
	}
	copy(dst[:each], src[:each])
	wg.Wait()
	return n
}
