//go:build cuda

package cuda

import (
	"fmt"
	"slices"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"

	"gorgonia.org/cu"
)

// maxGraphs bounds the lists that are remembered; the one that was used longest
// ago goes first.
const maxGraphs = 256

// graph is a list that came before, and how it is launched: nil until it comes
// for the second time, which it does in decode and rarely in prefill.
type graph struct {
	calls []kernels.Call
	mode  int // of stamping
	*driver.Graph
	launched []launched // for the profiler
	lanes    []int8     // of the calls
}

// launches reports whether a list launches what g does: kernels, sizes, buffers
// and scalars, but not how much of the caches the step happens to read.
func (g *graph) launches(calls []kernels.Call, mode int) bool {
	if len(calls) != len(g.calls) || mode != g.mode {
		return false
	}
	for i := range calls {
		a, b := &calls[i], &g.calls[i]
		d := a.Dims
		d.Slots, d.Ctx = b.Dims.Slots, b.Dims.Ctx
		if a.Kernel != b.Kernel || d != b.Dims || a.Scalars != b.Scalars || !slices.Equal(a.Args, b.Args) {
			return false
		}
	}
	return true
}

// graph returns the graph of a list, a new one if there is none.
func (d *device) graph(calls []kernels.Call, mode int) (g *graph, seen bool) {
	i := slices.IndexFunc(d.graphs, func(g *graph) bool { return g.launches(calls, mode) })
	if i < 0 {
		g = &graph{calls: slices.Clone(calls), mode: mode}
		for j := range g.calls {
			g.calls[j].Args = slices.Clone(calls[j].Args)
		}
		i = len(d.graphs)
		d.graphs = append(d.graphs, g)
		if i == maxGraphs {
			i--
			d.graphs[i].close()
			d.graphs[i], d.graphs = g, d.graphs[:maxGraphs]
		}
	} else {
		g, seen = d.graphs[i], true
	}
	copy(d.graphs[1:i+1], d.graphs[:i])
	d.graphs[0] = g
	return g, seen
}

func (g *graph) close() {
	if g.Graph != nil {
		g.Graph.Close()
		g.Graph = nil
	}
}

// forgetGraphs drops what was captured; lists that come again are captured anew.
func (d *device) forgetGraphs() {
	for _, g := range d.graphs {
		g.close()
	}
}

// Start launches the list, kernel by kernel the first time, as a graph when it
// comes again.
func (d *device) Start(calls []kernels.Call, spans []kernels.Span, f kernels.Fetch) error {
	d.markCopied()
	x, g, again, err := d.ready(calls, spans, f)
	if !again { // what was made may have waited for the whole GPU
		err = d.group.meet(err)
	}
	if err != nil {
		return err
	}
	d.inject()
	d.markLaunch(x, spans != nil)
	if g == nil {
		err = d.each(calls)
	} else {
		d.stats.GraphLaunches++
		if err = g.Launch(d.stream); err != nil {
			err = fmt.Errorf("%w: launch the step's graph: %w", kernels.ErrDevice, err)
		}
	}
	if err != nil { // the other ranks' kernels would wait for what is missing
		return d.group.fail(err)
	}
	d.markLaunched(x)
	d.profile(x, calls, g != nil)
	return d.depart(x, spans, f)
}

// ready allocates all that the list needs and returns its flight and its graph,
// nil for a list that is to be launched call by call. again: nothing had to be
// made, on this rank as on the others, which have had the same lists. It never
// panics: the other ranks wait for it.
func (d *device) ready(calls []kernels.Call, spans []kernels.Span, f kernels.Fetch) (x *flight, g *driver.Graph, again bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: a bug in rank %d: %v", kernels.ErrDevice, d.rank, p)
		}
	}()
	if err = d.use(); err != nil {
		return nil, nil, false, err
	}
	loaded := d.loading.end()
	if spans != nil && len(spans) != len(calls) {
		return nil, nil, false, fmt.Errorf("%w: %d spans for %d calls", kernels.ErrKernel, len(spans), len(calls))
	}
	if len(f.To) > 0 {
		if _, err = d.find(f.From); err == nil && int64(len(f.To)) > f.From.Len {
			err = fmt.Errorf("%w: fetch %d bytes of %d", kernels.ErrKernel, len(f.To), f.From.Len)
		}
		if err != nil {
			return nil, nil, false, err
		}
	}
	if x, err = d.flights.next(len(f.To), len(spans)*stampBytes); err != nil {
		return nil, nil, false, err
	}
	if err = d.stamps.start(d, len(calls), spans != nil); err != nil {
		return nil, nil, false, err
	}
	if d.group.options.NoGraphs || len(calls) < 8 {
		return x, nil, false, d.prepare(calls)
	}
	k, seen := d.graph(calls, d.mode(spans != nil))
	if k.Graph != nil {
		d.launched, x.lanes = k.launched, k.lanes
		return x, k.Graph, !loaded, nil
	}
	if err = d.prepare(calls); err != nil {
		return nil, nil, false, err
	}
	if !seen {
		return x, nil, false, nil
	}
	d.launched = nil
	if k.Graph, err = d.capture(calls); err != nil {
		return nil, nil, false, err
	}
	k.launched, k.lanes = d.launched, d.lanesOf
	x.lanes = k.lanes
	d.stats.Graphs++
	d.stats.Nodes += k.Nodes
	return x, k.Graph, false, nil
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
	d.grouped, d.split, d.panels, d.fresh, d.launched = kernels.Buffer{}, split{}, panels{}, fresh{}, nil
	for i := range calls {
		if err := d.together(calls, []int{i}); err != nil {
			return err
		}
	}
	return nil
}

