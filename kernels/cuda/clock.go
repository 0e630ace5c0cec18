//go:build cuda

package cuda

import (
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"

	"gorgonia.org/cu"
)

// clock puts the GPU's clock on the process's. The two drift apart by some
// microseconds a second, so it is read again now and then, and in between the
// drift seen so far is assumed to go on.
type clock struct {
	ptr      uintptr // where the GPU leaves its time
	stream   cu.Stream
	ns       []byte  // pinned
	gpu      int64   // GPU time of the last reading
	offset   int64   // kernels.Now - GPU time, then
	drift    float64 // of the offset, ns a ns
	first    reading
	residual int64 // ns: half of the reading's width, or by how far the prediction missed it if that is more
}

// reading is one look at both clocks.
type reading struct{ gpu, offset, width int64 }

const (
	clockReadings = 20              // at open
	clockAgain    = time.Second     // after so long it is read again
	clockWide     = 40_000          // ns: a wider reading tells less than the prediction
	clockBase     = 5 * time.Second // readings that far apart give the drift
)

func (c *clock) open(d *device) (err error) {
	if c.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return err
	}
	if c.ptr, err = d.malloc(8); err != nil {
		return err
	}
	if c.ns, err = driver.Pinned(8); err != nil {
		return fmt.Errorf("%w: pinned host memory: %w", kernels.ErrMemory, err)
	}
	r, err := c.read(d, clockReadings)
	if err != nil {
		return err
	}
	c.start(r)
	return nil
}

// start goes by a first reading.
func (c *clock) start(r reading) {
	c.first, c.gpu, c.offset, c.residual = r, r.gpu, r.offset, r.width/2
}

// read looks at both clocks n times and returns the tightest reading.
func (c *clock) read(d *device, n int) (best reading, err error) {
	best.width = 1 << 62
	p := stampP{at: c.ptr}
	f, ok := d.funcs["clock_read"]
	if !ok {
		return best, fmt.Errorf("%w: no kernel clock_read in the images", kernels.ErrKernel)
	}
	l := driver.Launch{Func: f, Grid: [3]uint32{1, 1, 1}, Threads: 1, Params: unsafe.Pointer(&p)}
	for range n {
		before := kernels.Now()
		err := l.Do(c.stream)
		if err == nil {
			err = driver.Sync(c.stream)
		}
		after := kernels.Now()
		if err == nil {
			err = driver.ToHost(c.ns, c.ptr, c.stream)
		}
		if err == nil {
			err = driver.Sync(c.stream)
		}
		if err != nil {
			return best, fmt.Errorf("%w: read the GPU's clock: %w", kernels.ErrDevice, err)
		}
		if after-before < best.width {
			gpu := int64(binary.LittleEndian.Uint64(c.ns))
			best = reading{gpu, (before+after)/2 - gpu, after - before}
		}
	}
	return best, nil
}

// now is the time of the process at a time of the GPU.
func (c *clock) now(gpu int64) int64 {
	return gpu + c.offset + int64(c.drift*float64(gpu-c.gpu))
}

// again reads the clocks if the last reading is old. gpu is the GPU's time.
func (c *clock) again(d *device, gpu int64) error {
	if gpu-c.gpu < int64(clockAgain) {
		return nil
	}
	r, err := c.read(d, 3)
	if err != nil || r.width > clockWide {
		return err
	}
	c.take(r)
	return nil
}

// take goes by a new reading from here on.
func (c *clock) take(r reading) {
	missed := r.gpu + r.offset - c.now(r.gpu)
	c.residual = max(r.width/2, missed, -missed)
	c.gpu, c.offset = r.gpu, r.offset
	if d := r.gpu - c.first.gpu; d >= int64(clockBase) || c.drift == 0 {
		c.drift = float64(r.offset-c.first.offset) / float64(max(d, 1))
	}
}

func (c *clock) close() {
	if c.ptr != 0 {
		cu.MemFree(cu.DevicePtr(c.ptr))
	}
	if c.ns != nil {
		driver.FreePinned(c.ns)
	}
	if c.stream != (cu.Stream{}) {
		c.stream.Destroy()
	}
	*c = clock{}
}
