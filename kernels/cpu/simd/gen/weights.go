package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The packed layouts are those of package simd's documentation.
const (
	fp4Block = 144
	fp4Codes = 16 // offset of the codes in a block
)

// stream addresses n panels that are a fixed distance apart.
type stream struct {
	w, step, step3 reg.GPVirtual
}

func panelStream(n int) stream {
	s := stream{w: Load(Param("w"), GP64()).(reg.GPVirtual), step: Load(Param("panel"), GP64()).(reg.GPVirtual)}
	if n == 4 {
		s.step3 = GP64()
		LEAQ(Mem{Base: s.step, Index: s.step, Scale: 2}, s.step3)
	}
	return s
}

func (s stream) at(panel, disp int) Mem {
	m := Mem{Base: s.w, Disp: disp}
	switch panel {
	case 1, 2:
		m.Index, m.Scale = s.step, uint8(panel)
	case 3:
		m.Index, m.Scale = s.step3, 1
	}
	return m
}

// ahead is how far before its use a line of a panel is asked for.
const ahead = 1024

// loop emits body for every step of count, while that is at least step.
func loop(label string, count reg.GPVirtual, step int, body func()) {
	CMPQ(count, I32(step))
	JL(LabelRef(label + "End"))
	Label(label)
	body()
	SUBQ(I32(step), count)
	CMPQ(count, I32(step))
	JGE(LabelRef(label))
	Label(label + "End")
}

const gemvSignature = "(y, x *float32, w *byte, panel, k int, alpha float32)"

// gemv emits a matrix-vector product of n panels around the loops of a format.
func gemv(v isa, name string, n int, loops func(s stream, x, k reg.GPVirtual, acc [][]reg.VecVirtual)) {
	v.text(fmt.Sprintf("gemv%sx%d", name, n), gemvSignature, fmt.Sprintf("multiplies x with %d panels.", n))
	s := panelStream(n)
	x := Load(Param("x"), GP64()).(reg.GPVirtual)
	k := Load(Param("k"), GP64()).(reg.GPVirtual)
	acc := make([][]reg.VecVirtual, n)
	for i := range acc {
		acc[i] = v.vecs(v.parts())
		for _, r := range acc[i] {
			v.zero(r)
		}
	}
	loops(s, x, k, acc)
	alpha := v.vec()
	VBROADCASTSS(param("alpha"), alpha)
	y := Load(Param("y"), GP64())
	for i := range acc {
		for h, r := range acc[i] {
			VMULPS(alpha, r, r)
			VMOVUPS(r, Mem{Base: y, Disp: i*64 + h*v.bytes()})
		}
	}
	VZEROUPPER()
	RET()
}

func gemvF32(v isa, n int) {
	gemv(v, "F32", n, func(s stream, x, k reg.GPVirtual, acc [][]reg.VecVirtual) {
		step := func(cols int) func() {
			return func() {
				for u := range cols {
					xv := v.vec()
					VBROADCASTSS(Mem{Base: x, Disp: 4 * u}, xv)
					for i := range acc {
						PREFETCHT0(s.at(i, u*64+ahead))
						for h, r := range acc[i] {
							VFMADD231PS(s.at(i, u*64+h*v.bytes()), xv, r)
						}
					}
				}
				ADDQ(I32(64*cols), s.w)
				ADDQ(I32(4*cols), x)
			}
		}
		loop("four", k, 4, step(4))
		loop("one", k, 1, step(1))
	})
}

func gemvBF16(v isa, n int) {
	gemv(v, "BF16", n, func(s stream, x, k reg.GPVirtual, acc [][]reg.VecVirtual) {
		high := v.all("highHalf", 0xffff0000)
		step := func(cols int) func() {
			return func() {
				for u := range (cols + 1) / 2 {
					even, odd := v.vec(), v.vec()
					VBROADCASTSS(Mem{Base: x, Disp: 8 * u}, even)
					if cols > 1 {
						VBROADCASTSS(Mem{Base: x, Disp: 8*u + 4}, odd)
					}
					for i := range acc {
						PREFETCHT0(s.at(i, u*64+ahead))
						for h, r := range acc[i] {
							pair, one := v.vec(), v.vec()
							VMOVUPS(s.at(i, u*64+h*v.bytes()), pair)
							VPSLLD(Imm(16), pair, one)
							VFMADD231PS(one, even, r)
							if cols > 1 {
								v.and(pair, high, pair)
								VFMADD231PS(pair, odd, r)
							}
						}
					}
				}
				ADDQ(I32((cols+1)/2*64), s.w)
				ADDQ(I32(4*cols), x)
			}
		}
		loop("four", k, 4, step(4))
		loop("two", k, 2, step(2))
		loop("one", k, 1, step(1))
	})
}

