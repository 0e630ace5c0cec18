package simd

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"glmbatch/kernels"
	"pgregory.net/rapid"
)

// dequant returns the values of a quantised row, without the input scale and,
// for QuantA4, without the doubling taken back.
func dequant(row []byte) (q []int, factor []float32, bias []int32) {
	for b := range len(row) / quantBlock {
		block := row[b*quantBlock:]
		for j := range 16 {
			q = append(q, int(int8(block[j])))
		}
		factor = append(factor, math.Float32frombits(binary.LittleEndian.Uint32(block[16:])))
		bias = append(bias, int32(binary.LittleEndian.Uint32(block[20:])))
	}
	return
}

// TestQuantA4 checks each value against all E2M1 values: none is nearer.
func TestQuantA4(t *testing.T) {
	eachLevel(t, testQuantA4)
}

func testQuantA4(t *testing.T, l *level) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		x, input := normal(rng, 64), float32(math.Exp(rng.NormFloat64()*6))
		if rapid.Bool().Draw(t, "halves") { // ties
			for i := range x {
				x[i] = float32(rng.IntN(49)-24) / 4
			}
			x[0], x[16], x[32], x[48], input = 6, -6, 6, -6, 1
		}
		clear(x[48:60])
		row := make([]byte, QuantBytes(64))
		l.quantA4(row, x, input)
		best := make([]byte, len(row))
		active.quantA4(best, x, input)
		if !bytes.Equal(row, best) {
			t.Fatalf("the best level gives %x, this one %x", best, row)
		}
		q, factor, bias := dequant(row)
		for b := range factor {
			top, sum := 0., 0
			for j := range 16 {
				top = max(top, math.Abs(float64(x[b*16+j])))
				sum += q[b*16+j]
			}
			if int(bias[b]) != -12*sum {
				t.Fatalf("bias of block %d is %d, want %d", b, bias[b], -12*sum)
			}
			if want := e4m3[toE4M3(float32(top)/6/input)]; factor[b] != want {
				t.Fatalf("factor of block %d is %v, want %v", b, factor[b], want)
			}
			for j := range 16 {
				v, got := float64(x[b*16+j]), float64(q[b*16+j])/2
				if factor[b] == 0 {
					if got != 0 {
						t.Fatalf("block without scale has value %v", got)
					}
					continue
				}
				u := float64(float32(v) / (factor[b] * input))
				for code, e := range e2m1 {
					d, mine := math.Abs(float64(e)-u), math.Abs(got-u)
					if d < mine || d == mine && float64(e) != got && code%2 == 0 {
						t.Fatalf("%v became %v, but %v is better", u, got, e)
					}
				}
			}
		}
	})
}

func TestQuantA8(t *testing.T) {
	eachLevel(t, testQuantA8)
}

func testQuantA8(t *testing.T, l *level) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := normal(rng, 1600)
	x[100], x[200] = 50, -3e38 // a value of most steps, and all others near 0
	clear(x[16:32])
	x[40] = 1e-42
	for i := 48; i < 64; i++ {
		x[i] = 1e-44 // the factor is subnormal, or zero
	}
	row := make([]byte, QuantBytes(len(x)))
	l.quantA8(row, x)
	best := make([]byte, len(row))
	active.quantA8(best, x)
	if !bytes.Equal(row, best) {
		t.Fatalf("the best level gives %x, this one %x", best, row)
	}
	q, factor, _ := dequant(row)
	for i, v := range x {
		f := float64(factor[i/16])
		if d := math.Abs(float64(q[i])*f - float64(v)); d > f*.501 && f > 1e-38 {
			t.Errorf("value %d: %v became %v", i, v, float64(q[i])*f)
		}
	}
}

// TestGemmQuant checks the products against float64 sums, and that bits do not
// depend on the rows around, on the range of panels or on the instruction set.
func TestGemmQuant(t *testing.T) {
	eachLevel(t, func(t *testing.T, l *level) {
		rapid.Check(t, func(t *rapid.T) {
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
			m, rows, cols := rapid.IntRange(1, 20).Draw(t, "m"), rapid.IntRange(1, 70).Draw(t,
				"rows"), 16*rapid.IntRange(1, 20).Draw(t, "blocks")
			matrix, values := matrix(rng, kernels.FP4, rows, cols)
			w, err := packed(kernels.FP4, rows, cols, matrix)
			if err != nil {
				t.Fatal(err)
			}
			four := rapid.Bool().Draw(t, "four")
			factor := w.Global() / 2
			x := QuantRows{Data: make([]byte, m*QuantBytes(cols)), Stride: QuantBytes(cols)}
			for i := range m {
				in := normal(rng, cols)
				if row := x.Data[i*x.Stride : (i+1)*x.Stride]; four {
					factor = w.Input() * w.Global() / 4
					QuantA4(row, in, w.Input())
				} else {
					QuantA8(row, in)
				}
			}
			got := make([]float32, m*rows)
			l.gemmQuant(Rows{Data: got, Stride: rows}, x, m, w, 0, w.Panels(), factor, new(Scratch))
			best := make([]float32, m*rows)
			levels()[0].gemmQuant(Rows{Data: best, Stride: rows}, x, m, w, 0, w.Panels(), factor, new(Scratch))
			sameBits(t, "the best level", best, got)
			for i := range m {
				row := x.Data[i*x.Stride : (i+1)*x.Stride]
				q, f, _ := dequant(row)
				for r := range rows {
					want, size := 0., 0.
					for k := range cols {
						v := values[r*cols+k] / float64(w.Global()) * 2 * float64(q[k]) * float64(
							f[k/16]) * float64(factor)
						want, size = want+v, size+math.Abs(v)
					}
					if diff := math.Abs(float64(got[i*rows+r]) - want); !(diff <= 2e-6*size) {
						t.Fatalf("row %d, output %d: %v, want %v", i, r, got[i*rows+r], want)
					}
				}
				alone := make([]float32, rows)
				at := rapid.IntRange(0, w.Panels()).Draw(t, "at")
				l.gemmQuant(Rows{Data: alone}, QuantRows{Data: row}, 1, w, 0, at, factor, new(Scratch))
				l.gemmQuant(Rows{Data: alone}, QuantRows{Data: row}, 1, w, at, w.Panels(), factor, new(Scratch))
				sameBits(t, "a row alone", alone, got[i*rows:])
			}
		})
	})
}
