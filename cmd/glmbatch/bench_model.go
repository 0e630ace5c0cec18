package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"glmbatch/datasets"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/fit"
	"glmbatch/engine/glm5"
	"glmbatch/engine/synth"
	"glmbatch/kernels"
	"glmbatch/kernels/cuda"
	"glmbatch/kernels/cuda/plan"
	"glmbatch/kernels/ranks"
	"glmbatch/kernels/roofline"
	"glmbatch/replay"
	"glmbatch/telemetry"
	"glmbatch/units"
)

// bench is a model on its ranks and what has been measured on it.
type bench struct {
	flags  *benchFlags
	name   string // of the model
	recipe string // that random weights follow from
	hash   string
	fit.Rank
	loaded   time.Duration
	machine  *roofline.Machine // nil: unknown
	group    *ranks.Group
	model    *glm5.Model
	recorder *plan.Recorder // of the last rank, where nothing runs
	pool     cachePool
	copied   kernels.Buffer // of a layer's pool, for casts; none without
	rng      *rand.PCG
	results  []benchResult

	file *datasets.Writer[datasets.Span] // of the recorded steps; nil: nobody asked for it
	step int64                           // of the next recorded step
}

// openBench makes the model and fills its caches.
func openBench(ctx context.Context, f *benchFlags, log io.Writer) (_ *bench, err error) {
	b := &bench{flags: f, rng: rand.NewPCG(f.seed, 0x62656e6368)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	ck, config, err := b.checkpoint()
	if err != nil {
		return nil, err
	}
	defer ck.Close()
	if err := config.CheckTP(f.tp); err != nil {
		return nil, withCode(exitInput, err)
	}
	cases, err := f.cases(&config)
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		b.results = append(b.results, benchResult{of: c, Kind: c.kind(), Batch: c.batch, Context: c.context, WhatIf: c.whatIf()})
	}
	if f.plan == "" {
		f.device.say(log)
	}
	if f.stamps {
		if f.device.resolved() != "cuda" {
			return nil, withCode(exitInput, errors.New("--check-stamps needs a GPU: kernels on the CPU have no stamps"))
		}
		if f.device.profiler, err = cuda.LoadProfiler(f.cupti); err != nil {
			return nil, withCode(exitDevice, err)
		}
	}
	if b.group, err = b.openDevices(); err != nil {
		return nil, err
	}
	info := b.group.Info()
	if b.machine, err = benchMachine(f.machine, info); err != nil {
		return nil, withCode(exitInput, err)
	}
	o, err := b.options(&config, info)
	if err != nil {
		return nil, err
	}
	if err := b.allSkipped(); err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "loading %d layers, %s of weights on each rank, %s of caches\n", config.Layers, units.Bytes(b.Weights), units.Bytes(int64(b.pool.pages)*kernels.PageTokens*b.pool.perToken))
	start := time.Now()
	if b.model, err = glm5.Load(ctx, ck, b.group, o); err == nil && f.plan == "" {
		err = b.pool.fill(b.model, b.rng)
	}
	if err == nil && f.whatIf != "" {
		b.copied, err = replay.CastPoolOf(b.model, b.slots())
	}
	if stop := context.Cause(ctx); stop != nil {
		return nil, withCode(exitInterrupted, fmt.Errorf("interrupted: %w", stop))
	}
	if errors.Is(err, kernels.ErrMemory) || errors.Is(err, kernels.ErrDevice) {
		return nil, deviceError(err, "a smaller --kv-slots, --batch or --chunk, --kv-cache fp8")
	}
	if err != nil {
		return nil, withCode(exitInput, err)
	}
	b.loaded = time.Since(start)
	fmt.Fprintf(log, "loaded in %.1f s\n", b.loaded.Seconds())
	if f.timeline != "" {
		b.file, err = datasets.Create[datasets.Span](f.timeline, nil)
	}
	return b, err
}

