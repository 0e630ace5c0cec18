//go:build cuda

package cuda

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
)

// chain is a list that doubles a row of values again and again.
type chain struct {
	d     *device
	x, y  kernels.Buffer
	part  kernels.Buffer
	calls []kernels.Call
}

const chained = 12 // enough calls for a graph

func newChain(t testing.TB) *chain {
	t.Helper()
	if err := driver.Status(); err != nil {
		t.Skip(err)
	}
	ds, err := Open(1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // what is captured is the thread's
	t.Cleanup(func() { ds[0].Close(); runtime.UnlockOSThread() })
	c := &chain{d: ds[0].(*device)}
	for _, b := range []*kernels.Buffer{&c.x, &c.y, &c.part} {
		if *b, err = c.d.Alloc(64*256*4, kernels.Sharded); err != nil {
			t.Fatal(err)
		}
	}
	for i := range chained { // rows are moved on by one: row m+1 becomes row m
		from, to := c.x, c.y
		if i%2 == 1 {
			from, to = c.y, c.x
		}
		c.calls = append(c.calls, kernels.Call{Kernel: "gather_rows", Dims: kernels.Dims{M: 32, N: 256},
			Args: []kernels.Buffer{from, c.part, to}})
	}
	rows := make([]byte, 0, 64*4)
	for i := range uint32(64) {
		rows = binary.LittleEndian.AppendUint32(rows, min(i+1, 31))
	}
	if err := c.d.Upload(c.part, rows); err != nil {
		t.Fatal(err)
	}
	return c
}

// start uploads rows that count from n on, and starts the list. got will have
// the first value.
func (c *chain) start(t *testing.T, n int, got []byte, spans []kernels.Span) {
	t.Helper()
	x := make([]byte, 0, 32*256*4)
	for i := range 32 * 256 {
		x = binary.LittleEndian.AppendUint32(x, math.Float32bits(float32(n+i/256)))
	}
	if err := c.d.Upload(c.x, x); err != nil {
		t.Fatal(err)
	}
	if err := c.d.Start(c.calls, spans, kernels.Fetch{From: c.x, To: got}); err != nil {
		t.Fatal(err)
	}
}

// Lists that are on their way together bring back each its own values, a list
// that comes again is a graph, and how much of a cache it reads is no part of it.
func TestListsAhead(t *testing.T) {
	c := newChain(t)
	var got [kernels.MaxLists][]byte
	var spans [kernels.MaxLists][]kernels.Span
	last := int64(0)
	for i := range 20 {
		now := i % kernels.MaxLists
		if i >= kernels.MaxLists {
			if err := c.d.Wait(); err != nil {
				t.Fatal(err)
			}
			v := math.Float32frombits(binary.LittleEndian.Uint32(got[now]))
			if v != float32(100*(i-kernels.MaxLists)+chained) {
				t.Errorf("list %d gave %g", i-kernels.MaxLists, v)
			}
			for j, s := range spans[now] {
				if s.Start < last || s.End < s.Start {
					t.Errorf("list %d, call %d: %+v after %d", i-kernels.MaxLists, j, s, last)
				}
				last = s.End
			}
		}
		got[now], spans[now] = make([]byte, 4), make([]kernels.Span, chained)
		for j := range c.calls {
			c.calls[j].Dims.Ctx, c.calls[j].Dims.Slots = int64(i), int64(2*i)
		}
		c.start(t, 100*i, got[now], spans[now])
	}
	if err := c.d.Start(c.calls, nil, kernels.Fetch{}); !errors.Is(err, kernels.ErrKernel) {
		t.Errorf("a list too many: %v", err)
	}
	for range kernels.MaxLists {
		if err := c.d.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.d.Wait(); !errors.Is(err, kernels.ErrKernel) {
		t.Errorf("waiting for nothing: %v", err)
	}
	if s := c.d.Stats(); s.Graphs != 1 || s.GraphLaunches != 19 || s.Nodes != chained {
		t.Errorf("20 lists: %+v, want one graph", s)
	}
}

// Of more lists than are remembered, those that come often stay.
func TestGraphsAreBounded(t *testing.T) {
	c := newChain(t)
	often := slices.Clone(c.calls)
	run := func(calls []kernels.Call) {
		t.Helper()
		if err := errors.Join(c.d.Start(calls, nil, kernels.Fetch{}), c.d.Wait()); err != nil {
			t.Fatal(err)
		}
	}
	run(often)
	run(often)
	for i := range 2 * maxGraphs {
		c.calls[0].Scalars[0] = float32(i + 1) // gather_rows has none
		run(c.calls)
		run(often)
	}
	if s := c.d.Stats(); s.Graphs != 1 || len(c.d.graphs.lists) != maxGraphs {
		t.Errorf("%d lists are remembered, %+v", len(c.d.graphs.lists), s)
	}
}

// BenchmarkStart is what the host pays for a list as long as a step of GLM-5: to
// launch it when the last one has ended and while it runs, to make its graph, and
// to launch it call by call.
func BenchmarkStart(b *testing.B) {
	c := newChain(b)
	c.calls = slices.Repeat(c.calls, 1700/chained)
	us := func(f func() error) float64 {
		b.Helper()
		at := kernels.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		return float64(kernels.Now()-at) / 1e3
	}
	start := func() error { return c.d.Start(c.calls, nil, kernels.Fetch{}) }
	for _, m := range []struct {
		name string
		ran  func() float64
	}{
		{"calls", func() float64 { c.calls[0].Scalars[0]++; return us(start) }},
		{"capture", func() float64 {
			c.calls[0].Scalars[0]++
			if err := errors.Join(start(), c.d.Wait()); err != nil {
				b.Fatal(err)
			}
			return us(start)
		}},
		{"graph", func() float64 { return us(start) }},
		{"ahead", func() float64 {
			if err := start(); err != nil {
				b.Fatal(err)
			}
			t := us(start)
			if err := c.d.Wait(); err != nil {
				b.Fatal(err)
			}
			return t
		}},
	} {
		b.Run(m.name, func(b *testing.B) {
			runtime.LockOSThread() // each runs on a goroutine of its own
			defer runtime.UnlockOSThread()
			if err := c.d.use(); err != nil {
				b.Fatal(err)
			}
			var sum, steps float64
			for b.Loop() {
				sum += m.ran()
				steps += us(c.d.Wait)
			}
			b.ReportMetric(sum/float64(b.N), "start-us")
			b.ReportMetric(steps/float64(b.N), "wait-us")
		})
	}
}
