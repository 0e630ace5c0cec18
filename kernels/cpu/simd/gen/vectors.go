package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vectors emits the loops over single rows. They work on a multiple of 8 values
// and leave what is beyond to the caller.
func vectors() {
	v := avx2
	decodeRowBF16(v)
	decodeRowE4M3(v)
	encodeRowBF16(v)
	encodeRowE4M3(v)
	quantRows(v)

	v.text("sumSquares", "(x *float32, n int) float32", "is Σ x².")
	reduce(v, "x", 0, func(x Mem, acc reg.VecVirtual) {
		r := YMM()
		VMOVUPS(x, r)
		VFMADD231PS(r, r, acc)
	}, func(a, b, dst reg.VecVirtual) { VADDPS(a, b, dst) })
	v.text("maximum", "(x *float32, n int) float32", "is the largest value.")
	reduce(v, "x", 0xff800000, func(x Mem, acc reg.VecVirtual) { VMAXPS(x, acc, acc) },
		func(a, b, dst reg.VecVirtual) { VMAXPS(a, b, dst) })
	v.text("absMax", "(x *float32, n int) float32", "is the largest magnitude.")
	reduce(v, "x", 0, func(x Mem, acc reg.VecVirtual) {
		r := YMM()
		VMOVUPS(dwords8("magnitude", 0x7fffffff), r)
		VANDPS(x, r, r)
		VMAXPS(r, acc, acc)
	}, func(a, b, dst reg.VecVirtual) { VMAXPS(a, b, dst) })

	v.text("scaleMul", "(dst, x, w *float32, n int, a float32)", "computes dst = x·a·w.")
	a := v.vec()
	VBROADCASTSS(param("a"), a)
	each(v, 32, func(at func(name string) Mem) {
		r := v.vec()
		VMULPS(at("x"), a, r)
		VMULPS(at("w"), r, r)
		VMOVUPS(r, at("dst"))
	}, "dst", "x", "w")

	v.text("scale", "(x *float32, n int, a float32)", "computes x *= a.")
	a = v.vec()
	VBROADCASTSS(param("a"), a)
	each(v, 32, func(at func(name string) Mem) {
		r := v.vec()
		VMULPS(at("x"), a, r)
		VMOVUPS(r, at("x"))
	}, "x")

	v.text("add", "(dst, x *float32, n int)", "computes dst += x.")
	each(v, 32, func(at func(name string) Mem) {
		r := v.vec()
		VMOVUPS(at("dst"), r)
		VADDPS(at("x"), r, r)
		VMOVUPS(r, at("dst"))
	}, "dst", "x")

	v.text("axpy", "(dst, x *float32, n int, a float32)", "computes dst += a·x.")
	a = v.vec()
	VBROADCASTSS(param("a"), a)
	each(v, 32, func(at func(name string) Mem) {
		r := v.vec()
		VMOVUPS(at("dst"), r)
		VFMADD231PS(at("x"), a, r)
		VMOVUPS(r, at("dst"))
	}, "dst", "x")

	v.text("reluAxpy", "(dst, x *float32, n int, a float32)", "computes dst += a·max(x, 0).")
	a, zero := v.vec(), v.vec()
	VBROADCASTSS(param("a"), a)
	v.zero(zero)
	each(v, 32, func(at func(name string) Mem) {
		x, r := v.vec(), v.vec()
		VMAXPS(at("x"), zero, x) // a NaN stays
		VMOVUPS(at("dst"), r)
		VFMADD231PS(x, a, r)
		VMOVUPS(r, at("dst"))
	}, "dst", "x")

	v.text("siluMul", "(dst, gate, up *float32, n int)", "computes dst = gate / (1 + e^-gate) · up.")
	e := newExp(v)
	one := v.vec()
	VMOVUPS(floats8("ones", 1), one)
	each(v, 32, func(at func(name string) Mem) {
		gate, x := v.vec(), v.vec()
		VMOVUPS(at("gate"), gate)
		VXORPS(dwords8("signBits", 0x80000000), gate, x)
		x = e.of(x)
		VADDPS(one, x, x)
		VDIVPS(x, gate, x)
		VMULPS(at("up"), x, x)
		VMOVUPS(x, at("dst"))
	}, "dst", "gate", "up")

	v.text("expSum", "(dst, x *float32, n int, shift float32) float32", "computes dst = e^(x-shift) and its sum.")
	e = newExp(v)
	shift, sum := v.vec(), v.vec()
	VBROADCASTSS(param("shift"), shift)
	v.zero(sum)
	loopEach(v, 32, func(at func(name string) Mem) {
		x := v.vec()
		VMOVUPS(at("x"), x)
		VSUBPS(shift, x, x)
		x = e.of(x)
		VMOVUPS(x, at("dst"))
		VADDPS(x, sum, sum)
	}, "dst", "x")
	fold(sum, func(a, b, dst reg.VecVirtual) { VADDPS(a, b, dst) })
}