// checkpoint opens the model's weights, or makes them.
func (b *bench) checkpoint() (*checkpoint.Checkpoint, glm5.Config, error) {
	f := b.flags
	var ck *checkpoint.Checkpoint
	var c glm5.Config
	var err error
	if f.model != "" {
		b.name = f.model
		if ck, c, err = openModel(f.model); err != nil {
			return nil, c, err
		}
	} else {
		b.name = f.config.Config
		var m map[string]any
		m, c, err = f.config.Resolve()
		var text []byte
		if err == nil {
			text, err = json.Marshal(m)
		}
		if err == nil {
			ck, err = synth.Checkpoint(b.name, text, &c, f.seed)
		}
		if err == nil {
			b.recipe, err = synth.Recipe(text, f.seed)
		}
		if err != nil {
			return nil, c, withCode(exitInput, err)
		}
	}
	cover := c.Cover(ck)
	b.Rank = fit.Of(&cover, f.tp, glm5.Options{KVCache: kernels.Format(f.kvCache), Dense: kernels.Format(f.dense)})
	b.hash, err = ck.Hash()
	return ck, c, err
}

// options are what the largest case needs.
func (b *bench) options(c *glm5.Config, info kernels.Info) (glm5.Options, error) {
	f := b.flags
	o := glm5.Options{KVCache: kernels.Format(f.kvCache), Act: glm5.Act(f.act), Dense: kernels.Format(f.dense), Shards: f.tp, MaxRows: 1, MaxSeqs: 1, Context: 1}
	most := glm5.Options{KVCache: o.KVCache, Shards: f.tp, MaxRows: b.rows(), MaxSeqs: b.most(func(c benchCase) int { return c.batch }), Context: b.most(func(c benchCase) int { return c.context })}
	fits := fit.New(b.name, c, b.Rank, nil, most, b.room(info))
	b.pool.perToken = fits.Token
	var room int64
	if info.Memory > 0 {
		room = max(1, fits.Left())
	}
	b.pool.plan(b.results, int64(f.kvSlots), room)
	for i := range b.results {
		r := &b.results[i]
		if r.Skipped != "" {
			continue
		}
		o.Context, o.MaxSeqs = max(o.Context, r.of.context), max(o.MaxSeqs, r.of.batch)
	}
	o.MaxRows = b.rows()
	b.pool.pages = max(b.pool.pages, 1)
	o.Pages = b.pool.pages
	b.pool.shuffle(rand.New(b.rng))
	return o, nil
}

// room is the memory of the ranks.
func (b *bench) room(info kernels.Info) fit.Room {
	at := fit.Room{Device: info.Kind, Memory: cmp.Or(telemetry.AvailableMemory(), info.Memory), Ranks: b.flags.ranks}
	if info.Kind == "cuda" {
		at.GPUs = []int64{info.Memory}
		if !info.Shared {
			at.GPUs = slices.Repeat(at.GPUs, b.flags.ranks)
		}
	}
	return at
}

// most is the largest of a figure of the cases.
func (b *bench) most(of func(benchCase) int) int {
	n := 1
	for i := range b.results {
		n = max(n, of(b.results[i].of))
	}
	return n
}

// allSkipped says why nothing can be measured; nil: something can.
func (b *bench) allSkipped() error {
	for i := range b.results {
		if b.results[i].Skipped == "" {
			return nil
		}
	}
	r := &b.results[0]
	if b.flags.kvSlots > 0 {
		return withCode(exitInput, fmt.Errorf("%v: it %s", r.of, r.Skipped))
	}
	return withCode(exitDevice, fmt.Errorf("%v: it %s beside %s of weights on %s", r.of, r.Skipped, units.Bytes(b.Weights), b.group.Info().Name))
}

// rows is the most that a step of the cases has.
func (b *bench) rows() int {
	rows := 1
	for i := range b.results {
		r := &b.results[i]
		if r.Skipped == "" {
			rows = max(rows, r.rows(b.flags.chunk))
		}
	}
	return rows
}

// benchMachine is the machine of the floor: the named one, or the one that runs.
func benchMachine(name string, info kernels.Info) (*roofline.Machine, error) {
	if name != "" {
		return machineFor(name)
	}
	if info.Kind == "cpu" {
		return machineFor("this")
	}
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(s))
	}
	for _, known := range roofline.Names() {
		if strings.Contains(plain(info.Name), plain(known)) {
			return machineFor(known)
		}
	}
	return nil, nil
}

func (b *bench) close() error {
	var errs []error
	if b.file != nil {
		b.file.Abort()
	}
	if b.group != nil {
		errs = append(errs, b.group.Close())
	}
	return errors.Join(errs...)
}
