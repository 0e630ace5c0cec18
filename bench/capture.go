package bench

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"

	"glmbatch/engine/glm5"
	"glmbatch/replay"
)

// capture runs one more step of each decode case and writes it to the folder of
// Options.Capture, with a seed in place of cache entries.
func (b *Bench) capture() error {
	if b.o.Capture == "" {
		return nil
	}
	o := replay.CaptureOptions{Dir: b.o.Capture, KV: replay.KVSeeded, Model: cmp.Or(b.Recipe, b.Path), Hash: b.Hash,
		Versions: b.o.Versions}
	var err error
	if o.Selectors, err = replay.ParseSelectors("every=1"); err != nil {
		return err
	}
	for i := range b.results {
		r := &b.results[i]
		if r.Skipped != "" || r.of.cast || r.of.prefill {
			continue
		}
		if err := b.captureStep(o, r, int64(i)); err != nil {
			return fmt.Errorf("capturing %v: %w", r.of, err)
		}
	}
	return nil
}

func (b *Bench) captureStep(o replay.CaptureOptions, r *Result, number int64) error {
	if err := b.setPages(r); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(b.o.Seed, uint64(number)))
	flow := b.flow(r)
	steps := 1
	if flow.ahead > 1 { // the one that is captured was launched while the one before ran, as that one was
		steps = 4
	}
	var in glm5.Batch
	p := &pass{record: true}
	for range steps {
		in = b.batches(r.of, rng)[0]
		if err := errors.Join(flow.launch(&in, p), flow.land(flow.ahead-1)); err != nil {
			return device(err)
		}
	}
	if err := flow.land(0); err != nil {
		return device(err)
	}
	c, err := replay.NewCapturer(b.model, o)
	if err != nil {
		return err
	}
	t := p.traces[steps-1]
	t.Step = number
	err = c.Step(replay.Step{Trace: t, Sequences: r.of.batch, Batch: &in})
	return errors.Join(err, c.Close().Last)
}
