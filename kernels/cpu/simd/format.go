package simd

import "math"

// e2m1 has the values of E2M1 codes, sign in bit 3. Minus zero is zero, as it is
// where values pass through integers, so that all paths give the same bits.
var e2m1 = [16]float32{0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6}

// e4m3 has the values of E4M3 codes (OCP FP8, finite: 0x7f and 0xff are NaN).
var e4m3 = func() (t [256]float32) {
	for i := range t {
		e, m := i>>3&15, i&7
		v := math.Ldexp(float64(8+m), e-10)
		if e == 0 {
			v = math.Ldexp(float64(m), -9)
		}
		if i&0x7f == 0x7f {
			v = math.NaN()
		}
		if i >= 128 {
			v = math.Copysign(v, -1)
		}
		t[i] = float32(v)
	}
	return t
}()

const maxE4M3 = 448

// toE4M3 rounds to nearest even and saturates; NaN stays NaN.
func toE4M3(v float32) byte {
	sign := byte(math.Float32bits(v) >> 24 & 0x80)
	a := math.Float32frombits(math.Float32bits(v) &^ (1 << 31))
	switch {
	case a != a:
		return sign | 0x7f
	case a >= maxE4M3:
		return sign | 0x7e
	case a < 1.0/64: // steps of 2^-9: the sum's last bit
		return sign | byte(math.Float32bits(a+1<<14)&0x0f)
	}
	b := math.Float32bits(a)
	b += 0x7ffff + b>>20&1
	return sign | byte(b>>20-120<<3)
}

func fromBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// toBF16 rounds to nearest even; NaN stays NaN.
func toBF16(v float32) uint16 {
	b := math.Float32bits(v)
	if v != v {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// toE2M1 rounds a magnitude to nearest, ties to the even code; above 6 is 6.
func toE2M1(a float32) byte {
	switch {
	case a <= .25:
		return 0
	case a < .75:
		return 1
	case a <= 1.25:
		return 2
	case a < 1.75:
		return 3
	case a <= 2.5:
		return 4
	case a < 3.5:
		return 5
	case a <= 5:
		return 6
	}
	return 7
}

// fma is x·y + z, rounded once, as the hardware does it. The product is exact in
// float64; only a sum that stands half-way between two float32 values there, or
// a subnormal one, would be rounded wrongly for having been rounded before.
func fma(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	if math.Float64bits(s)&(1<<29-1) != 1<<28 && (s >= 0x1p-125 || s <= -0x1p-125) {
		return float32(s)
	}
	back := s - p
	lost := (p - (s - back)) + (c - back) // the exact sum is s + lost
	b := math.Float64bits(s)
	if lost != 0 && b&1 == 0 { // round to odd: the last bit says that more follows
		if (lost > 0) == (s > 0) {
			b++
		} else {
			b--
		}
	}
	return float32(math.Float64frombits(b))
}
