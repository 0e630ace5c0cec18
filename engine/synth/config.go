package synth

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
)

// Options say which config: a built-in one or a file's, and what is changed, in this
// order: all widths, single sizes, members. A zero changes nothing.
type Options struct {
	Config  string  // glm-5, glm-5.2, tiny, or a config.json or its folder
	Scale   float64 // factor for all widths, ranks, head counts and the vocabulary
	Layers  int
	Hidden  int
	Experts int
	TopK    int
	Heads   int
	Vocab   int
	Set     []string // key=value for any member of config.json
	MTP     bool     // keep the prediction layer, if the config has one
}

// readModelConfig returns the members of a built-in config, of a file, or of
// the config.json of a folder, without what it says about quantisation.
func readModelConfig(name string) (map[string]any, error) {
	var b []byte
	var err error
	switch info, statErr := os.Stat(name); {
	case name == "":
		return nil, fmt.Errorf("--config is missing: give %s, or a config.json", strings.Join(glm5.Builtins, ", "))
	case slices.Contains(glm5.Builtins, name):
		b, err = glm5.Builtin(name)
	case statErr != nil:
		return nil, fmt.Errorf("--config %q is neither a file nor one of %s", name, strings.Join(glm5.Builtins, ", "))
	case info.IsDir():
		b, err = checkpoint.ReadSide(filepath.Join(name, "config.json"))
	default:
		b, err = checkpoint.ReadSide(name)
	}
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("%s is not a JSON object: %w", name, err)
	}
	delete(m, "quantization_config")
	return m, nil
}

// setLayers changes the count of layers and cuts lists that have one entry a layer.
func setLayers(m map[string]any, n int) {
	m["num_hidden_layers"] = n
	for _, name := range []string{"indexer_types", "mlp_layer_types", "layer_types"} {
		list, ok := m[name].([]any)
		switch {
		case !ok:
		case n > 0 && len(list) > n:
			m[name] = list[:n]
		case len(list) < n:
			// Longer: as the config's rules by number go on.
			delete(m, name)
		}
	}
	if p, ok := m["index_topk_pattern"].(string); ok && len(p) < n {
		delete(m, "index_topk_pattern")
	}
}

// setField sets a member from "key=value", the value as JSON or as plain text.
func setField(m map[string]any, pair string) error {
	key, value, ok := strings.Cut(pair, "=")
	if !ok || key == "" {
		return fmt.Errorf("--set %q: it must be key=value, hidden_size=1536 say", pair)
	}
	var v any
	if json.Unmarshal([]byte(value), &v) != nil {
		v = value
	}
	if n, ok := v.(float64); ok && key == "num_hidden_layers" && n == math.Trunc(n) && math.Abs(n) < 1e6 {
		setLayers(m, int(n))
		return nil
	}
	m[key] = v
	return nil
}

// setHeads keeps fields that repeat the count of heads in step with it.
func setHeads(m map[string]any, n int) {
	m["num_attention_heads"] = n
	if _, ok := m["num_key_value_heads"]; ok {
		m["num_key_value_heads"] = n
	}
}

// widths are scaled by --scale, each to a multiple that kernels and eight ranks like.
var widths = map[string]int{
	"hidden_size": 128, "intermediate_size": 128, "moe_intermediate_size": 128, "vocab_size": 128,
	"q_lora_rank": 64, "kv_lora_rank": 64, "num_attention_heads": 8, "index_n_heads": 8,
}

func scaleWidths(m map[string]any, by float64) {
	for name, unit := range widths {
		v, ok := m[name].(float64)
		if !ok {
			continue
		}
		n := max(1, int(math.Round(v*by/float64(unit)))) * unit
		if name == "num_attention_heads" {
			setHeads(m, n)
		} else {
			m[name] = n
		}
	}
}

// finishConfig checks the config and returns it with its file.
func finishConfig(m map[string]any) (glm5.Config, error) {
	// End tokens of the original need not be in a smaller vocabulary.
	if v, ok := number(m["vocab_size"]); ok {
		if !inVocab(m["eos_token_id"], v) {
			m["eos_token_id"] = []int{int(v) - 1}
		}
		if !inVocab(m["pad_token_id"], v) {
			m["pad_token_id"] = int(v) - 1
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		return glm5.Config{}, err
	}
	c, err := glm5.ParseConfig(b)
	if err != nil {
		return c, errors.Join(errors.New("the config that results cannot be used"), err)
	}
	return c, nil
}

func inVocab(id any, vocab float64) bool {
	switch id := id.(type) {
	case nil:
		return true
	case []any:
		for _, x := range id {
			if !inVocab(x, vocab) {
				return false
			}
		}
		return true
	default:
		n, ok := number(id)
		return ok && n >= 0 && n < vocab
	}
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	}
	return 0, false
}

// Resolve returns the members of config.json that the options make, and what they mean.
func (o *Options) Resolve() (map[string]any, glm5.Config, error) {
	m, err := readModelConfig(o.Config)
	if err != nil {
		return nil, glm5.Config{}, err
	}
	if o.Scale < 0 || o.Scale > 64 || o.Scale != o.Scale {
		return nil, glm5.Config{}, fmt.Errorf("--scale %g: it must be above 0 and at most 64", o.Scale)
	}
	if o.Scale != 0 && o.Scale != 1 {
		scaleWidths(m, o.Scale)
	}
	sizes := []struct {
		flag  string
		value int
		set   func(int)
	}{
		{"layers", o.Layers, func(n int) { setLayers(m, n) }},
		{"hidden", o.Hidden, func(n int) { m["hidden_size"] = n }},
		{"experts", o.Experts, func(n int) { m["n_routed_experts"] = n }},
		{"top-k", o.TopK, func(n int) { m["num_experts_per_tok"] = n }},
		{"heads", o.Heads, func(n int) { setHeads(m, n) }},
		{"vocab", o.Vocab, func(n int) { m["vocab_size"] = n }},
	}
	for _, s := range sizes {
		switch {
		case s.value < 0:
			return nil, glm5.Config{}, fmt.Errorf("--%s %d: it must be above 0", s.flag, s.value)
		case s.value > 0:
			s.set(s.value)
		}
	}
	for _, pair := range o.Set {
		if err := setField(m, pair); err != nil {
			return nil, glm5.Config{}, err
		}
	}
	if !o.MTP {
		m["num_nextn_predict_layers"] = 0
	}
	c, err := finishConfig(m)
	return m, c, err
}
