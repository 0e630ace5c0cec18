package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tile emits c[i] = alpha·(c[i] + Σ a[i][j]·b[j]) for rows rows and one or two panels.
func tile(v isa, rows, panels int) {
	name, b2 := "tile", ""
	if panels == 2 {
		name, b2 = "wide", ", b2"
	}
	v.text(fmt.Sprintf("%s%d", name, rows),
		"(c *float32, coff *int64, a *float32, aoff *int64, b"+b2+
			" *float32, ldb, k, load int, alpha float32, times int)",
		fmt.Sprintf("is a tile of %d rows and %d panels.", rows, panels))
	acc := make([][]reg.VecVirtual, rows) // [row][panel and part]
	for i := range acc {
		acc[i] = v.vecs(panels * v.parts())
	}

	Label("tile")
	load := Load(Param("load"), GP64())
	TESTQ(load, load)
	JZ(LabelRef("zero"))
	results(v, acc, func(_ int, r reg.VecVirtual, m Mem) { VMOVUPS(m, r) })
	JMP(LabelRef("begin"))
	Label("zero")
	for i := range acc {
		for _, r := range acc[i] {
			v.zero(r)
		}
	}
	Label("begin")

	aoff, base := Load(Param("aoff"), GP64()), Load(Param("a"), GP64())
	in := make([]reg.GPVirtual, rows)
	for i := range in {
		in[i] = GP64()
		MOVQ(Mem{Base: aoff, Disp: 8 * i}, in[i])
		ADDQ(base, in[i])
	}
	b := []reg.Register{Load(Param("b"), GP64())}
	if panels == 2 {
		b = append(b, Load(Param("b2"), GP64()))
	}
	ldb := Load(Param("ldb"), GP64())
	ldb3 := GP64()
	LEAQ(Mem{Base: ldb, Index: ldb, Scale: 2}, ldb3)
	k := Load(Param("k"), GP64()).(reg.GPVirtual)
	j := GP64()
	XORQ(j, j)
	for _, cols := range []int{4, 1} {
		loop(fmt.Sprintf("cols%d", cols), k, cols, func() {
			for u := range cols {
				tileColumn(v, acc, func(n int) Mem {
					m := Mem{Base: b[n/v.parts()], Disp: n % v.parts() * v.bytes()}
					switch u {
					case 1, 2:
						m.Index, m.Scale = ldb, uint8(u)
					case 3:
						m.Index, m.Scale = ldb3, 1
					}
					return m
				}, func(i int) Mem { return Mem{Base: in[i], Index: j, Scale: 4, Disp: 4 * u} })
			}
			for _, p := range b {
				if cols == 4 {
					LEAQ(Mem{Base: p, Index: ldb, Scale: 4}, p)
				} else {
					ADDQ(ldb, p)
				}
			}
			ADDQ(I32(cols), j)
		})
	}

	alpha := v.vec()
	VBROADCASTSS(param("alpha"), alpha)
	results(v, acc, func(_ int, r reg.VecVirtual, m Mem) {
		VMULPS(alpha, r, r)
		VMOVUPS(r, m)
	})
	again(rows)
}

// again ends a tile: the next rows follow, as often as times says.
func again(rows int) {
	DECQ(param("times"))
	JZ(LabelRef("done"))
	ADDQ(I32(8*rows), param("coff"))
	ADDQ(I32(8*rows), param("aoff"))
	JMP(LabelRef("tile"))
	Label("done")
	VZEROUPPER()
	RET()
}

