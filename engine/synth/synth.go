package synth

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/engine/modelopt"
	"glmbatch/kernels/nvfp4"
)

// Synth makes random weights, each from the seed and its own name alone.
//
// A Linear's values have variance 1/columns, so a normed input gives outputs of
// variance 1. Those that are added to the residual stream are smaller by
// 1/sqrt(2 layers), so its variance stays about 1 through all of them.
type Synth struct {
	c       *glm5.Config
	seed    uint64
	weights string // nvfp4: of routed experts; fp8: of the layers' Linears; bf16
	tensors []glm5.Tensor
	normal  [normals]float32 // standard normal quantiles
	scaleSq float64          // mean square of blockScales

	Entries []checkpoint.Entry // what is written
	Params  int64
	Bytes   int64 // of Entries
}

// normals is how many different values a BF16 weight takes, before rounding.
const normals = 4096

// blockScales are the E4M3 scales of random blocks: 120 to 448, all the values there.
const (
	lowScale  = 0x6f
	highScale = 0x7e
)

// synthInput is the input scale for activations up to 6, as normed ones are.
const synthInput = 6.0 / (nvfp4.MaxE2M1 * nvfp4.MaxE4M3)

// New lays out random weights of a config; weights says which form they have: nvfp4 (the
// routed experts), fp8 (the layers' Linears) or bf16 (all).
func New(c *glm5.Config, seed uint64, weights string) *Synth {
	s := &Synth{c: c, seed: seed, weights: weights}
	for i := range s.normal {
		p := (float64(i) + .5) / normals
		s.normal[i] = float32(math.Sqrt2 * math.Erfinv(2*p-1))
	}
	for b := lowScale; b <= highScale; b++ {
		s.scaleSq += float64(nvfp4.E4M3[b]) * float64(nvfp4.E4M3[b]) / (highScale - lowScale + 1)
	}
	for t := range c.Tensors(true) {
		s.tensors = append(s.tensors, t)
		s.Params += t.Params()
		s.Entries = append(s.Entries, s.stored(&t)...)
	}
	for i := range s.Entries {
		s.Bytes += s.Entries[i].Size()
	}
	return s
}

// Quantizes reports whether a weight is stored as NVFP4 or FP8.
func (s *Synth) Quantizes(t *glm5.Tensor) bool {
	return s.weights == "nvfp4" && modelopt.Quantized(t) || s.weights == "fp8" && fp8ByDefault(t)
}

// stored lists the entries that a weight becomes.
func (s *Synth) stored(t *glm5.Tensor) []checkpoint.Entry {
	switch {
	case s.Quantizes(t) && s.weights == "fp8":
		return fp8Entries(t)
	case s.Quantizes(t):
		return modelopt.Entries(t.Module(), t.Rows, t.Cols, true)
	}
	e := checkpoint.Entry{Name: t.Name, DType: checkpoint.BF16, Shape: []int{t.Rows}}
	if t.Cols > 0 {
		e.Shape = append(e.Shape, t.Cols)
	}
	if isRouterBias(t.Name) {
		e.DType = checkpoint.F32
	}
	return []checkpoint.Entry{e}
}

func isRouterBias(name string) bool { return strings.HasSuffix(name, "e_score_correction_bias") }

// Write makes all weights, on as many goroutines as there are processors.
func (s *Synth) Write(ctx context.Context, w *checkpoint.Writer) error {
	return checkpoint.EachIndex(ctx, len(s.tensors), func(ctx context.Context, i int, buf []byte) error {
		return s.tensor(ctx, w, &s.tensors[i], buf)
	})
}

// WriteConfig writes the config, whose members are m.
func (s *Synth) WriteConfig(w *checkpoint.Writer, m map[string]any) error {
	ignore := modelopt.Ignored(s.c, s.Quantizes)
	if s.weights == "fp8" {
		return writeFP8Config(w, m, ignore)
	}
	return modelopt.WriteConfigs(w, m, ignore, s.weights == "nvfp4", true)
}

