//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"

	"gorgonia.org/cu"
)

const (
	pipeParts = 4
	partBytes = 4 << 20
)

// pipe is pinned memory through which bytes go to the GPU without waiting: its
// parts take turns, so that one is filled while others are copied.
type pipe struct {
	memory []byte
	free   [pipeParts]cu.Event // the part's copies are over
	busy   [pipeParts]bool     // free was recorded
	part   int
	used   int // bytes of the part
}

func (p *pipe) open() (err error) {
	for i := range p.free {
		if p.free[i], err = cu.MakeEvent(cu.DisableTiming); err != nil {
			return fmt.Errorf("%w: make an event: %w", kernels.ErrDevice, err)
		}
	}
	if p.memory, err = driver.Pinned(pipeParts * partBytes); err != nil {
		return fmt.Errorf("%w: pinned host memory: %w", kernels.ErrMemory, err)
	}
	return nil
}

func (p *pipe) close() {
	driver.FreePinned(p.memory)
	for i := range p.free {
		cu.DestroyEvent(&p.free[i])
	}
	*p = pipe{}
}

// room returns memory that no copy uses.
func (p *pipe) room(s cu.Stream) ([]byte, error) {
	if p.used >= partBytes {
		if err := p.free[p.part].Record(s); err != nil {
			return nil, err
		}
		p.busy[p.part] = true
		p.part, p.used = (p.part+1)%pipeParts, 0
		if p.busy[p.part] {
			if err := p.free[p.part].Synchronize(); err != nil {
				return nil, err
			}
		}
	}
	at := p.part*partBytes + p.used
	return p.memory[at : (p.part+1)*partBytes], nil
}

// copyIn copies to the GPU, in the order of the stream. src is free when it returns.
func (d *device) copyIn(ptr uintptr, src []byte) error {
	d.markCopies()
	for len(src) > 0 {
		room, err := d.pipe.room(d.stream)
		n := spread(room, src)
		if err == nil {
			err = d.toGPU(ptr, room[:n])
		}
		if err != nil {
			return fmt.Errorf("%w: copy to the GPU: %w", kernels.ErrDevice, err)
		}
		d.pipe.used += align64(n)
		src, ptr = src[n:], ptr+uintptr(n)
	}
	return nil
}

// toGPU copies pinned memory.
func (d *device) toGPU(ptr uintptr, pinned []byte) error {
	if !plan.Copies(len(pinned), ptr) {
		return driver.ToDevice(ptr, pinned, d.stream)
	}
	err := d.copy(plan.Copy{From: uintptr(unsafe.Pointer(&pinned[0])), To: ptr,
		Words: int32(len(pinned) / 4), In: true})
	d.arriving = true
	return err
}

func align64(n int) int { return (n + 63) &^ 63 }
