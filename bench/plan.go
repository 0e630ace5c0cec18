package bench

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"glmbatch/kernels/cuda/plan"
)

// PrintPlan writes the launches of each case's steps on the GPU of Options.Plan, on its last rank.
func (b *Bench) PrintPlan(w io.Writer) error {
	g := plan.GPU(b.o.Plan)
	g.Rank, g.Ranks = b.o.Ranks-1, b.o.Ranks
	rng := rand.New(rand.NewPCG(b.o.Seed, 0))
	for i := range b.results {
		r := &b.results[i]
		if r.Skipped != "" {
			fmt.Fprintf(w, "%v: it %s\n\n", r.of, r.Skipped)
			continue
		}
		how := plan.Together // a decode step comes again
		if r.of.prefill {
			how = plan.Each
		}
		for j, in := range b.batches(r.of, rng) {
			if len(in.Logits) > 0 { // as when steps are launched ahead
				in.From = slices.Repeat([]int32{-1}, len(in.Logits))
			}
			calls := b.model.Program(&in)
			p, err := how(calls, g, b.o.Recorder.Memory())
			if err != nil {
				return device(fmt.Errorf("%v, step %d: %w", r.of, j, err))
			}
			fmt.Fprintf(w, "%v, step %d on %s (%s, %d multiprocessors): %d calls, %d launches\n\n", r.of, j, b.o.Plan,
				g.Name, g.SMs, len(calls), len(p.Launches))
			p.Print(w, calls)
			fmt.Fprintln(w)
		}
	}
	return nil
}
