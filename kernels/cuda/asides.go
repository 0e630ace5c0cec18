//go:build cuda

package cuda

import (
	"fmt"

	"glmbatch/kernels"

	"gorgonia.org/cu"
)

// asides times what a device does for a list besides its calls: the copies to it
// and from it, by events of the stream, and the launch, by the host's clock. Only
// lists with spans are timed, and the copies to a list from the second such list on.
type asides struct {
	watch bool // a list with spans was started
	last  []kernels.Aside
}

// marks are the times of one list, in the order of the stream.
type marks struct {
	events   [4]cu.Event // copies to the list begin, and are over; the list has ended, and what it brings back is there
	made     bool        // the events
	copies   int         // of the first two events that were recorded
	timed    bool        // the list has spans
	from, to int64       // of the launch, ns of [kernels.Now]
}

func (m *marks) make() error {
	if m.made {
		return nil
	}
	for i := range m.events {
		var err error
		if m.events[i], err = cu.MakeEvent(cu.DefaultEvent); err != nil {
			return fmt.Errorf("%w: make an event: %w", kernels.ErrDevice, err)
		}
	}
	m.made = true
	return nil
}

func (m *marks) close() {
	if m.made {
		for i := range m.events {
			cu.DestroyEvent(&m.events[i])
		}
	}
	*m = marks{}
}

// markCopies is called before a copy to the GPU: the first for a list counts.
func (d *device) markCopies() {
	if m := d.nextMarks(); m != nil && m.copies == 0 && m.make() == nil && m.events[0].Record(d.stream) == nil {
		m.copies = 1
	}
}

// markCopied is called when all copies to a list have been enqueued.
func (d *device) markCopied() {
	if m := d.nextMarks(); m != nil && m.copies == 1 && m.events[1].Record(d.stream) == nil {
		m.copies = 2
	}
}

// nextMarks are those of the list that starts next; nil: it is not timed.
func (d *device) nextMarks() *marks {
	f := &d.flights
	if !d.asides.watch || f.started-f.over >= len(f.ring) {
		return nil
	}
	return &f.ring[f.started%len(f.ring)].marks
}

// markLaunch is called before a list is launched, markLaunched after it.
func (d *device) markLaunch(x *flight, timed bool) {
	d.asides.watch = d.asides.watch || timed
	x.marks.timed = timed && x.marks.make() == nil
	x.marks.from = kernels.Now()
}

func (d *device) markLaunched(x *flight) {
	m := &x.marks
	m.to = kernels.Now()
	m.timed = m.timed && m.events[2].Record(d.stream) == nil
}

// markFetched is called when all copies from a list have been enqueued.
func (d *device) markFetched(x *flight) {
	x.marks.timed = x.marks.timed && x.marks.events[3].Record(d.stream) == nil
}

// settle works out the times of a list that has ended. They hang on the end of
// its last call, which is known on the host's clock.
func (d *device) settle(x *flight) {
	d.asides.last = d.asides.last[:0]
	m := &x.marks
	copied := m.copies == 2
	m.copies = 0
	if !m.timed {
		return
	}
	add := func(name string, start, end int64) {
		if end > start {
			d.asides.last = append(d.asides.last, kernels.Aside{Name: name, Start: start, End: end})
		}
	}
	add(kernels.AsideLaunch, m.from, m.to)
	var end int64
	for i := range x.spans {
		end = max(end, x.spans[i].End)
	}
	between := func(i, j int) int64 {
		ms, err := m.events[i].Elapsed(m.events[j])
		if err != nil {
			return 0
		}
		return int64(ms * 1e6)
	}
	if copied {
		there := end - between(1, 2)
		add(kernels.AsideIn, there-between(0, 1), there)
	}
	add(kernels.AsideOut, end, end+between(2, 3))
}

// Asides are what the device did for the list that was waited for last, besides
// its calls, if it had spans. They are valid until the next Wait.
func (d *device) Asides() []kernels.Aside { return d.asides.last }
