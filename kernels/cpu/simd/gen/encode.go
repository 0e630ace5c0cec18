package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quantRows emits QuantA4 and QuantA8: blocks of 16 values become blocks of a
// quantised row.
func quantRows(v isa) {
	v.text("quantA4", "(dst *byte, x *float32, blocks int, input float32)", "quantises blocks of 16 values to E2M1.")
	input := YMM()
	VBROADCASTSS(param("input"), input)
	quantBlocks(func(x [2]reg.VecVirtual, top reg.VecVirtual) reg.VecVirtual {
		VDIVPS(floats8("six", 6), top, top)
		VDIVPS(input, top, top)
		VMINPS(floats8("maxE4M3", 448), top, top)
		roundTo(top, "minE4M3", 1.0/64, "two20", 1<<20)
		den, some := YMM(), YMM()
		VMULPS(input, top, den)
		VXORPS(some, some, some)
		VCMPPS(Imm(4), some, den, some) // den != 0
		for _, r := range x {
			sign := YMM()
			VDIVPS(den, r, r)
			VANDPS(dwords8("signBits", 0x80000000), r, sign)
			VANDPS(dwords8("magnitude", 0x7fffffff), r, r)
			VMINPS(floats8("six", 6), r, r)
			roundTo(r, "ones", 1, "two22", 1<<22)
			VORPS(sign, r, r)
			VANDPS(some, r, r)
			VADDPS(r, r, r)
			VCVTPS2DQ(r, r)
		}
		return top
	})

	v.text("quantA8", "(dst *byte, x *float32, blocks int)", "quantises blocks of 16 values to signed bytes.")
	quantBlocks(func(x [2]reg.VecVirtual, top reg.VecVirtual) reg.VecVirtual {
		inv, some := YMM(), YMM()
		VDIVPS(floats8("maxInt8", 127), top, top)
		VMOVUPS(floats8("ones", 1), inv)
		VDIVPS(top, inv, inv)
		VMOVUPS(floats8("minNormal", 0x1p-126), some)
		VCMPPS(Imm(2), top, some, some) // minNormal <= top
		VANDPS(some, inv, inv)
		for _, r := range x {
			VMULPS(inv, r, r)
			VCVTPS2DQ(r, r)
		}
		return top
	})
}

// roundTo rounds r, which is not negative, to 4 steps or so of its power of two,
// which is taken to be at least low: adding and subtracting a number whose last
// bit is the step does it.
func roundTo(r reg.VecVirtual, lowName string, low float32, stepName string, step float32) {
	magic := YMM()
	VANDPS(dwords8("exponent", 0x7f800000), r, magic)
	VMAXPS(floats8(lowName, low), magic, magic)
	VMULPS(floats8(stepName, step), magic, magic)
	VADDPS(magic, r, r)
	VSUBPS(magic, r, r)
}

// quantBlocks emits the loop over blocks: round gets 16 values and, in each lane,
// the largest magnitude; it makes them int32 and returns the block's factor.
func quantBlocks(round func(x [2]reg.VecVirtual, top reg.VecVirtual) reg.VecVirtual) {
	dst, src := Load(Param("dst"), GP64()), Load(Param("x"), GP64())
	blocks := Load(Param("blocks"), GP64()).(reg.GPVirtual)
	loop("block", blocks, 1, func() {
		x := [2]reg.VecVirtual{YMM(), YMM()}
		top, t := YMM(), YMM()
		VMOVUPS(Mem{Base: src}, x[0])
		VMOVUPS(Mem{Base: src, Disp: 32}, x[1])
		VMOVUPS(dwords8("magnitude", 0x7fffffff), t)
		VANDPS(x[0], t, top)
		VANDPS(x[1], t, t)
		VMAXPS(t, top, top)
		VPERM2F128(Imm(1), top, top, t)
		VMAXPS(t, top, top)
		VPSHUFD(Imm(0x4e), top, t)
		VMAXPS(t, top, top)
		VPSHUFD(Imm(0xb1), top, t)
		VMAXPS(t, top, top)
		factor := round(x, top)
		words := YMM()
		VPACKSSDW(x[1], x[0], words)
		VPERMQ(Imm(0xd8), words, words)
		high, bytes, sum := XMM(), XMM(), XMM()
		VEXTRACTI128(Imm(1), words, high)
		VPACKSSWB(high, words.AsX(), bytes)
		VMOVUPS(bytes, Mem{Base: dst})
		VMOVSS(factor.AsX(), Mem{Base: dst, Disp: quantFactor})

		// -12·(Σ q) = -12·(Σ (q+128) - 2048); q+128 is unsigned.
		VPXOR(dwords8("signBytes", 0x80808080), bytes, bytes)
		VPXOR(sum, sum, sum)
		VPSADBW(sum, bytes, bytes)
		VPSHUFD(Imm(0x4e), bytes, sum)
		VPADDD(sum, bytes, bytes)
		n := GP32()
		VMOVD(bytes, n)
		IMUL3L(I32(-12), n, n)
		ADDL(I32(12*2048), n)
		MOVL(n, Mem{Base: dst, Disp: quantBias})
		ADDQ(I32(64), src)
		ADDQ(I32(quantBlock), dst)
	})
	VZEROUPPER()
	RET()
}
