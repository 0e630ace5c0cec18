package simd

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestFMA compares with exact arithmetic, mostly at sums that are nearly half-way
// between two numbers.
func TestFMA(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 9))
		for range 100 {
			x, y := math.Float32frombits(rng.Uint32()), float32(rng.NormFloat64())
			z := math.Float32frombits(rng.Uint32())
			switch rng.IntN(3) {
			case 0: // half a step of z, and a bit
				z = float32(rng.NormFloat64())
				half := math.Ldexp(1, math.Ilogb(float64(z))-24)
				x, y = float32(half), 1+float32(rng.IntN(3)-1)*0x1p-23
			case 1: // a subnormal sum
				x, y, z = float32(rng.NormFloat64()*1e-20), float32(rng.NormFloat64()*1e-20), float32(
					rng.NormFloat64()*1e-40)
			}
			exact := new(big.Float).SetPrec(2000)
			if f := float64(x) * float64(y) * float64(z); f != f || math.IsInf(f, 0) {
				continue
			}
			exact.Mul(big.NewFloat(float64(x)), big.NewFloat(float64(y)))
			exact.Add(exact, big.NewFloat(float64(z)))
			want, _ := exact.Float32()
			if got := fma(x, y, z); got != want {
				t.Fatalf("%v·%v + %v = %v, want %v", x, y, z, got, want)
			}
		}
	})
}