// fp4 holds the constants for decoding FP4.
type fp4 struct {
	v      isa
	values reg.VecVirtual // AVX-512: the float32 values; AVX2: their doubles as bytes
	pick   [3]Op          // AVX2: topByte(0..2)
}

func newFP4(v isa) *fp4 {
	d := &fp4{v: v}
	if v.wide() {
		d.values = v.vec()
		VMOVUPS(floats16("e2m1Values", e2m1), d.values)
		return d
	}
	d.values = v.table("e2m1Doubled", doubled(0))
	for i := range d.pick {
		d.pick[i] = bytes32(fmt.Sprintf("topByte%d", i), topByte(i))
	}
	return d
}

// scales loads E4M3 scales of a panel's rows from m as float32. In AVX2 they lack
// 2^25: its values are doubled and stand 24 bits too high.
func (d *fp4) scales(m Mem) []reg.VecVirtual {
	if d.v.wide() {
		r := ZMM()
		e4m3Wide(m, r)
		VMULPS_BCST(float("two8", 256), r, r)
		return []reg.VecVirtual{r}
	}
	a, b := d.v.vec(), d.v.vec()
	e4m3Halves(m, a, b)
	VMULPS(floats8("two8minus25", 1.0/(1<<17)), a, a)
	VMULPS(floats8("two8minus25", 1.0/(1<<17)), b, b)
	return []reg.VecVirtual{a, b}
}

// An E4M3 code shifted left by 7 bits is a half float, but for the sign and a
// factor of 2^8; subnormal ones are no exception.

func e4m3Wide(m Mem, r reg.VecVirtual) {
	w := YMM()
	VPMOVSXBW(m, w)
	VPSLLW(Imm(7), w, w)
	VPAND(dwords8("codeBits", 0xbfffbfff), w, w)
	VCVTPH2PS(w, r)
}

func e4m3Halves(m Mem, a, b reg.VecVirtual) {
	w := YMM()
	VPMOVSXBW(m, w)
	VPSLLW(Imm(7), w, w)
	VPAND(dwords8("codeBits", 0xbfffbfff), w, w)
	VCVTPH2PS(w.AsX(), a)
	high := XMM()
	VEXTRACTI128(Imm(1), w, high)
	VCVTPH2PS(high, b)
}

// quad is 4 columns of one register of rows, the first or the second of the 8 in a dword.
type quad struct {
	codes  reg.VecVirtual // AVX-512: of all 8
	second int
	bytes  reg.VecVirtual // AVX2: values as in fp4.values
}

// quad reads codes for AVX2, or for AVX-512 if they are not in registers yet.
func (d *fp4) quad(m Mem, second int, codes reg.VecVirtual) quad {
	q := quad{second: second, codes: codes}
	if d.v.wide() {
		if codes == nil {
			q.codes = d.v.vec()
			VMOVUPS(m, q.codes)
		}
		return q
	}
	q.bytes = d.v.vec()
	VMOVUPS(m, q.bytes)
	if second == 1 {
		VPSRLD(Imm(4), q.bytes, q.bytes)
	}
	VPAND(dwords8("lowNibbles", 0x0f0f0f0f), q.bytes, q.bytes)
	VPSHUFB(q.bytes, d.values, q.bytes)
	return q
}

// column returns the values of column j of the quad.
func (d *fp4) column(q quad, j int) reg.VecVirtual {
	r := d.v.vec()
	if d.v.wide() {
		index := q.codes
		if shift := 8*j + 4*q.second; shift > 0 {
			index = r
			VPSRLD(Imm(uint64(shift)), q.codes, index)
		}
		VPERMPS(d.values, index, r)
		return r
	}
	if j == 3 { // an and runs on any port, a shuffle does not
		VPAND(dwords8("topBytes", 0xff000000), q.bytes, r)
	} else {
		VPSHUFB(d.pick[j], q.bytes, r)
	}
	VCVTDQ2PS(r, r)
	return r
}

