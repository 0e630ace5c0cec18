package main

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"glmbatch/engine/checkpoint"
	"glmbatch/engine/glm5"
	"glmbatch/kernels/nvfp4"
)

// synth makes random weights, each from the seed and its own name alone.
//
// A Linear's values have variance 1/columns, so a normed input gives outputs of
// variance 1. Those that are added to the residual stream are smaller by
// 1/sqrt(2 layers), so its variance stays about 1 through all of them.
type synth struct {
	c       *glm5.Config
	seed    uint64
	weights string // nvfp4: of routed experts; fp8: of the layers' Linears; bf16
	tensors []glm5.Tensor
	entries []checkpoint.Entry
	params  int64
	bytes   int64
	normal  [normals]float32 // standard normal quantiles
	scaleSq float64          // mean square of blockScales
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

func newSynth(c *glm5.Config, seed uint64, weights string) *synth {
	s := &synth{c: c, seed: seed, weights: weights}
	for i := range s.normal {
		p := (float64(i) + .5) / normals
		s.normal[i] = float32(math.Sqrt2 * math.Erfinv(2*p-1))
	}
	for b := lowScale; b <= highScale; b++ {
		s.scaleSq += float64(nvfp4.E4M3[b]) * float64(nvfp4.E4M3[b]) / (highScale - lowScale + 1)
	}
	for t := range c.Tensors(true) {
		s.tensors = append(s.tensors, t)
		s.params += t.Params()
		s.entries = append(s.entries, s.stored(&t)...)
	}
	for i := range s.entries {
		s.bytes += s.entries[i].Size()
	}
	return s
}

// quantizes reports whether a weight is stored as NVFP4 or FP8.
func (s *synth) quantizes(t *glm5.Tensor) bool {
	return s.weights == "nvfp4" && quantizedByDefault(t) || s.weights == "fp8" && fp8ByDefault(t)
}

// quantizedByDefault is what NVIDIA's releases store as NVFP4.
func quantizedByDefault(t *glm5.Tensor) bool { return t.Part == glm5.Routed && !t.MTP }

// stored lists the entries that a weight becomes.
func (s *synth) stored(t *glm5.Tensor) []checkpoint.Entry {
	switch {
	case s.quantizes(t) && s.weights == "fp8":
		return fp8Entries(t)
	case s.quantizes(t):
		return fp4Entries(t.Module(), t.Rows, t.Cols, true)
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

// fp4Entries are the tensors of one NVFP4 weight in ModelOpt's form.
func fp4Entries(module string, rows, cols int, input bool) []checkpoint.Entry {
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

// write makes all weights, on as many goroutines as there are processors.
func (s *synth) write(ctx context.Context, w *checkpoint.Writer) error {
	return eachIndex(ctx, len(s.tensors), func(ctx context.Context, i int, buf []byte) error {
		return s.tensor(ctx, w, &s.tensors[i], buf)
	})
}

// chunk is the buffer of one goroutine: it bounds the memory of any weight.
const chunk = 4 << 20

// eachIndex calls do for 0 to n-1 on several goroutines until one fails or ctx
// ends. Each has a buffer of chunk bytes.
func eachIndex(ctx context.Context, n int, do func(ctx context.Context, i int, buf []byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			buf := make([]byte, chunk)
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return
				}
				if err := do(ctx, i, buf); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (s *synth) tensor(ctx context.Context, w *checkpoint.Writer, t *glm5.Tensor, buf []byte) error {
	rng := s.random(t.Name)
	switch {
	case s.quantizes(t) && s.weights == "fp8":
		return s.fp8(ctx, w, t, rng, buf)
	case s.quantizes(t):
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
	for at := int64(0); at < size; at += chunk {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		b := buf[:min(chunk, size-at)]
		fillBF16(b, table, rng)
		if err := w.Write(t.Name, at, b); err != nil {
			return err
		}
	}
	return nil
}

// values returns the BF16 bits that the weight's values are drawn from.
func (s *synth) values(t *glm5.Tensor) *[normals]uint16 {
	mean, std := 0., s.std(t)
	if t.Cols == 0 {
		std = 0
		if !strings.HasSuffix(t.Name, ".bias") {
			mean = 1
		}
	}
	var table [normals]uint16
	for i, q := range s.normal {
		table[i] = bf16(float32(mean + std*float64(q)))
	}
	return &table
}

func (s *synth) std(t *glm5.Tensor) float64 {
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
func (s *synth) expert(ctx context.Context, w *checkpoint.Writer, t *glm5.Tensor, rng *rand.PCG, buf []byte) error {
	module := t.Module()
	size := t.Params() / 2
	for at := int64(0); at < size; at += chunk {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		b := buf[:min(chunk, size-at)]
		for i := 0; i < len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], rng.Uint64()|7)
		}
		if err := w.Write(t.Name, at, b); err != nil {
			return err
		}
	}
	size = t.Params() / nvfp4.Block
	for at := int64(0); at < size; at += chunk {
		b := buf[:min(chunk, size-at)]
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
	return writeScales(w, module, global, synthInput)
}

// writeScales writes the scalars of an NVFP4 weight; an input of 0 is none.
func writeScales(w *checkpoint.Writer, module string, global, input float32) error {
	if err := w.Write(module+".weight_scale_2", 0, binary.LittleEndian.AppendUint32(nil, math.Float32bits(global))); err != nil || input == 0 {
		return err
	}
	return w.Write(module+".input_scale", 0, binary.LittleEndian.AppendUint32(nil, math.Float32bits(input)))
}

func (s *synth) random(name string) *rand.PCG {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.NewPCG(s.seed, h.Sum64())
}

// bf16 rounds to nearest, ties to even.
func bf16(x float32) uint16 {
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
