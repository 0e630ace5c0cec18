//go:build cuda

package cuda

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"

	"gorgonia.org/cu"
)

// clock puts the GPU's clock on the process's. The two drift apart by some
// microseconds a second, so it is read again now and then, and in between the
// drift seen so far is assumed to go on.
type clock struct {
	stream cu.Stream
	words  []byte  // pinned: the round that is asked for, the one that is answered, the GPU's time
	rounds uint32  // asked for so far
	gpu    int64   // GPU time of the last reading
	offset int64   // kernels.Now - GPU time, then
	drift  float64 // of the offset, ns a ns
	used   bool    // for spans since that reading
	first  reading
	worst  int64 // residual so far
	// ns: half of the reading's width, or by how far the prediction missed it if that is more and spans went by it
	residual int64
}

// reading is one look at both clocks.
type reading struct{ gpu, offset, width int64 }

const (
	clockReadings = 20               // at open
	clockAgain    = time.Second      // after so long it is read again
	clockWide     = 40_000           // ns: a wider reading tells less than the prediction
	clockBase     = 5 * time.Second  // readings that far apart give the drift
	clockPause    = time.Millisecond // longest between two rounds
	clockFirst    = 10 * time.Second // longest until the kernel starts, at open; some tools make it slow

	answerAt, timeAt, clockBytes = 64, 72, 128
)

func (c *clock) open(q *queue) (err error) {
	if c.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return err
	}
	if c.words, err = driver.Pinned(clockBytes); err != nil {
		return fmt.Errorf("%w: pinned host memory: %w", kernels.ErrMemory, err)
	}
	clear(c.words)
	r, err := c.read(q, clockReadings, clockFirst)
	if err != nil {
		return err
	}
	if r.gpu == 0 {
		return fmt.Errorf("%w: the GPU did not tell its time within %v", kernels.ErrDevice, clockFirst)
	}
	c.start(r)
	return nil
}

// start goes by a first reading.
func (c *clock) start(r reading) {
	c.first, c.gpu, c.offset, c.residual = r, r.gpu, r.offset, r.width/2
	c.worst = c.residual
}

// read looks at both clocks n times and returns the tightest reading, whose gpu
// is 0 when the kernel did not start within patience. From the second time on the
// host asks a kernel that waits for that: neither a launch nor an end is in it.
func (c *clock) read(q *queue, n int, patience time.Duration) (best reading, err error) {
	best.width = 1 << 62
	ask, answer, ns := c.word(0), c.word(answerAt), (*uint64)(unsafe.Pointer(&c.words[timeAt]))
	k := plan.ReadClock(uintptr(unsafe.Pointer(ask)), uintptr(unsafe.Pointer(answer)), uintptr(unsafe.Pointer(ns)),
		uint64(clockPause), c.rounds, uint32(n))
	l, err := q.kernel(&k)
	if err != nil {
		return best, err
	}
	before := kernels.Now()
	if err := l.Do(c.stream); err != nil {
		return best, fmt.Errorf("%w: read the GPU's clock: %w", kernels.ErrDevice, err)
	}
	last := c.rounds
	c.rounds += uint32(n) // of a kernel that comes too late too: it answers to nobody
	for i := range uint32(n) {
		round := last + i + 1
		if i > 0 {
			before, patience = kernels.Now(), clockPause
			atomic.StoreUint32(ask, round)
		}
		for atomic.LoadUint32(answer) != round {
			if kernels.Now()-before > int64(patience) {
				return best, nil
			}
		}
		after := kernels.Now()
		if after-before < best.width {
			gpu := int64(atomic.LoadUint64(ns))
			best = reading{gpu, (before+after)/2 - gpu, after - before}
		}
	}
	return best, nil
}

// word is one that the host and the GPU share.
func (c *clock) word(at int) *uint32 { return (*uint32)(unsafe.Pointer(&c.words[at])) }

// now is the time of the process at a time of the GPU.
func (c *clock) now(gpu int64) int64 {
	return gpu + c.offset + int64(c.drift*float64(gpu-c.gpu))
}

// again reads the clocks if the last reading is old. gpu is the GPU's time.
func (c *clock) again(q *queue, gpu int64) error {
	if gpu-c.gpu < int64(clockAgain) {
		return nil
	}
	r, err := c.read(q, 4, clockPause)
	if err != nil || r.width > clockWide {
		return err
	}
	c.take(r)
	return nil
}

// take goes by a new reading from here on.
func (c *clock) take(r reading) {
	missed := r.gpu + r.offset - c.now(r.gpu)
	c.residual = r.width / 2
	if c.used {
		c.residual = max(c.residual, missed, -missed)
	}
	c.used = false
	c.worst = max(c.worst, c.residual)
	c.gpu, c.offset = r.gpu, r.offset
	if d := r.gpu - c.first.gpu; d >= int64(clockBase) || c.drift == 0 {
		c.drift = float64(r.offset-c.first.offset) / float64(max(d, 1))
	}
}

func (c *clock) close() {
	if c.stream != (cu.Stream{}) {
		_ = driver.Sync(c.stream) // the kernel may still look at the words
		c.stream.Destroy()
	}
	driver.FreePinned(c.words)
	*c = clock{}
}
