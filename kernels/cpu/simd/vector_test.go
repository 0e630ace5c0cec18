package simd

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// TestRows checks each loop over a row against float64, at lengths around those of vectors.
func TestRows(t *testing.T) {
	lengths := []int{1, 7, 8, 9, 16, 31, 32, 33, 63, 64, 100, 256, 1000}
	var first []float32 // all results of the best level, whose bits the others share
	eachLevel(t, func(t *testing.T, l *level) {
		var dsts []float32
		for _, n := range lengths {
			rng := rand.New(rand.NewPCG(uint64(n), 4))
			x, y, z := normal(rng, n), normal(rng, n), normal(rng, n)
			near := func(what string, got float32, want, size float64) {
				t.Helper()
				if diff := math.Abs(float64(got) - want); !(diff <= 1e-6*size) {
					t.Errorf("%s of %d values: %v, want %v", what, n, got, want)
				}
			}
			each := func(what string, f func(dst []float32), want func(i int) float64) {
				t.Helper()
				dst := append([]float32(nil), z...)
				f(dst)
				dsts = append(dsts, dst...)
				for i := range dst {
					near(what, dst[i], want(i), math.Abs(want(i))+math.Abs(float64(z[i]))/10)
				}
			}
			X := func(i int) float64 { return float64(x[i]) }
			Y := func(i int) float64 { return float64(y[i]) }
			Z := func(i int) float64 { return float64(z[i]) }
			each("add", func(d []float32) { l.add(d, x) }, func(i int) float64 { return X(i) + Z(i) })
			each("axpy", func(d []float32) { l.axpy(d, x, 3) }, func(i int) float64 { return 3*X(i) + Z(i) })
			each("reluAxpy", func(d []float32) {
				l.reluAxpy(d, x, 3)
			}, func(i int) float64 { return 3*max(0, X(i)) + Z(i) })
			each("scale", func(d []float32) { l.scale(d, 3) }, func(i int) float64 { return 3 * Z(i) })
			each("scaleMul", func(d []float32) {
				l.scaleMul(d, x, y, 3)
			}, func(i int) float64 { return 3 * X(i) * Y(i) })
			each("siluMul", func(d []float32) {
				l.siluMul(d, x, y)
			}, func(i int) float64 { return X(i) / (1 + math.Exp(-X(i))) * Y(i) })

			squares, top, most, sum := 0., math.Inf(-1), 0., 0.
			for i := range x {
				squares += X(i) * X(i)
				top, most, sum = max(top, X(i)), max(most, math.Abs(X(i))), sum+math.Exp(X(i)-2)
			}
			near("sumSquares", l.sumSquares(x), squares, squares)
			near("maximum", l.maximum(x), top, 0)
			near("absMax", l.absMax(x), most, 0)
			exps := make([]float32, n)
			dsts = append(dsts, l.sumSquares(x), l.maximum(x), l.absMax(x), l.expSum(exps, x, 2))
			near("expSum", dsts[len(dsts)-1], sum, sum)
			for i, e := range exps {
				near("exp", e, math.Exp(float64(x[i]-2)), math.Exp(float64(x[i]-2)))
			}
			dsts = append(dsts, exps...)
		}
		if first == nil {
			first = dsts
		}
		sameBits(t, "the best level", dsts, first)
	})
}

func TestExp(t *testing.T) {
	eachLevel(t, func(t *testing.T, l *level) {
		var x []float32
		for v := float32(-87.2); v < 87.9; v += 0.0173 {
			x = append(x, v)
		}
		got := make([]float32, len(x))
		l.expSum(got, x, 0)
		for i, v := range x {
			if want := math.Exp(float64(v)); math.Abs(float64(got[i])/want-1) > 3e-7 {
				t.Fatalf("e^%v = %v, want %v", v, got[i], want)
			}
		}
		inf := float32(math.Inf(1))
		edges := []float32{-inf, -1e30, -88, 0, -inf, -200, float32(math.NaN()), -90}
		l.expSum(edges, edges, 0)
		for i, want := range []float32{0, 0, 0, 1, 0, 0, float32(math.NaN()), 0} {
			if edges[i] != want && want == want || want != want && edges[i] == edges[i] {
				t.Errorf("edge %d: %v, want %v", i, edges[i], want)
			}
		}
		gate := []float32{-inf, -1000, -100, -88, 88, 1000, 1e30, 0}
		up := []float32{1, 1, 1, 1, 1, 1, 1, 1}
		l.siluMul(gate, gate, up)
		for i, want := range []float32{0, 0, 0, 0, 88, 1000, 1e30, 0} {
			if i > 0 && math.Abs(float64(gate[i]-want)) > 1e-30+1e-6*float64(want) {
				t.Errorf("silu edge %d: %v, want %v", i, gate[i], want)
			}
		}
	})
}

