package glm5

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Largest sizes that a config may have. They are far above any model and keep
// products of them within int64.
const (
	maxConfig    = 16 << 20 // bytes of config.json
	maxLayers    = 1024
	maxWidth     = 1 << 17
	maxVocab     = 1 << 22
	maxExperts   = 1 << 12
	maxHeads     = 1 << 12
	maxPositions = 1 << 24
	maxEOS       = 256
)

const (
	modelType    = "glm_moe_dsa"
	architecture = "GlmMoeDsaForCausalLM"
)

// ParseConfig reads config.json. Fields that are absent are what transformers
// takes them for. Its error has every fault, each with the field's name and what
// is supported.
func ParseConfig(data []byte) (Config, error) {
	if len(data) > maxConfig {
		return Config{}, fmt.Errorf("config.json has %d bytes: a config has at most %d", len(data), maxConfig)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return Config{}, fmt.Errorf("config.json: %w", plainJSON(err))
	}
	var faults []error
	f := &fields{raw: raw, faults: &faults}
	// Another model's fields mean other things: stop here.
	if t := f.text("model_type", ""); t != modelType {
		return Config{}, fmt.Errorf("model_type %q is not supported: glmbatch runs %s (GLM-5, GLM-5.1, GLM-5.2)", t,
			modelType)
	}
	c := f.config()
	if err := errors.Join(faults...); err != nil {
		return Config{}, err
	}
	return c, nil
}

func (f *fields) config() Config {
	c := Config{
		Architecture: f.architecture(),
		Layers:       f.sizeOr("num_hidden_layers", 78, 1, maxLayers),
		MTPLayers:    f.sizeOr("num_nextn_predict_layers", 0, 0, 1),
		Hidden:       f.sizeOr("hidden_size", 6144, 1, maxWidth),
		Vocab:        f.sizeOr("vocab_size", 154880, 1, maxVocab),
		MaxPositions: f.sizeOr("max_position_embeddings", 202752, 1, maxPositions),

		Heads:     f.sizeOr("num_attention_heads", 64, 1, maxHeads),
		QLoRA:     f.sizeOr("q_lora_rank", 2048, 1, maxWidth),
		KVLoRA:    f.sizeOr("kv_lora_rank", 512, 1, maxWidth),
		QKNope:    f.sizeOr("qk_nope_head_dim", 192, 1, maxWidth),
		QKRope:    f.sizeOr("qk_rope_head_dim", 64, 1, maxWidth),
		VHead:     f.sizeOr("v_head_dim", 256, 1, maxWidth),
		RopeTheta: f.ropeTheta(),
		NormEps:   float32(f.number("rms_norm_eps", 1e-5, 0, 1)),
		LatentEps: float32(f.number("latent_norm_eps", DefaultLatentEps, 0, 1)),
		IndexEps:  1e-6,

		IndexHeads:   f.sizeOr("index_n_heads", 32, 1, maxHeads),
		IndexHeadDim: f.sizeOr("index_head_dim", 128, 1, maxWidth),
		IndexTopK:    f.sizeOr("index_topk", 2048, 1, maxPositions),

		Intermediate:    f.sizeOr("intermediate_size", 12288, 1, maxWidth),
		ExpertsPerToken: f.sizeOr("num_experts_per_tok", 8, 1, maxExperts),
		SharedExperts:   f.sizeOr("n_shared_experts", 1, 1, 64),
		MoEIntermediate: f.sizeOr("moe_intermediate_size", 2048, 1, maxWidth),
		Groups:          f.sizeOr("n_group", 1, 1, maxExperts),
		TopKGroups:      f.sizeOr("topk_group", 1, 1, maxExperts),
		NormTopK:        f.flag("norm_topk_prob", true),
		RoutedScale:     float32(f.number("routed_scaling_factor", 2.5, -1e6, 1e6)),
		TiedHead:        f.flag("tie_word_embeddings", false),
		Pad:             -1,

		ShareMTPIndex: f.flag("index_share_for_mtp_iteration", false),
	}
	c.Experts = f.sizeOr("n_routed_experts", 256, 1, maxExperts)
	if f.has("num_experts") { // transformers lets it win
		c.Experts = f.sizeOr("num_experts", 0, 1, maxExperts)
	}
	if f.has("pad_token_id") {
		c.Pad = int32(f.sizeOr("pad_token_id", 0, 0, maxVocab-1))
	}
	c.EOS = f.eos(c.Vocab)
	if c.Layers > 0 {
		c.Indexers = f.indexers(c.Layers)
		c.DenseLayers = f.dense(c.Layers)
	}
	f.variants(&c)
	f.relations(&c)
	return c
}

