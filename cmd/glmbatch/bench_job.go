package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"glmbatch/engine"
	"glmbatch/engine/fit"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/ranks"
	"glmbatch/replay/report"
	"glmbatch/telemetry"
	"glmbatch/units"
)

// benchJob is a whole job of made-up prompts: --job and the flags that go with it.
type benchJob struct {
	text     string // INPUT/OUTPUT; "": no job
	requests int
	seqs     int
	prefix   int // of the input, that the requests of a group share
	groups   int
	sharing  string
	guided   bool          // answers follow a schema
	tail     bool          // lengths of answers differ: see lengths
	rate     float64       // of links, bytes/s each way
	latency  time.Duration // of a sum over ranks, beside its bytes

	speculate string
	turns     int

	input, output int
	drafts        engine.Speculation
}

// What sums over ranks add on two H200s over NVLink, where one of eight ranks alone and
// two of them were timed at 1, 8, 64 and 8,192 rows: so much each, and the bytes at this
// rate.
const (
	linkLatency = 2200 * time.Nanosecond
	linkRate    = 207e9
)

const mostJobTokens = 1 << 33

func (j *benchJob) validate(f *benchFlags) error {
	in, out, ok := strings.Cut(j.text, "/")
	var err1, err2 error
	j.input, err1 = strconv.Atoi(in)
	j.output, err2 = strconv.Atoi(out)
	var err3 error
	j.drafts, err3 = speculation(j.speculate)
	if err3 == nil {
		err3 = checkDrafts(&glm5.Options{Layout: f.Layout, Shards: f.TP}, j.drafts, "--speculate "+j.speculate,
			"--speculate ngram:%d needs no such layer")
	}
	errs := []error{oneOf("prefix-sharing", j.sharing, "on", "off"), err3}
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(!ok || err1 != nil || err2 != nil || j.input < 1 || j.output < 1,
		"--job %q: it is INPUT/OUTPUT, tokens of a prompt and of an answer, as 8192/1024", j.text)
	fault(j.requests < 1 || int64(j.requests)*int64(j.input+j.output) > mostJobTokens,
		"--requests %d: from 1, and of %s tokens in all", j.requests, units.Digits(mostJobTokens))
	fault(j.seqs < 1 || j.seqs > 1<<16, "--seqs %d: it must be from 1 to %d", j.seqs, 1<<16)
	fault(j.prefix < 0 || j.prefix > j.input, "--prefix %d: it must be from 0 to the prompt's %d", j.prefix, j.input)
	fault(j.turns < 1 || j.turns > 99, "--turns %d: it must be from 1 to 99", j.turns)
	fault(j.tail && j.output < leastTail, "--tail: answers of %d tokens are too short for one", j.output)
	fault(j.groups < 1, "--groups %d: it must be at least 1", j.groups)
	fault(!(j.rate > 0) || j.latency < 0, "--link-rate and --link-latency must be above 0")
	fault(f.Prefill > 0 || f.whatIf != "" || f.Capture != "" || f.Timeline != "" || f.stamps,
		"--job excludes --prefill, --what-if, --capture, --timeline and --check-stamps")
	return withCode(exitInput, errors.Join(errs...))
}

// jobBench is the model that a job runs on.
type jobBench struct {
	flags *benchFlags
	name  string
	group *ranks.Group
	model *glm5.Model
}

func (b *jobBench) close() error {
	if b.group == nil {
		return nil
	}
	return b.group.Close()
}

