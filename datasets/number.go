package datasets

import (
	"encoding/binary"
	"math"
)

// half is the value of a half-precision float in its two bytes.
func half(b []byte) float64 {
	h := binary.LittleEndian.Uint16(b)
	sign, exponent, fraction := h>>15, int(h>>10&0x1f), float64(h&0x3ff)
	f := math.Ldexp(1+fraction/1024, exponent-15)
	switch {
	case exponent == 0:
		f = math.Ldexp(fraction, -24)
	case exponent == 31 && fraction == 0:
		f = math.Inf(1)
	case exponent == 31:
		f = math.NaN()
	}
	if sign == 1 {
		f = -f
	}
	return f
}
