package simd

import "golang.org/x/sys/cpu"

//go:generate go run -C gen . -isa avx2 -out ../avx2_amd64.s -stubs ../avx2_amd64.go -pkg simd
//go:generate go run -C gen . -isa avx512 -out ../avx512_amd64.s -stubs ../avx512_amd64.go -pkg simd

// levels are those that this machine can run, best first.
func levels() []*level {
	x, ls := cpu.X86, []*level{goLevel()}
	if x.HasAVX2 && x.HasFMA { // every processor with these has half floats (F16C)
		ls = append([]*level{avx2Level()}, ls...)
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI {
			ls = append([]*level{avx512Level()}, ls...)
		}
	}
	return ls
}

func avx2Level() *level {
	l := rowLevel()
	l.name, l.rows = "avx2", 6
	l.gemv[f32] = [maxGemv]gemvFunc{gemvF32x1AVX2, gemvF32x2AVX2, gemvF32x3AVX2, gemvF32x4AVX2}
	l.gemv[bf16] = [maxGemv]gemvFunc{gemvBF16x1AVX2, gemvBF16x2AVX2, gemvBF16x3AVX2, gemvBF16x4AVX2}
	l.gemv[fp4] = [maxGemv]gemvFunc{gemvFP4x1AVX2, gemvFP4x2AVX2}
	l.decode[bf16], l.decode[fp4] = decodePairsAVX2, decodeFP4AVX2
	l.tile = [maxTile]tileFunc{tile1AVX2, tile2AVX2, tile3AVX2, tile4AVX2, tile5AVX2, tile6AVX2}
	l.wide = [maxTile]wideFunc{wide1AVX2, wide2AVX2, wide3AVX2}
	l.scaled = [maxTile]scaledFunc{scaled1AVX2, scaled2AVX2, scaled3AVX2, scaled4AVX2, scaled5AVX2, scaled6AVX2}
	l.scaledWide = [maxTile]scaledFunc{scaledWide1AVX2, scaledWide2AVX2, scaledWide3AVX2}
	l.quant = [maxTile]quantFunc{quant1AVX2, quant2AVX2}
	l.dots = pairs(dots1AVX2, dots2AVX2)
	return l
}

func avx512Level() *level {
	l := rowLevel()
	l.name, l.rows = "avx512", 8
	l.gemv[f32] = [maxGemv]gemvFunc{gemvF32x1AVX512, gemvF32x2AVX512, gemvF32x3AVX512, gemvF32x4AVX512}
	l.gemv[bf16] = [maxGemv]gemvFunc{gemvBF16x1AVX512, gemvBF16x2AVX512, gemvBF16x3AVX512, gemvBF16x4AVX512}
	l.gemv[fp4] = [maxGemv]gemvFunc{gemvFP4x1AVX512, gemvFP4x2AVX512, gemvFP4x3AVX512, gemvFP4x4AVX512}
	l.decode[bf16], l.decode[fp4] = decodePairsAVX512, decodeFP4AVX512
	l.tile = [maxTile]tileFunc{tile1AVX512, tile2AVX512, tile3AVX512, tile4AVX512, tile5AVX512, tile6AVX512,
		tile7AVX512, tile8AVX512}
	l.wide = [maxTile]wideFunc{wide1AVX512, wide2AVX512, wide3AVX512, wide4AVX512, wide5AVX512, wide6AVX512,
		wide7AVX512, wide8AVX512}
	l.scaled = [maxTile]scaledFunc{scaled1AVX512, scaled2AVX512, scaled3AVX512, scaled4AVX512, scaled5AVX512,
		scaled6AVX512, scaled7AVX512, scaled8AVX512}
	l.scaledWide = [maxTile]scaledFunc{scaledWide1AVX512, scaledWide2AVX512, scaledWide3AVX512, scaledWide4AVX512,
		scaledWide5AVX512, scaledWide6AVX512, scaledWide7AVX512, scaledWide8AVX512}
	l.quant = [maxTile]quantFunc{quant1AVX512, quant2AVX512, quant3AVX512, quant4AVX512, quant5AVX512, quant6AVX512,
		quant7AVX512, quant8AVX512}
	l.dots = pairs(dots1AVX512, dots2AVX512)
	return l
}

// pairs takes heads two at a time.
func pairs(one, two func(out *float32, ldo int, q *float32, ldq int, r *float32, ldr, slots, k int)) dotsFunc {
	return func(out *float32, ldo int, q *float32, ldq int, r *float32, ldr int, heads, slots, k int) {
		h := 0
		for ; h+2 <= heads; h += 2 {
			two(after(out, h*ldo), ldo, after(q, h*ldq), ldq, r, ldr, slots, k)
		}
		if h < heads {
			one(after(out, h*ldo), ldo, after(q, h*ldq), ldq, r, ldr, slots, k)
		}
	}
}

