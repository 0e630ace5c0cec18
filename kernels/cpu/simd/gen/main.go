// Command gen writes the vector loops of package simd as Go assembly. The same
// functions emit AVX2 and AVX-512: an output row is a lane in both, and a panel
// of 16 rows is two registers or one.
package main

import (
	"flag"
	"fmt"
	"os"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set: its suffix in names and the float32 lanes of a register.
type isa struct {
	suffix string
	lanes  int
}

var (
	avx2   = isa{"AVX2", 8}
	avx512 = isa{"AVX512", 16}
)

func (v isa) wide() bool { return v.lanes == 16 }

// parts is the number of registers that hold one value of each row of a panel.
func (v isa) parts() int { return 16 / v.lanes }

// bytes is the size of a register.
func (v isa) bytes() int { return v.lanes * 4 }

func (v isa) vec() reg.VecVirtual {
	if v.wide() {
		return ZMM()
	}
	return YMM()
}

func (v isa) vecs(n int) []reg.VecVirtual {
	r := make([]reg.VecVirtual, n)
	for i := range r {
		r[i] = v.vec()
	}
	return r
}

// zero clears a register.
func (v isa) zero(r reg.VecVirtual) {
	if v.wide() {
		VPXORD(r, r, r)
	} else {
		VXORPS(r, r, r)
	}
}

func (v isa) and(a, b Op, dst reg.VecVirtual) {
	if v.wide() {
		VPANDD(a, b, dst)
	} else {
		VPAND(a, b, dst)
	}
}

// all returns a register with the same dword in every lane.
func (v isa) all(name string, bits uint32) reg.VecVirtual {
	r := v.vec()
	VPBROADCASTD(dword(name, bits), r)
	return r
}

// table returns a register with the same 16 bytes in every 128 bits.
func (v isa) table(name string, b [16]byte) reg.VecVirtual {
	r := v.vec()
	if v.wide() {
		VBROADCASTI32X4(bytes16(name, b), r)
	} else {
		VBROADCASTI128(bytes16(name, b), r)
	}
	return r
}

func (v isa) text(name, signature, doc string) {
	TEXT(name+v.suffix, NOSPLIT, "func"+signature)
	Pragma("noescape")
	Doc(name + v.suffix + " " + doc)
}

func main() {
	set := flag.String("isa", "avx2", "avx2 or avx512")
	flag.Parse() // avo's own flags: -out, -stubs, -pkg
	ConstraintExpr("amd64")
	switch *set {
	case "avx2":
		products(avx2, 6)
		vectors()
	case "avx512":
		products(avx512, 8)
	default:
		fmt.Fprintf(os.Stderr, "gen: -isa %s: want avx2 or avx512\n", *set)
		os.Exit(2)
	}
	Generate()
}

func products(v isa, rows int) {
	for n := 1; n <= 4; n++ {
		gemvF32(v, n)
		gemvBF16(v, n)
		if n <= 2 || v.wide() {
			gemvFP4(v, n)
		}
	}
	decodeBF16(v)
	decodeFP4(v)
	for n := 1; n <= rows; n++ {
		for panels := 1; panels <= 2; panels++ {
			if n*panels*v.parts() <= 12 || v.wide() {
				tile(v, n, panels)
				scaledTile(v, n, panels)
			}
		}
	}
	for n := 1; n <= 2 || v.wide() && n <= rows; n++ {
		quant(v, n)
	}
	dots(v, 1)
	dots(v, 2)
}
