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
	events       [4]cu.Event // copies to the list begin, its launch, its end, copies from it end
	made, copied bool        // events exist; the first was recorded
	timed        bool
	from, to     int64 // of the launch, ns of [kernels.Now]
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

// markCopies is called before a copy to the GPU: the first for a list is marked.
func (d *device) markCopies() {
	if !d.asides.watch || d.flights.started-d.flights.over >= len(d.flights.ring) {
		return
	}
	m := &d.flights.ring[d.flights.started%len(d.flights.ring)].marks
	if !m.copied && m.make() == nil {
		m.copied = m.events[0].Record(d.stream) == nil
	}
}

// markLaunch is called before a list is launched, markLaunched after it.
func (d *device) markLaunch(x *flight, timed bool) {
	m := &x.marks
	m.timed = timed && m.make() == nil && m.events[1].Record(d.stream) == nil
	d.asides.watch = d.asides.watch || timed
	m.from = kernels.Now()
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
	copied := m.copied
	m.copied = false
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
		launch := end - between(1, 2)
		add(kernels.AsideIn, launch-between(0, 1), launch)
	}
	add(kernels.AsideOut, end, end+between(2, 3))
}

// Asides are what the device did for the list that was waited for last, besides
// its calls, if it had spans. They are valid until the next Wait.
func (d *device) Asides() []kernels.Aside { return d.asides.last }
