package modelopt

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels/nvfp4"
)

// producer is what wrote the quantised weights; the version is that of the
// ModelOpt release whose form they have.
var producer = map[string]string{"name": "glmbatch", "version": "1"}

// WriteConfigs writes config.json and, if weights are quantised,
// hf_quant_config.json, as ModelOpt exports them. inputs: 4-bit activations
// have scales.
func WriteConfigs(w *checkpoint.Writer, m map[string]any, ignore []string, quantized, inputs bool) error {
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
		err := WriteJSON(w, checkpoint.QuantFile, map[string]any{"producer": producer, "quantization": map[string]any{
			"quant_algo": algo, "kv_cache_quant_algo": nil, "group_size": 16, "exclude_modules": ignore,
		}})
		if err != nil {
			return err
		}
	}
	return WriteJSON(w, checkpoint.ConfigFile, m)
}

// Ignored lists the modules that are not quantised in as few patterns as
// ModelOpt's exports have: whole layers, a layer's attention, its shared
// experts, else names.
func Ignored(c *glm5.Config, quantized func(*glm5.Tensor) bool) []string {
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

// WriteJSON writes a file beside the weights.
func WriteJSON(w *checkpoint.Writer, name string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return w.WriteFile(name, append(b, '\n'))
}

// Quantized is what NVIDIA's releases store as NVFP4.
func Quantized(t *glm5.Tensor) bool { return t.Part == glm5.Routed && !t.MTP }

// Entries are the tensors of one NVFP4 weight in ModelOpt's form.
func Entries(module string, rows, cols int, input bool) []checkpoint.Entry {
	es := []checkpoint.Entry{
		{Name: module + ".weight", DType: checkpoint.U8, Shape: []int{rows, cols / 2}},
		{Name: module + ".weight_scale", DType: checkpoint.F8, Shape: []int{rows, cols / nvfp4.Block}},
		{Name: module + ".weight_scale_2", DType: checkpoint.F32},
	}
	if input {
		es = append(es, checkpoint.Entry{Name: module + ".input_scale", DType: checkpoint.F32})
	}
	return es
}

// WriteScales writes the scalars of an NVFP4 weight; an input of 0 is none.
func WriteScales(w *checkpoint.Writer, module string, global, input float32) error {
	if err := w.Write(module+".weight_scale_2", 0,
		binary.LittleEndian.AppendUint32(nil, math.Float32bits(global))); err != nil || input == 0 {
		return err
	}
	return w.Write(module+".input_scale", 0, binary.LittleEndian.AppendUint32(nil, math.Float32bits(input)))
}
