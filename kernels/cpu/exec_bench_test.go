package cpu

import (
	"testing"

	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
)

// BenchmarkCalls is what a call costs beyond its work: a list of calls that
// are cut into two parts each, of a few ns.
func BenchmarkCalls(b *testing.B) {
	for _, timed := range []bool{false, true} {
		name := "untimed"
		if timed {
			name = "timed"
		}
		b.Run(name, func(b *testing.B) {
			e := newExecutor(1, 2)
			defer e.close()
			const n = 1000
			empty := &impl{units: rowUnits, run: func(*frame, int, int) error { return nil }}
			call := kernels.Call{Kernel: "gather_rows", Dims: kernels.Dims{M: 2}}
			j := &job{}
			for b.Loop() {
				*j = job{}
				for i := range n {
					j.tasks = append(j.tasks, task{call: &call, impl: empty, units: 2, ranks: 1})
					j.stages = append(j.stages, stage{first: i, end: i + 1, parts: 2})
				}
				j.left.Store(2)
				if timed {
					j.clock(n)
				}
				j.inside.Add(1)
				e.workers[1].wake <- j
				j.work(e.workers[0])
				for j.inside.Load() > 0 {
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/call")
		})
	}
}

// BenchmarkRun is an empty step of a group.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{1, 8} {
		b.Run(map[int]string{1: "ranks=1", 8: "ranks=8"}[n], func(b *testing.B) {
			g, err := ranks.New(open(b, n), ranks.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer g.Close()
			x, _ := g.Alloc(1024, kernels.Replicated)
			call := kernels.Call{Kernel: "silu_mul", Replicated: true, Dims: kernels.Dims{M: 1, N: 8},
				Args: []kernels.Buffer{x, x}}
			calls := make([]kernels.Call, 100)
			for i := range calls {
				calls[i] = call
			}
			for b.Loop() {
				if err := g.Run(calls, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
