package glm5

import (
	"iter"
	"strconv"
	"strings"
)

// Split says which part of a weight a rank has under tensor parallelism.
type Split uint8

const (
	Whole Split = iota // all of it
	Rows               // an equal block of rows
	Cols               // an equal block of columns
)

// Part is a part of the model, for sums over its weights.
type Part string

// The parts of the model.
const (
	Embedding Part = "embedding"
	Attn      Part = "attention"
	Index     Part = "indexer"
	DenseMLP  Part = "dense MLP"
	Router    Part = "router"
	Routed    Part = "routed experts"
	Shared    Part = "shared experts"
	Norms     Part = "norms"
	Join      Part = "MTP join" // takes an embedding and a hidden state to one
	Head      Part = "lm_head"
)

// Parts has the parts in the order of reports.
var Parts = []Part{Embedding, Attn, Index, DenseMLP, Router, Routed, Shared, Norms, Join, Head}

// Tensor is one weight of a checkpoint, as its BF16 form stores it.
type Tensor struct {
	Name       string // as the hub names it
	Part       Part
	Layer      int // -1: outside the layers
	Expert     int // of the layer's routed experts; -1: none
	Rows, Cols int // Cols 0: a vector
	Split      Split
	// MayQuantize: multiplied as a Linear, so a checkpoint may store it as NVFP4.
	MayQuantize bool
	// MTP: of a prediction layer. Some checkpoints announce the layer and lack it.
	MTP bool
}

// Module returns the Linear's name: the tensor's without ".weight".
func (t *Tensor) Module() string { return strings.TrimSuffix(t.Name, ".weight") }

// Params returns the number of values.
func (t *Tensor) Params() int64 { return int64(t.Rows) * int64(max(t.Cols, 1)) }

// Share returns the shape of one of n ranks' part.
func (t *Tensor) Share(n int) (rows, cols int) {
	switch t.Split {
	case Rows:
		return t.Rows / n, t.Cols
	case Cols:
		return t.Rows, t.Cols / n
	}
	return t.Rows, t.Cols
}

// where says which layers have a weight.
type where uint8

const (
	outside   where = iota // not in a layer
	everyOne               // every layer
	indexed                // layers with an indexer of their own
	dense                  // layers with one MLP
	sparse                 // layers with experts
	perExpert              // each routed expert of those
	mtp                    // prediction layers
)

// weights is the one list of the model's weights. A name is the whole name, or
// what follows "model.layers.{i}.", or for perExpert "model.layers.{i}.mlp.experts.{e}.".
// A cols of nil makes a vector.
var weights = []struct {
	name        string
	part        Part
	in          where
	split       Split
	mayQuantize bool
	rows, cols  func(*Config) int
}{
	{"model.embed_tokens.weight", Embedding, outside, Whole, false, vocab, hidden},
	{"input_layernorm.weight", Norms, everyOne, Whole, false, hidden, nil},
	{"self_attn.q_a_proj.weight", Attn, everyOne, Whole, true, qLoRA, hidden},
	{"self_attn.q_a_layernorm.weight", Norms, everyOne, Whole, false, qLoRA, nil},
	{"self_attn.q_b_proj.weight", Attn, everyOne, Rows, true, func(c *Config) int {
		return c.Heads * c.QKHeadDim()
	}, qLoRA},
	{"self_attn.kv_a_proj_with_mqa.weight", Attn, everyOne, Whole, true, func(c *Config) int {
		return c.KVLoRA + c.QKRope
	}, hidden},
	{"self_attn.kv_a_layernorm.weight", Norms, everyOne, Whole, false, kvLoRA, nil},
	{"self_attn.kv_b_proj.weight", Attn, everyOne, Rows, true, func(c *Config) int {
		return c.Heads * (c.QKNope + c.VHead)
	}, kvLoRA},
	{"self_attn.o_proj.weight", Attn, everyOne, Cols, true, hidden, func(c *Config) int { return c.Heads * c.VHead }},
	{"self_attn.indexer.wq_b.weight", Index, indexed, Whole, true, func(c *Config) int {
		return c.IndexHeads * c.IndexHeadDim
	}, qLoRA},
	{"self_attn.indexer.wk.weight", Index, indexed, Whole, true, indexDim, hidden},
	{"self_attn.indexer.k_norm.weight", Index, indexed, Whole, false, indexDim, nil},
	{"self_attn.indexer.k_norm.bias", Index, indexed, Whole, false, indexDim, nil},
	{"self_attn.indexer.weights_proj.weight", Index, indexed, Whole, true, func(c *Config) int {
		return c.IndexHeads
	}, hidden},
	{"post_attention_layernorm.weight", Norms, everyOne, Whole, false, hidden, nil},
	{"mlp.gate_proj.weight", DenseMLP, dense, Rows, true, inner, hidden},
	{"mlp.up_proj.weight", DenseMLP, dense, Rows, true, inner, hidden},
	{"mlp.down_proj.weight", DenseMLP, dense, Cols, true, hidden, inner},
	{"mlp.gate.weight", Router, sparse, Whole, false, experts, hidden},
	{"mlp.gate.e_score_correction_bias", Router, sparse, Whole, false, experts, nil},
	{"gate_proj.weight", Routed, perExpert, Rows, true, moeInner, hidden},
	{"up_proj.weight", Routed, perExpert, Rows, true, moeInner, hidden},
	{"down_proj.weight", Routed, perExpert, Cols, true, hidden, moeInner},
	{"mlp.shared_experts.gate_proj.weight", Shared, sparse, Rows, true, sharedInner, hidden},
	{"mlp.shared_experts.up_proj.weight", Shared, sparse, Rows, true, sharedInner, hidden},
	{"mlp.shared_experts.down_proj.weight", Shared, sparse, Cols, true, hidden, sharedInner},
	{"enorm.weight", Norms, mtp, Whole, false, hidden, nil},
	{"hnorm.weight", Norms, mtp, Whole, false, hidden, nil},
	{"eh_proj.weight", Join, mtp, Whole, true, hidden, func(c *Config) int { return 2 * c.Hidden }},
	{"shared_head.norm.weight", Norms, mtp, Whole, false, hidden, nil},
	{"model.norm.weight", Norms, outside, Whole, false, hidden, nil},
	{"lm_head.weight", Head, outside, Rows, true, vocab, hidden},
}

