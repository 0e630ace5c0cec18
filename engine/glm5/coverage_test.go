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
	ck, err := checkpoint.FromFiles(map[string][]byte{"config.json": []byte(config), "model.safetensors": zeros(t, tensors)})
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
		{"missing", "", func(m map[string]entry) { delete(m, "model.norm.weight") }, Coverage{HasMTP: true, Missing: []string{"model.norm.weight"}}},
		{"no prediction layer", "", func(m map[string]entry) {
			maps.DeleteFunc(m, func(name string, _ entry) bool { return strings.HasPrefix(name, "model.layers.2.") })
		}, Coverage{}},
		{"part of the prediction layer", "", func(m map[string]entry) { delete(m, "model.layers.2.enorm.weight") },
			Coverage{HasMTP: true, Missing: []string{"model.layers.2.enorm.weight"}}},
		{"unused", "", func(m map[string]entry) { m["model.layers.9.x"] = entry{"F32", []int{3}} }, Coverage{HasMTP: true, Unused: []string{"model.layers.9.x"}}},
		{"another shape", "", func(m map[string]entry) { m["lm_head.weight"] = entry{"BF16", []int{9, 256}} },
			Coverage{HasMTP: true, Unread: []string{"lm_head.weight is [9, 256], config.json says [2048, 256]"}}},
		{"another length", "", func(m map[string]entry) { m["model.norm.weight"] = entry{"F32", []int{3}} },
			Coverage{HasMTP: true, Unread: []string{"model.norm.weight has 3 values, config.json says 256"}}},
		{"bytes for a vector", "", func(m map[string]entry) { m["model.norm.weight"] = entry{"U8", []int{256}} },
			Coverage{HasMTP: true, Unread: []string{"dtype U8"}}},
		{"a router as NVFP4", nvfp4, func(m map[string]entry) { quantize(m, up); quantize(m, "model.layers.1.mlp.gate") },
			Coverage{HasMTP: true, Unread: []string{"model.layers.1.mlp.gate.weight is stored as NVFP4"}, Contradictions: []string{"leaves them out: model.layers.1.mlp.gate"}}},
		{"not quantised but said so", nvfp4, func(m map[string]entry) {
			quantize(m, up)
			quantize(m, "model.layers.1.mlp.experts.1.up_proj")
			m[up+".weight"] = entry{"BF16", []int{128, 256}}
			for _, s := range []string{".weight_scale", ".weight_scale_2", ".input_scale"} {
				delete(m, up+s)
			}
		}, Coverage{HasMTP: true, Contradictions: []string{"leaves them out: model.layers.1.mlp.experts.1.up_proj", "does not leave them out: " + up}}},
	} {
		got, _ := cover(t, tt.quant, tt.edit)
		if got.HasMTP != tt.want.HasMTP {
			t.Errorf("%s: prediction layer %v", tt.name, got.HasMTP)
		}
		for what, lists := range map[string][2][]string{
			"missing": {got.Missing, tt.want.Missing}, "unread": {got.Unread, tt.want.Unread},
			"unused": {got.Unused, tt.want.Unused}, "contradictions": {got.Contradictions, tt.want.Contradictions},
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