// variants refuses what the program does not compute.
func (f *fields) variants(c *Config) {
	f.only("hidden_act", "silu", "silu")
	f.only("scoring_func", "sigmoid", "sigmoid")
	f.only("topk_method", "noaux_tc", "noaux_tc")
	f.onlyFlag("attention_bias", false)
	f.onlyFlag("mlp_bias", false)
	f.onlyFlag("rope_interleave", true)
	f.onlyFlag("indexer_rope_interleave", true)
	if n := f.sizeOr("num_key_value_heads", c.Heads, 0, maxHeads); n != c.Heads {
		f.fault("num_key_value_heads %d differs from num_attention_heads %d: latent attention has one latent for all "+
			"heads", n, c.Heads)
	}
	if n := f.sizeOr("qk_head_dim", c.QKHeadDim(), 0, 2*maxWidth); n != c.QKHeadDim() {
		f.fault("qk_head_dim %d is not qk_nope_head_dim + qk_rope_head_dim = %d", n, c.QKHeadDim())
	}
	if !f.has("mlp_layer_types") {
		if n := f.sizeOr("moe_layer_freq", 1, 0, maxLayers); n != 1 {
			f.fault("moe_layer_freq %d is not supported: say which layers are dense with mlp_layer_types", n)
		}
	}
	// transformers 5.18 renamed the one kind of layer. It computes the same whatever
	// the list says.
	for i, t := range f.texts("layer_types") {
		if t != "deepseek_sparse_attention" && t != "indexed_attention" {
			c.Notes = append(c.Notes,
				fmt.Sprintf("layer_types[%d] is %q, which this architecture does not have: every layer has indexed "+
					"attention", i, t))
			break
		}
	}
}

// relations checks sizes against each other. Zero sizes already are faults.
func (f *fields) relations(c *Config) {
	if c.QKRope%2 != 0 {
		f.fault("qk_rope_head_dim %d is odd: rotation works on pairs", c.QKRope)
	}
	if c.QKRope > c.IndexHeadDim {
		f.fault("qk_rope_head_dim %d is above index_head_dim %d: the indexer rotates that many values of a head",
			c.QKRope, c.IndexHeadDim)
	}
	if c.ExpertsPerToken > c.Experts {
		f.fault("num_experts_per_tok %d is above n_routed_experts %d", c.ExpertsPerToken, c.Experts)
	}
	switch {
	case c.Groups < 1 || c.Experts < 1 || c.TopKGroups < 1:
	case c.Experts%c.Groups != 0:
		f.fault("n_routed_experts %d does not divide into n_group %d", c.Experts, c.Groups)
	case c.TopKGroups > c.Groups:
		f.fault("topk_group %d is above n_group %d", c.TopKGroups, c.Groups)
	case c.Groups > 1 && c.Experts/c.Groups < 2:
		f.fault("n_group %d leaves %d expert a group: a group is ranked by its best two", c.Groups, c.Experts/c.Groups)
	case c.ExpertsPerToken > c.Experts/c.Groups*c.TopKGroups:
		f.fault("num_experts_per_tok %d is above the %d experts of topk_group %d groups", c.ExpertsPerToken,
			c.Experts/c.Groups*c.TopKGroups, c.TopKGroups)
	}
	if len(c.Indexers) > 0 && !c.Indexers[0] {
		f.fault("layer 0 shares an indexer's selection, but none comes before it: indexer_types must begin with " +
			"\"full\"")
	}
}