func vocab(c *Config) int       { return c.Vocab }
func hidden(c *Config) int      { return c.Hidden }
func qLoRA(c *Config) int       { return c.QLoRA }
func kvLoRA(c *Config) int      { return c.KVLoRA }
func indexDim(c *Config) int    { return c.IndexHeadDim }
func inner(c *Config) int       { return c.Intermediate }
func experts(c *Config) int     { return c.Experts }
func moeInner(c *Config) int    { return c.MoEIntermediate }
func sharedInner(c *Config) int { return c.SharedIntermediate() }

// HeadModule returns the name of the Linear that gives logits.
func (c *Config) HeadModule() string {
	if c.TiedHead {
		return "model.embed_tokens"
	}
	return "lm_head"
}

// LayerPrefix returns what the names of layer i's weights begin with.
func LayerPrefix(i int) string { return "model.layers." + strconv.Itoa(i) + "." }

// ExpertPrefix returns what the names of layer i's expert e begin with.
func ExpertPrefix(i, e int) string { return LayerPrefix(i) + "mlp.experts." + strconv.Itoa(e) + "." }

// Tensors yields the weights of the model: those outside the layers, then each
// layer's, experts in order. withMTP includes the prediction layers.
func (c *Config) Tensors(withMTP bool) iter.Seq[Tensor] {
	layers := c.Layers
	if withMTP {
		layers = c.AllLayers()
	}
	return func(yield func(Tensor) bool) {
		for i := -1; i < layers; i++ {
			for t := range c.LayerTensors(i) {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// LayerTensors yields the weights of layer i; of -1: those outside the layers.
func (c *Config) LayerTensors(i int) iter.Seq[Tensor] {
	return func(yield func(Tensor) bool) {
		for _, w := range weights {
			if !c.has(i, w.in) || c.TiedHead && w.name == "lm_head.weight" {
				continue
			}
			t := Tensor{Part: w.part, Layer: i, Expert: -1, Rows: w.rows(c), Split: w.split, MayQuantize: w.mayQuantize,
				MTP: c.IsMTP(i)}
			if w.cols != nil {
				t.Cols = w.cols(c)
			}
			if w.in != perExpert {
				t.Name = w.name
				if i >= 0 {
					t.Name = LayerPrefix(i) + w.name
				}
				if !yield(t) {
					return
				}
				continue
			}
			for t.Expert = 0; t.Expert < c.Experts; t.Expert++ {
				t.Name = ExpertPrefix(i, t.Expert) + w.name
				if !yield(t) {
					return
				}
			}
		}
	}
}

func (c *Config) has(layer int, in where) bool {
	if layer < 0 || in == outside {
		return layer < 0 && in == outside
	}
	switch in {
	case indexed:
		return c.IndexerFull(layer)
	case dense:
		return c.Dense(layer)
	case sparse, perExpert:
		return !c.Dense(layer)
	case mtp:
		return c.IsMTP(layer)
	}
	return true
}
