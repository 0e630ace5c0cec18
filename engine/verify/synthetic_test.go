package verify

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels/nvfp4"
)

// entry is a tensor to be put into a safetensors file in memory.
type entry struct {
	dtype checkpoint.DType
	shape []int
	data  []byte
}

// pack makes a safetensors file.
func pack(entries map[string]entry) []byte {
	type header struct {
		DType   checkpoint.DType `json:"dtype"`
		Shape   []int            `json:"shape"`
		Offsets [2]int           `json:"data_offsets"`
	}
	h, data := map[string]header{}, []byte(nil)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		shape := e.shape
		if shape == nil {
			shape = []int{}
		}
		h[name] = header{e.dtype, shape, [2]int{len(data), len(data) + len(e.data)}}
		data = append(data, e.data...)
	}
	j, err := json.Marshal(h)
	if err != nil {
		panic(err)
	}
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(j))), j, data)
}

func f32Entry(v []float32, shape ...int) entry {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return entry{checkpoint.F32, shape, b}
}

func bf16Entry(v []float32, shape ...int) entry {
	var b []byte
	for _, x := range v {
		u := math.Float32bits(x)
		b = binary.LittleEndian.AppendUint16(b, uint16((u+0x7fff+u>>16&1)>>16))
	}
	return entry{checkpoint.BF16, shape, b}
}

func i32Entry(v []int32, shape ...int) entry {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return entry{"I32", shape, b}
}

// synthetic is a small random checkpoint of a given shape.
type synthetic struct {
	name   string
	config map[string]any // changes to the base
	// how says the form of a Linear: "bf16", "f32", "fp4" (ModelOpt) or "packed" (compressed-tensors).
	how func(module string) string
}

var baseConfig = map[string]any{
	"model_type": "glm_moe_dsa", "architectures": []string{"GlmMoeDsaForCausalLM"}, "hidden_act": "silu",
	"vocab_size": 96, "hidden_size": 64, "intermediate_size": 128, "moe_intermediate_size": 128, "num_hidden_layers": 3,
	"num_attention_heads": 8, "num_key_value_heads": 8, "n_shared_experts": 1, "n_routed_experts": 8,
	"num_experts_per_tok":   2,
	"routed_scaling_factor": 1.8, "kv_lora_rank": 32, "q_lora_rank": 48, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16,
	"v_head_dim": 16,
	"n_group":    1, "topk_group": 1, "norm_topk_prob": true, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
	"index_topk": 6, "index_head_dim": 16, "index_n_heads": 2, "first_k_dense_replace": 1,
	"num_nextn_predict_layers": 0,
	"rope_parameters":          map[string]any{"rope_type": "default", "rope_theta": 10000.0}, "eos_token_id": 1,
}

func all(form string) func(string) string { return func(string) string { return form } }

var synthetics = []synthetic{
	{"plain", nil, all("f32")},
	{"groups", map[string]any{"n_group": 4, "topk_group": 2, "n_routed_experts": 16, "num_experts_per_tok": 4,
		"norm_topk_prob": false}, all("bf16")},
	{"shared indexers, tied head, prediction layer", map[string]any{
		"num_hidden_layers": 5, "indexer_types": []string{"full", "shared", "full", "shared", "shared"},
		"tie_word_embeddings": true, "num_nextn_predict_layers": 1, "n_shared_experts": 2,
	}, all("bf16")},
	{"fp4 experts", nil, func(m string) string {
		if strings.Contains(m, ".experts.") {
			return "fp4"
		}
		return "bf16"
	}},
	{"formats of every kind", map[string]any{"num_hidden_layers": 4, "num_nextn_predict_layers": 1},
		func(m string) string {
			switch {
			case strings.Contains(m, "layers.2.mlp.experts.3."), strings.Contains(m, "indexer.wk"), strings.HasSuffix(m,
				"up_proj"):
				return "bf16"
			case strings.Contains(m, "layers.1.") && strings.Contains(m, "o_proj"), strings.HasSuffix(m,
				"lm_head"), strings.Contains(m, "weights_proj"):
				return "f32"
			case strings.Contains(m, "layers.3."):
				return "packed"
			}
			return "fp4"
		}},
	{"FP8 blocks", map[string]any{"num_nextn_predict_layers": 1, "quantization_config": map[string]any{
		"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": []int{128,
			128}}}, func(m string) string {
		if strings.HasSuffix(m, "weights_proj") || strings.HasSuffix(m, "lm_head") || strings.HasSuffix(m, "eh_proj") {
			return "bf16"
		}
		return "fp8"
	}},
	{"FP8 and NVFP4", map[string]any{"quantization_config": map[string]any{"quant_method": "modelopt",
		"quant_algo": "MIXED_PRECISION"}}, func(m string) string {
		switch {
		case strings.Contains(m, ".experts."):
			return "fp4"
		case strings.HasSuffix(m, "weights_proj"), strings.HasSuffix(m, "lm_head"):
			return "bf16"
		}
		return "fp8 whole"
	}},
}

