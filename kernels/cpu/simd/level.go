package simd

import "glmbatch/kernels"

const (
	maxTile   = 8   // rows of a tile, at most
	maxGemv   = 4   // panels that a matrix-vector product has in flight, at most
	blockCols = 256 // columns decoded at a time

	// Of a decoded block, in float32 values.
	decodedScales = blockCols * Lanes
	decodedBlock  = decodedScales + blockCols/16*Lanes
)

// formats index the loops by number format.
const (
	f32 = iota
	bf16
	fp4
	fp8b
	numFormats
)

func formatIndex(f kernels.Format) int {
	switch f {
	case kernels.F32:
		return f32
	case kernels.BF16:
		return bf16
	case kernels.FP4:
		return fp4
	case kernels.FP8B:
		return fp8b
	}
	panic("simd: weights of format " + string(f))
}

type (
	gemvFunc = func(y, x *float32, w *byte, panel, k int, alpha float32)
	tileFunc = func(c *float32, coff *int64, a *float32, aoff *int64, b *float32, ldb, k, load int,
		alpha float32, times int)
	wideFunc = func(c *float32, coff *int64, a *float32, aoff *int64, b, b2 *float32, ldb, k, load int,
		alpha float32, times int)
	scaledFunc = func(c *float32, coff *int64, a *float32, aoff *int64, b *float32, k, load int,
		alpha float32, times int)
	quantFunc = func(c *float32, coff *int64, a *byte, aoff *int64, w *byte, blocks int, alpha float32)
	dotsFunc  = func(out *float32, ldo int, q *float32, ldq int, r *float32, ldr int, heads, slots, k int)
)

// level has the loops of one instruction set. Strides and offsets are in bytes.
type level struct {
	name string
	rows int // of the largest tile

	// gemv[f][n-1] multiplies x with n panels, panel bytes apart, into y[n*16].
	// nil: tiles do it.
	gemv [numFormats][maxGemv]gemvFunc
	// decode writes k columns of a panel as float32 [k][16], and for FP4 their
	// scales from decodedScales on. nil: the panel is that already.
	decode [numFormats]func(dst *float32, w *byte, k int)
	// tile[n-1] computes c[i][0:16] = alpha·(c[i] or, if load is 0, zero + Σ a[i][j]·b[j])
	// for n rows i, which are at the offsets of coff and aoff, and for the n after
	// them, times in all; rows j of b are ldb apart.
	tile [maxTile]tileFunc
	// wide is tile for two panels: c[i][16:32] comes from b2.
	wide [maxTile]wideFunc
	// scaled is tile for a block of decoded FP4, whose columns come in multiples
	// of 16: the sums of 16 are multiplied with their scales and added to c.
	// scaledWide takes a second panel's block, right after the first.
	scaled, scaledWide [maxTile]scaledFunc
	// quant[n-1] is a tile of integer activations with n rows and one panel of blocks of 16 columns.
	quant [maxTile]quantFunc
	// dots computes out[h][s] = Σ q[h][i]·r[s][i] for heads h and slots s, the latter
	// a multiple of 4; k is a multiple of 16.
	dots dotsFunc

	decodeF32  func(dst []float32, src []byte)
	decodeBF16 func(dst []float32, src []byte)
	decodeE4M3 func(dst []float32, src []byte, scale float32)
	encodeBF16 func(dst []byte, src []float32)
	encodeE4M3 func(dst []byte, src []float32, scale float32)
	quantA4    func(dst []byte, x []float32, input float32)
	quantA8    func(dst []byte, x []float32)

	sumSquares func(x []float32) float32
	scaleMul   func(dst, x, w []float32, a float32)
	siluMul    func(dst, gate, up []float32)
	add        func(dst, x []float32)
	axpy       func(dst, x []float32, a float32)
	scale      func(x []float32, a float32)
	maximum    func(x []float32) float32
	absMax     func(x []float32) float32
	expSum     func(dst, x []float32, shift float32) float32
	reluAxpy   func(dst, x []float32, a float32)
}

// active is the best level of this machine.
var active = levels()[0]

// Level names the instruction set in use: "avx512", "avx2" or "go".
func Level() string { return active.name }
