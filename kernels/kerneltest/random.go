package kerneltest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"glmbatch/kernels"
)

// seeded returns the generator of one thing of one example.
func seeded(parts ...uint64) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, p := range parts {
		h = (h ^ p) * 1099511628211
		h ^= h >> 29
	}
	return rand.New(rand.NewPCG(h, 0x9e3779b97f4a7c15))
}

func normals(r *rand.Rand, n int, scale float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64() * scale)
	}
	return v
}

func putFloats(v []float32) []byte {
	b := make([]byte, 4*len(v))
	for i, f := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(f))
	}
	return b
}

func putInts(v []int32) []byte {
	b := make([]byte, 4*len(v))
	for i, n := range v {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(n))
	}
	return b
}

func float32At(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

func getFloats(b []byte) []float64 {
	v := make([]float64, len(b)/4)
	for i := range v {
		v[i] = float64(float32At(b, i))
	}
	return v
}

func getInts(b []byte) []int32 {
	v := make([]int32, len(b)/4)
	for i := range v {
		v[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// Number formats, by their definitions.

func bf16(b []byte) float64 {
	return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
}

func putBF16(b []byte, v float64) {
	u := math.Float32bits(float32(v))
	binary.LittleEndian.PutUint16(b, uint16((u+0x7fff+u>>16&1)>>16))
}

// roundBF16 rounds a value to float32 and that to BF16.
func roundBF16(v float64) float64 {
	var b [2]byte
	putBF16(b[:], v)
	return bf16(b[:])
}

// e4m3 are the values of all codes: sign, 4 bits of exponent with bias 7, 3 bits of
// mantissa.
var e4m3 = func() (values [256]float64) {
	for c := range values {
		e, m := c>>3&15, float64(c&7)
		v := math.Ldexp(1+m/8, e-7)
		if e == 0 {
			v = math.Ldexp(m/8, -6)
		}
		if c&0x80 != 0 {
			v = -v
		}
		values[c] = v
	}
	return values
}()

// nearestE4M3 returns the code of the value that is nearest, ties to even, at most 448.
func nearestE4M3(v float64) byte {
	best, least := byte(0), math.Inf(1)
	for c := range byte(0x7f) {
		d := math.Abs(math.Abs(v) - e4m3[c])
		if d < least || d == least && c&1 == 0 {
			best, least = c, d
		}
	}
	if v < 0 {
		best |= 0x80
	}
	return best
}

var e2m1 = [16]float64{0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6}

// nearestE2M1 returns the value that is nearest, ties to the even code, at most 6.
func nearestE2M1(v float64) float64 {
	best, least := 0, math.Inf(1)
	for c, x := range e2m1[:8] {
		d := math.Abs(math.Abs(v) - x)
		if d < least || d == least && c&1 == 0 {
			best, least = c, d
		}
	}
	return math.Copysign(e2m1[best], v)
}

// weights makes count random matrices, each a function of the seed and its index.
type weights struct {
	kernels.Weights
	seed   uint64
	halves bool // FP4: the second half of the rows has a scale of its own
}

func newWeights(seed uint64, f kernels.Format, use kernels.Use, count, rows, cols int) *weights {
	w := &weights{seed: seed, halves: f == kernels.FP4 && rows%2 == 0 && seed%2 == 0}
	w.Weights = kernels.Weights{Name: "test.weight", Format: f, Use: use, Count: count, Rows: rows, Cols: cols}
	w.Read = func(i int, _ kernels.Alloc) (kernels.Matrix, error) { return w.matrix(i), nil }
	return w
}

func (w *weights) matrix(i int) kernels.Matrix {
	r := seeded(w.seed, uint64(i))
	m := kernels.Matrix{Global: 1, Data: make([]byte, kernels.WeightBytes(w.Format, int64(w.Rows), int64(w.Cols)))}
	n := w.Rows * w.Cols
	switch w.Format {
	case kernels.F32:
		for j := range n {
			binary.LittleEndian.PutUint32(m.Data[4*j:], math.Float32bits((r.Float32()-.5)/4))
		}
	case kernels.BF16:
		for j := range n {
			putBF16(m.Data[2*j:], (r.Float64()-.5)/4)
		}
	case kernels.FP8:
		m.Global = 0.5 + r.Float32()
		for j := range m.Data {
			m.Data[j] = byte(r.Uint32()&0x80) | byte(r.IntN(0x40))
		}
	case kernels.FP8B:
		scales := make([]float32, w.Rows*kernels.ScaleColumns(w.Cols))
		for j := range scales {
			scales[j] = float32(math.Ldexp(0.5+r.Float64(), -4-r.IntN(4)))
		}
		m.Data, m.Scales = m.Data[:n], putFloats(scales)
		for j := range m.Data { // subnormal ones too
			m.Data[j] = byte(r.Uint32()&0x80) | byte(r.IntN(0x40))
		}
	case kernels.FP4:
		m.Data, m.Scales = m.Data[:n/2], make([]byte, n/16)
		for j := range m.Data {
			m.Data[j] = byte(r.Uint32())
		}
		for j := range m.Scales {
			m.Scales[j] = byte(0x28 + r.IntN(0x28))
		}
		m.Global, m.Input = 0.01+r.Float32()/100, 0.001+r.Float32()/200
		if w.halves {
			m.GlobalUp = m.Global * 1.5
		}
	}
	return m
}

// values decodes matrix i, and returns the input scale for 4-bit activations.
func (w *weights) values(i int) (v []float64, input float64) {
	m := w.matrix(i)
	v = make([]float64, w.Rows*w.Cols)
	for j := range v {
		switch w.Format {
		case kernels.F32:
			v[j] = float64(float32At(m.Data, j))
		case kernels.BF16:
			v[j] = bf16(m.Data[2*j:])
		case kernels.FP8:
			v[j] = e4m3[m.Data[j]] * float64(m.Global)
		case kernels.FP8B:
			at := j/w.Cols*kernels.ScaleColumns(w.Cols) + j%w.Cols/kernels.ScaledColumns
			v[j] = roundBF16(e4m3[m.Data[j]] * float64(float32At(m.Scales, at)))
		case kernels.FP4:
			g := m.Global
			if m.GlobalUp != 0 && j >= len(v)/2 {
				g = m.GlobalUp
			}
			v[j] = e2m1[m.Data[j/2]>>(4*(j%2))&15] * e4m3[m.Scales[j/16]] * float64(g)
		}
	}
	return v, float64(m.Input)
}
