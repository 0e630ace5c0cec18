package simd

import (
	"math/rand/v2"
	"testing"

	"glmbatch/kernels"
)

// TestNoAllocations holds the loops to the memory of a used Scratch.
func TestNoAllocations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const m, rows, cols = 9, 40, 512
	x, y, s := normal(rng, m*cols), make([]float32, m*rows), new(Scratch)
	q := make([]byte, m*QuantBytes(cols))
	check := func(what string, f func()) {
		t.Helper()
		f()
		if n := testing.AllocsPerRun(10, f); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	for _, f := range weightFormats {
		matrix, _ := matrix(rng, f, rows, cols)
		w, err := packed(f, rows, cols, matrix)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{m, 1} {
			check("Gemm of "+string(f), func() {
				Gemm(Rows{Data: y, Stride: rows}, Rows{Data: x, Stride: cols}, n, w, 0, w.Panels(), s)
			})
			if f == kernels.FP4 {
				check("GemmA8", func() {
					GemmA8(Rows{Data: y, Stride: rows}, QuantRows{Data: q, Stride: QuantBytes(cols)}, n, w,
						0, w.Panels(), s)
				})
			}
		}
	}
	for _, f := range cacheFormats {
		c, _ := latentCache(rng, f, 64, 16, 100)
		slots := make([]int32, 70)
		check("Attend", func() { Attend(y, x, 3, 1, c, slots, s) })
	}
	keys, slots := make([]byte, 64*80), make([]int32, 64)
	check("IndexScores", func() { IndexScores(y[:64], x, 3, 20, y, 1, kernels.F32, keys, slots, s) })
}

// TestShortSlices checks that arguments which are too short panic before any
// assembly runs.
func TestShortSlices(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	m, _ := matrix(rng, kernels.BF16, 20, 32)
	w, err := packed(kernels.BF16, 20, 32, m)
	if err != nil {
		t.Fatal(err)
	}
	short := w
	short.Data = w.Data[:len(w.Data)-64]
	row := func(n int) Rows { return Rows{Data: make([]float32, n), Stride: 32} }
	cache := Cache{Format: kernels.BF16, Data: make([]byte, 80*2*3), Latent: 64, Rope: 16}
	for _, c := range []struct {
		what string
		f    func(s *Scratch)
	}{
		{"dst", func(s *Scratch) { Gemm(row(19), row(32), 1, w, 0, 2, s) }},
		{"x", func(s *Scratch) { Gemm(row(20), row(31), 1, w, 0, 2, s) }},
		{"rows of x", func(s *Scratch) { Gemm(row(96), row(95), 3, w, 0, 2, s) }},
		{"rows of dst", func(s *Scratch) { Gemm(row(64+19), row(96), 3, w, 0, 2, s) }},
		{"index", func(s *Scratch) {
			Gemm(row(96), Rows{Data: make([]float32, 96), Stride: 32, Index: []int32{0, 3, 1}}, 3, w, 0, 2, s)
		}},
		{"weight", func(s *Scratch) { Gemm(row(96), row(96), 3, short, 0, 2, s) }},
		{"panels", func(s *Scratch) { Gemm(row(96), row(96), 1, w, 0, 3, s) }},
		{"slot", func(s *Scratch) { Attend(make([]float32, 64), make([]float32, 80), 1, 1, cache, []int32{3}, s) }},
		{"negative slot", func(s *Scratch) {
			Attend(make([]float32, 64), make([]float32, 80), 1, 1, cache, []int32{-1}, s)
		}},
		{"query", func(s *Scratch) { Attend(make([]float32, 64), make([]float32, 79), 1, 1, cache, []int32{0}, s) }},
		{"output", func(s *Scratch) { Attend(make([]float32, 63), make([]float32, 80), 1, 1, cache, []int32{0}, s) }},
		{"add", func(*Scratch) { Add(make([]float32, 9), make([]float32, 8)) }},
		{"silu", func(*Scratch) { SiLUMul(make([]float32, 9), make([]float32, 8), make([]float32, 9)) }},
		{"norm", func(*Scratch) { RMSNorm(make([]float32, 9), make([]float32, 9), make([]float32, 8), 1) }},
		{"bf16", func(*Scratch) { EncodeBF16(make([]byte, 17), make([]float32, 9)) }},
		{"quant", func(*Scratch) { QuantA8(make([]byte, 47), make([]float32, 32)) }},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a short %s did not panic", c.what)
				}
			}()
			c.f(new(Scratch))
		}()
	}
}
