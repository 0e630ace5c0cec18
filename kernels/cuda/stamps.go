//go:build cuda

package cuda

import (
	"encoding/binary"
	"unsafe"

	"glmbatch/kernels"

	"gorgonia.org/cu"
)

// stamps is the buffer in which calls leave start, end and experts touched. It
// is cleared behind the copy that brings them back, so that no step waits for it.
type stamps struct {
	ptr   uintptr
	calls int
	on    bool
}

const stampBytes = 24

// at is where call i leaves its stamps; 0: nowhere.
func (s *stamps) at(i int) uintptr {
	if !s.on {
		return 0
	}
	return s.ptr + uintptr(i*stampBytes)
}

// start makes room for the stamps of a list that is about to be launched.
func (s *stamps) start(d *device, calls int, on bool) error {
	s.on = on
	if !on || calls <= s.calls {
		return nil
	}
	s.close()
	p, err := d.malloc(int64(calls) * stampBytes)
	if err != nil {
		return err
	}
	s.ptr, s.calls = p, calls
	d.forgetGraphs()
	return s.clear(d)
}

// clear follows what is on the stream.
func (s *stamps) clear(d *device) error {
	p := stampP{at: s.ptr, calls: int32(s.calls)}
	return d.do("stamps_clear", [3]uint32{uint32(s.calls+255) / 256, 1, 1}, 256, 0, unsafe.Pointer(&p))
}

// decode turns stamps that were brought back into spans. lanes is nil where calls
// ran one after the other.
func (d *device) decode(b []byte, spans []kernels.Span, lanes []int8) error {
	stamp := func(i, j int) int64 { return int64(binary.LittleEndian.Uint64(b[i*stampBytes+8*j:])) }
	var last int64
	for i := range spans {
		last = max(last, stamp(i, 1))
	}
	if err := d.clock.again(d, last); err != nil {
		return err
	}
	for i := range spans {
		spans[i] = kernels.Span{Groups: int32(stamp(i, 2))}
		if end := stamp(i, 1); end != 0 {
			spans[i].Start, spans[i].End = d.clock.now(stamp(i, 0)), d.clock.now(end)
		} else if i > 0 { // no rows: nothing ran
			spans[i].Start, spans[i].End = spans[i-1].End, spans[i-1].End
		}
	}
	d.clock.used = d.clock.used || last > d.clock.gpu
	for i, l := range lanes {
		if i < len(spans) {
			spans[i].Lane = l
		}
	}
	return nil
}

func (s *stamps) close() {
	if s.ptr != 0 {
		cu.MemFree(cu.DevicePtr(s.ptr))
		s.ptr, s.calls = 0, 0
	}
}
