package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/plan"
	"glmbatch/kernels/ranks"
)

// openDevices opens the ranks that run, or that only keep what the model allocates.
func (b *bench) openDevices() (*ranks.Group, error) {
	f := b.flags
	if f.plan == "" {
		return f.device.open(f.ranks)
	}
	ds := make([]kernels.Device, f.ranks)
	for i := range ds {
		b.recorder = &plan.Recorder{Units4: plan.GPU(f.plan).Units4}
		ds[i] = b.recorder
	}
	return ranks.New(ds, ranks.Options{})
}

// printPlan writes the launches of each case's steps on the GPU of --plan, on its last rank.
func (b *bench) printPlan(w io.Writer) error {
	g := plan.GPU(b.flags.plan)
	g.Rank, g.Ranks = b.flags.ranks-1, b.flags.ranks
	rng := rand.New(rand.NewPCG(b.flags.seed, 0))
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
			p, err := how(calls, g, b.recorder.Memory())
			if err != nil {
				return withCode(exitDevice, fmt.Errorf("%v, step %d: %w", r.of, j, err))
			}
			fmt.Fprintf(w, "%v, step %d on %s (%s, %d multiprocessors): %d calls, %d launches\n\n", r.of, j, b.flags.plan, g.Name, g.SMs, len(calls), len(p.Launches))
			p.Print(w, calls)
			fmt.Fprintln(w)
		}
	}
	return nil
}
