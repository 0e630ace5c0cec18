package bench

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/fit"
	"glmbatch/engine/glm5"
	"glmbatch/kernels"
	"glmbatch/kernels/cuda"
	"glmbatch/kernels/cuda/plan"
	"glmbatch/kernels/roofline"
	"glmbatch/replay/attribute"
)

// Model is what is measured.
type Model struct {
	Name    string
	Recipe  string // that random weights follow from (synth.Recipe); "": they are a checkpoint's
	Path    string // of the checkpoint, for captures; "": random weights
	Hash    string
	Weights *checkpoint.Checkpoint
	Config  glm5.Config
	fit.Rank
}

// Options say how what is measured. A zero is the default that its comment names.
type Options struct {
	TP       int   // ranks that the model is cut for
	Ranks    int   // how many of them run
	Batches  []int // sequences of decode steps; 0: none
	Contexts []int // positions of each sequence; none: 8192, or the model's
	Prefill  int   // tokens of a prompt whose prefill is timed too; 0: none
	Chunk    int   // tokens of a prefill step

	Layout   glm5.Layout // "": Latency. With Throughput, Batches, Prefill and Chunk are those of each rank
	KVCache  kernels.Format
	Act      glm5.Act
	Dense    kernels.Format
	Inputs   kernels.Format // of products: see glm5.Options.Activations
	KVSlots  int            // tokens that the caches hold; 0: what the largest batch that fits needs
	CastPool bool           // also time decode with a copy of each layer's whole FP8 cache
	// also time decode with so many drafts of each sequence, without and with the prediction layer
	// that makes them; 0: not
	Drafts int

	Steps    int  // timed steps of each case
	Warmup   int  // steps before them
	Lockstep bool // wait for each step before the next is launched, where lists run beside the host too
	Seed     uint64

	Machine  *roofline.Machine // of the floor; nil: unknown
	By       attribute.By      // the ledger is also grouped by
	Timeline string            // file for the recorded steps' spans; "": none
	Capture  string            // folder for a captured step of each decode case; "": none

	Plan     string         // GPU whose launches are printed, while nothing runs; "": steps run
	Recorder *plan.Recorder // with Plan: the last rank of the group

	Profiler *cuda.Profiler    // that stamps are compared with; nil: they are not
	Versions map[string]string // of the program
	Log      io.Writer         // what goes on
}

// Validate reports every fault of o that no model is needed to see. Faults name the flags
// of glmbatch bench.
func (o *Options) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(o.Ranks < 1 || o.Ranks > o.TP, "--ranks %d: it must be from 1 to --tp, %d", o.Ranks, o.TP)
	for _, b := range o.Batches {
		fault(b < 0 || b > 1<<14, "--batch %d: it must be from 0 to %d", b, 1<<14)
	}
	fault(o.Steps < 1 || o.Steps > 1e5, "--steps %d: it must be from 1 to 100,000", o.Steps)
	fault(o.Warmup < 0 || o.Warmup > 1e5, "--warmup %d: it must be from 0 to 100,000", o.Warmup)
	fault(o.Prefill < 0, "--prefill %d: it must not be negative", o.Prefill)
	fault(o.Chunk < 1 || o.Chunk > 1<<16, "--chunk %d: it must be from 1 to %d", o.Chunk, 1<<16)
	fault(o.Drafts < 0 || o.Drafts > glm5.MaxDrafts, "--drafts %d: it must be from 0 to %d", o.Drafts, glm5.MaxDrafts)
	for _, n := range o.Contexts {
		fault(o.Drafts > 0 && n <= o.Drafts, "--context %d has no room for --drafts %d", n, o.Drafts)
	}
	fault(o.CastPool && o.KVCache != kernels.FP8, "--what-if %s copies FP8 caches: add --kv-cache fp8", CastPool)
	fault(o.KVSlots < 0 || o.KVSlots > 1<<31, "--kv-slots %d: it must be from 0 to %d", o.KVSlots, 1<<31)
	fault(o.By != "" && !o.By.Known(), "--by %q: there are %s", o.By, attribute.Groupings())
	fault(o.Plan != "" && plan.GPU(o.Plan) == nil, "--plan %q: there are %s", o.Plan, strings.Join(plan.GPUs(), ", "))
	fault(o.Plan != "" && (o.Capture != "" || o.Timeline != "" || o.CastPool),
		"--plan runs nothing: leave out --check-stamps, --capture, --timeline and --what-if")
	fault(o.Timeline != "" && !strings.HasSuffix(o.Timeline, ".parquet") && !strings.HasSuffix(o.Timeline, ".arrow"),
		"--timeline %s: its name must end in .parquet or .arrow", o.Timeline)
	return errors.Join(errs...)
}
