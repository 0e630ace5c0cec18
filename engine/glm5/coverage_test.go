package glm5

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"glmbatch/engine/checkpoint"
	"glmbatch/kernels"
)

// cover makes a checkpoint of zeros with every weight of a small model in BF16,
// changed by edit, and compares it with its config.
func cover(t *testing.T, quant string, edit func(tensors map[string]entry)) (Coverage, *Config) {
	t.Helper()
	c := mustParse(t, "tiny", map[string]any{"num_hidden_layers": 2, "n_routed_experts": 2, "num_experts_per_tok": 1})
	tensors := map[string]entry{}
	for w := range c.Tensors(true) {
		e := entry{"BF16", []int{w.Rows}}
		if w.Cols > 0 {
			e.Shape = append(e.Shape, w.Cols)
		}
		tensors[w.Name] = e
	}
	edit(tensors)
	config := `{}`
	if quant != "" {
		config = `{"quantization_config":` + quant + `}`
	}
	ck, err := checkpoint.FromFiles(map[string][]byte{"config.json": []byte(config),
		"model.safetensors": zeros(t, tensors)})
	if err != nil {
		t.Fatal(err)
	}
	return c.Cover(ck), &c
}

type entry struct {
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

// zeros makes a safetensors file; F32 scalars are 1.
func zeros(t *testing.T, tensors map[string]entry) []byte {
	size := map[string]int{"BF16": 2, "F32": 4, "U8": 1, "F8_E4M3": 1}
	doc := map[string]any{}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		e := tensors[name]
		n := size[e.DType]
		for _, d := range e.Shape {
			n *= d
		}
		b := make([]byte, n)
		if len(e.Shape) == 0 {
			binary.LittleEndian.PutUint32(b, 0x3f800000)
			e.Shape = []int{}
		}
		doc[name] = map[string]any{"dtype": e.DType, "shape": e.Shape, "data_offsets": []int{len(data), len(data) + n}}
		data = append(data, b...)
	}
	header, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...)
}

// quantize replaces a weight by its NVFP4 form.
func quantize(tensors map[string]entry, module string) {
	s := tensors[module+".weight"].Shape
	tensors[module+".weight"] = entry{"U8", []int{s[0], s[1] / 2}}
	tensors[module+".weight_scale"] = entry{"F8_E4M3", []int{s[0], s[1] / 16}}
	tensors[module+".weight_scale_2"] = entry{"F32", nil}
	tensors[module+".input_scale"] = entry{"F32", nil}
}

