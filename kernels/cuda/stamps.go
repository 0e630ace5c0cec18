//go:build cuda

package cuda

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"

	"gorgonia.org/cu"
)

// stamps is the buffer in which calls leave start, end and experts touched, and
// the GPU clock's place on the process's clock.
type stamps struct {
	ptr      uintptr
	calls    int
	on       bool
	offset   int64 // GPU clock + offset = kernels.Now
	residual int64 // the offset's uncertainty, ns
}

const stampBytes = 24

// at is where call i leaves its stamps; 0: nowhere.
func (s *stamps) at(i int) uintptr {
	if !s.on {
		return 0
	}
	return s.ptr + uintptr(i*stampBytes)
}

func (s *stamps) start(d *device, calls int, on bool) error {
	s.on = on
	if !on {
		return nil
	}
	if calls > s.calls {
		s.close()
		p, err := d.malloc(int64(calls) * stampBytes)
		if err != nil {
			return err
		}
		s.ptr, s.calls = p, calls
		d.forgetGraphs()
	}
	p := stampP{at: s.ptr, calls: int32(calls)}
	return d.do("stamps_clear", [3]uint32{uint32(calls+255) / 256, 1, 1}, 256, 0, unsafe.Pointer(&p))
}

func (s *stamps) read(d *device, spans []kernels.Span) error {
	if spans == nil {
		return nil
	}
	for i := 0; i < len(spans); {
		n := min(len(spans)-i, len(d.stage)/stampBytes)
		if err := driver.ToHost(d.stage[:n*stampBytes], s.ptr+uintptr(i*stampBytes), d.stream); err != nil {
			return fmt.Errorf("%w: read stamps: %w", kernels.ErrDevice, err)
		}
		if err := driver.Sync(d.stream); err != nil {
			return fmt.Errorf("%w: read stamps: %w", kernels.ErrDevice, err)
		}
		for j := range n {
			b := d.stage[j*stampBytes:]
			start, end := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
			sp := &spans[i+j]
			*sp = kernels.Span{Groups: int32(binary.LittleEndian.Uint64(b[16:]))}
			if end != 0 {
				sp.Start, sp.End = int64(start)+s.offset, int64(end)+s.offset
			} else if i+j > 0 {
				sp.Start, sp.End = spans[i+j-1].End, spans[i+j-1].End
			}
		}
		i += n
	}
	return nil
}

// calibrate finds the GPU clock's offset: of many readings, the one that the
// host's clock brackets most tightly.
func (d *device) calibrate() error {
	p, err := d.malloc(8)
	if err != nil {
		return err
	}
	defer cu.MemFree(cu.DevicePtr(p))
	best := int64(1) << 62
	for range 20 {
		a := stampP{at: p}
		before := kernels.Now()
		if err := d.do("clock_read", [3]uint32{1, 1, 1}, 1, 0, unsafe.Pointer(&a)); err != nil {
			return err
		}
		if err := driver.Sync(d.stream); err != nil {
			return err
		}
		after := kernels.Now()
		if err := driver.ToHost(d.stage[:8], p, d.stream); err != nil {
			return err
		}
		if err := driver.Sync(d.stream); err != nil {
			return err
		}
		if after-before < best {
			best = after - before
			d.stamps.offset = (before+after)/2 - int64(binary.LittleEndian.Uint64(d.stage))
		}
	}
	d.stamps.residual = best / 2
	return nil
}

func (s *stamps) close() {
	if s.ptr != 0 {
		cu.MemFree(cu.DevicePtr(s.ptr))
		s.ptr = 0
	}
}
