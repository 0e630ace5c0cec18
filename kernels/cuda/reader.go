//go:build cuda

package cuda

import (
	"runtime"
	"sync"

	"glmbatch/kernels"
)

// reader reads the matrices of a weight ahead of the GPU, some at once.
type reader struct {
	room    chan struct{} // for matrices that were read and not used yet
	results []chan read
	stop    chan struct{}
	wg      sync.WaitGroup
}

type read struct {
	kernels.Matrix
	err error
}

// maxReaders bounds the goroutines of a rank; more are no faster than the link to
// the GPU.
const maxReaders = 8

func newReader(w *kernels.Weights, ranks int) *reader {
	n := max(1, min(maxReaders, runtime.GOMAXPROCS(0)/ranks, w.Count))
	r := &reader{room: make(chan struct{}, 2*n), results: make([]chan read, w.Count), stop: make(chan struct{})}
	for i := range r.results {
		r.results[i] = make(chan read, 1)
	}
	var mu sync.Mutex
	next := 0
	// Who has room takes the first index that nobody has, so that matrix i never
	// waits for the use of a later one.
	take := func() int {
		select {
		case <-r.stop:
			return w.Count
		case r.room <- struct{}{}:
		}
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1
	}
	for range n {
		r.wg.Go(func() {
			for i := take(); i < w.Count; i = take() {
				m, err := w.Read(i)
				r.results[i] <- read{m, err}
			}
		})
	}
	return r
}

// matrix returns matrix i; it is called for each in order.
func (r *reader) matrix(i int) (kernels.Matrix, error) {
	x := <-r.results[i]
	<-r.room
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
