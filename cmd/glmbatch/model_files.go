package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
)

// What goes into a checkpoint that glmbatch writes, besides weights.

// producer is what wrote the quantised weights; the version is that of the
// ModelOpt release whose form they have.
var producer = map[string]string{"name": "glmbatch", "version": "1"}

// writeConfigs writes config.json and, if weights are quantised,
// hf_quant_config.json, as ModelOpt exports them. inputs: 4-bit activations
// have scales.
func writeConfigs(w *checkpoint.Writer, m map[string]any, ignore []string, quantized, inputs bool) error {
	delete(m, "quantization_config")
	if quantized {
		four := map[string]any{"dynamic": false, "num_bits": 4, "type": "float", "group_size": 16}
		group := map[string]any{"weights": four, "targets": []string{"Linear"}}
		algo := "W4A16_NVFP4"
		if inputs {
			group["input_activations"] = four
			algo = "NVFP4"
		}
		m["quantization_config"] = map[string]any{
			"quant_method": "modelopt", "quant_algo": algo, "producer": producer,
			"config_groups": map[string]any{"group_0": group}, "ignore": ignore,
		}
		err := writeJSON(w, checkpoint.QuantFile, map[string]any{"producer": producer, "quantization": map[string]any{
			"quant_algo": algo, "kv_cache_quant_algo": nil, "group_size": 16, "exclude_modules": ignore,
		}})
		if err != nil {
			return err
		}
	}
	return writeJSON(w, checkpoint.ConfigFile, m)
}

// writeFP8Config is writeConfigs for FP8 weights with scales for blocks.
func writeFP8Config(w *checkpoint.Writer, m map[string]any, ignore []string) error {
	m["quantization_config"] = map[string]any{
		"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
		"weight_block_size": []int{fp8Block, fp8Block}, "modules_to_not_convert": ignore,
	}
	return writeJSON(w, checkpoint.ConfigFile, m)
}

func writeJSON(w *checkpoint.Writer, name string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return w.WriteFile(name, append(b, '\n'))
}

// ignored lists the modules that are not quantised in as few patterns as
// ModelOpt's exports have: whole layers, a layer's attention, its shared
// experts, else names.
func ignored(c *glm5.Config, quantized func(*glm5.Tensor) bool) []string {
	var list []string
	for layer := -1; layer < c.AllLayers(); layer++ {
		at := ""
		if layer >= 0 {
			at = glm5.LayerPrefix(layer)
		}
		groups := []string{at + "self_attn", at + "mlp.shared_experts"}
		any := map[string]bool{} // of groups and, under "", of the layer
		var plain []string
		for t := range c.LayerTensors(layer) {
			if t.Cols == 0 {
				continue
			}
			in := t.Module()
			for _, g := range groups {
				if layer >= 0 && strings.HasPrefix(in, g+".") {
					in = g
				}
			}
			if quantized(&t) {
				any[""], any[in] = true, true
			} else {
				plain = append(plain, t.Module())
			}
		}
		if layer >= 0 && !any[""] {
			list = append(list, at+"*")
			continue
		}
		for _, m := range plain {
			for _, g := range groups {
				if layer >= 0 && strings.HasPrefix(m, g+".") && !any[g] {
					m = g + "*"
				}
			}
			if !slices.Contains(list, m) {
				list = append(list, m)
			}
		}
	}
	return list
}

const maxSideFile = 512 << 20 // of a tokenizer or a template

// copySideFiles copies what lies beside the weights: tokenizer, template,
// generation settings, licence. only, if not nil, are the names wanted.
func copySideFiles(w *checkpoint.Writer, dir string, only []string) (copied []string, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		name := e.Name()
		switch ext := filepath.Ext(name); {
		case strings.HasPrefix(name, "."):
			continue
		case name == checkpoint.ConfigFile, name == checkpoint.QuantFile, strings.HasSuffix(name, ".index.json"):
			continue
		case ext == ".safetensors" || ext == ".bin" || ext == ".pt" || ext == ".gguf":
			continue
		case only != nil && !slices.Contains(only, name):
			continue
		}
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		b, err := readSide(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if err := w.WriteFile(name, b); err != nil {
			return nil, err
		}
		copied = append(copied, name)
	}
	return copied, nil
}

// readSide reads a file that stands beside a checkpoint's weights. What is no
// file is refused unopened: to open a pipe is to wait for a writer.
func readSide(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Size() > maxSideFile:
		return nil, fmt.Errorf("%s has %s: no file beside the weights is that large; move it away", path, bytesText(info.Size()))
	}
	return os.ReadFile(path)
}
