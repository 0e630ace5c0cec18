package simd

import (
	"testing"

	"glmbatch/kernels"
)

func TestPackErrors(t *testing.T) {
	ok := kernels.Matrix{Data: make([]byte, 16*32/2), Scales: make([]byte, 16*2)}
	nan := ok
	nan.Scales = make([]byte, 32)
	nan.Scales[5] = 0xff
	for _, c := range []struct {
		what       string
		f          kernels.Format
		rows, cols int
		m          kernels.Matrix
	}{
		{"no rows", kernels.F32, 0, 4, kernels.Matrix{}},
		{"sizes whose product is 0", kernels.F32, 1 << 32, 1 << 32, kernels.Matrix{}},
		{"columns below 0", kernels.F32, 4, -4, kernels.Matrix{}},
		{"short data", kernels.F32, 4, 4, kernels.Matrix{Data: make([]byte, 63)}},
		{"long data", kernels.BF16, 4, 4, kernels.Matrix{Data: make([]byte, 33)}},
		{"odd block", kernels.FP4, 16, 24, kernels.Matrix{Data: make([]byte, 16*12), Scales: make([]byte, 24)}},
		{"few scales", kernels.FP4, 16, 32, kernels.Matrix{Data: ok.Data, Scales: ok.Scales[1:]}},
		{"no scales", kernels.FP4, 16, 32, kernels.Matrix{Data: ok.Data}},
		{"NaN scale", kernels.FP4, 16, 32, nan},
		{"format", kernels.FP8, 16, 32, ok},
	} {
		if err := packAll(make([]byte, 1<<16), c.f, c.rows, c.cols, c.m); err == nil {
			t.Errorf("%s: no error", c.what)
		}
	}
	if err := packAll(make([]byte, PackedBytes(kernels.FP4, 16, 32)-1), kernels.FP4, 16, 32, ok); err == nil {
		t.Error("short dst: no error")
	}
	if err := packAll(make([]byte, PackedBytes(kernels.FP4, 16, 32)), kernels.FP4, 16, 32, ok); err != nil {
		t.Error(err)
	}
}

// FuzzPack packs whatever comes: an error or a weight that can be multiplied.
func FuzzPack(f *testing.F) {
	f.Add(uint8(0), 2, 3, make([]byte, 24), []byte(nil))
	f.Add(uint8(1), 17, 5, make([]byte, 170), []byte(nil))
	f.Add(uint8(2), 3, 16, make([]byte, 24), []byte{1, 2, 0x80})
	f.Add(uint8(0), 2, 3, make([]byte, 10), make([]byte, 14))
	f.Add(uint8(3), -1, 1<<40, []byte{1}, []byte{0x7f})
	f.Fuzz(func(t *testing.T, format uint8, rows, cols int, data, scales []byte) {
		name := []kernels.Format{kernels.F32, kernels.BF16, kernels.FP4, kernels.FP8}[format%4]
		n := int64(1 << 16)
		if rows > 0 && cols > 0 && rows < 1<<12 && cols < 1<<12 {
			n = min(n, PackedBytes(name, rows, cols))
		}
		w := Weight{Format: name, Rows: rows, Cols: cols, Data: make([]byte, n)}
		if packAll(w.Data, name, rows, cols, kernels.Matrix{Data: data, Scales: scales, Global: 1}) != nil {
			return
		}
		x, y := make([]float32, 2*cols), make([]float32, 2*rows)
		Gemm(Rows{Data: y, Stride: rows}, Rows{Data: x, Stride: cols}, 2, w, 0, w.Panels(), new(Scratch))
		for i, v := range y {
			if v != 0 && v == v { // NaN: 0 times infinity
				t.Fatalf("0 times row %d is %v", i, v)
			}
		}
	})
}