// loopEach emits body for 8 values of each named row at a time; size is the
// bytes of 8 values, those of other rows are reached with at's address.
func loopEach(v isa, size int, body func(at func(name string) Mem), names ...string) {
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	rows := map[string]reg.Register{}
	for _, name := range names {
		rows[name] = Load(Param(name), GP64())
	}
	i := GP64()
	XORQ(i, i)
	loop("values", n, v.lanes, func() {
		body(func(name string) Mem { return Mem{Base: rows[name], Index: i, Scale: 1} })
		ADDQ(I32(size), i)
	})
}

func each(v isa, size int, body func(at func(name string) Mem), names ...string) {
	loopEach(v, size, body, names...)
	VZEROUPPER()
	RET()
}

// reduce emits four running results over x, folded in a fixed order.
func reduce(v isa, name string, start uint32, step func(x Mem, acc reg.VecVirtual),
	join func(a, b, dst reg.VecVirtual)) {
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	x := Load(Param(name), GP64())
	acc := v.vecs(4)
	for _, r := range acc {
		if start == 0 {
			v.zero(r)
		} else {
			VMOVUPS(dwords8("minusInf", start), r)
		}
	}
	loop("four", n, 32, func() {
		for i, r := range acc {
			step(Mem{Base: x, Disp: 32 * i}, r)
		}
		ADDQ(I32(128), x)
	})
	loop("one", n, 8, func() {
		step(Mem{Base: x}, acc[0])
		ADDQ(I32(32), x)
	})
	join(acc[1], acc[0], acc[0])
	join(acc[3], acc[2], acc[2])
	join(acc[2], acc[0], acc[0])
	fold(acc[0], join)
}