// TestE4M3 rounds numbers between and at all code values.
func TestE4M3(t *testing.T) {
	var x []float32
	for c := range 0x7e {
		a, b := e4m3[c], e4m3[c+1]
		mid := (a + b) / 2
		x = append(x, a, mid, math.Nextafter32(mid, a), math.Nextafter32(mid, b))
	}
	x = append(x, 448, 460, 464, 500, 1e30, float32(math.Inf(1)), 1e-30, 1e-42)
	for _, v := range x {
		x = append(x, -v)
	}
	eachLevel(t, func(t *testing.T, l *level) {
		got := make([]byte, len(x)+1)
		l.encodeE4M3(got[:len(x)], x, 1)
		for i, v := range x {
			if code := got[i]; !nearestE4M3(v, code) {
				t.Errorf("%v became %#x = %v", v, code, e4m3[code])
			}
			if signs := math.Signbit(float64(v)) == (got[i] >= 128); !signs {
				t.Errorf("%v became %#x: the sign", v, got[i])
			}
		}
		nan := []float32{1, 2, 3, float32(math.NaN()), 5, 6, 7, 8, float32(math.NaN())}
		l.encodeE4M3(got, nan, 1)
		if got[3]&0x7f != 0x7f || got[8]&0x7f != 0x7f || got[4]&0x7f == 0x7f {
			t.Errorf("NaN became %#x, %#x", got[3], got[8])
		}
		codes, back := make([]byte, 256), make([]float32, 256)
		for i := range codes {
			codes[i] = byte(i)
		}
		l.decodeE4M3(back, codes, 3)
		for i, v := range back {
			if want := e4m3[i] * 3; v != want && want == want || want != want && v == v {
				t.Errorf("code %#x is %v, want %v", i, v, want)
			}
		}
		l.encodeE4M3(codes, back, 3)
		for i, c := range codes {
			if c != byte(i) && i&0x7f != 0x7f {
				t.Errorf("code %#x came back as %#x", i, c)
			}
		}
	})
}

func nearestE4M3(v float32, code byte) bool {
	if code&0x7f == 0x7f {
		return false
	}
	u := max(-448, min(448, float64(v)))
	mine := math.Abs(float64(e4m3[code]) - u)
	for c, e := range e4m3 {
		d := math.Abs(float64(e) - u)
		if d < mine || d == mine && e != e4m3[code] && c%2 == 0 {
			return false
		}
	}
	return true
}

func TestBF16(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	x := normal(rng, 1000)
	for i := range 200 { // ties, to both sides
		x[i] = math.Float32frombits(math.Float32bits(x[i])&^0xffff | 0x8000)
	}
	x[300], x[301], x[302] = float32(math.Inf(1)), float32(math.Copysign(0, -1)), math.MaxFloat32
	x[310] = math.Float32frombits(0x7f800001) // a NaN whose payload would round away
	eachLevel(t, func(t *testing.T, l *level) {
		for _, n := range []int{5, 8, 999, 1000} {
			b, back := make([]byte, 2*n), make([]float32, n)
			l.encodeBF16(b, x[:n])
			l.decodeBF16(back, b)
			for i := range back {
				code := binary.LittleEndian.Uint16(b[2*i:])
				v, got := float64(x[i]), float64(back[i])
				if v != v {
					if got == got {
						t.Errorf("NaN became %v", got)
					}
					continue
				}
				if math.Signbit(v) != math.Signbit(got) || math.IsInf(v, 0) && got != v {
					t.Errorf("%v became %v", v, got)
				}
				if x[i] == math.MaxFloat32 || math.IsInf(v, 0) {
					continue
				}
				for _, other := range []uint16{code - 1, code + 1} {
					o := math.Abs(float64(fromBF16(other)) - v)
					if mine := math.Abs(got - v); o < mine || o == mine && code%2 == 1 {
						t.Errorf("%v became %v, but %v is better", v, got, fromBF16(other))
					}
				}
			}
		}
	})
}

func TestRMSNorm(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	x, w, y := normal(rng, 100), normal(rng, 100), make([]float32, 100)
	RMSNorm(y, x, w, 1e-5)
	mean := 0.
	for _, v := range x {
		mean += float64(v) * float64(v) / 100
	}
	for i := range y {
		want := float64(x[i]) / math.Sqrt(mean+1e-5) * float64(w[i])
		if math.Abs(float64(y[i])-want) > 1e-6*math.Abs(want) {
			t.Errorf("value %d: %v, want %v", i, y[i], want)
		}
	}
}
