//go:build cuda

package cuda

import (
	"fmt"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"

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
		d.pipe.used += int(round(int64(n), 64))
		src, ptr = src[n:], ptr+uintptr(n)
	}
	return nil
}

// carried is how many bytes kernels copy faster than copies do. carriedWords is as
// in src/host.cu.
const (
	carried      = 64 << 10
	carriedWords = 4
)

// carries reports whether a kernel is to copy so many bytes at an address.
func carries(bytes int, ptr uintptr) bool { return bytes <= carried && bytes%4 == 0 && ptr%4 == 0 }

// carry launches a copy, or takes stamps to the host, or both.
func (d *device) carry(p *carryP) error {
	blocks := max(ceil(p.words, 256*carriedWords), ceil(3*p.calls, 256))
	return d.do("carry", [3]uint32{blocks, 1, 1}, 256, 0, unsafe.Pointer(p))
}

// toGPU copies pinned memory.
func (d *device) toGPU(ptr uintptr, pinned []byte) error {
	if !carries(len(pinned), ptr) {
		return driver.ToDevice(ptr, pinned, d.stream)
	}
	err := d.carry(&carryP{from: uintptr(unsafe.Pointer(&pinned[0])), to: ptr, words: int32(len(pinned) / 4), in: 1})
	d.arriving = true
	return err
}
