package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"glmbatch/datasets"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/replay/report"
	"glmbatch/replay/timeline"
)

// Result is what one case cost. Times are of one step, in ns; those of a
// prefill are of the whole prompt.
type Result struct {
	of      Case
	spans   []datasets.Span // of the recorded steps
	ledger  *report.Report
	changed []kernels.Call // of a what-if, once made
	Kind    string         `json:"kind"`
	Batch   int            `json:"batch"`
	Context int            `json:"context"`
	WhatIf  string         `json:"what_if,omitempty"`
	Skipped string         `json:"skipped,omitempty"` // why it was not measured

	Step     Times `json:"step"`          // all of it
	Schedule Times `json:"schedule"`      // writing the list of calls; with ahead, while the step before ran
	Upload   Times `json:"upload"`        // its inputs
	Launch   Times `json:"launch"`        // starting the list; 0 where that takes as long as it runs
	Run      Times `json:"run"`           // the list, with upload and launch
	Recorded Times `json:"recorded_step"` // all of it, with spans

	Ahead           bool    `json:"ahead"` // steps were launched while those before them ran
	Calls           int     `json:"calls"`
	Bytes           int64   `json:"bytes"` // that the calls must move at least, on a rank
	FLOPs           int64   `json:"flops"` // of the matrix units, on a rank
	Floor           int64   `json:"floor_ns"`
	Experts         float64 `json:"experts"`         // of a layer, that had tokens
	ExpertsUniform  float64 `json:"experts_uniform"` // that even routing would give tokens
	TokensPerSecond float64 `json:"tokens_per_s"`
	MatrixShare     float64 `json:"matrix_share"` // of the machine's matrix rate; 0: unknown

	Stamps *stampCheck `json:"stamps,omitempty"` // nil: not checked
}

// Times are the quantiles of a time.
type Times struct {
	Median int64 `json:"median_ns"`
	Min    int64 `json:"min_ns"`
	P90    int64 `json:"p90_ns"`
	N      int   `json:"n"`
}

// TimesOf sums up times in ns.
func TimesOf(ns []int64) Times {
	if len(ns) == 0 {
		return Times{}
	}
	v := slices.Sorted(slices.Values(ns))
	return Times{Median: v[len(v)/2], Min: v[0], P90: v[(len(v)-1)*9/10], N: len(v)}
}

// overhead is what recording adds to a step, as a share of it.
func (r *Result) overhead() float64 {
	return float64(r.Recorded.Median-r.Step.Median) / float64(max(r.Step.Median, 1))
}

// ratio is the step's time over its floor; 0: unknown.
func (r *Result) ratio() float64 {
	if r.Floor == 0 {
		return 0
	}
	return float64(r.Step.Median) / float64(r.Floor)
}

// rows is the most that a step has.
func (r *Result) rows(chunk int) int {
	if r.of.prefill {
		return min(chunk, r.of.context)
	}
	return r.of.batch * (1 + r.of.drafts)
}

// Measure runs all cases, and makes their ledgers.
func (b *Bench) Measure(ctx context.Context) error {
	for i := range b.results {
		if err := b.measure(ctx, &b.results[i]); err != nil {
			return err
		}
	}
	for i := range b.results {
		if err := b.checkStamps(ctx, &b.results[i]); err != nil {
			return err
		}
	}
	if err := b.capture(); err != nil {
		return err
	}
	return b.attribute()
}

// measure runs one case. Plain and recorded steps alternate, so that what
// changes with time changes both.
func (b *Bench) measure(ctx context.Context, r *Result) error {
	if r.Skipped != "" {
		return nil
	}
	if err := b.setPages(r); err != nil {
		return err
	}
	steps, warmup := b.o.Steps, b.o.Warmup
	if r.of.prefill { // each is many steps
		steps, warmup = min(steps, 3), min(warmup, 2)
	}
	flow := b.flow(r)
	rng := rand.New(rand.NewPCG(b.o.Seed, uint64(r.of.batch)<<32|uint64(r.of.context)))
	for i := -warmup; i < steps; i++ {
		if err := context.Cause(ctx); err != nil {
			return interrupted(err)
		}
		for _, record := range []bool{false, true} {
			// Of steps that are launched ahead, each begins when the host is done with
			// the one before: with one of its own kind, or its time would be the other's.
			lead := 0
			if flow.ahead > 1 && !r.of.prefill {
				lead = 1
			}
			for j := range lead + 1 {
				if err := flow.pass(b.batches(r.of, rng), record, i >= 0 && j == lead); err != nil {
					return device(fmt.Errorf("%v: %w", r.of, err))
				}
			}
		}
	}
	if err := flow.land(0); err != nil {
		return device(fmt.Errorf("%v: %w", r.of, err))
	}
	r.Ahead = flow.ahead > 1
	b.summarise(r, flow.passes)
	return b.keep(r, flow.passes)
}

// setPages gives each sequence of a case its pages.
func (b *Bench) setPages(r *Result) error {
	for rank := range b.model.Homes() {
		for i := range r.of.batch {
			if err := b.model.SetPages(b.seat(rank, i), b.pool.of(i, r.of.span())); err != nil {
				return device(err)
			}
		}
	}
	return nil
}

// seat is that of a rank's sequence.
func (b *Bench) seat(rank, seq int) int { return rank*b.model.Options().MaxSeqs + seq }

