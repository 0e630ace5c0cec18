//go:build cuda

package cuda

import (
	"runtime"
	"sync"

	"glmbatch/kernels"
)

// reader reads the matrices of a weight ahead of the GPU, some at once.
type reader struct {
	room    chan []byte // memory for matrices that were read and not used yet, a matrix each
	used    []byte      // of the matrix that is in use
	results []chan read
	stop    chan struct{}
	wg      sync.WaitGroup
}

type read struct {
	kernels.Matrix
	memory []byte
	err    error
}

// maxReaders bounds the goroutines of a rank; more are no faster than the link to
// the GPU.
const maxReaders = 8

func newReader(w *kernels.Weights, ranks int) *reader {
	n := max(1, min(maxReaders, runtime.GOMAXPROCS(0)/ranks, w.Count))
	r := &reader{room: make(chan []byte, 2*n), results: make([]chan read, w.Count), stop: make(chan struct{})}
	for i := range r.results {
		r.results[i] = make(chan read, 1)
	}
	for range cap(r.room) {
		r.room <- nil // made when it is needed
	}
	bytes := int(kernels.WeightBytes(w.Format, int64(w.Rows), int64(w.Cols)))
	var mu sync.Mutex
	next := 0
	// Who has room takes the first index that nobody has, so that matrix i never
	// waits for the use of a later one.
	take := func() (int, []byte) {
		select {
		case <-r.stop:
			return w.Count, nil
		case memory := <-r.room:
			mu.Lock()
			defer mu.Unlock()
			next++
			return next - 1, memory
		}
	}
	for range n {
		r.wg.Go(func() {
			for i, memory := take(); i < w.Count; i, memory = take() {
				left := memory
				m, err := w.Read(i, func(n int) []byte {
					if memory == nil {
						memory = make([]byte, bytes)
						left = memory
					}
					if n > len(left) {
						return make([]byte, n)
					}
					b := left[:n:n]
					left = left[n:]
					return b
				})
				r.results[i] <- read{m, memory, err}
			}
		})
	}
	return r
}

// matrix returns matrix i, which is valid until it is called again; it is called
// for each in order.
func (r *reader) matrix(i int) (kernels.Matrix, error) {
	if i > 0 {
		r.room <- r.used
	}
	x := <-r.results[i]
	r.used = x.memory
	return x.Matrix, x.err
}

// close ends the goroutines, whether or not all was read.
func (r *reader) close() {
	close(r.stop)
	r.wg.Wait()
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
