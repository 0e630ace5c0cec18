package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"glmbatch/kernels"
	"pgregory.net/rapid"
)

var weightFormats = []kernels.Format{kernels.F32, kernels.BF16, kernels.FP8B, kernels.FP4}

// product is a drawn problem: rows of x, some of them in another order, and a
// result with columns around it that must stay as they are.
type product struct {
	m      int
	w      Weight
	values []float64 // of w
	x, dst Rows
}

func drawProduct(t *rapid.T) product {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	f := rapid.SampledFrom(weightFormats).Draw(t, "format")
	m, rows, cols := rapid.IntRange(1, 20).Draw(t, "m"), rapid.IntRange(1, 150).Draw(t, "rows"), rapid.IntRange(1,
		600).Draw(t, "cols")
	if f == kernels.FP4 {
		cols = pad16(cols)
	}
	matrix, values := matrix(rng, f, rows, cols)
	w, err := packed(f, rows, cols, matrix)
	if err != nil {
		t.Fatal(err)
	}
	p := product{m: m, w: w, values: values}
	p.x = Rows{Data: normal(rng, m*(cols+3)), Stride: cols + 3}
	p.dst = Rows{Data: normal(rng, (m+2)*(rows+5)), Stride: rows + 5}
	if rapid.Bool().Draw(t, "indexed") {
		for range m {
			p.x.Index = append(p.x.Index, int32(rng.IntN(m)))
		}
		for _, i := range rng.Perm(m + 2)[:m] {
			p.dst.Index = append(p.dst.Index, int32(i))
		}
	}
	return p
}

func (p product) row(i int) []float32 {
	at := p.x.offset(i, p.w.Cols)
	return p.x.Data[at : at+p.w.Cols]
}

func (p product) run(l *level, lo, hi int) []float32 {
	dst := p.dst
	dst.Data = append([]float32(nil), p.dst.Data...)
	l.gemm(dst, p.x, p.m, p.w, lo, hi, new(Scratch))
	return dst.Data
}

func eachLevel(t *testing.T, f func(t *testing.T, l *level)) {
	for _, l := range levels() {
		t.Run(l.name, func(t *testing.T) { f(t, l) })
	}
}

func TestGemmAgainstFloat64(t *testing.T) {
	eachLevel(t, func(t *testing.T, l *level) {
		rapid.Check(t, func(t *rapid.T) {
			p := drawProduct(t)
			got := p.run(l, 0, p.w.Panels())
			written := make([]bool, len(got))
			for i := range p.m {
				x, at := p.row(i), p.dst.offset(i, p.w.Rows)
				for r := range p.w.Rows {
					want, size := 0., 0.
					for k, v := range x {
						want += float64(v) * p.values[r*p.w.Cols+k]
						size += math.Abs(float64(v) * p.values[r*p.w.Cols+k])
					}
					if diff := math.Abs(float64(got[at+r]) - want); !(diff <= 2e-6*size) {
						t.Fatalf("%s %dx%d: row %d, output %d: %v, want %v", p.w.Format, p.w.Rows, p.w.Cols, i, r,
							got[at+r], want)
					}
					written[at+r] = true
				}
			}
			for i, w := range written {
				if !w && got[i] != p.dst.Data[i] {
					t.Fatalf("value %d of dst is outside of the result and changed", i)
				}
			}
		})
	})
}

// TestGemmBits checks that an output has the same bits alone, in any range of
// panels, among any rows, and on each instruction set.
func TestGemmBits(t *testing.T) {
	eachLevel(t, func(t *testing.T, l *level) {
		rapid.Check(t, func(t *rapid.T) {
			p := drawProduct(t)
			want := p.run(l, 0, p.w.Panels())
			sameBits(t, "the best level", p.run(levels()[0], 0, p.w.Panels()), want)
			lo := rapid.IntRange(0, p.w.Panels()-1).Draw(t, "lo")
			hi := rapid.IntRange(lo+1, p.w.Panels()).Draw(t, "hi")
			part := p.run(l, lo, hi)
			for i := range p.m {
				at := p.dst.offset(i, p.w.Rows)
				sameBits(t, "a range of panels", part[at+lo*Lanes:at+min(hi*Lanes, p.w.Rows)], want[at+lo*Lanes:])
				alone := make([]float32, p.w.Rows)
				l.gemm(Rows{Data: alone}, Rows{Data: p.row(i)}, 1, p.w, 0, p.w.Panels(), new(Scratch))
				sameBits(t, "a row alone", alone, want[at:])
			}
		})
	})
}

func sameBits(t rapid.TB, what string, got, want []float32) {
	t.Helper()
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: value %d is %v, was %v", what, i, got[i], want[i])
		}
	}
}
