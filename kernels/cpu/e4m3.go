package cpu

import "math"

// e4m3 returns the value of an E4M3 code (OCP FP8, finite: 0x7f is no number).
func e4m3(c byte) float32 {
	e, m := int(c>>3&15), float64(c&7)
	v := math.Ldexp(8+m, e-10)
	switch {
	case c&0x7f == 0x7f:
		v = math.NaN()
	case e == 0:
		v = math.Ldexp(m, -9)
	}
	if c&0x80 != 0 {
		v = -v
	}
	return float32(v)
}

// toBF16 drops the low half of a value that has no bits there.
func toBF16(v float32) uint16 { return uint16(math.Float32bits(v) >> 16) }
