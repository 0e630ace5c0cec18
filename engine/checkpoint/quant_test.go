package checkpoint

import (
	"strings"
	"testing"
)

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, module string
		want            bool
	}{
		{"lm_head", "lm_head", true},
		{"lm_head", "lm_head2", false},
		{"model.layers.1", "model.layers.1.mlp.gate", true}, // a module stands for those inside
		{"model.layers.1", "model.layers.10.mlp.gate", false},
		{"model.layers.1.*", "model.layers.1.mlp.gate", true},
		{"model.layers.1.*", "model.layers.10.mlp.gate", false},
		{"model.layers.1*", "model.layers.10.mlp.gate", true},
		{"*self_attn*", "model.layers.3.self_attn.q_a_proj", true},
		{"*mlp.gate", "model.layers.3.mlp.gate", true},
		{"*mlp.gate", "model.layers.3.mlp.gate_proj", false},
		{"model.layers.[12].*", "model.layers.2.x", true},
		{"re:.*mlp\\.gate$", "model.layers.3.mlp.gate", true},
		{"re:mlp", "model.layers.3.mlp.gate", false}, // from the beginning, as Python's re.match
	} {
		p, err := compile([]string{tt.pattern})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.match(tt.module); got != tt.want {
			t.Errorf("%q matches %q: %v", tt.pattern, tt.module, got)
		}
	}
	for _, bad := range []string{"re:(", "a[*"} {
		if _, err := compile([]string{bad}); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := compile(make([]string, 0)); err != nil {
		t.Error(err)
	}
	many := make([]string, maxGlobs+1)
	for i := range many {
		many[i] = "a*"
	}
	if _, err := compile(many); err == nil {
		t.Error("too many patterns: no error")
	}
}

// TestContradictions: what the configuration says is compared with what is there.
func TestContradictions(t *testing.T) {
	fp4 := forms(t, 2, 32, make([]float32, 64))["modelopt"]
	plain := []stored{{"w.weight", BF16, []int{1, 2}, bf16(1, 2)}}
	modelopt := `{"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4","ignore":[%]}}`
	with := func(list string) string { return strings.ReplaceAll(modelopt, "%", list) }
	for _, tt := range []struct {
		name, config, extra string
		ts                  []stored
		want                []string // one for each warning
	}{
		{"agrees", with(""), "", fp4, nil},
		{"not said", "{}", "", fp4, []string{"neither config.json nor hf_quant_config.json says so: w"}},
		{"left out", with(`"w"`), "", fp4, []string{"leaves them out: w"}},
		{"nothing quantised", with(`"x"`), "", plain, []string{"no weight is stored so"}},
		{"said by the other file", "{}", `{"quantization":{"quant_algo":"NVFP4","exclude_modules":["lm_head"]}}`, fp4, nil},
		{"the files differ", with(`"a","b*"`), `{"quantization":{"quant_algo":"NVFP4","exclude_modules":["a","c"]}}`, fp4, []string{`one of them lacks "b*", "c"`}},
		{"the files agree", with(`"a","b*"`), `{"quantization":{"quant_algo":"NVFP4","exclude_modules":["b*","a"]}}`, fp4, nil},
		{"another group", `{"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4","group_size":32}}`, "", fp4, []string{"group_size 32"}},
		{"8-bit groups", `{"quantization_config":{"quant_method":"compressed-tensors","format":"mixed-precision","config_groups":{"g":{"weights":{"num_bits":8}}}}}`, "", fp4, []string{"8-bit"}},
		{"compressed-tensors", `{"quantization_config":{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","ignore":["re:lm.*"]}}`, "", fp4, nil},
		{"a list of modules", `{"quantization_config":{"quant_method":"modelopt","quant_algo":"MIXED_PRECISION","quantized_layers":{"w":{"quant_algo":"W4A16_NVFP4"}}}}`, "", fp4, nil},
		{"not in the list", `{"quantization_config":{"quant_method":"modelopt","quant_algo":"MIXED_PRECISION","quantized_layers":{"v":{"quant_algo":"NVFP4"}}}}`, "", fp4, []string{"leaves them out: w"}},
	} {
		files := map[string][]byte{ConfigFile: []byte(tt.config), WeightsFile: pack(t, tt.ts...)}
		if tt.extra != "" {
			files[QuantFile] = []byte(tt.extra)
		}
		c, err := FromFiles(files)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := c.Warnings()
		if len(got) != len(tt.want) {
			t.Errorf("%s: warnings %q, want %q", tt.name, got, tt.want)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: warning %q, want %q", tt.name, got[i], want)
			}
		}
	}
}