func (f *fields) architecture() string {
	names := f.texts("architectures")
	if len(names) > 0 && !slices.Contains(names, architecture) {
		f.fault("architectures %q are not supported: glmbatch runs %s", names, architecture)
	}
	return architecture
}

// ropeTheta reads rope_parameters, or rope_theta and rope_scaling as older
// versions of transformers write them; without any it is transformers' 10,000.
func (f *fields) ropeTheta() float64 {
	in := f
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		if r := f.object(name); r != nil {
			r.only("rope_type", r.text("type", "default"), "default")
			if p := r.number("partial_rotary_factor", 1, -1e6, 1e6); p != 1 {
				r.fault("partial_rotary_factor %g is not supported: qk_rope_head_dim says what is rotated", p)
			}
			if r.has("rope_theta") {
				in = r
			}
		}
	}
	return in.number("rope_theta", 1e4, 1, 1e12)
}

// eos reads one id or a list of them.
func (f *fields) eos(vocab int) []int32 {
	raw, ok := f.get("eos_token_id")
	if !ok {
		return nil
	}
	var ids []int32
	var id int32
	if err := json.Unmarshal(raw, &id); err == nil {
		ids = []int32{id}
	} else if err := json.Unmarshal(raw, &ids); err != nil {
		f.fault("eos_token_id is neither a token id nor a list of them")
		return nil
	}
	if len(ids) > maxEOS {
		f.fault("eos_token_id has %d ids: at most %d are supported", len(ids), maxEOS)
		return nil
	}
	for _, id := range ids {
		if id < 0 || vocab > 0 && int(id) >= vocab {
			f.fault("eos_token_id %d is outside the vocabulary of %d", id, vocab)
			return nil
		}
	}
	return ids
}

// indexers says which layers have an indexer: by indexer_types, else by
// index_topk_pattern (F and S), else every index_topk_freq-th layer from
// index_skip_topk_offset on, as transformers computes it; by default all.
func (f *fields) indexers(layers int) []bool {
	full := make([]bool, layers)
	if f.has("indexer_types") {
		f.layerTypes("indexer_types", full, "full", "shared")
		return full
	}
	if raw, ok := f.get("index_topk_pattern"); ok {
		if raw[0] == '[' { // a list, as transformers takes too
			f.layerTypes("index_topk_pattern", full, "full", "shared")
			return full
		}
		p := f.text("index_topk_pattern", "")
		if len(p) < layers || strings.Trim(p, "FS") != "" {
			f.fault("index_topk_pattern must have an F (full) or S (shared) for each of %d layers", layers)
			return full
		}
		for i := range full {
			full[i] = p[i] == 'F'
		}
		return full
	}
	freq := f.sizeOr("index_topk_freq", 1, 0, maxLayers)
	offset := f.sizeOr("index_skip_topk_offset", 2, 0, maxLayers)
	for i := range full {
		full[i] = max(i-offset+1, 0)%max(freq, 1) == 0
	}
	return full
}

// dense says which layers have one MLP: by mlp_layer_types, else the first
// first_k_dense_replace, three by default.
func (f *fields) dense(layers int) []bool {
	dense := make([]bool, layers)
	if f.has("mlp_layer_types") {
		f.layerTypes("mlp_layer_types", dense, "dense", "sparse")
		return dense
	}
	n := f.sizeOr("first_k_dense_replace", 3, 0, maxLayers)
	for i := range dense {
		dense[i] = i < n
	}
	return dense
}

// layerTypes sets is[i] where the list of layer types says yes. A list may go
// on past the layers: it has the prediction layers' types too in some files.
func (f *fields) layerTypes(name string, is []bool, yes, no string) {
	types := f.texts(name)
	if len(types) < len(is) {
		f.fault("%s has %d entries for %d layers", name, len(types), len(is))
		return
	}
	for i := range is {
		switch types[i] {
		case yes:
			is[i] = true
		case no:
		default:
			f.fault("%s[%d] is %q: it must be %q or %q", name, i, types[i], yes, no)
			return
		}
	}
}

func invSqrt(n int) float64 { return 1 / math.Sqrt(float64(n)) }