// scaledTile is tile for decoded FP4: each 16 columns are summed by themselves,
// and their sums times their scales are added to c. A second panel follows the
// first in memory.
func scaledTile(v isa, rows, panels int) {
	name := "scaled"
	if panels == 2 {
		name = "scaledWide"
	}
	v.text(fmt.Sprintf("%s%d", name, rows),
		"(c *float32, coff *int64, a *float32, aoff *int64, b *float32, k, load int, alpha float32, times int)",
		fmt.Sprintf("is a tile of %d rows and %d panels of decoded FP4.", rows, panels))
	sum := make([][]reg.VecVirtual, rows)
	for i := range sum {
		sum[i] = v.vecs(panels * v.parts())
	}
	Label("tile")
	load := Load(Param("load"), GP64())
	TESTQ(load, load)
	JNZ(LabelRef("begin"))
	zero := v.vec()
	v.zero(zero)
	results(v, sum, func(_ int, _ reg.VecVirtual, m Mem) { VMOVUPS(zero, m) })
	Label("begin")

	aoff, base := Load(Param("aoff"), GP64()), Load(Param("a"), GP64())
	in := make([]reg.GPVirtual, rows)
	for i := range in {
		in[i] = GP64()
		MOVQ(Mem{Base: aoff, Disp: 8 * i}, in[i])
		ADDQ(base, in[i])
	}
	b := Load(Param("b"), GP64())
	scales := GP64()
	LEAQ(Mem{Base: b, Disp: decodedScales}, scales)
	k := Load(Param("k"), GP64()).(reg.GPVirtual)
	j := GP64()
	XORQ(j, j)
	part := func(n int) int { return n/v.parts()*decodedBlock + n%v.parts()*v.bytes() }
	Label("block")
	for i := range sum {
		for _, r := range sum[i] {
			v.zero(r)
		}
	}
	Label("cols")
	for u := range 4 {
		tileColumn(v, sum, func(n int) Mem { return Mem{Base: b, Disp: part(n) + u*64} },
			func(i int) Mem { return Mem{Base: in[i], Index: j, Scale: 4, Disp: 4 * u} })
	}
	ADDQ(I32(256), b)
	ADDQ(I32(4), j)
	TESTQ(I32(15), j)
	JNZ(LabelRef("cols"))
	scale := make([]reg.VecVirtual, len(sum[0]))
	for n := range scale {
		scale[n] = v.vec()
		VMOVUPS(Mem{Base: scales, Disp: part(n)}, scale[n])
	}
	CMPQ(j, k)
	JGE(LabelRef("last"))
	results(v, sum, func(n int, r reg.VecVirtual, m Mem) {
		VFMADD213PS(m, scale[n], r)
		VMOVUPS(r, m)
	})
	ADDQ(I32(64), scales)
	JMP(LabelRef("block"))
	Label("last")
	results(v, sum, func(n int, r reg.VecVirtual, m Mem) { VFMADD213PS(m, scale[n], r) })
	alpha := v.vec() // takes a scale's place: AVX2 has no register left
	VBROADCASTSS(param("alpha"), alpha)
	results(v, sum, func(_ int, r reg.VecVirtual, m Mem) {
		VMULPS(alpha, r, r)
		VMOVUPS(r, m)
	})
	again(rows)
}

// tileColumn adds the products of one column: of the factors, the fewer stay in
// registers, since the sums leave room for 4 in AVX2. weights(n) are those of
// register n of a row of sums, input(i) is row i's.
func tileColumn(v isa, acc [][]reg.VecVirtual, weights, input func(n int) Mem) {
	w := func(n int) reg.VecVirtual {
		r := v.vec()
		VMOVUPS(weights(n), r)
		return r
	}
	x := func(i int) reg.VecVirtual {
		r := v.vec()
		VBROADCASTSS(input(i), r)
		return r
	}
	if width := len(acc[0]); len(acc) < width {
		xs := make([]reg.VecVirtual, len(acc))
		for i := range xs {
			xs[i] = x(i)
		}
		for n := range width {
			wn := w(n)
			for i := range acc {
				VFMADD231PS(wn, xs[i], acc[i][n])
			}
		}
		return
	}
	ws := make([]reg.VecVirtual, len(acc[0]))
	for n := range ws {
		ws[n] = w(n)
	}
	for i := range acc {
		xi := x(i)
		for n, wn := range ws {
			VFMADD231PS(wn, xi, acc[i][n])
		}
	}
}

