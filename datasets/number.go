package datasets

import (
	"encoding/binary"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// isDecimal reports a leaf of decimal numbers.
func isDecimal(n *node) bool {
	lt := n.typ.LogicalType()
	if lt == nil {
		return false
	}
	_, ok := lt.Value.(*format.DecimalType)
	return ok
}

// isHalf reports a leaf of half-precision floats, which the library has no type for.
func isHalf(n *node) bool {
	lt := n.stored.LogicalType()
	if lt == nil || n.typ.Length() != 2 {
		return false
	}
	_, ok := lt.Value.(*format.Float16Type)
	return ok
}

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
