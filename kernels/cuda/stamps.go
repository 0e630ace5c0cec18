//go:build cuda

package cuda

import (
	"encoding/binary"
	"fmt"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"

	"gorgonia.org/cu"
)

// stamps is where calls leave start, end and experts touched. The end is kept in
// several places, as src/device/device.cuh says; host_copy, behind the list, brings them
// together and makes their places ready for the next list.
type stamps struct {
	ptr uintptr // of the first places, [maxStamped][3] words; the others follow
	on  bool
}

const (
	stampBytes = plan.StampBytes
	stampEnds  = plan.StampEnds
	maxStamped = plan.MaxStamps
)

// first is where call 0 leaves its stamps; 0: nowhere.
func (s *stamps) first() uintptr {
	if !s.on {
		return 0
	}
	return s.ptr
}

// start makes room for the stamps of a list that is about to be launched.
func (s *stamps) start(m *memory, q *queue, calls int, on bool) (err error) {
	s.on = on
	switch {
	case on && calls > maxStamped:
		return fmt.Errorf("%w: spans of %d calls, a list with spans has at most %d", kernels.ErrKernel,
			calls, maxStamped)
	case !on || s.ptr != 0:
		return nil
	}
	if s.ptr, err = m.malloc(stampEnds * maxStamped * stampBytes); err != nil {
		return err
	}
	if err = driver.Set(s.ptr, 0, stampEnds*maxStamped*stampBytes, q.stream); err != nil {
		return err
	}
	return q.copy(plan.Copy{Stamps: s.ptr, Calls: maxStamped})
}

// decode turns stamps that were brought back into spans. lanes is nil where calls
// ran one after the other.
func (d *device) decode(b []byte, spans []kernels.Span, lanes []int8) error {
	stamp := func(i, j int) int64 { return int64(binary.LittleEndian.Uint64(b[i*stampBytes+8*j:])) }
	var last int64
	for i := range spans {
		last = max(last, stamp(i, 1))
	}
	if err := d.clock.again(&d.queue, last); err != nil {
		return err
	}
	for i := range spans {
		spans[i] = kernels.Span{Groups: int32(stamp(i, 2))}
		if end := stamp(i, 1); end != 0 {
			start := stamp(i, 0)
			if start < 0 || start > end { // a kernel without work may stamp its end first, in another warp
				start = end
			}
			spans[i].Start, spans[i].End = d.clock.now(start), d.clock.now(end)
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
	}
	*s = stamps{on: s.on}
}
