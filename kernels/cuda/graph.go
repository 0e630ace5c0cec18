//go:build cuda

package cuda

import (
	"slices"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
	"glmbatch/kernels/cuda/plan"
)

// maxGraphs bounds the lists that are remembered; the one that was used longest
// ago goes first.
const maxGraphs = 256

// graphs are the lists that came before, the last used first.
type graphs struct{ lists []*graph }

// graph is a list that came before, and how it is launched: nil until it comes
// for the second time, which it does in decode and rarely in prefill.
type graph struct {
	calls []kernels.Call
	mode  int // of stamping
	*driver.Graph
	lanes []int8     // of the calls
	plan  *plan.Plan // kept for a profiler; nil: there is none
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

// of returns the graph of a list, a new one if there is none.
func (gs *graphs) of(calls []kernels.Call, mode int) (g *graph, seen bool) {
	i := slices.IndexFunc(gs.lists, func(g *graph) bool { return g.launches(calls, mode) })
	if i < 0 {
		g = &graph{calls: slices.Clone(calls), mode: mode}
		for j := range g.calls {
			g.calls[j].Args = slices.Clone(calls[j].Args)
		}
		i = len(gs.lists)
		gs.lists = append(gs.lists, g)
		if i == maxGraphs {
			i--
			gs.lists[i].close()
			gs.lists[i], gs.lists = g, gs.lists[:maxGraphs]
		}
	} else {
		g, seen = gs.lists[i], true
	}
	copy(gs.lists[1:i+1], gs.lists[:i])
	gs.lists[0] = g
	return g, seen
}

func (g *graph) close() {
	if g.Graph != nil {
		g.Graph.Close()
		g.Graph = nil
	}
}

// forget drops what was captured; lists that come again are captured anew.
func (gs *graphs) forget() {
	for _, g := range gs.lists {
		g.close()
	}
}
