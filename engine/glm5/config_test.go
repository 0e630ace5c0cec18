package glm5

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// parse reads a built-in config with members changed; nil deletes one.
func parse(t testing.TB, name string, change map[string]any) (Config, error) {
	t.Helper()
	b, err := Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for k, v := range change {
		if m[k] = v; v == nil {
			delete(m, k)
		}
	}
	if b, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	return ParseConfig(b)
}

func mustParse(t testing.TB, name string, change map[string]any) Config {
	t.Helper()
	c, err := parse(t, name, change)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestParameters compares with the counts that the models' makers publish.
func TestParameters(t *testing.T) {
	for _, tt := range []struct {
		name              string
		main, mtp, active int64
	}{
		{"glm-5", 743_911_199_232, 9_952_920_320, 40_830_000_000},
		{"glm-5.2", 753_329_921_024 - 9_952_920_320, 9_952_920_320, 40_300_000_000},
	} {
		c := mustParse(t, tt.name, nil)
		var main, mtp, active int64
		for w := range c.Tensors(true) {
			if w.Cols == 0 && w.Part == Router {
				continue // a buffer: their counts are of parameters
			}
			if w.MTP {
				mtp += w.Params()
				continue
			}
			main += w.Params()
			active += c.Active(&w)
		}
		if main != tt.main || mtp != tt.mtp {
			t.Errorf("%s: %d and %d in the prediction layer, want %d and %d", tt.name, main, mtp, tt.main, tt.mtp)
		}
		if d := active - tt.active; d < -5e6 || d > 5e6 {
			t.Errorf("%s: %d active, want %d", tt.name, active, tt.active)
		}
	}
}

func TestIndexers(t *testing.T) {
	list := func(c *Config) string {
		var s strings.Builder
		for i := range c.AllLayers() {
			s.WriteByte("SF"[btoi(c.IndexerFull(i))])
		}
		return s.String()
	}
	// GLM-5.2: layers 0, 1, 2, 6, 10, …, 74 and the prediction layer.
	want := []byte(strings.Repeat("S", 79))
	want[0], want[1], want[78] = 'F', 'F', 'F'
	for i := 2; i < 78; i += 4 {
		want[i] = 'F'
	}
	c := mustParse(t, "glm-5.2", nil)
	if got := list(&c); got != string(want) {
		t.Errorf("GLM-5.2:\n%s, want\n%s", got, want)
	}
	types := []string{"full", "shared", "shared", "full", "shared", "full"}
	for _, tt := range []struct {
		name   string
		change map[string]any
		want   string
	}{
		{"all by default", nil, "FFFFFFF"},
		{"types", map[string]any{"indexer_types": types}, "FSSFSFF"},
		{"types win", map[string]any{"indexer_types": types, "index_topk_freq": 2, "index_topk_pattern": "FFFFFF"},
			"FSSFSFF"},
		{"pattern", map[string]any{"index_topk_pattern": "FSFSSS", "index_topk_freq": 3}, "FSFSSSF"},
		{"frequency", map[string]any{"index_topk_freq": 3}, "FFSSFSF"},
		{"frequency and offset", map[string]any{"index_topk_freq": 2, "index_skip_topk_offset": 4}, "FFFFSFF"},
	} {
		c := mustParse(t, "tiny", tt.change)
		if got := list(&c); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestParseConfig(t *testing.T) {
	rope := func(m map[string]any) map[string]any { return map[string]any{"rope_parameters": m} }
	for _, tt := range []struct {
		name   string
		change map[string]any
		check  func(c Config) any
		want   any
	}{
		{"one end token", map[string]any{"eos_token_id": 7}, func(c Config) any { return c.EOS }, []int32{7}},
		{"end tokens", map[string]any{"eos_token_id": []int{7, 9}}, func(c Config) any { return c.EOS }, []int32{7, 9}},
		{"no end token", map[string]any{"eos_token_id": nil}, func(c Config) any { return len(c.EOS) }, 0},
		{"nested theta", rope(map[string]any{"rope_theta": 5000, "rope_type": "default"}), func(c Config) any {
			return c.RopeTheta
		}, 5000.},
		{"old theta", map[string]any{"rope_parameters": nil, "rope_theta": 5000}, func(c Config) any {
			return c.RopeTheta
		}, 5000.},
		{"dense by list", map[string]any{"mlp_layer_types": []string{"sparse", "dense", "sparse", "sparse",
			"sparse", "sparse"}},
			func(c Config) any { return fmt.Sprint(c.Dense(0), c.Dense(1), c.Dense(6)) }, "false true false"},
		{"latent eps by default", nil, func(c Config) any { return c.LatentEps }, float32(1e-6)},
		{"latent eps", map[string]any{"latent_norm_eps": 1e-5}, func(c Config) any {
			return c.LatentEps
		}, float32(1e-5)},
		{"experts by another name", map[string]any{"n_routed_experts": nil, "num_experts": 16}, func(c Config) any {
			return c.Experts
		}, 16},
		{"experts by both names", map[string]any{"n_routed_experts": 16, "num_experts": 8}, func(c Config) any {
			return c.Experts
		}, 8},
		{"the kind of layer since 5.18", map[string]any{"layer_types": []string{"indexed_attention",
			"indexed_attention"}}, func(c Config) any {
			return len(c.Notes)
		}, 0},
		{"another kind of layer", map[string]any{"layer_types": []string{"indexed_attention", "full_attention"}},
			func(c Config) any {
				return c.Notes[0][:34]
			}, `layer_types[1] is "full_attention"`},
		{"indexers by a list", map[string]any{"index_topk_pattern": []string{"full", "shared", "full", "full",
			"full", "full"}},
			func(c Config) any {
				return fmt.Sprint(c.IndexerFull(0), c.IndexerFull(1), c.IndexerFull(2))
			}, "true false true"},
		{"tied head", map[string]any{"tie_word_embeddings": true}, func(c Config) any {
			return c.HeadModule()
		}, "model.embed_tokens"},
		{"head dim is ignored", map[string]any{"head_dim": 64}, func(c Config) any { return c.QKHeadDim() }, 48},
	} {
		c := mustParse(t, "tiny", tt.change)
		if got := tt.check(c); fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestDefaults: an absent field is what transformers takes it for, one by one and
// all at once.
func TestDefaults(t *testing.T) {
	bare, err := ParseConfig(
		[]byte(`{"model_type":"glm_moe_dsa","pad_token_id":154820,"eos_token_id":[154820,154827,154829]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := mustParse(t, "glm-5", map[string]any{"num_nextn_predict_layers": nil,
		"rope_parameters": map[string]any{"rope_theta": 1e4}})
	if fmt.Sprintf("%+v", bare) != fmt.Sprintf("%+v", want) {
		t.Errorf("an empty config is\n%+v, want\n%+v", bare, want)
	}
	for _, tt := range []struct {
		absent string
		check  func(c Config) any
		want   any
	}{
		{"routed_scaling_factor", func(c Config) any { return c.RoutedScale }, 2.5},
		{"first_k_dense_replace", func(c Config) any { return c.DenseLayers }, "[true true true false false false]"},
		{"norm_topk_prob", func(c Config) any { return c.NormTopK }, true},
		{"index_topk", func(c Config) any { return c.IndexTopK }, 2048},
		{"num_experts_per_tok", func(c Config) any { return c.ExpertsPerToken }, 8},
		{"rms_norm_eps", func(c Config) any { return c.NormEps }, float32(1e-5)},
		{"n_group", func(c Config) any { return c.Groups }, 1},
		{"tie_word_embeddings", func(c Config) any { return c.TiedHead }, false},
	} {
		c := mustParse(t, "tiny", map[string]any{tt.absent: nil, "mlp_layer_types": nil})
		if got := fmt.Sprint(tt.check(c)); got != fmt.Sprint(tt.want) {
			t.Errorf("without %s: %s, want %v", tt.absent, got, tt.want)
		}
	}
}

func TestParseConfigFaults(t *testing.T) {
	for _, tt := range []struct {
		change map[string]any
		want   []string // all of them in the error
	}{
		{map[string]any{"model_type": "deepseek_v3"}, []string{`"deepseek_v3"`, "glm_moe_dsa", "GLM-5.2"}},
		{map[string]any{"model_type": nil}, []string{"model_type"}},
		{map[string]any{"architectures": []string{"LlamaForCausalLM"}}, []string{"LlamaForCausalLM", architecture}},
		{map[string]any{"hidden_size": 0, "vocab_size": "many", "num_hidden_layers": -1, "q_lora_rank": 1.5},
			[]string{"hidden_size is 0", "vocab_size is \"many\"", "num_hidden_layers is -1", "q_lora_rank is 1.5"}},
		{map[string]any{"hidden_size": 1 << 40}, []string{"hidden_size", "131072"}},
		{map[string]any{"num_hidden_layers": 1e300}, []string{"num_hidden_layers", "1024"}},
		{map[string]any{"rope_parameters": map[string]any{"rope_theta": 1e6, "rope_type": "yarn"}},
			[]string{"rope_parameters.rope_type", `"yarn"`}},
		{map[string]any{"rope_scaling": map[string]any{"type": "linear"}},
			[]string{"rope_scaling.rope_type", `"linear"`}},
		{map[string]any{"rope_parameters": map[string]any{"rope_theta": 1e4, "partial_rotary_factor": .5}},
			[]string{"partial_rotary_factor 0.5"}},
		{map[string]any{"hidden_act": "gelu"}, []string{"hidden_act", `"gelu"`, `"silu"`}},
		{map[string]any{"scoring_func": "softmax"}, []string{"scoring_func"}},
		{map[string]any{"attention_bias": true}, []string{"attention_bias true"}},
		{map[string]any{"indexer_rope_interleave": false}, []string{"indexer_rope_interleave false"}},
		{map[string]any{"num_key_value_heads": 2}, []string{"num_key_value_heads 2"}},
		{map[string]any{"qk_head_dim": 50}, []string{"qk_head_dim 50", "48"}},
		{map[string]any{"qk_rope_head_dim": 15, "qk_head_dim": 47}, []string{"qk_rope_head_dim 15 is odd"}},
		{map[string]any{"index_head_dim": 8}, []string{"index_head_dim 8"}},
		{map[string]any{"num_experts_per_tok": 17}, []string{"num_experts_per_tok 17", "16"}},
		{map[string]any{"n_group": 3}, []string{"n_group 3"}},
		{map[string]any{"n_group": 8, "topk_group": 1}, []string{"num_experts_per_tok 4", "topk_group 1"}},
		{map[string]any{"n_group": 16, "topk_group": 4}, []string{"n_group 16"}},
		{map[string]any{"moe_layer_freq": 2}, []string{"moe_layer_freq 2"}},
		{map[string]any{"indexer_types": []string{"full"}}, []string{"indexer_types has 1 entries for 6 layers"}},
		{map[string]any{"indexer_types": []string{"shared", "full", "full", "full", "full", "full"}},
			[]string{"layer 0"}},
		{map[string]any{"index_topk_pattern": "FXFFFF"}, []string{"index_topk_pattern"}},
		{map[string]any{"mlp_layer_types": []string{"dense", "sparse", "moe", "sparse", "sparse", "sparse"}},
			[]string{`mlp_layer_types[2] is "moe"`}},
		{map[string]any{"eos_token_id": 2048}, []string{"eos_token_id 2048"}},
		{map[string]any{"eos_token_id": "</s>"}, []string{"eos_token_id"}},
		{map[string]any{"num_nextn_predict_layers": 3}, []string{"num_nextn_predict_layers is 3"}},
		{map[string]any{"rms_norm_eps": "1e-5"}, []string{"rms_norm_eps"}},
	} {
		_, err := parse(t, "tiny", tt.change)
		if err == nil {
			t.Errorf("%v: no error", tt.change)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: error %q lacks %q", tt.change, err, want)
			}
		}
	}
	for _, text := range []string{"", "null", "[]", "{", `{"model_type":1}`, strings.Repeat("[", 100000)} {
		if _, err := ParseConfig([]byte(text)); err == nil {
			t.Errorf("%.20q: no error", text)
		}
	}
}

func TestCheckTP(t *testing.T) {
	glm, tiny := mustParse(t, "glm-5", nil), mustParse(t, "tiny", nil)
	for _, n := range []int{1, 2, 4, 8} {
		for _, c := range []*Config{&glm, &tiny} {
			if err := c.CheckTP(n); err != nil {
				t.Error(err)
			}
		}
	}
	odd := mustParse(t, "tiny", map[string]any{"num_attention_heads": 6, "num_key_value_heads": 6,
		"moe_intermediate_size": 96, "intermediate_size": 100, "vocab_size": 2044})
	err := odd.CheckTP(8)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"8 ranks", "num_attention_heads 6", "moe_intermediate_size 96",
		"intermediate_size 100", "vocab_size 2044", "16"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	for _, n := range []int{-1, 0, 3, 16} {
		if err := tiny.CheckTP(n); err == nil {
			t.Errorf("%d ranks: no error", n)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, name := range Builtins {
		b, err := Builtin(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"model_type":"glm_moe_dsa","rope_scaling":{"type":"yarn"},"eos_token_id":[1]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseConfig(b)
		if err != nil {
			return
		}
		checkSound(t, &c)
	})
}

// checkSound: whatever is accepted has sizes that can be computed with.
func checkSound(t *testing.T, c *Config) {
	if len(c.Indexers) != c.Layers || len(c.DenseLayers) != c.Layers {
		t.Fatalf("%d layers, %d indexers, %d MLPs", c.Layers, len(c.Indexers), len(c.DenseLayers))
	}
	n := 0
	for w := range c.Tensors(true) {
		if w.Rows <= 0 || w.Cols < 0 || w.Params() <= 0 {
			t.Fatalf("%s has shape [%d, %d]", w.Name, w.Rows, w.Cols)
		}
		if n++; n == 1000 {
			break
		}
	}
	for _, tp := range []int{1, 2, 4, 8} {
		if c.CheckTP(tp) != nil {
			continue
		}
		for w := range c.LayerTensors(0) {
			if rows, cols := w.Share(tp); w.Split == Rows && rows*tp != w.Rows || w.Split == Cols && cols*tp != w.Cols {
				t.Fatalf("%s [%d, %d] does not divide by %d", w.Name, w.Rows, w.Cols, tp)
			}
		}
	}
}
