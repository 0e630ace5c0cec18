package checkpoint

import (
	"fmt"
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
		p := compile([]string{tt.pattern})
		if got := p.match(tt.module); got != tt.want {
			t.Errorf("%q matches %q: %v", tt.pattern, tt.module, got)
		}
	}
	// What cannot be read is said, and kills nothing.
	for _, bad := range []string{"re:(", "a[*", "re:^(?!.*mlp\\.experts).*$", "re:" + strings.Repeat("a", maxPattern)} {
		if p := compile([]string{bad, "lm_head"}); p.unread == "" || !p.match("lm_head") {
			t.Errorf("%.40q: unread %q", bad, p.unread)
		}
	}
	many := make([]string, maxSearches+1)
	for i := range many {
		many[i] = fmt.Sprintf("a*b%d", i)
	}
	if p := compile(many); p.unread == "" || len(p.globs) != maxSearches {
		t.Errorf("%d searches: %q", len(p.globs), p.unread)
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
		{"nothing quantised", with(`"x"`), "", plain, []string{"none is stored so"}},
		{"said by the other file", "{}", `{"quantization":{"quant_algo":"NVFP4","exclude_modules":["lm_head"]}}`, fp4,
			nil},
		{"the files differ", with(`"a","b*"`), `{"quantization":{"quant_algo":"NVFP4","exclude_modules":["a","c"]}}`,
			fp4, []string{`one of them lacks "b*", "c"`}},
		{"the files agree", with(`"a","b*"`), `{"quantization":{"quant_algo":"NVFP4","exclude_modules":["b*","a"]}}`,
			fp4, nil},
		{"another group", `{"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4","group_size":32}}`,
			"", fp4, []string{"group_size 32"}},
		{"8-bit groups",
			`{"quantization_config":{"quant_method":"compressed-tensors","format":"mixed-precision","config_groups":{"g":{"weights":{"num_bits":8,"type":"int"}}}}}`, "", fp4, []string{"8-bit"}},
		{"ModelOpt's file in config.json",
			`{"quantization_config":{"quant_method":"modelopt","quantization":{"quant_algo":"NVFP4","exclude_modules":["v"]}}}`, "", fp4, nil},
		{"targets",
			`{"quantization_config":{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","config_groups":{"g":{"targets":["re:v.*"]}}}}`, "", fp4, []string{"leaves them out: w"}},
		{"an expression of Python's",
			`{"quantization_config":{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","ignore":["re:^(?!.*experts).*$"]}}`, "", fp4, []string{"not compared"}},
		{"a block structure in words",
			`{"quantization_config":{"quant_method":"compressed-tensors","format":"float-quantized","config_groups":{"g":{"targets":["Linear"],"weights":{"num_bits":8,"type":"float","block_structure":"128x128"}}}}}`, "", fp4, nil},
		{"compressed-tensors",
			`{"quantization_config":{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","ignore":["re:lm.*"]}}`, "", fp4, nil},
		{"a list of modules",
			`{"quantization_config":{"quant_method":"modelopt","quant_algo":"MIXED_PRECISION","quantized_layers":{"w":{"quant_algo":"W4A16_NVFP4"}}}}`, "", fp4, nil},
		{"not in the list",
			`{"quantization_config":{"quant_method":"modelopt","quant_algo":"MIXED_PRECISION","quantized_layers":{"v":{"quant_algo":"NVFP4"}}}}`, "", fp4, []string{"leaves them out: w"}},
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
