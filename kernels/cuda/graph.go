//go:build cuda

package cuda

import (
	"fmt"
	"hash/maphash"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"

	"gorgonia.org/cu"
)

// maxGraphs bounds the graphs kept; beyond it all are forgotten and made anew.
const maxGraphs = 256

var seed = maphash.MakeSeed()

// key identifies what a list launches: kernels, sizes, buffers and scalars, but
// not how much of the caches the step happens to read.
func key(calls []kernels.Call, stamped bool) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range calls {
		c := &calls[i]
		h.WriteString(string(c.Kernel))
		d := c.Dims
		d.Slots, d.Ctx = 0, 0
		h.Write(unsafe.Slice((*byte)(unsafe.Pointer(&d)), unsafe.Sizeof(d)))
		h.Write(unsafe.Slice((*byte)(unsafe.Pointer(&c.Scalars)), unsafe.Sizeof(c.Scalars)))
		for _, a := range c.Args {
			h.Write(unsafe.Slice((*byte)(unsafe.Pointer(&a)), unsafe.Sizeof(a)))
		}
	}
	if stamped {
		h.WriteByte(1)
	}
	return h.Sum64()
}

// launch runs the list: kernel by kernel the first time, as a graph when the
// same list comes again, which it does in decode and rarely in prefill.
func (d *device) launch(calls []kernels.Call, spans []kernels.Span) error {
	g, err := d.ready(calls, spans)
	if err = d.group.meet(err); err != nil {
		return err
	}
	if g == nil {
		return d.each(calls)
	}
	d.stats.GraphLaunches++
	if err := g.Launch(d.stream); err != nil {
		return fmt.Errorf("%w: launch the step's graph: %w", kernels.ErrDevice, err)
	}
	return nil
}

// ready allocates all that the list needs and returns its graph, nil for a list
// that has not come before. It never panics: the other ranks wait for it.
func (d *device) ready(calls []kernels.Call, spans []kernels.Span) (g *driver.Graph, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: a bug in rank %d: %v", kernels.ErrDevice, d.rank, p)
		}
	}()
	if err := d.use(); err != nil {
		return nil, err
	}
	if spans != nil && len(spans) != len(calls) {
		return nil, fmt.Errorf("%w: %d spans for %d calls", kernels.ErrKernel, len(spans), len(calls))
	}
	if err := d.stamps.start(d, len(calls), spans != nil); err != nil {
		return nil, err
	}
	if d.group.options.NoGraphs || len(calls) < 8 {
		return nil, d.prepare(calls)
	}
	k := key(calls, spans != nil)
	g, seen := d.graphs[k]
	if g != nil {
		return g, nil
	}
	if err := d.prepare(calls); err != nil {
		return nil, err
	}
	if !seen {
		if len(d.graphs) >= maxGraphs {
			d.forgetGraphs()
		}
		d.graphs[k] = nil
		return nil, nil
	}
	if g, err = d.capture(calls); err != nil {
		return nil, err
	}
	d.graphs[k] = g
	d.stats.Graphs++
	d.stats.Nodes += g.Nodes
	return g, nil
}

func (d *device) forgetGraphs() {
	for _, g := range d.graphs {
		if g != nil {
			g.Close()
		}
	}
	clear(d.graphs)
}

// prepare checks the calls and makes room for their scratch memory.
func (d *device) prepare(calls []kernels.Call) error {
	for i := range calls {
		if err := d.check(&calls[i]); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	d.dry = true
	for i := range d.scratch {
		d.scratch[i].need = 0
	}
	err := d.each(calls)
	d.dry = false
	if err != nil {
		return err
	}
	for i := range d.scratch {
		s := &d.scratch[i]
		if s.need <= s.have {
			continue
		}
		if s.ptr != 0 {
			// Work in flight and graphs may still use the old region.
			if err := driver.Sync(d.stream); err != nil {
				return fmt.Errorf("%w: %w", kernels.ErrDevice, err)
			}
			d.forgetGraphs()
			cu.MemFree(cu.DevicePtr(s.ptr))
			s.ptr, s.have = 0, 0
		}
		if s.ptr, err = d.malloc(s.need); err != nil {
			return err
		}
		s.have = s.need
	}
	return nil
}

// use of scratch memory: in a dry run only its size counts.
func (d *device) work(region int, bytes int64) uintptr {
	s := &d.scratch[region]
	s.need = max(s.need, bytes)
	return s.ptr
}

func (d *device) check(c *kernels.Call) error {
	if err := c.Check(); err != nil {
		return err
	}
	k := kernels.Lookup(c.Kernel)
	for i, a := range c.Args {
		if a.Index == 0 && k.Args[i].Name != "sel" && k.Args[i].Name != "seen" {
			return fmt.Errorf("%w: %s has no argument %s", kernels.ErrKernel, c.Kernel, k.Args[i].Name)
		}
		if a.Index == 0 {
			continue
		}
		b, err := d.find(a)
		if err != nil {
			return fmt.Errorf("%s, argument %s: %w", c.Kernel, k.Args[i].Name, err)
		}
		if (k.Args[i].Role == kernels.Weight) != (b.w != nil) {
			return fmt.Errorf("%w: %s, argument %s: a weight and a plain buffer are confused", kernels.ErrKernel, c.Kernel, k.Args[i].Name)
		}
	}
	return nil
}

// each enqueues the calls on the stream, one after the other.
func (d *device) each(calls []kernels.Call) error {
	d.grouped = kernels.Buffer{}
	for i := range calls {
		if err := d.one(i, &calls[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *device) one(i int, c *kernels.Call) error {
	f := launchers[c.Kernel]
	if f == nil {
		return fmt.Errorf("%w: the CUDA device has no kernel %s", kernels.ErrKernel, c.Kernel)
	}
	if c.Dims.M == 0 && c.Dims.Slots == 0 {
		return nil // no rows
	}
	if err := f(d, c, d.stamps.at(i)); err != nil {
		return fmt.Errorf("call %d, %s of layer %d: %w", i, c.Kernel, c.Layer, err)
	}
	return nil
}

// do launches one kernel by name. p points to its parameters.
func (d *device) do(name string, grid [3]uint32, threads, shared uint32, p unsafe.Pointer) error {
	if d.dry || grid[0] == 0 || grid[1] == 0 || grid[2] == 0 {
		return nil
	}
	f, ok := d.funcs[name]
	if !ok {
		return fmt.Errorf("%w: no kernel %s in the images", kernels.ErrKernel, name)
	}
	d.stats.Launches++
	l := driver.Launch{Func: f, Grid: grid, Threads: threads, Shared: shared, Early: !d.late, Params: p}
	d.late = false
	if err := l.Do(d.on); err != nil {
		return fmt.Errorf("%w: launch %s: %w", kernels.ErrDevice, name, err)
	}
	return nil
}
