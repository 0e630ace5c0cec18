package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

var constants = map[string]Mem{}

// dword is a constant of 4 bytes.
func dword(name string, bits uint32) Mem {
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	DATA(0, U32(bits))
	constants[name] = m
	return m
}

func float(name string, v float32) Mem { return dword(name, math.Float32bits(v)) }

// bytes16 is a constant of 16 bytes.
func bytes16(name string, b [16]byte) Mem {
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i, v := range b {
		DATA(i, U8(v))
	}
	constants[name] = m
	return m
}

// bytes32 is a constant of the same 16 bytes twice.
func bytes32(name string, b [16]byte) Mem {
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 32 {
		DATA(i, U8(b[i%16]))
	}
	constants[name] = m
	return m
}

// e2m1 has the values of E2M1 codes. Minus zero is zero, as it is where the
// values pass through integers, so that all paths give the same bits.
var e2m1 = [16]float32{0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6}

// doubled has the doubled values of E2M1 codes plus bias as bytes.
func doubled(bias int) (t [16]byte) {
	for i, v := range e2m1 {
		t[i] = byte(int(2*v) + bias)
	}
	return t
}

// floats16 is a constant of 16 float32 values.
func floats16(name string, v [16]float32) Mem {
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i, x := range v {
		DATA(i*4, U32(math.Float32bits(x)))
	}
	constants[name] = m
	return m
}

// topByte moves byte i of each dword to its top and clears the others.
func topByte(i int) (t [16]byte) {
	for j := range t {
		t[j] = 0x80
		if j%4 == 3 {
			t[j] = byte(j - 3 + i)
		}
	}
	return t
}

// dwords8 is a constant of 32 bytes, the same dword again and again.
func dwords8(name string, bits uint32) Mem {
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 8 {
		DATA(i*4, U32(bits))
	}
	constants[name] = m
	return m
}

func floats8(name string, v float32) Mem { return dwords8(name, math.Float32bits(v)) }

// param is where a parameter is passed.
func param(name string) Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}
