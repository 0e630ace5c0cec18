//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"

	"gorgonia.org/cu"
)

// flight is a list on its way: at its end the stream copies what is fetched and
// the stamps to the flight's memory.
type flight struct {
	done   cu.Event
	memory []byte // pinned
	fetch  []byte // where the caller wants it
	spans  []kernels.Span

	marks    marks
	lanes    []int8    // of the calls; nil: one after the other
	profiled *profiled // nil: no profiler is on
}

// stampsAt is where the stamps are in a flight's memory, behind what is fetched.
func stampsAt(fetch int) int { return align64(fetch) }

// flights are the lists on their way, in a ring.
type flights struct {
	ring          [kernels.MaxLists]flight
	started, over int
	landed        int64 // when the last one was seen to be over
}

func (f *flights) open() (err error) {
	for i := range f.ring {
		if f.ring[i].done, err = cu.MakeEvent(cu.DisableTiming); err != nil {
			return fmt.Errorf("%w: make an event: %w", kernels.ErrDevice, err)
		}
	}
	return nil
}

func (f *flights) close() {
	for i := range f.ring {
		driver.FreePinned(f.ring[i].memory)
		f.ring[i].marks.close()
		cu.DestroyEvent(&f.ring[i].done)
	}
	*f = flights{}
}

// next returns the flight of the list that is about to start, with memory for
// what it brings back. It is nil when too many are on their way.
func (f *flights) next(fetch, stamps int) (*flight, error) {
	if f.started-f.over >= len(f.ring) {
		return nil, fmt.Errorf("%w: %d lists are on their way already", kernels.ErrKernel, len(f.ring))
	}
	x := &f.ring[f.started%len(f.ring)]
	x.lanes = nil
	need := stampsAt(fetch) + stamps
	if need <= len(x.memory) {
		return x, nil
	}
	m, err := driver.Pinned(2 * need)
	if err != nil {
		return nil, fmt.Errorf("%w: pinned host memory: %w", kernels.ErrMemory, err)
	}
	driver.FreePinned(x.memory)
	x.memory = m
	return x, nil
}

// depart enqueues what the list brings back.
func (d *device) depart(x *flight, spans []kernels.Span, f kernels.Fetch) error {
	var errs []error
	var c plan.Copy
	switch n := len(f.To); {
	case n > 0 && plan.Copies(n, d.ptr(f.From)):
		c.From, c.To, c.Words = d.ptr(f.From), uintptr(unsafe.Pointer(&x.memory[0])), int32(n/4)
	case n > 0:
		errs = append(errs, driver.ToHost(x.memory[:n], d.ptr(f.From), d.stream))
	}
	if len(spans) > 0 {
		c.Stamps, c.Out, c.Calls = d.stamps.ptr, uintptr(unsafe.Pointer(&x.memory[stampsAt(len(f.To))])), int32(
			len(spans))
	}
	if c.Words+c.Calls > 0 {
		errs = append(errs, d.copy(c))
	}
	d.markFetched(x)
	if err := errors.Join(append(errs, x.done.Record(d.stream))...); err != nil {
		return fmt.Errorf("%w: end of the list: %w", kernels.ErrDevice, err)
	}
	x.fetch, x.spans = f.To, spans
	d.flights.started++
	return nil
}

// Wait ends the oldest list on its way, or says that it did not end in time.
func (d *device) Wait() error {
	if d.flights.over == d.flights.started {
		return fmt.Errorf("%w: no list is on its way", kernels.ErrKernel)
	}
	if err := d.use(); err != nil { // a caller's goroutine may be on another thread by now
		return err
	}
	x := &d.flights.ring[d.flights.over%len(d.flights.ring)]
	d.flights.over++
	if err := d.arrived(x); err != nil {
		return d.group.fail(err)
	}
	d.flights.landed = kernels.Now()
	if err := d.group.verdict(d.rank); err != nil {
		return err
	}
	copy(x.fetch, x.memory)
	if x.profiled != nil {
		d.group.options.Profiler.collect(x.profiled)
	}
	err := d.decode(x.memory[stampsAt(len(x.fetch)):], x.spans, x.lanes)
	d.settle(x)
	return err
}

// Landed is when the list that was waited for last was seen to have ended.
func (d *device) Landed() int64 { return d.flights.landed }

// arrived looks without a pause for as long as decode steps take, then now and
// then: the runtime's sleep is of a millisecond where nothing else is to be done.
func (d *device) arrived(x *flight) error {
	const short, nap = 100 * time.Millisecond, time.Millisecond
	start := time.Now()
	for spins := 1; ; spins++ {
		err := driver.Arrived(x.done)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, driver.NotReady):
			return fmt.Errorf("%w: rank %d on GPU %d: %w", kernels.ErrDevice, d.rank, d.gpu, err)
		case spins&15 != 0:
			continue
		}
		switch t, limit := time.Since(start), d.group.options.StepTimeout; {
		case t > limit+d.group.grace():
			return fmt.Errorf("%w: rank %d on GPU %d did not end its step within %v", kernels.ErrDevice, d.rank, d.gpu,
				d.group.options.StepTimeout)
		case t > limit && d.group.halt():
		case t > short:
			time.Sleep(nap)
		}
	}
}
