package simd

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"glmbatch/kernels"
)

// matrix is a random weight as a checkpoint stores it, and its values.
func matrix(rng *rand.Rand, f kernels.Format, rows, cols int) (kernels.Matrix, []float64) {
	m := kernels.Matrix{Global: 1}
	values := make([]float64, rows*cols)
	switch f {
	case kernels.F32:
		for i := range values {
			v := float32(rng.NormFloat64())
			m.Data = binary.LittleEndian.AppendUint32(m.Data, math.Float32bits(v))
			values[i] = float64(v)
		}
	case kernels.BF16:
		for i := range values {
			v := toBF16(float32(rng.NormFloat64()))
			m.Data = binary.LittleEndian.AppendUint16(m.Data, v)
			values[i] = float64(fromBF16(v))
		}
	case kernels.FP8B:
		m.Data = make([]byte, rows*cols)
		scales := make([]float32, rows*kernels.ScaleColumns(cols))
		for i := range scales {
			scales[i] = float32(math.Exp(rng.NormFloat64()))
			m.Scales = binary.LittleEndian.AppendUint32(m.Scales, math.Float32bits(scales[i]))
		}
		for i := range m.Data { // all codes but NaN
			for m.Data[i] = byte(rng.Uint32()); m.Data[i]&0x7f == 0x7f; {
				m.Data[i] = byte(rng.Uint32())
			}
			scale := scales[i/cols*kernels.ScaleColumns(cols)+i%cols/kernels.ScaledColumns]
			values[i] = float64(fromBF16(toBF16(e4m3[m.Data[i]] * scale)))
		}
	case kernels.FP4:
		m.Global, m.Input = float32(rng.Float64()+.5)/64, float32(rng.Float64()+.5)/32
		m.Data, m.Scales = make([]byte, rows*cols/2), make([]byte, rows*cols/16)
		for i := range m.Data {
			m.Data[i] = byte(rng.Uint32())
		}
		for i := range m.Scales { // all codes but NaN: subnormal, zero and negative ones too
			for m.Scales[i] = byte(rng.Uint32()); m.Scales[i]&0x7f == 0x7f; {
				m.Scales[i] = byte(rng.Uint32())
			}
		}
		for i := range values {
			code := m.Data[i/2] >> (i % 2 * 4) & 15
			values[i] = float64(e2m1[code]) * float64(e4m3[m.Scales[i/16]]) * float64(m.Global)
		}
	}
	return m, values
}

func packed(f kernels.Format, rows, cols int, m kernels.Matrix) (Weight, error) {
	w := Weight{Format: f, Rows: rows, Cols: cols, Data: make([]byte, PackedBytes(f, rows, cols))}
	return w, packAll(w.Data, f, rows, cols, m)
}

func normal(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// packAll packs all panels of a matrix.
func packAll(dst []byte, f kernels.Format, rows, cols int, m kernels.Matrix) error {
	return PackPanels(dst, f, rows, cols, m, 0, Weight{Rows: rows}.Panels())
}
