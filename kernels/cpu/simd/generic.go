package simd

import (
	"encoding/binary"
	"math"
	"unsafe"

	"glmbatch/kernels"
)

// goLevel is the loops in plain Go, which any machine can run.
func goLevel() *level {
	l := &level{
		name: "go",
		rows: maxTile,
		dots: dotsGo,

		decode:     [numFormats]func(*float32, *byte, int){decodeF32Go, decodePairsGo, decodeFP4Go, decodeFP8Go},
		decodeF32:  copyF32,
		decodeBF16: decodeBF16Go,
		decodeE4M3: decodeE4M3Go,
		encodeBF16: encodeBF16Go,
		encodeE4M3: encodeE4M3Go,
		quantA4:    quantA4Go,
		quantA8:    quantA8Go,
		sumSquares: sumSquaresGo,
		scaleMul:   scaleMulGo,
		siluMul:    siluMulGo,
		add:        addGo,
		axpy:       axpyGo,
		scale:      scaleGo,
		maximum:    maximumGo,
		absMax:     absMaxGo,
		expSum:     expSumGo,
		reluAxpy:   reluAxpyGo,
	}
	for i := range maxTile {
		l.tile[i] = func(c *float32, coff *int64, a *float32, aoff *int64, b *float32, ldb, k, load int,
			alpha float32, times int) {
			tileGo((i+1)*times, c, coff, a, aoff, b, ldb, k, load, alpha)
		}
		l.scaled[i] = func(c *float32, coff *int64, a *float32, aoff *int64, b *float32, k, load int,
			alpha float32, times int) {
			scaledGo((i+1)*times, c, coff, a, aoff, b, k, load, alpha)
		}
		l.quant[i] = func(c *float32, coff *int64, a *byte, aoff *int64, w *byte, blocks int, alpha float32) {
			quantGo(i+1, c, coff, a, aoff, w, blocks, alpha)
		}
	}
	return l
}

// view returns n values from off bytes after p.
func view[T, P any](p *P, off int64, n int) []T {
	return unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(p), off)), n)
}

// after is the value off bytes after p.
func after(p *float32, off int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), off)) }

func tileGo(rows int, c *float32, coff *int64, a *float32, aoff *int64, b *float32, ldb, k, load int, alpha float32) {
	for i := range rows {
		out := view[float32](c, view[int64](coff, 0, rows)[i], Lanes)
		in := view[float32](a, view[int64](aoff, 0, rows)[i], k)
		var acc [Lanes]float32
		if load != 0 {
			copy(acc[:], out)
		}
		for j, x := range in {
			for r, w := range view[float32](b, int64(j*ldb), Lanes) {
				acc[r] = fma(x, w, acc[r])
			}
		}
		for r := range acc {
			out[r] = acc[r] * alpha
		}
	}
}

func decodeF32Go(dst *float32, w *byte, k int) {
	copyF32(view[float32](dst, 0, k*Lanes), view[byte](w, 0, k*64))
}

func decodePairsGo(dst *float32, w *byte, k int) {
	out, in := view[float32](dst, 0, k*Lanes), view[byte](w, 0, (k+1)/2*64)
	for j := range k {
		for r := range Lanes {
			out[j*Lanes+r] = fromBF16(binary.LittleEndian.Uint16(in[j/2*64+r*4+j%2*2:]))
		}
	}
}

func decodeFP4Go(dst *float32, w *byte, k int) {
	out, in := view[float32](dst, 0, decodedBlock), view[byte](w, 0, k/16*fp4Block)
	for j := range k {
		block := in[j/16*fp4Block:][:fp4Block]
		for r := range Lanes {
			out[j*Lanes+r] = e2m1[nibble(block, r, j%16)]
			out[decodedScales+j/16*Lanes+r] = e4m3[block[r]]
		}
	}
}

// decodeFP8Go makes the values that BF16 would hold: a code times its scale, rounded.
func decodeFP8Go(dst *float32, w *byte, k int) {
	out, in := view[float32](dst, 0, k*Lanes), view[byte](w, 0, kernels.ScaleColumns(k)*fp8Codes+k*Lanes)
	for at := 0; at < k; at += fp8Columns {
		var scales [Lanes]float32
		copyF32(scales[:], in)
		codes := in[fp8Codes:][:min(fp8Columns, k-at)*Lanes]
		for j, c := range codes {
			out[at*Lanes+j] = fromBF16(toBF16(e4m3[c] * scales[j%Lanes]))
		}
		in = in[fp8Codes+len(codes):]
	}
}

// scaledGo sums 16 columns at a time.
func scaledGo(rows int, c *float32, coff *int64, a *float32, aoff *int64, b *float32, k, load int, alpha float32) {
	weights := view[float32](b, 0, decodedBlock)
	for i := range rows {
		out := view[float32](c, view[int64](coff, 0, rows)[i], Lanes)
		in := view[float32](a, view[int64](aoff, 0, rows)[i], k)
		if load == 0 {
			clear(out)
		}
		for j := 0; j < k; j += 16 {
			for r := range out {
				sum := float32(0)
				for n, x := range in[j : j+16] {
					sum = fma(x, weights[(j+n)*Lanes+r], sum)
				}
				out[r] = fma(sum, weights[decodedScales+j/16*Lanes+r], out[r])
			}
		}
		scaleGo(out, alpha)
	}
}

// nibble is the code of row r, column j of a block.
func nibble(block []byte, r, j int) byte {
	return block[16+j/8*64+r*4+j%4] >> (j / 4 % 2 * 4) & 15
}

