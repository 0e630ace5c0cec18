package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
)

// Options say what of a model is checked. The zero value is usable.
type Options struct {
	Layout  glm5.Layout    // "": Latency
	KVCache kernels.Format // "": F32
	Act     glm5.Act       // "": W4A16
	Dense   kernels.Format // see glm5.Options
	// Activations: see glm5.Options.
	Activations kernels.Format
	// SplitInputs: with a float32 cache, the products of jobs.
	SplitInputs bool
	// LatentEps is the epsilon of the latent norms; 0: the config's.
	LatentEps float32
}

// tolerances of logits by cache format, absolute.
var tolerances = map[kernels.Format]float64{kernels.F32: 2e-3, kernels.BF16: 3e-2}

// Run compares ck with a reference, prompt by prompt. open makes the ranks that
// it runs on, which Run closes. An error is that it could not run, or that ctx ended;
// what differs is in the report.
func Run(ctx context.Context, ck *checkpoint.Checkpoint, want *Expected, open func() (*ranks.Group, error),
	o Options) (*Report, error) {
	if o.KVCache == "" {
		o.KVCache = kernels.F32
	}
	if o.Act == "" {
		o.Act = glm5.W4A16
	}
	r := newReport(want, o)
	var plain [][]trail // of every prompt, with nothing rounded
	if !r.Exact {
		exact := Options{Layout: o.Layout, KVCache: kernels.F32, Act: o.Act}
		if r.Reference == "logits" {
			exact.Act = glm5.W4A16
		}
		if err := with(ctx, ck, want, open, exact, func(k *checker) error {
			return k.all(ctx, newReport(want, exact),
				&plain)
		}); err != nil {
			return nil, err
		}
	}
	return r, with(ctx, ck, want, open, o, func(k *checker) error {
		k.plain = plain
		return k.all(ctx, r, nil)
	})
}

// with loads ck on ranks of its own for as long as do takes.
func with(ctx context.Context, ck *checkpoint.Checkpoint, want *Expected, open func() (*ranks.Group, error), o Options,
	do func(*checker) error) error {
	c, err := glm5.ParseConfig(ck.Config())
	if err != nil {
		return fmt.Errorf("%s: %w", ck.Name, err)
	}
	longest, err := want.longest(&c)
	if err != nil {
		return err
	}
	g, err := open()
	if err != nil {
		return err
	}
	m, err := glm5.Load(ctx, ck, g, glm5.Options{
		Layout: o.Layout, KVCache: o.KVCache, Act: o.Act, Dense: o.Dense, SplitInputs: o.SplitInputs,
		Activations: o.Activations, LatentEps: o.LatentEps,
		MTP:     want.Has(0, "mtp_logits") && c.MTPLayers > 0,
		MaxRows: longest, MaxLogits: longest, MaxSeqs: 1, Context: longest, Pages: longest/kernels.PageTokens + 1,
	})
	if err == nil {
		err = do(&checker{m: m, ck: ck, c: &m.Config, want: want})
	}
	return errors.Join(err, g.Close())
}

func newReport(want *Expected, o Options) *Report {
	r := &Report{KVCache: o.KVCache, Act: o.Act, Dense: o.Dense, Reference: "logits", Tolerance: tolerances[o.KVCache],
		Exact: o.KVCache == kernels.F32}
	switch {
	case o.Act == glm5.W4A4 && want.Has(0, "logits_w4a4"):
		r.Reference = "logits_w4a4"
	case o.Act != glm5.W4A16: // the reference's activations are not rounded
		r.Tolerance, r.Exact = 0, false
	}
	if o.Activations == kernels.BF16 {
		r.Activations = o.Activations
	}
	if o.Dense == kernels.FP8 || o.Activations == kernels.BF16 { // the reference's are not rounded
		r.Tolerance, r.Exact = 0, false
	}
	return r
}

// longest returns the most positions that a prompt needs, and checks all of
// their tokens.
func (e *Expected) longest(c *glm5.Config) (int, error) {
	most := 0
	for i := range e.n {
		total := 0
		for _, name := range []string{"input_ids", "greedy", "mtp_input_ids"} {
			if !e.Has(i, name) {
				continue
			}
			ids, _, err := e.ints(i, name)
			if err != nil {
				return 0, err
			}
			if len(ids) == 0 || slices.Min(ids) < 0 || int(slices.Max(ids)) >= c.Vocab {
				return 0, fmt.Errorf("%s has no tokens, or some that are not in 0..%d", key(i, name), c.Vocab-1)
			}
			if name == "mtp_input_ids" {
				total = max(total, len(ids))
			} else {
				total += len(ids)
			}
		}
		most = max(most, total)
	}
	if most > c.MaxPositions {
		return 0, fmt.Errorf("prompts of up to %d tokens do not fit the model's context of %d", most, c.MaxPositions)
	}
	return most, nil
}