// results calls f with each register of sums, its number in its row and its place.
func results(v isa, acc [][]reg.VecVirtual, f func(n int, r reg.VecVirtual, m Mem)) {
	coff, base := Load(Param("coff"), GP64()), Load(Param("c"), GP64())
	for i := range acc {
		c := GP64()
		MOVQ(Mem{Base: coff, Disp: 8 * i}, c)
		ADDQ(base, c)
		for n, r := range acc[i] {
			f(n, r, Mem{Base: c, Disp: n * v.bytes()})
		}
	}
}

// dots emits the dot products of one or two heads with a multiple of 4 rows.
// Each sums in 16 lanes, in two registers where one has 8, so that its bits are
// the same on each instruction set.
func dots(v isa, heads int) {
	v.text(fmt.Sprintf("dots%d", heads), "(out *float32, ldo int, q *float32, ldq int, r *float32, ldr, slots, k int)",
		fmt.Sprintf("computes the dot products of %d heads with a multiple of 4 slots.", heads))
	out, ldo := Load(Param("out"), GP64()), Load(Param("ldo"), GP64())
	q, ldq := Load(Param("q"), GP64()), Load(Param("ldq"), GP64())
	r, ldr := Load(Param("r"), GP64()).(reg.GPVirtual), Load(Param("ldr"), GP64()).(reg.GPVirtual)
	slots := Load(Param("slots"), GP64()).(reg.GPVirtual)
	rows := stream{w: r, step: ldr, step3: GP64()}
	LEAQ(Mem{Base: ldr, Index: ldr, Scale: 2}, rows.step3)
	head := func(base, step reg.Register, h, disp int) Mem {
		m := Mem{Base: base, Disp: disp}
		if h == 1 {
			m.Index, m.Scale = step, 1
		}
		return m
	}
	each := 4 // slots at a time
	if v.parts()*heads*each > 8 && !v.wide() {
		each = 2
	}
	loop("slots", slots, each, func() {
		acc := make([][]reg.VecVirtual, heads*each) // [head, slot][part]
		for i := range acc {
			acc[i] = v.vecs(v.parts())
			for _, a := range acc[i] {
				v.zero(a)
			}
		}
		k := Load(Param("k"), GP64()).(reg.GPVirtual)
		x := GP64()
		MOVQ(q, x)
		loop("cols", k, 16, func() {
			for p := range v.parts() {
				xs := v.vecs(heads)
				for h := range xs {
					VMOVUPS(head(x, ldq, h, p*v.bytes()), xs[h])
				}
				for s := range each {
					y := v.vec()
					VMOVUPS(rows.at(s, p*v.bytes()), y)
					for h := range heads {
						VFMADD231PS(y, xs[h], acc[h*each+s][p])
					}
				}
			}
			ADDQ(I32(64), x)
			ADDQ(I32(64), r)
		})
		for i := 0; i < len(acc); i += 4 {
			sum := sums(v, acc[i:i+4])
			if each == 2 {
				VMOVLPS(sum, head(out, ldo, 0, 0))
				VMOVHPS(sum, head(out, ldo, 1, 0))
			} else {
				VMOVUPS(sum, head(out, ldo, i/4, 0))
			}
		}
		// r stands at the end of the first row's k columns.
		back := Load(Param("k"), GP64())
		SHLQ(Imm(2), back)
		SUBQ(back, r)
		LEAQ(Mem{Base: r, Index: ldr, Scale: uint8(each)}, r)
		ADDQ(I32(4*each), out)
	})
	VZEROUPPER()
	RET()
}

// sums adds up the 16 lanes of four sums: lanes 8 apart, then neighbours.
func sums(v isa, a [][]reg.VecVirtual) reg.VecVirtual {
	var y [4]reg.VecVirtual
	for i := range y {
		y[i] = YMM()
		if v.wide() {
			VEXTRACTF64X4(Imm(1), a[i][0], y[i])
			VADDPS(a[i][0].AsY(), y[i], y[i])
		} else {
			VADDPS(a[i][0], a[i][1], y[i])
		}
	}
	VHADDPS(y[1], y[0], y[0])
	VHADDPS(y[3], y[2], y[2])
	VHADDPS(y[2], y[0], y[0])
	x := XMM()
	VEXTRACTF128(Imm(1), y[0], x)
	VADDPS(y[0].AsX(), x, x)
	return x
}