func TestCover(t *testing.T) {
	const up = "model.layers.1.mlp.experts.0.up_proj"
	nvfp4 := `{"quant_method":"modelopt","quant_algo":"NVFP4","ignore":["*self_attn*","lm_head","*embed_tokens","*norm","*mlp.gate","*shared_experts*","model.layers.0.*","model.layers.2.*","*experts.1.*","*down_proj","*gate_proj"]}`
	for _, tt := range []struct {
		name, quant string
		edit        func(m map[string]entry)
		want        Coverage // its lists: what the single entry contains
	}{
		{"whole", "", func(m map[string]entry) {}, Coverage{HasMTP: true}},
		{"quantised as said", nvfp4, func(m map[string]entry) { quantize(m, up) }, Coverage{HasMTP: true}},
		{"missing", "", func(m map[string]entry) {
			delete(m, "model.norm.weight")
		}, Coverage{HasMTP: true, Missing: []string{"model.norm.weight"}}},
		{"no prediction layer", "", func(m map[string]entry) {
			maps.DeleteFunc(m, func(name string, _ entry) bool { return strings.HasPrefix(name, "model.layers.2.") })
		}, Coverage{}},
		{"part of the prediction layer", "", func(m map[string]entry) { delete(m, "model.layers.2.enorm.weight") },
			Coverage{HasMTP: true, Missing: []string{"model.layers.2.enorm.weight"}}},
		{"an AWQ scale", "", func(m map[string]entry) {
			m[up+".pre_quant_scale"] = entry{"BF16", []int{256}}
		}, Coverage{HasMTP: true, Skipped: []string{up + ".pre_quant_scale"}}},
		{"SVD factors", "", func(m map[string]entry) {
			m[up+".weight_quantizer._svdquant_lora_a"] = entry{"BF16", []int{16, 256}}
			m[up+".weight_quantizer._svdquant_lora_b"] = entry{"BF16", []int{128, 16}}
		}, Coverage{HasMTP: true, Skipped: []string{"_lora_a", "_lora_b"}}},
		{"a bias", "", func(m map[string]entry) {
			m["model.layers.0.self_attn.o_proj.bias"] = entry{"BF16", []int{256}}
		},
			Coverage{HasMTP: true, Skipped: []string{"o_proj.bias"}}},
		{"a rotation's matrix", "", func(m map[string]entry) {
			m[up+".R4_input.weight"] = entry{"BF16", []int{256, 256}}
		}, Coverage{HasMTP: true, Skipped: []string{"R4_input"}}},
		{"a scale of another form", "", func(m map[string]entry) {
			m[up+".weight_scale"] = entry{"F32", nil}
		}, Coverage{HasMTP: true, Skipped: []string{up + ".weight_scale"},
			Contradictions: []string{"neither config.json"}}},
		{"a module of its own", "", func(m map[string]entry) {
			m["model.layers.1.mlp.latent_proj.weight"] = entry{"BF16", []int{8, 8}}
		},
			Coverage{HasMTP: true, Skipped: []string{"latent_proj"}}},
		{"scales of a cache", "", func(m map[string]entry) {
			m["model.layers.0.self_attn.k_scale"] = entry{"F32", nil}
			m["model.layers.0.self_attn.kv_b_proj.input_scale"] = entry{"F32", nil}
			m["model.layers.0.self_attn.rotary_emb.inv_freq"] = entry{"F32", []int{8}}
		}, Coverage{HasMTP: true}},
		{"tables that the prediction layer shares", "", func(m map[string]entry) {
			m["model.layers.2.embed_tokens.weight"] = entry{"BF16", []int{4, 4}}
			m["model.layers.2.shared_head.head.weight"] = entry{"BF16", []int{4, 4}}
		}, Coverage{HasMTP: true, Unused: []string{"model.layers.2.embed", "model.layers.2.shared_head.head"}}},
		{"experts in one tensor", "", func(m map[string]entry) {
			maps.DeleteFunc(m, func(name string, _ entry) bool {
				return strings.HasPrefix(name, "model.layers.1.mlp.experts.")
			})
			m["model.layers.1.mlp.experts.gate_up_proj"] = entry{"BF16", []int{2, 256, 256}}
		}, Coverage{HasMTP: true, Fused: []string{"model.layers.1.mlp.experts.gate_up_proj"},
			Missing: []string{"0.gate", "1.gate", "0.up", "1.up", "0.down", "1.down"}, Skipped: []string{"gate_up"}}},
		{"an online transform",
			`{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","ignore":["re:.*"],"transform_config":{"config_groups":{"R4":{"type":"hadamard","apply":[
			{"targets":["re:.*experts.0.down_proj$"],"location":"input"},{"targets":["Linear"],"location":"weight_input"}]}}}}`, func(m map[string]entry) {},
			Coverage{HasMTP: true, Unread: []string{"model.layers.1.mlp.experts.0.down_proj.weight",
				"model.layers.2.mlp.experts.0.down_proj.weight"}, Contradictions: []string{"none is stored so"}}},
		{"unused", "", func(m map[string]entry) {
			m["model.layers.9.x"] = entry{"F32", []int{3}}
		}, Coverage{HasMTP: true, Unused: []string{"model.layers.9.x"}}},
		{"another shape", "", func(m map[string]entry) { m["lm_head.weight"] = entry{"BF16", []int{9, 256}} },
			Coverage{HasMTP: true, Unread: []string{"lm_head.weight is [9, 256], config.json says [2048, 256]"}}},
		{"another length", "", func(m map[string]entry) { m["model.norm.weight"] = entry{"F32", []int{3}} },
			Coverage{HasMTP: true, Unread: []string{"model.norm.weight has 3 values, config.json says 256"}}},
		{"bytes for a vector", "", func(m map[string]entry) { m["model.norm.weight"] = entry{"U8", []int{256}} },
			Coverage{HasMTP: true, Unread: []string{"dtype U8"}}},
		{"a router as NVFP4", nvfp4, func(m map[string]entry) {
			quantize(m, up)
			quantize(m, "model.layers.1.mlp.gate")
		},
			Coverage{HasMTP: true, Unread: []string{"model.layers.1.mlp.gate.weight is stored as NVFP4"},
				Contradictions: []string{"leaves them out: model.layers.1.mlp.gate"}}},
		{"not quantised but said so", nvfp4, func(m map[string]entry) {
			quantize(m, up)
			quantize(m, "model.layers.1.mlp.experts.1.up_proj")
			m[up+".weight"] = entry{"BF16", []int{128, 256}}
			for _, s := range []string{".weight_scale", ".weight_scale_2", ".input_scale"} {
				delete(m, up+s)
			}
		}, Coverage{HasMTP: true, Contradictions: []string{"leaves them out: model.layers.1.mlp.experts.1.up_proj",
			"does not leave them out: " + up}}},
	} {
		got, _ := cover(t, tt.quant, tt.edit)
		if got.HasMTP != tt.want.HasMTP {
			t.Errorf("%s: prediction layer %v", tt.name, got.HasMTP)
		}
		for what, lists := range map[string][2][]string{
			"missing": {got.Missing, tt.want.Missing}, "unread": {got.Unread, tt.want.Unread},
			"unused": {got.Unused, tt.want.Unused}, "skipped": {got.Skipped, tt.want.Skipped},
			"fused": {got.Fused, tt.want.Fused}, "contradictions": {got.Contradictions, tt.want.Contradictions},
		} {
			same := len(lists[0]) == len(lists[1])
			for i := 0; same && i < len(lists[0]); i++ {
				same = strings.Contains(lists[0][i], lists[1][i])
			}
			if !same {
				t.Errorf("%s: %s %q, want %q", tt.name, what, lists[0], lists[1])
			}
		}
	}
}