// together enqueues calls that may share a launch.
func (d *device) together(calls []kernels.Call, which []int) error {
	d.of, d.bundle, d.teams, d.absorb, d.behind = which, d.bundle[:0], d.teams[:0], nil, false
	d.beside = len(which) == 2 && beside(&calls[which[0]], &calls[which[1]])
	d.fresh.launch()
	for n, i := range which {
		if d.beside && d.absorb == nil { // launched one by one, so far
			d.of = which[n : n+1]
		} else if d.beside {
			d.of = which
		}
		if err := d.one(i, &calls[i]); err != nil {
			return err
		}
	}
	return d.flush()
}

func (d *device) one(i int, c *kernels.Call) error {
	f := d.launcherOf(c)
	if f == nil {
		return fmt.Errorf("%w: the CUDA device has no kernel %s", kernels.ErrKernel, c.Kernel)
	}
	if c.Dims.M == 0 && c.Dims.Slots == 0 {
		return nil // no rows
	}
	d.turn++
	for j, a := range kernels.Lookup(c.Kernel).Args {
		if b := c.Args[j]; b.Index != 0 && a.Role != kernels.In && a.Role != kernels.Weight {
			d.panels.forget(d.ptr(b), d.ptr(b)+uintptr(b.Len))
			d.fresh.writes = append(d.fresh.writes, write{d.ptr(b), d.ptr(b) + uintptr(b.Len)})
		}
	}
	if err := f(d, c, d.stamps.at(i)); err != nil {
		return fmt.Errorf("call %d, %s of layer %d: %w", i, c.Kernel, c.Layer, err)
	}
	return nil
}

// capture records the calls as a graph: a chain of launches. Calls that share one
// run on lanes beside each other.
func (d *device) capture(calls []kernels.Call) (*driver.Graph, error) {
	d.lanesOf = make([]int8, len(calls))
	g, err := driver.Capture(d.stream, func() error {
		d.grouped, d.split, d.panels, d.fresh = kernels.Buffer{}, split{}, panels{}, fresh{}
		for _, which := range bundles(calls) {
			for lane, i := range which {
				d.lanesOf[i] = int8(lane)
			}
			if err := d.together(calls, which); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", kernels.ErrDevice, err)
	}
	return g, nil
}

// do launches one kernel by name. p points to its parameters.
func (d *device) do(name string, grid [3]uint32, threads, shared uint32, p unsafe.Pointer) error {
	if err := d.flush(); err != nil { // what the call asked for before
		return err
	}
	return d.enqueue(name, &driver.Launch{Grid: grid, Threads: threads, Shared: shared, Params: p})
}

// maxGrid is how many blocks a grid may have other than along its first side.
const maxGrid = 65535

// enqueue launches a kernel as soon as the one before it lets it start.
func (d *device) enqueue(name string, l *driver.Launch) (err error) {
	if d.dry || l.Grid[0] == 0 || l.Grid[1] == 0 || l.Grid[2] == 0 {
		return nil
	}
	if max(l.Grid[1], l.Grid[2]) > maxGrid {
		return fmt.Errorf("%w: %s of more than %d rows in a step: a lower --max-batch-tokens", kernels.ErrKernel, name, maxGrid)
	}
	l.Early, d.arriving = !d.arriving, false
	var ok bool
	if l.Func, ok = d.funcs[name]; !ok {
		return fmt.Errorf("%w: no kernel %s in the images", kernels.ErrKernel, name)
	}
	d.stats.Launches++
	if err := l.Do(d.stream); err != nil {
		return fmt.Errorf("%w: launch %s: %w", kernels.ErrDevice, name, err)
	}
	if d.profiler() != nil {
		d.launched = append(d.launched, launched{d.of, name})
	}
	return nil
}