// rowLevel has the loops over single rows, for which 256 bits are enough: they
// are short or wait for memory. Assembly does multiples of 8 values.
func rowLevel() *level {
	l := goLevel()
	l.decode[f32] = nil
	l.decodeF32 = func(dst []float32, src []byte) {
		if len(dst) > 0 {
			copy(view[byte](&dst[0], 0, 4*len(dst)), src)
		}
	}
	l.decodeBF16 = func(dst []float32, src []byte) {
		n := len(dst) &^ 7
		if n > 0 {
			decodeRowBF16AVX2(&dst[0], &src[0], n)
		}
		decodeBF16Go(dst[n:], src[2*n:])
	}
	l.decodeE4M3 = func(dst []float32, src []byte, scale float32) {
		n := len(dst) &^ 7
		if n > 0 {
			decodeRowE4M3AVX2(&dst[0], &src[0], n, scale)
		}
		decodeE4M3Go(dst[n:], src[n:], scale)
	}
	l.encodeBF16 = func(dst []byte, src []float32) {
		n := len(src) &^ 7
		if n > 0 {
			encodeRowBF16AVX2(&dst[0], &src[0], n)
		}
		encodeBF16Go(dst[2*n:], src[n:])
	}
	l.encodeE4M3 = func(dst []byte, src []float32, scale float32) {
		n := len(src) &^ 7
		if n > 0 {
			encodeRowE4M3AVX2(&dst[0], &src[0], n, scale)
		}
		encodeE4M3Go(dst[n:], src[n:], scale)
	}
	l.quantA4 = func(dst []byte, x []float32, input float32) {
		if len(x) > 0 {
			quantA4AVX2(&dst[0], &x[0], len(x)/16, input)
		}
	}
	l.quantA8 = func(dst []byte, x []float32) {
		if len(x) > 0 {
			quantA8AVX2(&dst[0], &x[0], len(x)/16)
		}
	}
	l.sumSquares = func(x []float32) float32 {
		n := len(x) &^ 7
		if n == 0 {
			return sumSquaresGo(x)
		}
		return sumSquaresAVX2(&x[0], n) + sumSquaresGo(x[n:])
	}
	l.maximum = func(x []float32) float32 {
		n := len(x) &^ 7
		if n == 0 {
			return maximumGo(x)
		}
		return max(maximumAVX2(&x[0], n), maximumGo(x[n:]))
	}
	l.absMax = func(x []float32) float32 {
		n := len(x) &^ 7
		if n == 0 {
			return absMaxGo(x)
		}
		return max(absMaxAVX2(&x[0], n), absMaxGo(x[n:]))
	}
	l.expSum = func(dst, x []float32, shift float32) float32 {
		n := len(x) &^ 7
		if n == 0 {
			return expSumGo(dst, x, shift)
		}
		return expSumAVX2(&dst[0], &x[0], n, shift) + expSumGo(dst[n:], x[n:], shift)
	}
	l.scaleMul = func(dst, x, w []float32, a float32) {
		n := len(dst) &^ 7
		if n > 0 {
			scaleMulAVX2(&dst[0], &x[0], &w[0], n, a)
		}
		scaleMulGo(dst[n:], x[n:], w[n:], a)
	}
	l.siluMul = func(dst, gate, up []float32) {
		n := len(dst) &^ 7
		if n > 0 {
			siluMulAVX2(&dst[0], &gate[0], &up[0], n)
		}
		siluMulGo(dst[n:], gate[n:], up[n:])
	}
	l.add = func(dst, x []float32) {
		n := len(dst) &^ 7
		if n > 0 {
			addAVX2(&dst[0], &x[0], n)
		}
		addGo(dst[n:], x[n:])
	}
	l.axpy = func(dst, x []float32, a float32) {
		n := len(dst) &^ 7
		if n > 0 {
			axpyAVX2(&dst[0], &x[0], n, a)
		}
		axpyGo(dst[n:], x[n:], a)
	}
	l.reluAxpy = func(dst, x []float32, a float32) {
		n := len(dst) &^ 7
		if n > 0 {
			reluAxpyAVX2(&dst[0], &x[0], n, a)
		}
		reluAxpyGo(dst[n:], x[n:], a)
	}
	l.scale = func(x []float32, a float32) {
		n := len(x) &^ 7
		if n > 0 {
			scaleAVX2(&x[0], n, a)
		}
		scaleGo(x[n:], a)
	}
	return l
}
