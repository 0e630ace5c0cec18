package checkpoint

import (
	"encoding/binary"
	"math"

	"glmbatch/kernels/nvfp4"
)

// DType is a number type as safetensors names it.
type DType string

// The types that weights are stored in. Others are known by size only.
const (
	BF16 DType = "BF16"
	F16  DType = "F16"
	F32  DType = "F32"
	F8   DType = "F8_E4M3"
	E8M0 DType = "F8_E8M0" // powers of two, as scales
	U8   DType = "U8"
)

// sizes has the bytes of a value.
var sizes = map[DType]int64{
	"BOOL": 1, U8: 1, "I8": 1, F8: 1, "F8_E5M2": 1, E8M0: 1,
	"I16": 2, "U16": 2, BF16: 2, F16: 2,
	"I32": 4, "U32": 4, F32: 4,
	"I64": 8, "U64": 8, "F64": 8,
}

// decode converts len(dst) values.
func (d DType) decode(dst []float32, src []byte) {
	switch d {
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
		}
	case F16:
		for i := range dst {
			dst[i] = half(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case F8:
		for i := range dst {
			dst[i] = nvfp4.E4M3[src[i]]
		}
	case E8M0:
		for i := range dst {
			if dst[i] = float32(math.Ldexp(1, int(src[i])-127)); src[i] == 0xff {
				dst[i] = float32(math.NaN())
			}
		}
	}
}

// half converts an IEEE half-precision number.
func half(h uint16) float32 {
	sign, exp, man := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exp {
	case 0: // subnormal: a multiple of 2^-24
		return math.Float32frombits(math.Float32bits(float32(man)*0x1p-24) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// ToBF16 rounds values to BF16.
func ToBF16(v []float32) []byte {
	b := make([]byte, 2*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint16(b[2*i:], roundBF16(x))
	}
	return b
}

// roundBF16 rounds to nearest, ties to even. What is no number stays none.
func roundBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
