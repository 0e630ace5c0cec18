//go:build cuda

package cuda

import (
	"fmt"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"
)

// ready is a list that can be launched: as a graph, or else by its plan.
type ready struct {
	flight *flight
	graph  *driver.Graph
	plan   *plan.Plan // of a graph only while a profiler is on
	// again: nothing had to be made, on this rank as on the others, which have had the
	// same lists.
	again bool
}

// Start launches the list, kernel by kernel the first time, as a graph when it
// comes again.
func (d *device) Start(calls []kernels.Call, spans []kernels.Span, f kernels.Fetch) error {
	d.markCopied()
	r, err := d.ready(calls, spans, f)
	if !r.again { // what was made may have waited for the whole GPU
		err = d.group.meet(err)
	}
	if err != nil {
		return err
	}
	d.inject()
	x := r.flight
	d.markLaunch(x, spans != nil)
	if r.graph == nil {
		err = d.all(r.plan)
	} else {
		d.stats.GraphLaunches++
		if err = r.graph.Launch(d.stream); err != nil {
			err = fmt.Errorf("%w: launch the step's graph: %w", kernels.ErrDevice, err)
		}
	}
	if err != nil { // the other ranks' kernels would wait for what is missing
		return d.group.fail(err)
	}
	d.markLaunched(x)
	d.profile(x, calls, r.plan)
	return d.depart(x, spans, f)
}

// ready allocates all that the list needs. It never panics: the other ranks wait for it.
func (d *device) ready(calls []kernels.Call, spans []kernels.Span, f kernels.Fetch) (r ready, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = ready{}, fmt.Errorf("%w: a bug in rank %d: %v", kernels.ErrDevice, d.rank, p)
		}
	}()
	if err = d.use(); err != nil {
		return r, err
	}
	loaded := d.loading.end()
	if spans != nil && len(spans) != len(calls) {
		return r, fmt.Errorf("%w: %d spans for %d calls", kernels.ErrKernel, len(spans), len(calls))
	}
	if len(f.To) > 0 {
		if _, err = d.find(f.From); err == nil && int64(len(f.To)) > f.From.Len {
			err = fmt.Errorf("%w: fetch %d bytes of %d", kernels.ErrKernel, len(f.To), f.From.Len)
		}
		if err != nil {
			return r, err
		}
	}
	if r.flight, err = d.flights.next(len(f.To), len(spans)*stampBytes); err != nil {
		return r, err
	}
	if err = d.stamps.start(&d.memory, &d.queue, len(calls), spans != nil); err != nil {
		return r, err
	}
	if d.group.options.NoGraphs || len(calls) < 8 || plan.Once(calls) {
		r.plan, err = d.plan(calls, plan.Each)
		return r, err
	}
	g, seen := d.graphs.of(calls, d.mode(spans != nil))
	if g.Graph != nil {
		r.flight.lanes, r.graph, r.plan, r.again = g.lanes, g.Graph, g.plan, !loaded
		return r, nil
	}
	if !seen {
		r.plan, err = d.plan(calls, plan.Each)
		return r, err
	}
	p, err := d.plan(calls, plan.Together)
	if err != nil {
		return r, err
	}
	if g.Graph, err = driver.Capture(d.stream, func() error { return d.all(p) }); err != nil {
		return r, fmt.Errorf("%w: %w", kernels.ErrDevice, err)
	}
	g.lanes, g.plan = p.Lanes, nil
	if d.profiler() != nil {
		g.plan = p
	}
	d.stats.Graphs++
	d.stats.Nodes += g.Nodes
	r.flight.lanes, r.graph, r.plan = g.lanes, g.Graph, g.plan
	return r, nil
}

// plan checks the calls and plans their launches, once there is room for them.
func (d *device) plan(calls []kernels.Call, how func([]kernels.Call, *plan.Target, *plan.Memory) (*plan.Plan,
	error)) (*plan.Plan, error) {
	for i := range calls {
		if err := d.check(&calls[i]); err != nil {
			return nil, fmt.Errorf("call %d: %w", i, err)
		}
	}
	d.Stamps = d.stamps.first()
	for {
		p, err := how(calls, &d.target, &d.memory.Memory)
		if err != nil || p.Fits(d.have) {
			return p, err
		}
		if err := d.grow(p, d.stream, d.idle); err != nil {
			return nil, err
		}
	}
}

// idle waits for the stream and drops the graphs: work in flight and graphs may still use
// what moves.
func (d *device) idle() error {
	if err := driver.Sync(d.stream); err != nil {
		return fmt.Errorf("%w: %w", kernels.ErrDevice, err)
	}
	d.graphs.forget()
	return nil
}
