package glm5_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"glmbatch/datasets/demo"
	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
)

// TestFolders: what users have in a folder, and what is said of it, the cheapest check
// first.
func TestFolders(t *testing.T) {
	const weights, index = "model.safetensors", "model.safetensors.index.json"
	type files = map[string][]byte
	set := func(pairs ...any) func(files) { // of config.json
		return func(f files) {
			var m map[string]any
			if err := json.Unmarshal(f["config.json"], &m); err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(pairs); i += 2 {
				if m[pairs[i].(string)] = pairs[i+1]; pairs[i+1] == nil {
					delete(m, pairs[i].(string))
				}
			}
			b, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			f["config.json"] = b
		}
	}
	all := func(edits ...func(files)) func(files) {
		return func(f files) {
			for _, e := range edits {
				e(f)
			}
		}
	}
	put := func(name, text string) func(files) { return func(f files) { f[name] = []byte(text) } }
	move := func(from, to string) func(files) {
		return func(f files) { f[to] = f[from]; delete(f, from) }
	}
	quant := func(text string) func(files) { return set("quantization_config", json.RawMessage(text)) }
	lfs := "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
	gone := func(f files) { delete(f, weights) }
	for _, tt := range []struct {
		name string
		edit func(files)
		want string // "": it runs
	}{
		{"as it is", func(files) {}, ""},
		{"another model", set("model_type", "deepseek_v32"), `model_type "deepseek_v32"`},
		{"another model, of a format that is not read",
			all(set("model_type", "llama"), quant(`{"quant_method":"gptq"}`)), `model_type "llama"`},
		{"another model without weights", all(set("model_type", "llama"), gone), `model_type "llama"`},
		{"another architecture", set("architectures", []string{"LlamaForCausalLM"}), "LlamaForCausalLM"},
		{"no model_type", set("model_type", nil), "model_type"},
		{"a format that is not read, without weights", all(quant(`{"quant_method":"gptq"}`), gone), `"gptq"`},
		{"bitsandbytes", quant(`{"quant_method":"bitsandbytes"}`), `"bitsandbytes"`},
		{"AWQ", quant(`{"quant_method":"awq","bits":4}`), `"awq"`},
		{"packed integers", quant(`{"quant_method":"compressed-tensors","format":"pack-quantized"}`),
			`"pack-quantized"`},
		{"FP8 without weights", all(quant(`{"quant_method":"fp8","weight_block_size":[128,128]}`), gone), "neither"},
		{"an FP8 config of other weights", quant(`{"quant_method":"fp8","weight_block_size":[128,128]}`), ""},
		{"a block size that is none", quant(`{"quant_method":"fp8","weight_block_size":[128]}`), "weight_block_size"},
		{"an expression of Python's",
			quant(`{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","ignore":["re:^(?!.*mlp).*$"]}`), ""},
		{"an online transform",
			quant(`{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","transform_config":{"config_groups":{"R4":{"type":"hadamard","apply":[{"targets":["re:.*down_proj$"],"location":"input"}]}}}}`),
			"model.layers.0.mlp.down_proj.weight is right only after"},
		{"a transform that the weights have",
			quant(`{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","transform_config":{"config_groups":{"R1":{"type":"hadamard","apply":[{"targets":["Linear"],"location":"weight_output"}]}}}}`), ""},
		{"saved by transformers 5.18", set("layer_types", []string{"indexed_attention", "indexed_attention",
			"indexed_attention", "indexed_attention", "indexed_attention", "indexed_attention"}), ""},
		{"a kind of layer that is not known", set("layer_types", []string{"some_attention"}), ""},
		{"fields that are not known", set("brand_new", map[string]any{"a": 1}), ""},
		{"no weights", gone, "neither"},
		{"GGUF only", all(gone, put("GLM-5-Q4.gguf", "GGUF")), `"GLM-5-Q4.gguf" is GGUF`},
		{"GGUF and no config", all(gone, put("GLM-5-Q4.gguf", "GGUF"), func(f files) {
			delete(f, "config.json")
		}), "GGUF"},
		{"PyTorch files", all(gone, put("pytorch_model.bin", "PK")), `"pytorch_model.bin" is a PyTorch file`},
		{"an adapter", all(gone, put("adapter_config.json", "{}"), func(f files) { delete(f, "config.json") }), "LoRA"},
		{"weights without a config", func(f files) {
			delete(f, "config.json")
		}, `it has weights ("model.safetensors") but no config.json`},
		{"an empty folder", func(f files) { clear(f) }, "it has no config.json"},
		{"an LFS pointer for weights", put(weights, lfs), "git lfs pull"},
		{"an LFS pointer for the config", put("config.json", lfs), "git lfs pull"},
		{"an LFS pointer for the index", put(index, lfs), "git lfs pull"},
		{"a web page for weights", put(weights, "<!DOCTYPE html><html>"), "a web page"},
		{"a web page for the config", put("config.json", "\n<html>"), "a web page"},
		{"GGUF under another name", put(weights, "GGUF\x03\x00\x00\x00"), "GGUF"},
		{"PyTorch under another name", put(weights, "PK\x03\x04\x00\x00\x00\x00"), "PyTorch"},
		{"empty weights", put(weights, ""), "0 bytes"},
		{"half of the weights", func(f files) { f[weights] = f[weights][:len(f[weights])/2] }, "truncated"},
		{"a download that is not finished", all(gone, put("model.safetensors.incomplete", "x")), "unfinished"},
		{"one of many files, without an index", move(weights, "model-00001-of-00001.safetensors"), ""},
		{"a file of another name, without an index", move(weights, "weights.safetensors"), ""},
		{"one of three files, without an index", move(weights, "model-00002-of-00003.safetensors"),
			"2 of 3 weight files are missing, download them: model-00001-of-00003.safetensors"},
		{"the same tensors twice", func(f files) {
			f["a.safetensors"] = f[weights]
			f["b.safetensors"] = f[weights]
			delete(f, weights)
		}, "is in a.safetensors and in b.safetensors"},
		{"an index of a missing file", put(index, `{"weight_map":{"model.norm.weight":"model-1.safetensors"}}`),
			"1 of 1 weight files are missing"},
		{"an index entry that nobody needs",
			put(index,
				`{"weight_map":{"model.norm.weight":"model.safetensors","model.layers.9.x":"extra.safetensors","y":"model.safetensors"}}`), ""},
		{"an index of files elsewhere", put(index, `{"weight_map":{"a":"../a.safetensors"}}`), `"../a.safetensors"`},
		{"an index that is none", put(index, `[]`), "a JSON object is expected"},
		{"a config that is none", put("config.json", "[]"), "a JSON object is expected, not array"},
		{"another width", set("hidden_size", 512), "config.json says"},
		{"more layers", set("num_hidden_layers", 9), "indexer_types has 6 entries for 9 layers"},
		{"rotation of another kind", set("rope_parameters", map[string]any{"rope_type": "yarn", "rope_theta": 1e4}),
			`"yarn"`},
		{"a tensor with a terminal's letters", func(f files) {
			f[weights] = bytes.Replace(f[weights], []byte(`"model.norm.weight"`), []byte(`"model.\u001b[2Jght"`), 1)
		}, `\x1b[2J`},
	} {
		f := maps.Clone(demo.Files())
		tt.edit(f)
		err := func() error {
			ck, err := checkpoint.FromFiles(f, glm5.Accept)
			if err != nil {
				return err
			}
			defer ck.Close()
			c, err := glm5.ParseConfig(ck.Config())
			if err != nil {
				return err
			}
			return c.Check(ck, glm5.Options{})
		}()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
