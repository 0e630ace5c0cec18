package glm5

import (
	"errors"
	"fmt"
	"slices"
)

// Config is the architecture of a glm_moe_dsa checkpoint: GLM-5, GLM-5.1, and
// GLM-5.2 with its shared indexers. [ParseConfig] fills and checks it; the
// fields' names follow config.json.
type Config struct {
	Architecture string
	Layers       int // main layers
	MTPLayers    int // prediction layers after the main ones: 0 or 1
	Hidden       int
	Vocab        int
	MaxPositions int

	Heads     int
	QLoRA     int // q_lora_rank: the compressed query
	KVLoRA    int // kv_lora_rank: the latent that the cache holds
	QKNope    int // values of a head's query and key without rotation
	QKRope    int // rotated values of a head's query; the rotary key, one for all heads
	VHead     int // values of a head's output
	RopeTheta float64
	NormEps   float32 // of the layers' and the final RMSNorm
	LatentEps float32 // of q_a_layernorm and kv_a_layernorm; see DefaultLatentEps
	IndexEps  float32 // of the indexer's LayerNorm

	IndexHeads   int
	IndexHeadDim int
	IndexTopK    int    // positions that attention is limited to
	Indexers     []bool // [Layers] the layer has an indexer; else it reuses the last selection

	// ShareMTPIndex: the prediction layer selects once and keeps to it for the drafts that
	// follow (GLM-5.2's index_share_for_mtp_iteration).
	ShareMTPIndex bool

	DenseLayers     []bool // [Layers] the layer has one MLP in place of experts
	Intermediate    int    // of dense layers
	Experts         int    // routed experts of a layer
	ExpertsPerToken int
	SharedExperts   int
	MoEIntermediate int // of one expert
	Groups          int // n_group
	TopKGroups      int // topk_group
	NormTopK        bool
	RoutedScale     float32

	TiedHead bool    // lm_head is embed_tokens
	EOS      []int32 // tokens that end an answer
	Pad      int32   // -1: none

	Notes []string // what is odd but changes nothing
}

// DefaultLatentEps is the epsilon of q_a_layernorm and kv_a_layernorm when
// config.json does not have latent_norm_eps (a key of glmbatch). Hugging Face's
// GlmMoeDsa builds these two norms with its class default; vLLM, SGLang and
// llama.cpp use rms_norm_eps.
const DefaultLatentEps = 1e-6

// QKHeadDim returns the values of a head's query.
func (c *Config) QKHeadDim() int { return c.QKNope + c.QKRope }

// AllLayers returns the main layers and the prediction layers.
func (c *Config) AllLayers() int { return c.Layers + c.MTPLayers }

// IsMTP reports whether layer i comes after the main layers.
func (c *Config) IsMTP(i int) bool { return i >= c.Layers }

// IndexerFull reports whether layer i has an indexer of its own. Prediction layers do.
func (c *Config) IndexerFull(i int) bool { return i >= len(c.Indexers) || c.Indexers[i] }

// Dense reports whether layer i has one MLP in place of experts. Prediction layers do not.
func (c *Config) Dense(i int) bool { return i < len(c.DenseLayers) && c.DenseLayers[i] }

// SharedIntermediate returns the width of the shared experts, which are stored as one.
func (c *Config) SharedIntermediate() int { return c.SharedExperts * c.MoEIntermediate }

// SoftmaxScale returns the factor of attention scores. It stays that of the
// plain head, though absorbed queries are KVLoRA + QKRope wide.
func (c *Config) SoftmaxScale() float64 { return invSqrt(c.QKHeadDim()) }

// IndexScale returns the factor of the indexer's scores: that of a head's
// product and that of the heads' weights.
func (c *Config) IndexScale() float64 { return invSqrt(c.IndexHeadDim) * invSqrt(c.IndexHeads) }

// Tensor parallelism splits these widths, in parts that hold whole NVFP4 blocks.
const nvfp4Block = 16

// Shards are the counts of ranks that a model may be cut for.
var Shards = []int{1, 2, 4, 8}

// CheckTP reports every dimension that n ranks cannot share evenly.
func (c *Config) CheckTP(n int) error {
	if !slices.Contains(Shards, n) {
		return fmt.Errorf("tensor parallelism %d is not supported: use 1, 2, 4 or 8", n)
	}
	var faults []error
	divides := func(field string, size, unit int, why string) {
		if size%(n*unit) != 0 {
			faults = append(faults, fmt.Errorf("%s %d does not divide into %d ranks: %s", field, size, n, why))
		}
	}
	divides("num_attention_heads", c.Heads, 1, "each rank has whole heads")
	divides("num_attention_heads*v_head_dim", c.Heads*c.VHead, nvfp4Block,
		"each rank needs a multiple of 16 columns of o_proj, NVFP4's block")
	divides("moe_intermediate_size", c.MoEIntermediate, nvfp4Block,
		"each rank needs a multiple of 16 columns of every expert, NVFP4's block")
	if c.anyDense() {
		divides("intermediate_size", c.Intermediate, nvfp4Block,
			"each rank needs a multiple of 16 columns of the dense layers, NVFP4's block")
	}
	divides("vocab_size", c.Vocab, 1, "each rank has an equal part of lm_head's rows")
	if len(faults) > 0 {
		return errors.Join(append([]error{fmt.Errorf("the model cannot run on %d ranks, use fewer", n)}, faults...)...)
	}
	return nil
}

func (c *Config) anyDense() bool {
	for _, d := range c.DenseLayers {
		if d {
			return true
		}
	}
	return false
}