func (s *Synth) tensor(ctx context.Context, w *checkpoint.Writer, t *glm5.Tensor, buf []byte) error {
	rng := s.random(t.Name)
	switch {
	case s.Quantizes(t) && s.weights == "fp8":
		return s.fp8(ctx, w, t, rng, buf)
	case s.Quantizes(t):
		return s.expert(ctx, w, t, rng, buf)
	}
	if isRouterBias(t.Name) {
		b := buf[:0]
		for range t.Rows {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(s.normal[rng.Uint64()%normals]*.01))
		}
		return w.Write(t.Name, 0, b)
	}
	table := s.values(t)
	size := t.Params() * 2
	for at := int64(0); at < size; at += checkpoint.Chunk {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		b := buf[:min(checkpoint.Chunk, size-at)]
		fillBF16(b, table, rng)
		if err := w.Write(t.Name, at, b); err != nil {
			return err
		}
	}
	return nil
}

// values returns the BF16 bits that the weight's values are drawn from.
func (s *Synth) values(t *glm5.Tensor) *[normals]uint16 {
	mean, std := 0., s.std(t)
	if t.Cols == 0 {
		std = 0
		if !strings.HasSuffix(t.Name, ".bias") {
			mean = 1
		}
	}
	var table [normals]uint16
	for i, q := range s.normal {
		table[i] = BF16(float32(mean + std*float64(q)))
	}
	return &table
}

func (s *Synth) std(t *glm5.Tensor) float64 {
	switch {
	case t.Part == glm5.Embedding || t.Cols == 0:
		return 1
	case strings.HasSuffix(t.Name, "o_proj.weight") || strings.HasSuffix(t.Name, "down_proj.weight"):
		return 1 / math.Sqrt(float64(t.Cols)*2*float64(s.c.Layers))
	}
	return 1 / math.Sqrt(float64(t.Cols))
}

func fillBF16(b []byte, table *[normals]uint16, rng *rand.PCG) {
	for len(b) >= 10 {
		r := rng.Uint64()
		binary.LittleEndian.PutUint16(b, table[r&4095])
		binary.LittleEndian.PutUint16(b[2:], table[r>>12&4095])
		binary.LittleEndian.PutUint16(b[4:], table[r>>24&4095])
		binary.LittleEndian.PutUint16(b[6:], table[r>>36&4095])
		binary.LittleEndian.PutUint16(b[8:], table[r>>48&4095])
		b = b[10:]
	}
	for len(b) >= 2 {
		binary.LittleEndian.PutUint16(b, table[rng.Uint64()&4095])
		b = b[2:]
	}
}

// codesSq is the mean square of a block's codes: fifteen drawn evenly from the
// eight magnitudes, with (0 + .25 + … + 36) / 8, and a 6.
const codesSq = (15*68.5/8 + 36) / 16

// expert writes a weight of even codes and even scales. Each block's first code
// is ±6 and the first block's scale is 448, as quantisation makes them.
func (s *Synth) expert(ctx context.Context, w *checkpoint.Writer, t *glm5.Tensor, rng *rand.PCG, buf []byte) error {
	module := t.Module()
	size := t.Params() / 2
	for at := int64(0); at < size; at += checkpoint.Chunk {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		b := buf[:min(checkpoint.Chunk, size-at)]
		for i := 0; i < len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], rng.Uint64()|7)
		}
		if err := w.Write(t.Name, at, b); err != nil {
			return err
		}
	}
	size = t.Params() / nvfp4.Block
	for at := int64(0); at < size; at += checkpoint.Chunk {
		b := buf[:min(checkpoint.Chunk, size-at)]
		for i := 0; i < len(b); i += 16 {
			r := rng.Uint64()
			for j := i; j < min(i+16, len(b)); j++ {
				b[j] = lowScale + byte(r&15)
				r >>= 4
			}
		}
		if at == 0 {
			b[0] = highScale
		}
		if err := w.Write(module+".weight_scale", at, b); err != nil {
			return err
		}
	}
	global := float32(s.std(t) / math.Sqrt(codesSq*s.scaleSq))
	return modelopt.WriteScales(w, module, global, synthInput)
}

func (s *Synth) random(name string) *rand.PCG {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.NewPCG(s.seed, h.Sum64())
}

// BF16 rounds to nearest, ties to even.
func BF16(x float32) uint16 {
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
