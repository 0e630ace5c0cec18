package simd

import "math"

// RMSNorm computes dst = x / sqrt(mean(x²) + eps) · w; dst may be x.
func RMSNorm(dst, x, w []float32, eps float32) {
	active.scaleMul(dst[:len(x)], x, w[:len(x)], InvRMS(x, eps))
}

// InvRMS is 1 / sqrt(mean(x²) + eps).
func InvRMS(x []float32, eps float32) float32 {
	return float32(1 / math.Sqrt(float64(active.sumSquares(x))/float64(len(x))+float64(eps)))
}

// SiLUMul computes dst = gate / (1 + e^-gate) · up; dst may be gate or up.
func SiLUMul(dst, gate, up []float32) { active.siluMul(dst, gate[:len(dst)], up[:len(dst)]) }

// Add computes dst += x.
func Add(dst, x []float32) { active.add(dst, x[:len(dst)]) }

// Axpy computes dst += a·x, fused.
func Axpy(dst, x []float32, a float32) { active.axpy(dst, x[:len(dst)], a) }

// Scale computes x *= a.
func Scale(x []float32, a float32) { active.scale(x, a) }

// AbsMax is the largest magnitude in x.
func AbsMax(x []float32) float32 { return active.absMax(x) }

// ExpSum computes dst = e^(x-shift) and returns the sum of dst; dst may be x.
// Results below the smallest normal number are 0.
func ExpSum(dst, x []float32, shift float32) float32 {
	return active.expSum(dst[:len(x)], x, shift)
}

// EncodeBF16 rounds src to nearest even.
func EncodeBF16(dst []byte, src []float32) { active.encodeBF16(dst[:2*len(src)], src) }

// DecodeBF16 widens src.
func DecodeBF16(dst []float32, src []byte) { active.decodeBF16(dst, src[:2*len(dst)]) }

// EncodeE4M3 rounds src/scale to nearest even, saturating at ±448. A scale of 0
// gives zeros.
func EncodeE4M3(dst []byte, src []float32, scale float32) {
	dst = dst[:len(src)]
	if scale == 0 {
		clear(dst)
		return
	}
	active.encodeE4M3(dst, src, scale)
}