func quantGo(rows int, c *float32, coff *int64, a *byte, aoff *int64, w *byte, blocks int, alpha float32) {
	packed := view[byte](w, 0, blocks*fp4Block)
	for i := range rows {
		out := view[float32](c, view[int64](coff, 0, rows)[i], Lanes)
		in := view[byte](a, view[int64](aoff, 0, rows)[i], blocks*quantBlock)
		var acc [Lanes]float32
		for b := range blocks {
			x, block := in[b*quantBlock:][:quantBlock], packed[b*fp4Block:][:fp4Block]
			sf := math.Float32frombits(binary.LittleEndian.Uint32(x[16:]))
			for r := range Lanes {
				dot := int32(0)
				for j := range 16 {
					dot += int32(2*e2m1[nibble(block, r, j)]) * int32(int8(x[j]))
				}
				acc[r] = fma(float32(dot), e4m3[block[r]]*sf, acc[r])
			}
		}
		for r := range acc {
			out[r] = acc[r] * alpha
		}
	}
}

// The sums below keep the lanes of the vector loops, and add them up as those do.

func dotsGo(out *float32, ldo int, q *float32, ldq int, r *float32, ldr int, heads, slots, k int) {
	for h := range heads {
		x := view[float32](q, int64(h*ldq), k)
		for s, o := 0, view[float32](out, int64(h*ldo), slots); s < slots; s++ {
			y := view[float32](r, int64(s*ldr), k)
			var a [16]float32
			for i := range x {
				a[i%16] = fma(x[i], y[i], a[i%16])
			}
			for i := range 8 {
				a[i] += a[i+8]
			}
			o[s] = ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]))
		}
	}
}

// fold8 adds up lanes by halves.
func fold8(a []float32) float32 {
	return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
}

func copyF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[i*4:]))
	}
}

func decodeBF16Go(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = fromBF16(binary.LittleEndian.Uint16(src[i*2:]))
	}
}

func decodeE4M3Go(dst []float32, src []byte, scale float32) {
	for i := range dst {
		dst[i] = e4m3[src[i]] * scale
	}
}

func encodeBF16Go(dst []byte, src []float32) {
	for i, v := range src {
		binary.LittleEndian.PutUint16(dst[i*2:], toBF16(v))
	}
}

func encodeE4M3Go(dst []byte, src []float32, scale float32) {
	for i, v := range src {
		dst[i] = toE4M3(v / scale)
	}
}

func sumSquaresGo(x []float32) float32 {
	var a [32]float32
	i := 0
	for ; i+32 <= len(x); i += 32 {
		for j := range a {
			a[j] = fma(x[i+j], x[i+j], a[j])
		}
	}
	for ; i+8 <= len(x); i += 8 {
		for j := range 8 {
			a[j] = fma(x[i+j], x[i+j], a[j])
		}
	}
	for j := range 8 {
		a[j] = (a[j] + a[8+j]) + (a[16+j] + a[24+j])
	}
	rest := float32(0)
	for _, v := range x[i:] {
		rest = fma(v, v, rest)
	}
	return fold8(a[:8]) + rest
}

func scaleMulGo(dst, x, w []float32, a float32) {
	for i := range dst {
		dst[i] = float32(x[i]*a) * w[i]
	}
}

func siluMulGo(dst, gate, up []float32) {
	for i := range dst {
		dst[i] = gate[i] / (1 + expf(-gate[i])) * up[i]
	}
}

func addGo(dst, x []float32) {
	for i := range dst {
		dst[i] += x[i]
	}
}

func axpyGo(dst, x []float32, a float32) {
	for i := range dst {
		dst[i] = fma(x[i], a, dst[i])
	}
}

func reluAxpyGo(dst, x []float32, a float32) {
	for i := range dst {
		dst[i] = fma(max(x[i], 0), a, dst[i])
	}
}

func scaleGo(x []float32, a float32) {
	for i := range x {
		x[i] *= a
	}
}

func maximumGo(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

func absMaxGo(x []float32) float32 {
	m := float32(0)
	for _, v := range x {
		m = max(m, float32(math.Abs(float64(v))))
	}
	return m
}

func expSumGo(dst, x []float32, shift float32) float32 {
	for i, v := range x {
		dst[i] = expf(v - shift)
	}
	var a [8]float32
	whole, rest := len(x)&^7, float32(0)
	for i, v := range dst[:whole] {
		a[i%8] += v
	}
	for _, v := range dst[whole:] {
		rest += v
	}
	return fold8(a[:]) + rest
}

func quantA4Go(dst []byte, x []float32, input float32) {
	for b := range len(x) / 16 {
		in, out := x[b*16:b*16+16], dst[b*quantBlock:(b+1)*quantBlock]
		sf := e4m3[toE4M3(absMaxGo(in)/6/input)]
		den := sf * input
		sum := int32(0)
		for j, v := range in {
			q := int8(0)
			if den != 0 {
				v /= den
				q = int8(2 * e2m1[toE2M1(float32(math.Abs(float64(v))))])
				if v < 0 {
					q = -q
				}
			}
			out[j] = byte(q)
			sum += int32(q)
		}
		seal(out, sf, sum)
	}
}

func quantA8Go(dst []byte, x []float32) {
	for b := range len(x) / 16 {
		in, out := x[b*16:b*16+16], dst[b*quantBlock:(b+1)*quantBlock]
		sf := absMaxGo(in) / 127
		inv := float32(0)
		if sf >= 0x1p-126 {
			inv = 1 / sf
		}
		sum := int32(0)
		for j, v := range in {
			q := int32(math.RoundToEven(float64(v * inv)))
			out[j] = byte(q)
			sum += q
		}
		seal(out, sf, sum)
	}
}

// seal writes what follows a block's integers.
func seal(out []byte, sf float32, sum int32) {
	binary.LittleEndian.PutUint32(out[16:], math.Float32bits(sf))
	binary.LittleEndian.PutUint32(out[20:], uint32(-12*sum))
}