// batches returns the steps of one pass: one decode step, or the chunks of a
// prompt. Tokens are random.
func (b *Bench) batches(c Case, rng *rand.Rand) []glm5.Batch {
	token := func() int32 { return rng.Int32N(int32(b.model.Config.Vocab)) }
	greedy := kernels.Greedy()
	add := func(in *glm5.Batch, rank, seq, pos int) int32 {
		page := b.pool.of(seq, c.span())[pos/kernels.PageTokens]
		slot := page*kernels.PageTokens + int32(pos%kernels.PageTokens)
		return in.Add(token(), int32(pos), int32(b.seat(rank, seq)), slot)
	}
	if c.prefill {
		var pass []glm5.Batch
		for from := 0; from < c.context; from += b.o.Chunk {
			var in glm5.Batch
			for rank := range b.model.Homes() {
				var last int32
				for pos := from; pos < min(from+b.o.Chunk, c.context); pos++ {
					last = add(&in, rank, 0, pos)
				}
				if from+b.o.Chunk >= c.context {
					in.Logits, in.Params = append(in.Logits, last), append(in.Params, greedy)
				}
			}
			pass = append(pass, in)
		}
		return pass
	}
	var in glm5.Batch
	for i := range c.batch * b.model.Homes() {
		for pos := c.context - 1 - c.drafts; pos < c.context; pos++ {
			in.Logits = append(in.Logits, add(&in, i/c.batch, i%c.batch, pos))
			in.Params = append(in.Params, greedy)
		}
		if c.layer {
			in.Tips = append(in.Tips, glm5.Tip{First: int32(len(in.Logits) - 1 - c.drafts), Rows: int32(1 + c.drafts)})
		}
	}
	if in.Drafts = c.drafts; c.layer {
		in.Next = make([]int32, len(in.Tokens))
		if !b.model.Config.IsLong(c.span() - 1) {
			in.LongTips = len(in.Tips)
		}
	}
	return []glm5.Batch{in}
}

// count says what the calls of one pass must do at least, on one rank; of ranks
// that share a machine, on all. It is the mean of the passes recorded.
func (r *Result) count(traces []kernels.Trace, passes int) {
	var layers, touched int
	for i := range traces {
		t := &traces[i]
		r.Calls += len(t.Calls)
		for j := range t.Calls {
			c := &t.Calls[j]
			for rank := range t.Spans {
				if rank > 0 && (!t.Shared || c.Replicated) {
					break
				}
				groups := t.Spans[rank][j].Groups
				cost := c.Cost(groups)
				r.Bytes += cost.HBM
				if k := kernels.Lookup(c.Kernel); k.Pipe != kernels.OnVector {
					r.FLOPs += cost.FLOPs
				}
				if rank == 0 && groups > 0 && c.Dims.Groups > 0 {
					layers, touched = layers+1, touched+int(groups)
				}
			}
		}
	}
	passes = max(passes, 1)
	r.Calls, r.Bytes, r.FLOPs = r.Calls/passes, r.Bytes/int64(passes), r.FLOPs/int64(passes)
	if layers > 0 {
		r.Experts = float64(touched) / float64(layers)
	}
}

func (b *Bench) summarise(r *Result, passes []*pass) {
	of := func(record bool, f func(*pass) int64) Times {
		var ns []int64
		for _, p := range passes {
			if p.record == record {
				ns = append(ns, f(p))
			}
		}
		return TimesOf(ns)
	}
	wall := func(p *pass) int64 { return p.wall }
	r.Schedule = of(false, func(p *pass) int64 { return p.schedule })
	r.Upload = of(false, func(p *pass) int64 { return p.upload })
	r.Launch = of(false, func(p *pass) int64 { return p.launch })
	r.Run = of(false, func(p *pass) int64 { return p.wall - p.schedule })
	r.Step, r.Recorded = of(false, wall), of(true, wall)
	var traces []kernels.Trace
	for _, p := range passes {
		traces = append(traces, p.traces...)
	}
	r.count(traces, r.Recorded.N)

	c := &b.model.Config
	r.ExpertsUniform = float64(c.Experts) * (1 - math.Pow(1-float64(c.ExpertsPerToken)/float64(max(1, c.Experts)),
		float64(r.rows(b.o.Chunk))))
	tokens := r.of.batch
	if r.of.prefill {
		tokens = r.of.context
	}
	seconds := float64(max(r.Step.Median, 1)) / 1e9
	r.TokensPerSecond = float64(tokens) / seconds
	if b.o.Machine != nil {
		r.Floor = int64(float64(r.Bytes) / float64(cmp.Or(b.o.Machine.Read, 1)) * 1e9)
		if rate := b.o.Machine.FLOPs[kernels.OnMatrix]; rate > 0 {
			r.MatrixShare = float64(r.FLOPs) / seconds / float64(rate)
		}
	}
}

// keep makes the recorded steps' rows, and writes them where --timeline says so.
func (b *Bench) keep(r *Result, passes []*pass) error {
	r.spans = []datasets.Span{}
	for _, p := range passes {
		for i := range p.traces {
			t := &p.traces[i]
			t.Step = b.step
			r.spans = timeline.Rows(r.spans, t, 0)
			b.step++
		}
	}
	if b.file == nil {
		return nil
	}
	return b.file.Write(r.spans)
}
