package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"glmbatch/datasets"
	"glmbatch/engine/fit"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
	"glmbatch/replay"
	"glmbatch/telemetry"
	"glmbatch/units"
)

// Bench is a model on its ranks and what has been measured on it.
type Bench struct {
	Model
	o       *Options
	loaded  time.Duration
	group   *ranks.Group
	model   *glm5.Model
	pool    pool
	copied  kernels.Buffer // of a layer's pool, for casts; none without
	rng     *rand.PCG
	results []Result

	file *datasets.Writer[datasets.Span] // of the recorded steps; nil: nobody asked for it
	step int64                           // of the next recorded step
}

// Open loads a model on ranks and fills its caches. The group is the bench's, which
// Close closes, after an error too; the weights stay the caller's and may be closed.
func Open(ctx context.Context, m Model, g *ranks.Group, o Options) (_ *Bench, err error) {
	b := &Bench{Model: m, o: &o, group: g, rng: rand.NewPCG(o.Seed, 0x62656e6368)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if err := errors.Join(o.Validate(), m.Config.CheckTP(o.TP)); err != nil {
		return nil, input(err)
	}
	cases, err := o.Cases(&m.Config)
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		b.results = append(b.results, Result{of: c, Kind: c.kind(), Batch: c.batch, Context: c.context,
			WhatIf: c.whatIf()})
	}
	info := b.group.Info()
	with, err := b.options(info)
	if err != nil {
		return nil, err
	}
	if err := b.allSkipped(); err != nil {
		return nil, err
	}
	fmt.Fprintf(o.Log, "loading %d layers, %s of weights on each rank, %s of caches\n", m.Config.Layers,
		units.Bytes(b.Rank.Weights), units.Bytes(int64(b.pool.pages)*kernels.PageTokens*b.pool.perToken))
	start := time.Now()
	if b.model, err = glm5.Load(ctx, m.Weights, g, with); err == nil && o.Plan == "" {
		err = b.pool.fill(b.model, b.rng)
	}
	if err == nil && o.CastPool {
		b.copied, err = replay.CastPoolOf(b.model, b.slots())
	}
	if stop := context.Cause(ctx); stop != nil {
		return nil, interrupted(stop)
	}
	if errors.Is(err, kernels.ErrMemory) || errors.Is(err, kernels.ErrDevice) {
		return nil, device(err)
	}
	if err != nil {
		return nil, input(err)
	}
	b.loaded = time.Since(start)
	fmt.Fprintf(o.Log, "loaded in %.1f s\n", b.loaded.Seconds())
	if o.Timeline != "" {
		b.file, err = datasets.Create[datasets.Span](o.Timeline, nil)
	}
	return b, err
}

// options are what the largest case needs.
func (b *Bench) options(info kernels.Info) (glm5.Options, error) {
	f := b.o
	o := glm5.Options{Layout: f.Layout, KVCache: f.KVCache, Act: f.Act, Dense: f.Dense, Activations: f.Inputs,
		Shards: f.TP, MaxRows: 1, MaxSeqs: 1, Context: 1}
	batch := func(c Case) int { return c.batch }
	most := glm5.Options{Layout: f.Layout, KVCache: o.KVCache, Shards: f.TP, MaxRows: b.rows(), MaxSeqs: b.most(batch),
		Context: b.most(Case.span)}
	b.drafts(&o, &most)
	fits := fit.New(b.Name, &b.Config, b.Rank, nil, most, fit.Found(info, f.Ranks, telemetry.AvailableMemory()))
	b.pool.perToken = fits.Token
	var room int64
	if info.Memory > 0 {
		room = max(1, fits.Left())
	}
	b.pool.plan(b.results, int64(f.KVSlots), room)
	for i := range b.results {
		r := &b.results[i]
		if r.Skipped != "" {
			continue
		}
		o.Context, o.MaxSeqs = max(o.Context, r.of.span()), max(o.MaxSeqs, r.of.batch)
	}
	b.drafts(&o)
	o.MaxRows = b.rows()
	b.pool.pages = max(b.pool.pages, 1)
	o.Pages = b.pool.pages
	b.pool.shuffle(rand.New(b.rng))
	return o, nil
}

// drafts has models loaded for the drafts of the cases.
func (b *Bench) drafts(os ...*glm5.Options) {
	for _, o := range os {
		if n := b.o.Drafts; n > 0 {
			o.MTP, o.Drafts, o.MaxLogits = true, n, o.MaxSeqs*(1+n)
		}
	}
}

// most is the largest of a figure of the cases.
func (b *Bench) most(of func(Case) int) int {
	n := 1
	for i := range b.results {
		n = max(n, of(b.results[i].of))
	}
	return n
}

// allSkipped says why nothing can be measured; nil: something can.
func (b *Bench) allSkipped() error {
	for i := range b.results {
		if b.results[i].Skipped == "" {
			return nil
		}
	}
	r := &b.results[0]
	if b.o.KVSlots > 0 {
		return input(fmt.Errorf("%v: it %s", r.of, r.Skipped))
	}
	return device(fmt.Errorf("%v: it %s beside %s of weights on %s", r.of, r.Skipped, units.Bytes(b.Rank.Weights),
		b.group.Info().Name))
}

// rows is the most that a step of the cases has.
func (b *Bench) rows() int {
	rows := 1
	for i := range b.results {
		r := &b.results[i]
		if r.Skipped == "" {
			rows = max(rows, r.rows(b.o.Chunk))
		}
	}
	return rows
}

// Close closes the ranks.
func (b *Bench) Close() error {
	var errs []error
	if b.file != nil {
		b.file.Abort()
	}
	if b.group != nil {
		errs = append(errs, b.group.Close())
	}
	return errors.Join(errs...)
}