// TestCheck: what keeps a checkpoint from running, the plainest first.
func TestCheck(t *testing.T) {
	const up = "model.layers.1.mlp.experts.0.up_proj"
	for _, tt := range []struct {
		name string
		act  Act
		edit func(m map[string]entry)
		want string // "": it runs
	}{
		{"whole", W4A16, func(map[string]entry) {}, ""},
		{"no input scale", W4A16, func(m map[string]entry) { quantize(m, up); delete(m, up+".input_scale") }, ""},
		{"no input scale for 4-bit inputs", W4A4, func(m map[string]entry) {
			quantize(m, up)
			delete(m, up+".input_scale")
		}, "1 NVFP4 weights have no input scale"},
		{"an input scale of 0", W4A16, func(m map[string]entry) {
			quantize(m, up)
			m[up+".input_scale"] = entry{"F32", []int{1}}
		}, ""},
		{"an input scale of 0 for 4-bit inputs", W4A4, func(m map[string]entry) {
			quantize(m, up)
			m[up+".input_scale"] = entry{"F32", []int{1}}
		}, up},
		{"missing before skipped", W4A16, func(m map[string]entry) {
			delete(m, "lm_head.weight")
			m[up+".bias"] = entry{"BF16", []int{1}}
		}, "lm_head.weight"},
		{"skipped", W4A16, func(m map[string]entry) { m[up+".bias"] = entry{"BF16", []int{1}} }, up + ".bias"},
	} {
		v, _ := cover(t, "", tt.edit)
		err := v.Check(Options{Act: tt.act})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestLoaded: memory is what weights take on a device, not in their file.
func TestLoaded(t *testing.T) {
	sum := func(edit func(map[string]entry)) (stored, loaded int64, notes []string) {
		v, _ := cover(t, "", edit)
		for i := range v.Weights {
			if s := &v.Weights[i]; s.Part == Routed && s.Layer == 1 {
				stored, loaded = stored+s.Bytes, loaded+s.Loaded(1, Options{})
			}
		}
		return stored, loaded, v.Notes
	}
	all := func(m map[string]entry, but string) {
		for e := range 2 {
			for _, p := range []string{"gate_proj", "up_proj", "down_proj"} {
				if name := ExpertPrefix(1, e) + p; name != but {
					quantize(m, name)
				}
			}
		}
	}
	const each = 128 * 256 // values of a weight
	if stored, loaded, notes := sum(func(m map[string]entry) {
		all(m, "")
	}); stored-loaded != 6*4 || loaded != 6*(each/2+each/16) || len(notes) > 0 {
		t.Errorf("NVFP4: %d stored, %d loaded, %q", stored, loaded, notes)
	}
	// Weights in several formats among the gates and ups make all four of them BF16.
	fp8 := func(m map[string]entry, name string) {
		m[name+".weight"] = entry{"F8_E4M3", []int{128, 256}}
		m[name+".weight_scale_inv"] = entry{"F32", []int{1, 2}}
	}
	for _, one := range []string{"BF16", "FP8"} {
		stored, loaded, notes := sum(func(m map[string]entry) {
			name := ExpertPrefix(1, 1) + "up_proj"
			if all(m, name); one == "FP8" {
				fp8(m, name)
			}
		})
		bytes := int64(2 * each)
		if one == "FP8" {
			bytes = each + 2*4
		}
		if stored != 5*(each/2+each/16+4)+bytes || loaded != 2*(each/2+each/16)+4*2*each || len(notes) != 1 ||
			!strings.Contains(notes[0], "layer 1") || !strings.Contains(notes[0], "BF16") {
			t.Errorf("one %s: %d stored, %d loaded, %q", one, stored, loaded, notes)
		}
	}
	// A float32 one makes them float32.
	_, loaded, notes := sum(func(m map[string]entry) {
		all(m, ExpertPrefix(1, 0)+"up_proj")
		m[ExpertPrefix(1, 0)+"up_proj.weight"] = entry{"F32", []int{128, 256}}
	})
	if loaded != 2*(each/2+each/16)+4*4*each || len(notes) != 1 || !strings.Contains(notes[0], "float32") {
		t.Errorf("one F32: %d loaded, %q", loaded, notes)
	}
}

// FP8 weights stay what they are where a rank's share has whole scales.
func TestLoadedFP8(t *testing.T) {
	v, _ := cover(t, "", func(m map[string]entry) {
		name := LayerPrefix(0) + "self_attn.o_proj"
		s := m[name+".weight"].Shape
		m[name+".weight"] = entry{"F8_E4M3", s}
		m[name+".weight_scale_inv"] = entry{"F32", []int{(s[0] + 127) / 128, (s[1] + 127) / 128}}
	})
	for i := range v.Weights {
		s := &v.Weights[i]
		if s.File != kernels.FP8 {
			continue
		}
		n := s.Params()
		// Thirds of 256 columns begin in a block's middle: they are BF16.
		for ranks, want := range map[int]int64{1: n + n/32, 2: n/2 + n/64, 3: 2 * int64(s.Rows) * int64(s.Cols/3)} {
			if got := s.Loaded(ranks, Options{}); got != want {
				t.Errorf("%s on %d ranks: %d bytes, want %d", s.Name, ranks, got, want)
			}
		}
		if got := s.Loaded(2, Options{KVCache: kernels.F32}); got != 2*n {
			t.Errorf("with float32 caches: %d bytes, want %d", got, 2*n)
		}
		return
	}
	t.Error("no FP8 weight")
}

func TestCoverCounts(t *testing.T) {
	v, c := cover(t, "", func(m map[string]entry) {
		for e := range 2 {
			for _, p := range []string{"gate_proj", "up_proj", "down_proj"} {
				quantize(m, ExpertPrefix(1, e)+p)
			}
		}
	})
	n := 0
	for range c.Tensors(true) {
		n++
	}
	if len(v.Weights) != n {
		t.Errorf("%d weights, want %d", len(v.Weights), n)
	}
	for _, s := range v.Weights {
		want := 2 * s.Params()
		if s.Format == kernels.FP4 {
			want = s.Params()/2 + s.Params()/16 + 4
		}
		if s.Bytes != want {
			t.Errorf("%s takes %d bytes, want %d", s.Name, s.Bytes, want)
		}
		if (s.Format == kernels.FP4) != (s.Part == Routed && !s.MTP) {
			t.Errorf("%s is %s", s.Name, s.Format)
		}
	}
}
