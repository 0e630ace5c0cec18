package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets in a block of a quantised row.
const (
	quantBlock  = 24
	quantFactor = 16
	quantBias   = 20
)

// quant emits the products of rows rows of integers with one panel. Weights are
// doubled and 12 is added to make them unsigned; the row's bias takes it out.
func quant(v isa, rows int) {
	v.text(fmt.Sprintf("quant%d", rows),
		"(c *float32, coff *int64, a *byte, aoff *int64, w *byte, blocks int, alpha float32)",
		fmt.Sprintf("is a tile of %d rows of integers.", rows))
	acc := make([][]reg.VecVirtual, rows)
	for i := range acc {
		acc[i] = v.vecs(v.parts())
		for _, r := range acc[i] {
			v.zero(r)
		}
	}
	aoff, base := Load(Param("aoff"), GP64()), Load(Param("a"), GP64())
	in := make([]reg.GPVirtual, rows)
	for i := range in {
		in[i] = GP64()
		MOVQ(Mem{Base: aoff, Disp: 8 * i}, in[i])
		ADDQ(base, in[i])
	}
	w := Load(Param("w"), GP64())
	blocks := Load(Param("blocks"), GP64()).(reg.GPVirtual)
	values := v.table("e2m1Unsigned", doubled(12))
	low := v.all("lowNibbles", 0x0f0f0f0f)
	var ones reg.VecVirtual
	if !v.wide() {
		ones = v.all("oneWords", 0x00010001)
	}
	j := GP64()
	XORQ(j, j)
	loop("block", blocks, 1, func() {
		PREFETCHT0(Mem{Base: w, Disp: ahead})
		PREFETCHT0(Mem{Base: w, Disp: ahead + 64})
		for h := range v.parts() {
			scale := v.vec()
			if v.wide() {
				e4m3Wide(Mem{Base: w}, scale)
				VMULPS_BCST(float("two8", 256), scale, scale)
			} else {
				t := XMM()
				VPMOVSXBW(Mem{Base: w, Disp: 8 * h}, t)
				VPSLLW(Imm(7), t, t)
				VPAND(dwords8("codeBits", 0xbfffbfff), t, t)
				VCVTPH2PS(t, scale)
				VMULPS(floats8("two8s", 256), scale, scale)
			}
			var codes []reg.VecVirtual // 4 columns each
			for g := range 2 {
				even, odd := v.vec(), v.vec()
				VMOVUPS(Mem{Base: w, Disp: fp4Codes + g*64 + h*32}, odd)
				v.and(odd, low, even)
				VPSRLD(Imm(4), odd, odd)
				v.and(odd, low, odd)
				VPSHUFB(even, values, even)
				VPSHUFB(odd, values, odd)
				codes = append(codes, even, odd)
			}
			for i := range in {
				at := func(disp int) Mem { return Mem{Base: in[i], Index: j, Scale: 1, Disp: disp} }
				sum := v.vec()
				if v.wide() {
					VPBROADCASTD(at(quantBias), sum)
					for n, c := range codes {
						VPDPBUSD_BCST(at(4*n), c, sum)
					}
					VCVTDQ2PS(sum, sum)
					f := v.vec()
					VMULPS_BCST(at(quantFactor), scale, f)
					VFMADD231PS(sum, f, acc[i][h])
					continue
				}
				t := v.vec()
				for n, c := range codes {
					r := t
					if n == 0 {
						r = sum
					}
					VPBROADCASTD(at(4*n), r)
					VPMADDUBSW(r, c, r) // at most 24·127·2 a word, four times
					if n > 0 {
						VPADDW(r, sum, sum)
					}
				}
				VPMADDWD(ones, sum, sum)
				VPBROADCASTD(at(quantBias), t)
				VPADDD(t, sum, sum)
				VCVTDQ2PS(sum, sum)
				VBROADCASTSS(at(quantFactor), t)
				VMULPS(scale, t, t)
				VFMADD231PS(sum, t, acc[i][h])
			}
		}
		ADDQ(I32(quantBlock), j)
		ADDQ(I32(fp4Block), w)
	})
	alpha := v.vec()
	VBROADCASTSS(param("alpha"), alpha)
	results(v, acc, func(_ int, r reg.VecVirtual, m Mem) {
		VMULPS(alpha, r, r)
		VMOVUPS(r, m)
	})
	VZEROUPPER()
	RET()
}
