package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"glmbatch/engine/glm5"
	"glmbatch/engine/synth"
	"glmbatch/kernels"
	"glmbatch/kernels/cuda/plan"
	"glmbatch/replay"
	"glmbatch/replay/attribute"
	"glmbatch/units"
)

// benchFlags are the options of glmbatch bench.
type benchFlags struct {
	model      string
	config     synth.Options // the config and what changes it
	seed       uint64
	synthetic  bool
	collective bool     // time collectives instead
	job        benchJob // run a whole job instead
	tp, ranks  int
	batches    []int
	contexts   []int
	prefill    int
	chunk      int
	kvCache    string
	kvSlots    int
	whatIf     string
	act        string
	dense      string
	steps      int
	warmup     int
	lockstep   bool
	device     deviceFlags
	machine    string
	by         string
	format     string
	timeline   string
	capture    string
	plan       string // a GPU whose launches are printed; "": steps run
	stamps     bool   // check them against CUPTI
	cupti      string // the library; "": where it usually is
}

func newBenchCommand() *cobra.Command {
	f := benchFlags{}
	c := &cobra.Command{
		Use:   "bench --config glm-5|glm-5.2|tiny|FILE | --model DIR | --collectives",
		Short: "Time decode and prefill steps at a model's shapes, without prompts",
		Long: `bench runs steps of one rank of --tp (or of more: --ranks) at the shapes of a model
and says what they cost: the time of a step, the time that its bytes alone would take
at the machine's read bandwidth, tokens/s, and where the time of each step went.

With --config the weights are random and made in memory; there is no checkpoint and
no scheduler. With --model they are a checkpoint's. The caches are full of random
entries, and the pages of every sequence lie all over the pool. With fewer ranks than
--tp, sums over ranks take only the ranks that are there: no time for links is in the
figures.

With --job a whole job of random prompts runs through scheduler and engine, as in
glmbatch run: tokens a second over all of it, how full steps and caches were, and
what shared prefixes saved.

A step is: write the list of calls, upload its inputs, run it, fetch the sampled
tokens. On a GPU each step is launched while the one before runs, as in glmbatch run,
and lasts from that one's end to its own. Steps are timed without spans; between them
as many are recorded with spans, for the ledger and for what recording costs.

The machine of the floor is that of the GPU if it is known, or the CPU as measured
once. --machine takes another: this, or
  ` + machineHelp() + `.`,
		Example: `  glmbatch bench --config tiny --tp 1 --batch 1,8 --context 512 --device cpu
  # one rank of eight of the full model, on one GPU
  glmbatch bench --config glm-5 --tp 8 --ranks 1 --synthetic --batch 1,8,64 --context 8192,131072
  # a prompt of 8,192 tokens, in chunks of 2,048 instead of at once
  glmbatch bench --config glm-5 --layers 8 --tp 8 --prefill 8192 --chunk 2048
  # nothing may grow with the pool: the same step in a small and in a large one
  glmbatch bench --config glm-5 --layers 8 --tp 8 --kv-slots 16384
  glmbatch bench --config glm-5 --layers 8 --tp 8 --kv-slots 494976
  # what a copy of the whole pool in each layer would cost
  glmbatch bench --config glm-5 --layers 8 --tp 8 --kv-cache fp8 --kv-slots 494976 --what-if kv=cast-pool
  # a whole job through scheduler and engine: 1,000 requests, on one rank of eight
  glmbatch bench --config glm-5 --tp 8 --kv-cache fp8 --job 8192/1024 --seqs 256
  # what a prefix of 2,000 tokens that all share saves
  glmbatch bench --config tiny --tp 1 --job 2050/16 --prefix 2000 --requests 200
  # sums over eight ranks, from a row to 64 MB, in every way
  glmbatch bench --collectives --ranks 8 --device cuda
  # are the kernels' own stamps right? NVIDIA's CUPTI times the same steps
  glmbatch bench --config glm-5 --layers 8 --tp 8 --batch 1,8 --check-stamps
  # which kernels a GPU would launch, in which grids, and why: no GPU is needed
  glmbatch bench --config glm-5 --layers 5 --tp 8 --kv-cache fp8 --batch 8 --plan h200
  # keep the spans, for report, diff and export, and a step for replay
  glmbatch bench --config glm-5 --tp 8 --timeline bench.parquet --capture steps --format json > bench.json`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return runBench(c.Context(), &f, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	s := c.Flags()
	s.StringVar(&f.config.Config, "config", "", "random weights for glm-5, glm-5.2, tiny, or a config.json or its folder")
	s.StringVar(&f.model, "model", "", "weights of this checkpoint instead")
	s.BoolVar(&f.synthetic, "synthetic", false, "say that weights are random, as they are with --config")
	s.IntVar(&f.config.Layers, "layers", 0, "with --config: number of layers, 0: the config's")
	s.StringArrayVar(&f.config.Set, "set", nil, "with --config: key=value for any field of config.json; may be repeated")
	s.Uint64Var(&f.seed, "seed", 0, "of weights, caches, tokens and pages")
	s.BoolVar(&f.collective, "collectives", false, "time the sums over --ranks ranks instead, by size and way, beside NCCL's")
	j := &f.job
	s.StringVar(&j.text, "job", "", "run a whole job instead, of prompts and answers of so many tokens: `INPUT/OUTPUT`")
	s.IntVar(&j.requests, "requests", 1000, "with --job: how many")
	s.IntVar(&j.seqs, "seqs", 64, "with --job: sequences that run at once")
	s.IntVar(&j.prefix, "prefix", 0, "with --job: tokens of the prompt that the requests of a group share")
	s.IntVar(&j.groups, "groups", 1, "with --job: groups of requests, which take turns")
	s.StringVar(&j.sharing, "prefix-sharing", "on", "with --job: on, or off: each request computes its whole prompt")
	s.Float64Var(&j.rate, "link-rate", linkRate, "with --job and fewer ranks than --tp: bytes a second that a rank sends and gets")
	s.DurationVar(&j.latency, "link-latency", linkLatency, "with --job and fewer ranks than --tp: what a sum over ranks takes beside its bytes")
	s.IntVar(&f.tp, "tp", 8, "ranks that the model is cut for: 1, 2, 4 or 8")
	s.IntVar(&f.ranks, "ranks", 1, "how many of them run")
	s.IntSliceVar(&f.batches, "batch", []int{1}, "sequences of a decode step, some with commas between; 0: no decode")
	s.IntSliceVar(&f.contexts, "context", nil, "positions of each sequence, some with commas between (default: 8192, or the model's)")
	s.IntVar(&f.prefill, "prefill", 0, "also time the prefill of a prompt of so many tokens")
	s.IntVar(&f.chunk, "chunk", 8192, "tokens of a prefill step; with --job, of any step")
	s.StringVar(&f.kvCache, "kv-cache", "bf16", "format of the caches: bf16, fp8 or f32")
	s.IntVar(&f.kvSlots, "kv-slots", 0, "tokens that the caches hold, 0: what the largest batch that fits needs")
	s.StringVar(&f.whatIf, "what-if", "", "kv=cast-pool: also time decode with a copy of each layer's whole FP8 cache to BF16")
	s.StringVar(&f.act, "act", "w4a16", "inputs of NVFP4 experts: w4a16, w4a4 or int8")
	s.StringVar(&f.dense, "dense-weights", "bf16", "bf16: as the checkpoint has them; fp8: round BF16 weights of attention, shared experts and dense layers at load")
	s.IntVar(&f.steps, "steps", 50, "timed steps of each batch and context")
	s.IntVar(&f.warmup, "warmup", 5, "steps before them")
	s.BoolVar(&f.lockstep, "lockstep", false, "on a GPU too, wait for each step before the next is launched")
	f.device.add(s)
	s.StringVar(&f.machine, "machine", "", "machine of the floor (default: the one that runs)")
	s.StringVar(&f.by, "by", string(attribute.ByClass), "also group the ledger by "+attribute.Groupings())
	s.StringVar(&f.format, "format", "text", "text or json")
	s.StringVar(&f.timeline, "timeline", "", "write the recorded steps' spans to this file, .parquet or .arrow")
	s.BoolVar(&f.stamps, "check-stamps", false, "on a GPU: run more steps with NVIDIA's CUPTI on and compare its times of each kernel with ours")
	s.StringVar(&f.cupti, "cupti", "", "CUPTI's `library` (default: libcupti.so of the system or the CUDA toolkit)")
	s.StringVar(&f.plan, "plan", "", "run nothing: print the kernels that a `GPU` would launch ("+strings.Join(plan.GPUs(), ", ")+"), which need not be here")
	s.StringVar(&f.capture, "capture", "", "write a decode step of each batch and context to this folder, for glmbatch replay")
	return c
}

func (f *benchFlags) validate() error {
	errs := []error{oneOf("format", f.format, "text", "json"), oneOf("kv-cache", f.kvCache, "bf16", "fp8", "f32"), oneOf("act", f.act, "w4a16", "w4a4", "int8"), oneOf("dense-weights", f.dense, "bf16", "fp8"), checkTP(f.tp), f.device.validate()}
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(f.model == "" && f.config.Config == "", "give --config for random weights, or --model")
	fault(f.model != "" && f.config.Config != "", "--config and --model exclude each other")
	fault(f.model != "" && f.synthetic, "--synthetic and --model exclude each other")
	fault(f.model != "" && (f.config.Layers != 0 || len(f.config.Set) > 0), "--layers and --set change a --config, not a --model")
	fault(f.ranks < 1 || f.ranks > f.tp, "--ranks %d: it must be from 1 to --tp, %d", f.ranks, f.tp)
	for _, b := range f.batches {
		fault(b < 0 || b > 1<<14, "--batch %d: it must be from 0 to %d", b, 1<<14)
	}
	fault(f.steps < 1 || f.steps > 1e5, "--steps %d: it must be from 1 to 100,000", f.steps)
	fault(f.warmup < 0 || f.warmup > 1e5, "--warmup %d: it must be from 0 to 100,000", f.warmup)
	fault(f.prefill < 0, "--prefill %d: it must not be negative", f.prefill)
	fault(f.chunk < 1 || f.chunk > 1<<16, "--chunk %d: it must be from 1 to %d", f.chunk, 1<<16)
	fault(f.whatIf != "" && f.whatIf != castPool, "--what-if %q: it must be %s", f.whatIf, castPool)
	fault(f.whatIf == castPool && f.kvCache != "fp8", "--what-if %s copies FP8 caches: add --kv-cache fp8", f.whatIf)
	fault(f.kvSlots < 0 || f.kvSlots > 1<<31, "--kv-slots %d: it must be from 0 to %d", f.kvSlots, 1<<31)
	fault(!attribute.By(f.by).Known(), "--by %q: there are %s", f.by, attribute.Groupings())
	fault(f.plan != "" && plan.GPU(f.plan) == nil, "--plan %q: there are %s", f.plan, strings.Join(plan.GPUs(), ", "))
	fault(f.plan != "" && (f.stamps || f.capture != "" || f.timeline != "" || f.whatIf != ""), "--plan runs nothing: leave out --check-stamps, --capture, --timeline and --what-if")
	fault(f.stamps && f.ranks != 1, "--check-stamps compares one rank: leave out --ranks %d", f.ranks)
	fault(f.cupti != "" && !f.stamps, "--cupti is for --check-stamps")
	fault(f.timeline != "" && !strings.HasSuffix(f.timeline, ".parquet") && !strings.HasSuffix(f.timeline, ".arrow"), "--timeline %s: its name must end in .parquet or .arrow", f.timeline)
	return withCode(exitInput, errors.Join(errs...))
}

// places makes the folders that results go to, before any are there to be lost.
func (f *benchFlags) places() error {
	var errs []error
	if f.capture != "" {
		errs = append(errs, writableNew("capture", f.capture))
	}
	if f.timeline != "" {
		errs = append(errs, writableNew("timeline", filepath.Dir(f.timeline)))
	}
	return withCode(exitInput, errors.Join(errs...))
}

// castPool is the change of --what-if: the fault of engines that read FP8 caches
// through a copy.
const castPool = "kv=" + replay.CastPool

// benchCase is one row of the table.
type benchCase struct {
	prefill bool
	cast    bool // the whole pool is copied in each layer
	batch   int  // sequences
	context int  // positions of each; of a prefill, the prompt's tokens
}

func (c benchCase) kind() string {
	if c.prefill {
		return kernels.Prefill
	}
	return kernels.Decode
}

func (c benchCase) String() string {
	if c.prefill {
		return fmt.Sprintf("prefill of %s tokens", units.Digits(int64(c.context)))
	}
	s := fmt.Sprintf("batch %s at context %s", units.Digits(int64(c.batch)), units.Digits(int64(c.context)))
	if c.cast {
		s += ", " + castPool
	}
	return s
}

func (c benchCase) whatIf() string {
	if c.cast {
		return castPool
	}
	return ""
}

// slots are what the case takes in the caches, whole pages.
func (c benchCase) slots() int64 {
	return int64(c.batch) * int64((c.context+kernels.PageTokens-1)/kernels.PageTokens*kernels.PageTokens)
}

// cases lists what is measured, in the order of the table.
func (f *benchFlags) cases(c *glm5.Config) ([]benchCase, error) {
	var list []benchCase
	contexts := f.contexts
	if len(contexts) == 0 {
		contexts = []int{min(8192, c.MaxPositions)}
	}
	for _, n := range append(slices.Clone(contexts), max(1, f.prefill)) {
		if n < 1 || n > c.MaxPositions {
			return nil, withCode(exitInput, fmt.Errorf("a context of %d: the model has 1 to %d positions", n, c.MaxPositions))
		}
	}
	for _, n := range contexts {
		for _, b := range f.batches {
			if b > 0 {
				list = append(list, benchCase{batch: b, context: n})
				if f.whatIf != "" {
					list = append(list, benchCase{batch: b, context: n, cast: true})
				}
			}
		}
	}
	if f.prefill > 0 {
		list = append(list, benchCase{prefill: true, batch: 1, context: f.prefill})
	}
	if len(list) == 0 {
		return nil, withCode(exitInput, errors.New("nothing to measure: give --batch or --prefill"))
	}
	return list, nil
}

func runBench(ctx context.Context, f *benchFlags, stdout, stderr io.Writer) (err error) {
	if f.collective {
		if err := f.validateCollectives(); err != nil {
			return err
		}
		return runCollectives(ctx, f, stdout)
	}
	if f.job.text != "" {
		return runBenchJob(ctx, f, stdout, stderr)
	}
	if err := f.validate(); err != nil {
		return err
	}
	if err := f.places(); err != nil {
		return err
	}
	b, err := openBench(ctx, f, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if f.plan != "" {
		return b.printPlan(stdout)
	}
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
	if err := b.attribute(); err != nil {
		return err
	}
	write := b.text
	if f.format == "json" {
		write = b.json
	}
	if err := write(stdout); err != nil {
		return err
	}
	return b.stampsHold()
}
