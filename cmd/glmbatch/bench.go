package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"glmbatch/bench"
	"glmbatch/engine"
	"glmbatch/engine/fit"
	"glmbatch/engine/glm5"
	"glmbatch/engine/synth"
	"glmbatch/kernels"
	"glmbatch/kernels/cuda"
	"glmbatch/kernels/cuda/plan"
	"glmbatch/kernels/ranks"
	"glmbatch/kernels/roofline"
	"glmbatch/replay/attribute"
)

// benchFlags are the options of glmbatch bench.
type benchFlags struct {
	bench.Options
	model      string
	config     synth.Options // the config and what changes it
	synthetic  bool
	collective bool     // time collectives instead
	job        benchJob // run a whole job instead
	whatIf     string
	device     deviceFlags
	machine    string
	format     string
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
			if err := f.ofJob(c.Flags()); err != nil {
				return withCode(exitInput, err)
			}
			return runBench(c.Context(), &f, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	s := c.Flags()
	s.StringVar(&f.config.Config, "config", "",
		"random weights for glm-5, glm-5.2, tiny, or a config.json or its folder")
	s.StringVar(&f.model, "model", "", "weights of this checkpoint instead")
	s.BoolVar(&f.synthetic, "synthetic", false, "say that weights are random, as they are with --config")
	s.IntVar(&f.config.Layers, "layers", 0, "with --config: number of layers, 0: the config's")
	s.StringArrayVar(&f.config.Set, "set", nil,
		"with --config: key=value for any field of config.json; may be repeated")
	s.Uint64Var(&f.Seed, "seed", 0, "of weights, caches, tokens and pages")
	s.BoolVar(&f.collective, "collectives", false,
		"time the sums over --ranks ranks instead, by size and way, beside NCCL's")
	j := &f.job
	s.StringVar(&j.text, "job", "", "run a whole job instead, of prompts and answers of so many tokens: `INPUT/OUTPUT`")
	s.IntVar(&j.requests, "requests", 1000, "with --job: how many")
	s.BoolVar(&j.guided, "guided", false,
		"with --job: run it twice, the second time with answers that follow a JSON schema, in a made-up vocabulary")
	s.BoolVar(&j.tail, "tail", false,
		"with --job: lengths of answers have a heavy tail, and OUTPUT is about their mean")
	s.StringVar(&j.speculate, "speculate", "off", "with --job: play it without drafts and with them, by turns: "+
		"auto, N or ngram:N as in run")
	s.IntVar(&j.turns, "turns", 3, "with --speculate: how many turns; the figures are their medians")
	s.IntVar(&j.seqs, "seqs", 64, "with --job: sequences that run at once")
	s.IntVar(&j.prefix, "prefix", 0, "with --job: tokens of the prompt that the requests of a group share")
	s.IntVar(&j.groups, "groups", 1, "with --job: groups of requests, which take turns")
	s.StringVar(&j.sharing, "prefix-sharing", "on", "with --job: on, or off: each request computes its whole prompt")
	s.Float64Var(&j.rate, "link-rate", linkRate,
		"with --job and fewer ranks than --tp: bytes a second that a rank sends and gets")
	s.DurationVar(&j.latency, "link-latency", linkLatency,
		"with --job and fewer ranks than --tp: what a sum over ranks takes beside its bytes")
	s.IntVar(&f.TP, "tp", 8, "ranks that the model is cut for: 1, 2, 4 or 8")
	s.StringVar((*string)(&f.Layout), "layout", string(glm5.Latency),
		layoutUsage+". There --batch, --prefill and --chunk are those of each rank")
	s.IntVar(&f.Ranks, "ranks", 1, "how many of them run")
	s.IntSliceVar(&f.Batches, "batch", []int{1}, "sequences of a decode step, some with commas between; 0: no decode")
	s.IntSliceVar(&f.Contexts, "context", nil,
		"positions of each sequence, some with commas between (default: 8192, or the model's)")
	s.IntVar(&f.Prefill, "prefill", 0, "also time the prefill of a prompt of so many tokens")
	s.IntVar(&f.Chunk, "chunk", 8192, "tokens of a prefill step; with --job, of any step")
	s.StringVar((*string)(&f.KVCache), "kv-cache", "bf16", "format of the caches: bf16, fp8 or f32")
	s.IntVar(&f.KVSlots, "kv-slots", 0, "tokens that the caches hold, 0: what the largest batch that fits needs")
	s.StringVar(&f.whatIf, "what-if", "",
		"kv=cast-pool: also time decode with a copy of each layer's whole FP8 cache to BF16")
	s.StringVar((*string)(&f.Act), "act", "w4a16", "inputs of NVFP4 experts: w4a16, w4a4 or int8")
	s.StringVar((*string)(&f.Dense), "dense-weights", "bf16",
		"bf16: as the checkpoint has them; fp8: round BF16 weights of attention, shared experts and dense layers at "+
			"load")
	s.StringVar((*string)(&f.Inputs), "activations", "f32", activationsUsage)
	s.IntVar(&f.Drafts, "drafts", 0,
		"also time decode with so many drafts of each sequence to verify, without and with the prediction layer that "+
			"makes as many")
	s.IntVar(&f.Steps, "steps", 50, "timed steps of each batch and context")
	s.IntVar(&f.Warmup, "warmup", 5, "steps before them")
	s.BoolVar(&f.Lockstep, "lockstep", false, "on a GPU too, wait for each step before the next is launched")
	f.device.add(s)
	s.StringVar(&f.machine, "machine", "", "machine of the floor (default: the one that runs)")
	s.StringVar((*string)(&f.By), "by", string(attribute.ByClass), "also group the ledger by "+attribute.Groupings())
	s.StringVar(&f.format, "format", "text", "text or json")
	s.StringVar(&f.Timeline, "timeline", "", "write the recorded steps' spans to this file, .parquet or .arrow")
	s.BoolVar(&f.stamps, "check-stamps", false,
		"on a GPU: run more steps with NVIDIA's CUPTI on and compare its times of each kernel with ours")
	s.StringVar(&f.cupti, "cupti", "", "CUPTI's `library` (default: libcupti.so of the system or the CUDA toolkit)")
	s.StringVar(&f.Plan, "plan", "", "run nothing: print the kernels that a `GPU` would launch ("+
		strings.Join(plan.GPUs(), ", ")+"), which need not be here")
	s.StringVar(&f.Capture, "capture", "",
		"write a decode step of each batch and context to this folder, for glmbatch replay")
	return c
}

// ofJob refuses flags that only a job has where there is none, by what their help says.
func (f *benchFlags) ofJob(flags *pflag.FlagSet) error {
	var errs []error
	flags.Visit(func(g *pflag.Flag) {
		ofJob := strings.HasPrefix(g.Usage, "with --job") || strings.HasPrefix(g.Usage, "with --speculate")
		if ofJob && f.job.text == "" {
			errs = append(errs, fmt.Errorf("--%s is for a job: give --job INPUT/OUTPUT, or leave it out", g.Name))
		}
	})
	return errors.Join(errs...)
}

func (f *benchFlags) validate() error {
	errs := []error{oneOf("format", f.format, "text", "json"),
		oneOf("kv-cache", string(f.KVCache), "bf16", "fp8", "f32"),
		oneOf("act", string(f.Act), "w4a16", "w4a4", "int8"), oneOf("dense-weights", string(f.Dense), "bf16", "fp8"),
		oneOf("activations", string(f.Inputs), "f32", "bf16"), oneOf("layout", string(f.Layout), layouts...),
		checkTP(f.TP), f.device.validate()}
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	f.CastPool = f.whatIf != ""
	errs = append(errs, checkDrafts(&glm5.Options{Layout: f.Layout, Shards: f.TP}, engine.Speculation{Drafts: f.Drafts},
		fmt.Sprint("--drafts ", f.Drafts), "with --layout latency it makes %d"))
	fault(f.model == "" && f.config.Config == "", "give --config for random weights, or --model")
	fault(f.model != "" && f.config.Config != "", "--config and --model exclude each other")
	fault(f.model != "" && f.synthetic, "--synthetic and --model exclude each other")
	fault(f.model != "" && (f.config.Layers != 0 || len(f.config.Set) > 0),
		"--layers and --set change a --config, not a --model")
	fault(f.whatIf != "" && f.whatIf != bench.CastPool, "--what-if %q: it must be %s", f.whatIf, bench.CastPool)
	fault(f.Plan != "" && f.stamps, "--plan runs nothing: leave out --check-stamps")
	fault(f.stamps && f.Ranks != 1, "--check-stamps compares one rank: leave out --ranks %d", f.Ranks)
	fault(f.cupti != "" && !f.stamps, "--cupti is for --check-stamps")
	return withCode(exitInput, errors.Join(append(errs, f.Options.Validate())...))
}

// places makes the folders that results go to, before any are there to be lost.
func (f *benchFlags) places() error {
	var errs []error
	if f.Capture != "" {
		errs = append(errs, writableNew("capture", f.Capture))
	}
	if f.Timeline != "" {
		errs = append(errs, writableNew("timeline", filepath.Dir(f.Timeline)))
	}
	return withCode(exitInput, errors.Join(errs...))
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
	m, err := f.open()
	if err != nil {
		return err
	}
	defer m.Weights.Close()
	if _, err := f.Cases(&m.Config); err != nil {
		return benchError(err)
	}
	g, err := f.ranks(stderr)
	if err != nil {
		return err
	}
	if f.Machine, err = benchMachine(f.machine, g.Info()); err != nil {
		return withCode(exitInput, errors.Join(err, g.Close()))
	}
	f.Versions, f.Log = versions(), stderr
	b, err := bench.Open(ctx, m, g, f.Options)
	if err != nil {
		return benchError(err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if f.Plan != "" {
		return benchError(b.PrintPlan(stdout))
	}
	if err := b.Measure(ctx); err != nil {
		return benchError(err)
	}
	return b.Write(stdout, f.format, styleOf(stdout))
}

// benchError gives an error its exit code.
func benchError(err error) error {
	switch {
	case errors.Is(err, bench.ErrInterrupted):
		return withCode(exitInterrupted, err)
	case errors.Is(err, bench.ErrDevice), errors.Is(err, kernels.ErrDevice):
		return deviceError(err, "a smaller --kv-slots, --batch or --chunk, --kv-cache fp8")
	case errors.Is(err, bench.ErrInput):
		return withCode(exitInput, err)
	}
	return err
}

// ranks opens the ranks that run, or that only keep what the model allocates.
func (f *benchFlags) ranks(log io.Writer) (*ranks.Group, error) {
	if f.Plan != "" {
		ds := make([]kernels.Device, f.Ranks)
		for i := range ds {
			f.Recorder = &plan.Recorder{Units4: plan.GPU(f.Plan).Units4}
			ds[i] = f.Recorder
		}
		return ranks.New(ds, ranks.Options{})
	}
	f.device.say(log)
	if f.stamps {
		if f.device.resolved() != "cuda" {
			return nil, withCode(exitInput, errors.New("--check-stamps needs a GPU: kernels on the CPU have no stamps"))
		}
		var err error
		if f.Profiler, err = cuda.LoadProfiler(f.cupti); err != nil {
			return nil, withCode(exitDevice, err)
		}
		f.device.profiler = f.Profiler
	}
	return f.device.open(f.Ranks)
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

// open opens the model's weights, or makes them.
func (f *benchFlags) open() (m bench.Model, err error) {
	if f.model != "" {
		m.Name = f.model
		if m.Weights, m.Config, err = openModel(f.model); err == nil {
			m.Path, err = filepath.Abs(f.model)
		}
	} else {
		m.Name = f.config.Config
		var members map[string]any
		f.config.MTP = f.Drafts > 0 || f.job.drafts.Drafts > 0 && !f.job.drafts.NGram
		members, m.Config, err = f.config.Resolve()
		var text []byte
		if err == nil {
			text, err = json.Marshal(members)
		}
		if err == nil {
			m.Weights, err = synth.Checkpoint(m.Name, text, &m.Config, f.Seed)
		}
		if err == nil {
			m.Recipe, err = synth.Recipe(text, f.Seed)
		}
		err = withCode(exitInput, err)
	}
	if err != nil {
		return m, err
	}
	if err := m.Config.CheckTP(f.TP); err != nil {
		return m, withCode(exitInput, errors.Join(err, m.Weights.Close()))
	}
	cover := m.Config.Cover(m.Weights)
	m.Rank = fit.Of(&cover, f.TP, glm5.Options{Layout: f.Layout, KVCache: f.KVCache, Dense: f.Dense, MTP: f.Drafts > 0})
	m.Hash, err = m.Weights.Hash()
	return m, err
}