// runBenchJob runs the job through scheduler and engine.
func runBenchJob(ctx context.Context, f *benchFlags, stdout, stderr io.Writer) (err error) {
	if err := errors.Join(f.validate(), f.job.validate(f)); err != nil {
		return withCode(exitInput, err)
	}
	b := &jobBench{flags: f}
	defer func() { err = errors.Join(err, b.close()) }()
	seats, pages, err := b.loadJob(ctx, stderr)
	if err != nil {
		return err
	}
	g, err := b.guides(ctx)
	if err != nil {
		return withCode(exitInput, err)
	}
	defer g.close()
	var free float64 // seconds of the job without guides
	if f.job.guided {
		r, err := b.playJob(ctx, seats, pages, &jobGuides{}, engine.Speculation{})
		if err != nil {
			return err
		}
		free = r.Seconds
	}
	r, err := b.playTurns(ctx, seats, pages, &g)
	if err != nil {
		return err
	}
	r.Free = free
	if f.format == "json" {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.print(stdout)
}

// loadJob makes the model, with caches for all that can run at once, or for what fits.
func (b *jobBench) loadJob(ctx context.Context, log io.Writer) (seats, pages int, err error) {
	f, j := b.flags, &b.flags.job
	m, err := f.open()
	if err != nil {
		return 0, 0, err
	}
	b.name = m.Name
	c := m.Config
	defer m.Weights.Close()
	if j.input+j.longest() > c.MaxPositions {
		return 0, 0, withCode(exitInput, fmt.Errorf("--job %s: the model has %d positions", j.text, c.MaxPositions))
	}
	f.device.say(log)
	if b.group, err = f.device.open(f.Ranks); err != nil {
		return 0, 0, err
	}
	o := glm5.Options{Layout: f.Layout, KVCache: f.KVCache, Act: f.Act, Dense: f.Dense,
		Activations: f.Inputs, Shards: f.TP, Context: j.input + j.longest()}
	seats = (min(j.seqs, j.requests) + o.Homes() - 1) / o.Homes()
	o.MaxRows, o.MaxSeqs = max(f.Chunk, seats), seats
	speculates(&o, j.drafts, seats)
	fits := fit.New(m.Name, &c, m.Rank, nil, o, fit.Found(b.group.Info(), f.Ranks, telemetry.AvailableMemory()))
	pages = f.KVSlots / kernels.PageTokens
	if pages == 0 {
		if !fits.Fits && fits.Memory > 0 {
			return 0, 0, withCode(exitDevice, fmt.Errorf("%s does not fit: %s: %s", b.name, fits.Fault, fits.Remedy()))
		}
		each := int64((j.input+j.longest())/kernels.PageTokens + 1)
		// and pages kept for those to come
		pages = int(min(int64(seats)*(each+1)+int64(j.groups), fits.Tokens/kernels.PageTokens))
	}
	o.Pages = max(1, pages)
	fmt.Fprintf(log, "loading %d layers, %s of weights on each rank, %s of caches\n", c.Layers,
		units.Bytes(m.Rank.Weights), units.Bytes(int64(o.Pages)*kernels.PageTokens*fits.Token))
	b.model, err = glm5.Load(ctx, m.Weights, b.group, o)
	switch {
	case context.Cause(ctx) != nil:
		return 0, 0, withCode(exitInterrupted, fmt.Errorf("interrupted: %w", context.Cause(ctx)))
	case errors.Is(err, kernels.ErrMemory), errors.Is(err, kernels.ErrDevice):
		return 0, 0, deviceError(err, "a smaller --kv-slots, --seqs or --chunk, --kv-cache fp8")
	case err != nil:
		return 0, 0, withCode(exitInput, err)
	}
	return b.model.Homes() * seats, b.model.Homes() * o.Pages, nil
}

// jobResult is what bench --job says.
type jobResult struct {
	Schema   string `json:"schema"`
	Model    string `json:"model"`
	Device   string `json:"device"`
	TP       int    `json:"tp"`
	Ranks    int    `json:"ranks"`
	Layout   string `json:"layout"`
	Alike    int    `json:"alike"` // ranks of which only one is here, with its own part of the requests
	Job      string `json:"job"`
	Requests int    `json:"requests"`
	Seqs     int    `json:"seqs"`
	KVTokens int    `json:"kv_tokens"`
	jobFigures
	Tail    float64 `json:"tail_seconds"`         // of the last twentieth of the completion tokens
	Without float64 `json:"without_seconds"`      // without drafts, with --speculate
	Slow    float64 `json:"without_tail_seconds"` // likewise
	Worst   float64 `json:"slowest_turn"`         // of a turn: with drafts over without
	Links   float64 `json:"links_seconds"`        // that ranks which are not here would add; 0: all are here
	Free    float64 `json:"free_seconds"`         // that the job took without guides, with --guided

	rate    float64
	latency time.Duration
}

// playTurns runs the job, with --speculate without and with drafts by turns: what else the
// machine does meets both alike.
func (b *jobBench) playTurns(ctx context.Context, seats, pages int, g *jobGuides) (*jobResult, error) {
	j := &b.flags.job
	if j.drafts.Drafts == 0 {
		return b.playJob(ctx, seats, pages, g, j.drafts)
	}
	var without, with []*jobResult
	worst := 0.0
	for range j.turns {
		off, err := b.playJob(ctx, seats, pages, g, engine.Speculation{})
		if err != nil {
			return nil, err
		}
		on, err := b.playJob(ctx, seats, pages, g, j.drafts)
		if err != nil {
			return nil, err
		}
		without, with, worst = append(without, off), append(with, on), max(worst, on.Seconds/off.Seconds)
	}
	median := func(of []*jobResult, what func(*jobResult) float64) float64 {
		var v []float64
		for _, r := range of {
			v = append(v, what(r))
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	seconds, tail := func(r *jobResult) float64 { return r.Seconds }, func(r *jobResult) float64 { return r.Tail }
	r := *with[0]
	r.Seconds, r.Tail, r.Worst = median(with, seconds), median(with, tail), worst
	r.Without, r.Slow = median(without, seconds), median(without, tail)
	return &r, nil
}

// playJob runs the requests, of which the engine knows as many as in run.
func (b *jobBench) playJob(ctx context.Context, seats, pages int, g *jobGuides,
	drafts engine.Speculation) (*jobResult, error) {
	f, j := b.flags, &b.flags.job
	r := &jobResult{Schema: "glmbatch.bench.job/1", Model: b.name, Device: b.group.Info().Name, TP: f.TP,
		Ranks: f.Ranks, Layout: string(f.Layout), Job: j.text, Requests: j.requests, Seqs: seats,
		KVTokens: pages * kernels.PageTokens, rate: j.rate, latency: j.latency}
	r.Alike = alike(f)
	requests := (j.requests + r.Alike - 1) / r.Alike // of the ranks that are here
	var w work
	links := 0.0
	o := engine.Options{NoSharing: j.sharing == "off", Speculate: drafts}
	o.OnStep = func(i engine.StepInfo) {
		w.add(&i)
		links += b.links(i.Tokens, i.Sampled)
	}
	e, err := engine.New(b.model, o)
	if err != nil {
		return nil, withCode(exitInput, err)
	}
	prompts, lengths := newJobPrompts(j, b.model.Config.Vocab, f.Seed), j.lengths(f.Seed)
	var output int64
	var had []given
	begin := time.Now()
	for next, live := 0, 0; next < requests || live > 0; {
		for ; next < requests && live < knownRows; next, live = next+1, live+1 {
			err := e.Add(engine.Request{ID: int64(next), Prompt: prompts.of(next),
				Sampling: engine.Sampling{MaxTokens: lengths[next], IgnoreEOS: true}, Guide: g.next()})
			if err != nil {
				return nil, withCode(exitInput, err)
			}
		}
		tokens, err := e.Step()
		if err != nil {
			return nil, deviceError(err, "a smaller --kv-slots, --seqs or --chunk")
		}
		for i := range tokens {
			if tokens[i].Reason == engine.Failed {
				return nil, withCode(exitDevice, fmt.Errorf("request %d: the model gave no number", tokens[i].ID))
			}
			output++
			if tokens[i].Reason != engine.Going {
				live--
			}
		}
		had = append(had, given{output, time.Since(begin)})
		if err := context.Cause(ctx); err != nil {
			return nil, withCode(exitInterrupted, fmt.Errorf("interrupted: %w", err))
		}
	}
	r.jobFigures = w.figures(time.Since(begin).Seconds(), int64(requests)*int64(j.input), output, seats, pages)
	r.Links, r.Tail = links, last(had)
	r.Input, r.Output, r.Shared = r.Input*int64(r.Alike), r.Output*int64(r.Alike), r.Shared*int64(r.Alike)
	return r, nil
}

// given is how many tokens there were when.
type given struct {
	output int64
	at     time.Duration
}

// last is how many seconds the last twentieth of the tokens took, of which a step gives some
// in equal parts of its time.
func last(had []given) float64 {
	if len(had) == 0 {
		return 0
	}
	end, before := had[len(had)-1], given{}
	want := .95 * float64(end.output)
	for _, g := range had {
		if float64(g.output) >= want {
			part := (want - float64(before.output)) / float64(g.output-before.output)
			return (end.at - before.at).Seconds() - part*(g.at-before.at).Seconds()
		}
		before = g
	}
	return 0
}

// With --tail, half of the answers have less than half of the mean, and one in a hundred eight
// times as much or more: lengths are log-normal, cut at the longest.
const (
	tailSigma = 1.3
	mostTail  = 16 // times the mean
	leastTail = 8
)

// longest is the most tokens of an answer.
func (j *benchJob) longest() int {
	if j.tail {
		return mostTail * j.output
	}
	return j.output
}

// lengths are how many tokens each answer has.
func (j *benchJob) lengths(seed uint64) []int {
	r, list := rand.New(rand.NewPCG(seed, 5)), make([]int, j.requests)
	for i := range list {
		if list[i] = j.output; j.tail {
			n := float64(j.output) * math.Exp(tailSigma*r.NormFloat64()-tailSigma*tailSigma/2)
			list[i] = min(max(1, int(n)), j.longest())
		}
	}
	return list
}

// links is how many seconds sums over ranks and the gathering of logits would take more
// in a step if all ranks were here.
func (b *jobBench) links(rows, logits int) float64 {
	f, c := b.flags, &b.model.Config
	if f.Ranks == f.TP {
		return 0
	}
	one := func(k kernels.Name, m, n int) float64 {
		wire := func(ranks int) int64 {
			x := kernels.Call{Kernel: k, Dims: kernels.Dims{M: int32(m), N: int32(n), K: int32(rows * alike(f)),
				Ranks: int32(ranks)}}
			return x.Cost(0).Wire
		}
		return f.job.latency.Seconds() + float64(wire(f.TP)-wire(f.Ranks))/f.job.rate
	}
	if o := b.model.Options(); o.Apart() {
		m := rows / b.model.Homes()
		return float64(c.Layers) * (one("all_gather_rows", m, c.Hidden) + one("reduce_scatter_norm", m, c.Hidden))
	}
	s := 2 * float64(c.Layers) * one("all_reduce_norm", rows, c.Hidden)
	if logits > 0 {
		s += one("all_gather", logits, c.Vocab)
	}
	return s
}

// alike is for how many ranks one that is here stands, with requests of its own: their rows
// pass the experts as copies of its rows.
func alike(f *benchFlags) int {
	if f.Layout == glm5.Throughput {
		return f.TP / f.Ranks
	}
	return 1
}

// jobPrompts makes prompts, those of a group with the same first tokens.
type jobPrompts struct {
	*benchJob
	vocab int
	seed  uint64
}

func newJobPrompts(j *benchJob, vocab int, seed uint64) jobPrompts {
	return jobPrompts{j, vocab, seed}
}

func (p jobPrompts) of(i int) []int32 {
	prompt := make([]int32, p.input)
	fill := func(to []int32, what uint64) {
		r := rand.New(rand.NewPCG(p.seed, what))
		for k := range to {
			to[k] = r.Int32N(int32(p.vocab))
		}
	}
	fill(prompt[:p.prefix], uint64(i%p.groups))
	fill(prompt[p.prefix:], 1<<40+uint64(i))
	return prompt
}

func (r *jobResult) print(w io.Writer) error {
	var s strings.Builder
	line := func(format string, args ...any) { report.Wrap(&s, fmt.Sprintf(format, args...), report.DefaultWidth) }
	line("%s, --job %s, %s requests, %s at once, caches of %s tokens, %d of %d ranks on %s", r.Model, r.Job,
		units.Digits(int64(r.Requests)), units.Digits(int64(r.Seqs)), units.Digits(int64(r.KVTokens)), r.Ranks,
		r.TP, r.Device)
	s.WriteByte('\n')
	line("%.1f s", r.Seconds)
	if r.Free > 0 {
		line("answers follow a schema: without, the job took %.1f s, %.3f of that time", r.Free, r.Free/r.Seconds)
	}
	if r.Without > 0 {
		line("with drafts, medians of turns: without, the job took %.1f s, %.3f times as long, and the last 5 %% of its "+
			"completions %.2f s, with %.2f s: %.2f times. The slowest turn with drafts took %.3f of that without",
			r.Without, r.Without/r.Seconds, r.Slow, r.Tail, r.Slow/max(r.Tail, 1e-9), r.Worst)
	}
	for _, l := range r.lines() {
		line("%s", l)
	}
	if r.Alike > 1 {
		line("%d of %d ranks are here, with their own part of the requests: tokens are those of all ranks, and the "+
			"others' rows pass the experts as copies of theirs", r.Ranks, r.TP)
	}
	if r.Ranks < r.TP {
		all := *r
		all.Seconds += r.Links
		s.WriteByte('\n')
		line("%d of %d ranks are here: sums over the others are not in these figures. At %s a sum and %s/s each way "+
			"(--link-latency, --link-rate; the defaults are from one and two H200s over NVLink) they add %.1f s:",
			r.Ranks, r.TP, r.latency, units.Bytes(int64(r.rate)), r.Links)
		line("%.1f s, together %s tokens/s, prompts %s/s, completions %s/s", all.Seconds, all.a(r.Input+r.Output),
			all.a(r.Input), all.a(r.Output))
	}
	_, err := io.WriteString(w, s.String())
	return err
}