// files makes the checkpoint's folder from a seed.
func (s *synthetic) files(t testing.TB, seed uint64) map[string][]byte {
	return s.filesWith(t, seed, nil)
}

// filesWith is files with tensors changed.
func (s *synthetic) filesWith(t testing.TB, seed uint64, edit func(map[string]entry)) map[string][]byte {
	t.Helper()
	conf := maps.Clone(baseConfig)
	maps.Copy(conf, s.config)
	raw, err := json.Marshal(conf)
	if err != nil {
		t.Fatal(err)
	}
	c, err := glm5.ParseConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 77))
	tensors := map[string]entry{}
	for w := range c.Tensors(true) {
		v := make([]float32, w.Params())
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		switch {
		case w.Cols == 0 && strings.HasSuffix(w.Name, "norm.weight"):
			for i := range v {
				v[i] = 1 + .2*v[i]
			}
			tensors[w.Name] = bf16Entry(v, w.Rows)
		case w.Cols == 0:
			for i := range v {
				v[i] *= .2
			}
			tensors[w.Name] = f32Entry(v, w.Rows)
		default:
			for i := range v {
				v[i] /= float32(math.Sqrt(float64(w.Cols)) / 1.5)
			}
			form := s.how(w.Module())
			if !w.MayQuantize && form != "f32" {
				form = "bf16"
			}
			store(tensors, w.Module(), form, v, w.Rows, w.Cols)
		}
	}
	if edit != nil {
		edit(tensors)
	}
	return map[string][]byte{checkpoint.ConfigFile: raw, checkpoint.WeightsFile: pack(tensors)}
}

// store adds a Linear in one of its forms.
func store(to map[string]entry, module, form string, v []float32, rows, cols int) {
	switch form {
	case "f32":
		to[module+".weight"] = f32Entry(v, rows, cols)
	case "bf16":
		to[module+".weight"] = bf16Entry(v, rows, cols)
	case "fp4", "packed":
		p, scales, global := nvfp4.Quantize(v, rows, cols)
		to[module+".weight_scale"] = entry{checkpoint.F8, []int{rows, cols / 16}, scales}
		if form == "fp4" {
			to[module+".weight"] = entry{checkpoint.U8, []int{rows, cols / 2}, p}
			to[module+".weight_scale_2"] = f32Entry([]float32{global})
		} else {
			to[module+".weight_packed"] = entry{checkpoint.U8, []int{rows, cols / 2}, p}
			to[module+".weight_global_scale"] = f32Entry([]float32{1 / global}, 1)
		}
	case "fp8", "fp8 whole": // with scales for blocks, or one that is a power of two
		height, width, name := rows, cols, ".weight_scale"
		if form == "fp8" {
			height, width, name = 128, 128, ".weight_scale_inv"
		}
		down, across := (rows+height-1)/height, (cols+width-1)/width
		scales := make([]float32, down*across)
		at := func(i int) *float32 { return &scales[i/cols/height*across+i%cols/width] }
		for i, x := range v {
			*at(i) = max(*at(i), float32(math.Abs(float64(x)))/448)
		}
		if form == "fp8 whole" {
			_, e := math.Frexp(float64(scales[0]))
			scales[0] = float32(math.Ldexp(1, e))
		}
		codes := make([]byte, len(v))
		for i, x := range v {
			codes[i] = nvfp4.EncodeE4M3(x / *at(i))
		}
		to[module+".weight"] = entry{checkpoint.F8, []int{rows, cols}, codes}
		to[module+name] = f32Entry(scales, down, across)
	default:
		panic(fmt.Sprintf("no form %q", form))
	}
}
