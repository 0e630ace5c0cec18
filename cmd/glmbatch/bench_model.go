package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"glmbatch/datasets"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
	"glmbatch/kernels/roofline"
)

// bench is a model on its ranks and what has been measured on it.
type bench struct {
	flags   *benchFlags
	name    string // of the model
	params  int64
	weights int64 // bytes on each rank
	whole   int64 // of these, what is the same on all ranks
	loaded  time.Duration
	machine *roofline.Machine // nil: unknown
	group   *ranks.Group
	model   *glm5.Model
	pool    cachePool
	rng     *rand.PCG
	results []benchResult

	spans  *datasets.Writer[datasets.Span]
	path   string // of the spans
	folder string // of a file of spans that nobody asked for; "": none
	step   int64  // of the next recorded step
	rows   []datasets.Span
}

// openBench makes the model and fills its caches.
func openBench(ctx context.Context, f *benchFlags, log io.Writer) (_ *bench, err error) {
	b := &bench{flags: f, rng: rand.NewPCG(f.config.Seed, 0x62656e6368)}
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
		b.results = append(b.results, benchResult{of: c, Kind: c.kind(), Batch: c.batch, Context: c.context})
	}
	f.device.say(log)
	if b.group, err = f.device.open(f.ranks); err != nil {
		return nil, err
	}
	info := b.group.Info()
	if b.machine, err = benchMachine(f.machine, info); err != nil {
		return nil, withCode(exitInput, err)
	}
	o := b.options(&config, info)
	fmt.Fprintf(log, "loading %d layers, %s of weights on each rank, %s of caches\n", config.Layers, bytesText(b.weights), bytesText(int64(b.pool.pages)*kernels.PageTokens*b.pool.perToken))
	start := time.Now()
	if b.model, err = glm5.Load(ck, b.group, o); err == nil {
		err = b.pool.fill(b.model, b.rng)
	}
	if errors.Is(err, kernels.ErrMemory) || errors.Is(err, kernels.ErrDevice) {
		return nil, withCode(exitDevice, err)
	}
	if err != nil {
		return nil, withCode(exitInput, err)
	}
	b.loaded = time.Since(start)
	fmt.Fprintf(log, "loaded in %.1f s\n", b.loaded.Seconds())
	if err := context.Cause(ctx); err != nil {
		return nil, withCode(exitInterrupted, fmt.Errorf("interrupted: %w", err))
	}
	return b, b.openSpans()
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
		m, c, err = synthConfig(&f.config)
		var text []byte
		if err == nil {
			text, err = json.Marshal(m)
		}
		if err == nil {
			ck, _, err = syntheticCheckpoint(b.name, text, &c, f.config.Seed)
		}
		if err != nil {
			return nil, c, withCode(exitInput, err)
		}
	}
	cover := c.Cover(ck)
	for _, s := range cover.Weights {
		if !s.MTP {
			b.params += s.Params()
			b.weights += s.Share(f.tp)
			if s.Split == glm5.Whole {
				b.whole += s.Bytes
			}
		}
	}
	return ck, c, nil
}

// options are what the largest case needs.
func (b *bench) options(c *glm5.Config, info kernels.Info) glm5.Options {
	f := b.flags
	o := glm5.Options{KVCache: kernels.Format(f.kvCache), Act: glm5.Act(f.act), Shards: f.tp, MaxRows: 1, MaxSeqs: 1, Context: 1}
	b.pool.perToken = cacheToken(c, o.KVCache)
	var room int64
	if info.Memory > 0 {
		total := b.weights
		if info.Shared { // what is the same on all ranks is there once
			total = b.whole + int64(f.ranks)*(b.weights-b.whole)
		}
		room = max(1, int64(memoryShare*float64(info.Memory))-total-b.working(c))
	}
	b.pool.plan(b.results, int64(f.kvSlots), room)
	for i := range b.results {
		r := &b.results[i]
		if r.Skipped != "" {
			continue
		}
		o.Context, o.MaxSeqs = max(o.Context, r.of.context), max(o.MaxSeqs, r.of.batch)
		rows := r.of.batch
		if r.of.prefill {
			rows = min(f.chunk, r.of.context)
		}
		o.MaxRows = max(o.MaxRows, rows)
	}
	b.pool.pages = max(b.pool.pages, 1)
	o.Pages = b.pool.pages
	b.pool.shuffle(rand.New(b.rng))
	return o
}

// working is roughly what a step works in: the buffers of its rows.
func (b *bench) working(c *glm5.Config) int64 {
	rows := int64(1)
	for _, r := range b.results {
		n := int64(r.of.batch)
		if r.of.prefill {
			n = int64(min(b.flags.chunk, r.of.context))
		}
		rows = max(rows, n)
	}
	inner := 0
	for i := range c.Layers {
		if c.Dense(i) {
			inner = c.Intermediate
		}
	}
	width := 4*c.Hidden + c.QLoRA + c.IndexHeads*c.IndexHeadDim + c.IndexTopK + (c.Heads*(c.QKHeadDim()+2*c.KVLoRA+c.VHead)+3*inner+c.ExpertsPerToken*c.MoEIntermediate)/b.flags.tp
	return 4*rows*int64(width) + 256<<20
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

// openSpans begins the file of the recorded steps, which the ledgers are made from.
func (b *bench) openSpans() (err error) {
	b.path = b.flags.timeline
	if b.path == "" {
		if b.folder, err = os.MkdirTemp("", "glmbatch-bench-"); err != nil {
			return err
		}
		b.path = filepath.Join(b.folder, "timeline.parquet")
	}
	b.spans, err = datasets.Create[datasets.Span](b.path, nil)
	return err
}

func (b *bench) close() error {
	var errs []error
	if b.spans != nil {
		b.spans.Abort()
	}
	if b.group != nil {
		errs = append(errs, b.group.Close())
	}
	if b.folder != "" {
		errs = append(errs, os.RemoveAll(b.folder))
	}
	return errors.Join(errs...)
}
