package simd

import "math"

// e^x = 2^n · e^r with n the integer nearest to x·log2(e) and |r| <= ln(2)/2.
// ln 2 is taken off in two parts; the polynomial for e^r is the one of the
// Cephes library's expf. The error is below 2 units in the last place.
const (
	expLow  = -87.3 // below: 0
	expHigh = 88
	log2e   = 1.44269504088896341
	ln2Hi   = 0.693359375
	ln2Lo   = -2.12194440e-4
	expC5   = 1.9875691500e-4
	expC4   = 1.3981999507e-3
	expC3   = 8.3334519073e-3
	expC2   = 4.1665795894e-2
	expC1   = 1.6666665459e-1
	expC0   = 5.0000001201e-1
)

// expf is e^x as the vector loops compute it: 0 below expLow, and constant
// above expHigh.
func expf(x float32) float32 {
	if x < expLow {
		return 0
	}
	x = min(x, expHigh)
	n := float32(math.RoundToEven(float64(float32(x * log2e))))
	r := fma(n, -ln2Hi, x)
	r = fma(n, -ln2Lo, r)
	p := fma(expC5, r, expC4)
	p = fma(p, r, expC3)
	p = fma(p, r, expC2)
	p = fma(p, r, expC1)
	p = fma(p, r, expC0)
	p = fma(p, float32(r*r), r) + 1
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}
