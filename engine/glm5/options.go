package glm5

import (
	"errors"
	"fmt"
	"slices"

	"glmbatch/kernels"
)

// Act says how the inputs of NVFP4 experts are rounded.
type Act string

const (
	W4A16 Act = "w4a16" // not at all: only the weights have 4 bits
	W4A4  Act = "w4a4"  // to NVFP4 with the checkpoint's input scales, as FP4 matrix units read them
	W4A8  Act = "int8"  // to 8-bit integers
)

// expertFormat is the kernel suffix of NVFP4 experts by activation.
var expertFormat = map[Act]kernels.Format{W4A16: kernels.FP4, W4A4: "fp4a4", W4A8: "fp4a8"}

// Options say how much a model can hold and in which formats. The zero value is
// usable.
type Options struct {
	Layout  Layout         // "": Latency. With Throughput, the limits below are those of each rank
	KVCache kernels.Format // of both caches: F32, BF16 or FP8; "": BF16
	Act     Act            // "": W4A16
	// FP8: BF16 weights of attention, indexers, dense and shared MLPs are rounded to it at load; "", BF16: they stay
	Dense kernels.Format
	// Activations are what products and the indexer round their inputs to: BF16, as engines that compute in
	// it do; "", F32: to nothing. NVFP4 experts follow Act where it says more.
	Activations kernels.Format

	MaxRows   int  // tokens of a step; 0: 512
	MaxSeqs   int  // sequences with cache pages at once; 0: 64
	MaxLogits int  // rows of logits in a step; 0: MaxSeqs
	Pages     int  // of the caches; 0: one context, or 65,536 tokens if that is more
	Context   int  // positions of a sequence; 0: the model's
	Tokens    int  // ids from here on are padding and never sampled; 0: none are
	MTP       bool // load the prediction layer
	Drafts    int  // most drafts that it makes for a sequence in a step; 0: none

	// LatentEps is the epsilon of the latent norms, q_a_layernorm and kv_a_layernorm;
	// 0: the config's, which follows transformers: see DefaultLatentEps.
	LatentEps float32

	// SplitInputs has products treat their inputs as with other caches where KVCache
	// is F32, on devices that have two ways: see the table's exact.
	SplitInputs bool

	// Shards is how many parts the weights are cut into; 0: as many as the group
	// has ranks. With more, the ranks have the first parts and sum only what they
	// have: a share of the model's work, for measurements, with a meaningless
	// result.
	Shards int
}

// kvCaches are the formats that caches can have.
var kvCaches = []kernels.Format{kernels.F32, kernels.BF16, kernels.FP8}

// MaxDrafts is the most tokens that the prediction layer guesses ahead.
const MaxDrafts = 15

// ahead is a number if there are drafts, else 0.
func (o *Options) ahead(n int) int {
	if o.Drafts == 0 {
		return 0
	}
	return n
}

const defaultTokens = 65536 // cached by default, if a context is not longer

// exact: products keep all bits of their inputs, for checks against references.
func (o Options) exact() bool { return o.KVCache == kernels.F32 && !o.SplitInputs && !o.rounds() }

// rounds: products round their inputs to BF16.
func (o Options) rounds() bool { return o.Activations == kernels.BF16 }

// wide: FP8 weights are loaded as float32, so that nothing but their products with scales
// is rounded.
func (o Options) wide() bool { return o.exact() && o.Dense != kernels.FP8 }

// withDefaults fills in what is 0 or "" for a model of config c.
func (o Options) withDefaults(c *Config) Options {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	if o.Layout == "" {
		o.Layout = Latency
	}
	if o.KVCache == "" {
		o.KVCache = kernels.BF16
	}
	if o.Act == "" {
		o.Act = W4A16
	}
	if o.Dense == "" {
		o.Dense = kernels.BF16
	}
	if o.Activations == "" {
		o.Activations = kernels.F32
	}
	set(&o.MaxRows, 512)
	set(&o.MaxSeqs, 64)
	set(&o.MaxLogits, o.MaxSeqs)
	set(&o.Context, c.MaxPositions)
	set(&o.Pages, pagesFor(max(o.Context, defaultTokens)))
	set(&o.Tokens, c.Vocab)
	if o.LatentEps == 0 {
		o.LatentEps = c.LatentEps
	}
	return o
}

// Validate reports every fault of o for a model of config c.
func (o Options) Validate(c *Config) error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Layout != "" && !slices.Contains(Layouts, o.Layout) {
		fault("layout %q is not one of latency, throughput", o.Layout)
	}
	if o.Layout == Throughput && o.Drafts > 0 && o.Shards != 1 {
		fault("the prediction layer makes no drafts in the throughput layout")
	}
	if o.KVCache != "" && !slices.Contains(kvCaches, o.KVCache) {
		fault("cache format %q is not one of f32, bf16, fp8", o.KVCache)
	}
	if o.Act != "" && expertFormat[o.Act] == "" {
		fault("activations %q are not one of w4a16, w4a4, int8", o.Act)
	}
	if o.Dense != "" && o.Dense != kernels.BF16 && o.Dense != kernels.FP8 {
		fault("dense weights in %q are not one of bf16, fp8", o.Dense)
	}
	if o.Activations != "" && o.Activations != kernels.F32 && o.Activations != kernels.BF16 {
		fault("products' inputs in %q are not one of f32, bf16", o.Activations)
	}
	for _, f := range []struct {
		name       string
		value, top int
	}{
		{"MaxRows", o.MaxRows, 1 << 20}, {"MaxSeqs", o.MaxSeqs, 1 << 16}, {"MaxLogits", o.MaxLogits, 1 << 20},
		{"Pages", o.Pages, 1 << 25}, {"Context", o.Context, c.MaxPositions}, {"Tokens", o.Tokens, c.Vocab},
	} {
		if f.value < 0 || f.value > f.top {
			fault("%s %d is not in 0..%d", f.name, f.value, f.top)
		}
	}
	if !(o.LatentEps >= 0 && o.LatentEps < 1) {
		fault("the latent norms' epsilon %g is not between 0 and 1", o.LatentEps)
	}
	if o.Drafts < 0 || o.Drafts > MaxDrafts {
		fault("%d drafts are not in 0..%d", o.Drafts, MaxDrafts)
	}
	if o.Drafts > 0 && !o.MTP {
		fault("%d drafts need the prediction layer", o.Drafts)
	}
	if o.MTP && c.MTPLayers == 0 {
		fault("the checkpoint has no prediction layer")
	}
	return errors.Join(errs...)
}

func pagesFor(tokens int) int { return (tokens + kernels.PageTokens - 1) / kernels.PageTokens }