// fold joins the lanes of a register and returns the result.
func fold(r reg.VecVirtual, join func(a, b, dst reg.VecVirtual)) {
	lo, hi := XMM(), XMM()
	VEXTRACTF128(Imm(1), r, hi)
	VMOVAPS(r.AsX(), lo)
	join(hi, lo, lo)
	VMOVHLPS(lo, lo, hi)
	join(hi, lo, lo)
	VMOVSHDUP(lo, hi)
	join(hi, lo, lo)
	Store(lo, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// exp is e^x as expf of package simd computes it.
type exp struct{ low, high, log2e, c0 reg.VecVirtual }

func newExp(v isa) exp {
	e := exp{v.vec(), v.vec(), v.vec(), v.vec()}
	VMOVUPS(floats8("expLow", -87.3), e.low)
	VMOVUPS(floats8("expHigh", 88), e.high)
	VMOVUPS(floats8("log2e", 1.44269504088896341), e.log2e)
	VMOVUPS(floats8("expC0", 5.0000001201e-1), e.c0)
	return e
}

func (e exp) of(x reg.VecVirtual) reg.VecVirtual {
	tiny, n, p, r2 := YMM(), YMM(), YMM(), YMM()
	VCMPPS(Imm(1), e.low, x, tiny) // x < low
	VMINPS(x, e.high, x)           // a NaN stays
	VMULPS(e.log2e, x, n)
	VROUNDPS(Imm(0), n, n)
	VFNMADD231PS(floats8("ln2Hi", 0.693359375), n, x)
	VFNMADD231PS(floats8("ln2Lo", -2.12194440e-4), n, x)
	VMOVUPS(floats8("expC5", 1.9875691500e-4), p)
	VFMADD213PS(floats8("expC4", 1.3981999507e-3), x, p)
	VFMADD213PS(floats8("expC3", 8.3334519073e-3), x, p)
	VFMADD213PS(floats8("expC2", 4.1665795894e-2), x, p)
	VFMADD213PS(floats8("expC1", 1.6666665459e-1), x, p)
	VFMADD213PS(e.c0, x, p)
	VMULPS(x, x, r2)
	VFMADD213PS(x, r2, p)
	VADDPS(floats8("ones", 1), p, p)
	VCVTPS2DQ(n, n)
	VPSLLD(Imm(23), n, n)
	VPADDD(floats8("ones", 1), n, n)
	VMULPS(n, p, p)
	VANDNPS(p, tiny, p)
	return p
}

func decodeRowBF16(v isa) {
	v.text("decodeRowBF16", "(dst *float32, src *byte, n int)", "widens n values.")
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	loop("values", n, 8, func() {
		r := YMM()
		VPMOVZXWD(Mem{Base: src}, r)
		VPSLLD(Imm(16), r, r)
		VMOVUPS(r, Mem{Base: dst})
		ADDQ(I32(16), src)
		ADDQ(I32(32), dst)
	})
	VZEROUPPER()
	RET()
}

func decodeRowE4M3(v isa) {
	v.text("decodeRowE4M3", "(dst *float32, src *byte, n int, scale float32)", "computes dst = src·scale.")
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	scale := YMM()
	VBROADCASTSS(param("scale"), scale)
	VMULPS(floats8("two8s", 256), scale, scale)
	loop("values", n, 8, func() {
		h, nan, r := XMM(), XMM(), YMM()
		VPMOVSXBW(Mem{Base: src}, h)
		VPSLLW(Imm(7), h, h)
		VPAND(dwords8("codeBits", 0xbfffbfff), h, h)
		VPAND(dwords8("wordMagnitudes", 0x7fff7fff), h, nan)
		VPCMPEQW(dwords8("codeNaN", 0x3f803f80), nan, nan)
		VPOR(nan, h, h)
		VCVTPH2PS(h, r)
		VMULPS(scale, r, r)
		VMOVUPS(r, Mem{Base: dst})
		ADDQ(I32(8), src)
		ADDQ(I32(32), dst)
	})
	VZEROUPPER()
	RET()
}

func encodeRowBF16(v isa) {
	v.text("encodeRowBF16", "(dst *byte, src *float32, n int)", "rounds n values to nearest even.")
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	loop("values", n, 8, func() {
		x, high, r, nan := YMM(), YMM(), YMM(), YMM()
		VMOVUPS(Mem{Base: src}, x)
		VPSRLD(Imm(16), x, high)
		VPAND(dwords8("one", 1), high, r)
		VPADDD(dwords8("halfLess", 0x7fff), r, r)
		VPADDD(x, r, r)
		VPSRLD(Imm(16), r, r)
		VPOR(dwords8("quiet", 0x40), high, high)
		VCMPPS(Imm(3), x, x, nan)
		VBLENDVPS(nan, high, r, r)
		VEXTRACTI128(Imm(1), r, high.AsX())
		VPACKUSDW(high.AsX(), r.AsX(), r.AsX())
		VMOVUPS(r.AsX(), Mem{Base: dst})
		ADDQ(I32(32), src)
		ADDQ(I32(16), dst)
	})
	VZEROUPPER()
	RET()
}

func encodeRowE4M3(v isa) {
	v.text("encodeRowE4M3", "(dst *byte, src *float32, n int, scale float32)",
		"rounds src/scale to nearest even, saturating.")
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	scale := YMM()
	VBROADCASTSS(param("scale"), scale)
	loop("values", n, 8, func() {
		x, a, nan := YMM(), YMM(), YMM()
		VMOVUPS(Mem{Base: src}, x)
		VDIVPS(scale, x, x)
		VCMPPS(Imm(3), x, x, nan)
		VANDPS(dwords8("magnitude", 0x7fffffff), x, a)
		VMINPS(floats8("maxE4M3", 448), a, a) // the rows of nan are set below
		roundTo(a, "minE4M3", 1.0/64, "two20", 1<<20)
		VBLENDVPS(nan, floats8("nanE4M3", 480), a, a)
		VANDPS(dwords8("signBits", 0x80000000), x, x)
		VORPS(a, x, x)
		VMULPS(floats8("two8down", 1.0/256), x, x)
		h, sign := XMM(), XMM()
		VCVTPS2PH(Imm(0), x, h)
		VPSRLW(Imm(8), h, sign)
		VPAND(dwords8("byteSign", 0x00800080), sign, sign)
		VPSRLW(Imm(7), h, h)
		VPAND(dwords8("byteMagnitude", 0x007f007f), h, h)
		VPOR(sign, h, h)
		VPACKUSWB(h, h, h)
		VMOVQ(h, Mem{Base: dst})
		ADDQ(I32(32), src)
		ADDQ(I32(8), dst)
	})
	VZEROUPPER()
	RET()
}