// gemvFP4 takes a column of all panels before the next, so that their chains
// of sums overlap within the processor's window.
func gemvFP4(v isa, n int) {
	gemv(v, "FP4", n, func(s stream, x, k reg.GPVirtual, acc [][]reg.VecVirtual) {
		d := newFP4(v)
		loop("block", k, 16, func() {
			sums := make([][]reg.VecVirtual, n) // of the block
			for i := range acc {
				PREFETCHT0(s.at(i, ahead))
				PREFETCHT0(s.at(i, ahead+64))
				sums[i] = v.vecs(v.parts())
				for _, r := range sums[i] {
					v.zero(r)
				}
			}
			quads := make([][]quad, n)
			for col := 0; col < 16; col += 4 {
				for i := range acc {
					before := quads[i]
					quads[i] = make([]quad, v.parts())
					for h := range quads[i] {
						var codes reg.VecVirtual
						if col%8 == 4 {
							codes = before[h].codes
						}
						quads[i][h] = d.quad(s.at(i, fp4Codes+col/8*64+h*32), col/4%2, codes)
					}
				}
				for j := range 4 {
					xv := v.vec()
					VBROADCASTSS(Mem{Base: x, Disp: (col + j) * 4}, xv)
					for i := range acc {
						for h, r := range sums[i] {
							VFMADD231PS(d.column(quads[i][h], j), xv, r)
						}
					}
				}
			}
			for i := range acc {
				for h, scale := range d.scales(s.at(i, 0)) {
					VFMADD231PS(sums[i][h], scale, acc[i][h])
				}
			}
			ADDQ(I32(fp4Block), s.w)
			ADDQ(I32(64), x)
		})
	})
}

// A decoded block has 256 columns of 16 values, then the scales of 16 columns
// each, 16 values again.
const (
	decodedScales = 256 * 64
	decodedBlock  = decodedScales + 16*64
)

func decodeFP4(v isa) {
	v.text("decodeFP4", "(dst *float32, w *byte, k int)", "decodes k columns of a panel.")
	w := Load(Param("w"), GP64())
	dst := Load(Param("dst"), GP64())
	k := Load(Param("k"), GP64()).(reg.GPVirtual)
	scales := GP64()
	LEAQ(Mem{Base: dst, Disp: decodedScales}, scales)
	d := newFP4(v)
	loop("block", k, 16, func() {
		for h, r := range d.scales(Mem{Base: w}) {
			VMOVUPS(r, Mem{Base: scales, Disp: h * 32})
		}
		for col := 0; col < 16; col += 4 {
			for h := range v.parts() {
				q := d.quad(Mem{Base: w, Disp: fp4Codes + col/8*64 + h*32}, col/4%2, nil)
				for j := range 4 {
					VMOVUPS(d.column(q, j), Mem{Base: dst, Disp: (col+j)*64 + h*32})
				}
			}
		}
		ADDQ(I32(fp4Block), w)
		ADDQ(I32(1024), dst)
		ADDQ(I32(64), scales)
	})
	VZEROUPPER()
	RET()
}

func decodeBF16(v isa) {
	v.text("decodePairs", "(dst *float32, w *byte, k int)", "decodes k columns of a panel.")
	w := Load(Param("w"), GP64())
	dst := Load(Param("dst"), GP64())
	k := Load(Param("k"), GP64()).(reg.GPVirtual)
	high := v.all("highHalf", 0xffff0000)
	for _, cols := range []int{2, 1} {
		loop(fmt.Sprintf("cols%d", cols), k, cols, func() {
			for h := range v.parts() {
				pair, even := v.vec(), v.vec()
				VMOVUPS(Mem{Base: w, Disp: h * v.bytes()}, pair)
				VPSLLD(Imm(16), pair, even)
				VMOVUPS(even, Mem{Base: dst, Disp: h * v.bytes()})
				if cols == 2 {
					v.and(pair, high, pair)
					VMOVUPS(pair, Mem{Base: dst, Disp: 64 + h*v.bytes()})
				}
			}
			ADDQ(I32(64), w)
			ADDQ(I32(64*cols), dst)
		})
	}
	VZEROUPPER()
	RET()
}
