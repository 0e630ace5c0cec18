package nvfp4

import "math"

// E4M3 has the value of each byte of the FP8 format E4M3 without infinities: a
// sign, four bits of exponent with bias 7, three of mantissa. 0x7f and 0xff are NaN.
var E4M3 = e4m3()

// The range of E4M3's magnitudes.
const (
	MaxE4M3 = 448
	MinE4M3 = 0x1p-9 // the smallest above 0
)

func e4m3() (t [256]float32) {
	for i := range t {
		exp, man := i>>3&15, i&7
		v := math.Ldexp(float64(8+man), exp-10)
		switch {
		case exp == 15 && man == 7:
			v = math.NaN()
		case exp == 0:
			v = math.Ldexp(float64(man), -9)
		}
		if i&0x80 != 0 {
			v = math.Copysign(v, -1)
		}
		t[i] = float32(v)
	}
	return t
}

// EncodeE4M3 returns the byte nearest to x; ties go to the even mantissa and
// large values to ±448. NaN stays NaN.
func EncodeE4M3(x float32) byte {
	bits := math.Float32bits(x)
	sign := byte(bits >> 24 & 0x80)
	abs := bits &^ (1 << 31)
	switch {
	case abs > 0x7f800000:
		return sign | 0x7f
	case abs >= 0x43e00000: // 448
		return sign | 0x7e
	case abs < 0x3c800000: // 2^-6: subnormal, a multiple of 2^-9; adding 2^14 rounds to one
		r := math.Float32frombits(abs) + 0x1p14
		return sign | byte(math.Float32bits(r)-0x46800000)
	}
	// Round the mantissa to three bits: half a step, less one unless the last kept bit is odd.
	abs += 0x7ffff + abs>>20&1
	return sign | byte(abs>>20-(127-7)<<3)
}
