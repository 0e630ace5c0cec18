package synth

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/engine/modelopt"
	"glmbatch/kernels/nvfp4"
)

const (
	fp8Block = 128 // rows and columns of an FP8 weight that have one scale
	fp8Unit  = 100 // what a standard deviation is in codes' values, on average
)

// fp8ByDefault is what GLM-5's FP8 release stores as FP8.
func fp8ByDefault(t *glm5.Tensor) bool {
	return t.MayQuantize && t.Layer >= 0 && t.Part != glm5.Join && !strings.HasSuffix(t.Name, ".weights_proj.weight")
}

// fp8Entries are the tensors of one FP8 weight with scales for blocks.
func fp8Entries(t *glm5.Tensor) []checkpoint.Entry {
	return []checkpoint.Entry{
		{Name: t.Name, DType: checkpoint.F8, Shape: []int{t.Rows, t.Cols}},
		{Name: t.Name + "_scale_inv", DType: checkpoint.F32, Shape: []int{(t.Rows + fp8Block - 1) / fp8Block,
			(t.Cols + fp8Block - 1) / fp8Block}},
	}
}

// fp8 writes a weight of random codes, whose blocks' scales differ by up to two.
func (s *Synth) fp8(ctx context.Context, w *checkpoint.Writer, t *glm5.Tensor, rng *rand.PCG, buf []byte) error {
	var codes [normals]byte
	for i, q := range s.normal {
		codes[i] = nvfp4.EncodeE4M3(q * fp8Unit)
	}
	for at := int64(0); at < t.Params(); at += checkpoint.Chunk {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		b := buf[:min(checkpoint.Chunk, t.Params()-at)]
		for i := 0; i < len(b); i += 5 {
			r := rng.Uint64()
			for j := i; j < min(i+5, len(b)); j++ {
				b[j] = codes[r%normals]
				r /= normals
			}
		}
		if err := w.Write(t.Name, at, b); err != nil {
			return err
		}
	}
	var scales []byte
	for range fp8Entries(t)[1].Shape[0] * fp8Entries(t)[1].Shape[1] {
		part := math.Exp2(float64(rng.Uint64()%1024)/1024 - .5)
		scales = binary.LittleEndian.AppendUint32(scales, math.Float32bits(float32(s.std(t)/fp8Unit*part)))
	}
	return w.Write(t.Name+"_scale_inv", 0, scales)
}

// writeFP8Config is modelopt.WriteConfigs for FP8 weights with scales for blocks.
func writeFP8Config(w *checkpoint.Writer, m map[string]any, ignore []string) error {
	m["quantization_config"] = map[string]any{
		"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
		"weight_block_size": []int{fp8Block, fp8Block}, "modules_to_not_convert": ignore,
	}
	return modelopt.WriteJSON(w, checkpoint.ConfigFile, m)
}
