package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is what the patterns ask of a character.
type class uint8

const (
	other   class = iota // and bytes that are not UTF-8
	letter               // \p{L}
	number               // \p{N}
	space                // \s, which is White_Space, but for the next
	newline              // \r or \n
)

// The letters and numbers that Unicode 16.0 has and the 15.0 tables of Go 1.26
// lack. The "tokenizers" library splits by 16.0; a check against it compares
// every code point.
var (
	newLetters = &unicode.RangeTable{
		R16: []unicode.Range16{{Lo: 0x1c89, Hi: 0x1c8a, Stride: 1}, {Lo: 0xa7cb, Hi: 0xa7cd, Stride: 1},
			{Lo: 0xa7da, Hi: 0xa7dc, Stride: 1}},
		R32: []unicode.Range32{
			{Lo: 0x105c0, Hi: 0x105c8, Stride: 1}, {Lo: 0x105c9, Hi: 0x105f3, Stride: 1}, {Lo: 0x10d4a, Hi: 0x10d65,
				Stride: 1},
			{Lo: 0x10d6f, Hi: 0x10d85, Stride: 1}, {Lo: 0x10ec2, Hi: 0x10ec4, Stride: 1}, {Lo: 0x11380, Hi: 0x11389,
				Stride: 1},
			{Lo: 0x1138b, Hi: 0x1138b, Stride: 1}, {Lo: 0x1138e, Hi: 0x1138e, Stride: 1}, {Lo: 0x11390, Hi: 0x113b5,
				Stride: 1},
			{Lo: 0x113b7, Hi: 0x113b7, Stride: 1}, {Lo: 0x113d1, Hi: 0x113d1, Stride: 1}, {Lo: 0x113d3, Hi: 0x113d3,
				Stride: 1},
			{Lo: 0x11bc0, Hi: 0x11be0, Stride: 1}, {Lo: 0x13460, Hi: 0x143fa, Stride: 1}, {Lo: 0x16100, Hi: 0x1611d,
				Stride: 1},
			{Lo: 0x16d40, Hi: 0x16d6c, Stride: 1}, {Lo: 0x18cff, Hi: 0x18cff, Stride: 1}, {Lo: 0x1e5d0, Hi: 0x1e5ed,
				Stride: 1},
			{Lo: 0x1e5f0, Hi: 0x1e5f0, Stride: 1}, {Lo: 0x2ebf0, Hi: 0x2ee5d, Stride: 1},
		},
	}
	newNumbers = &unicode.RangeTable{R32: []unicode.Range32{
		{Lo: 0x10d40, Hi: 0x10d49, Stride: 1}, {Lo: 0x116d0, Hi: 0x116e3, Stride: 1}, {Lo: 0x11bf0, Hi: 0x11bf9,
			Stride: 1},
		{Lo: 0x16130, Hi: 0x16139, Stride: 1}, {Lo: 0x16d70, Hi: 0x16d79, Stride: 1}, {Lo: 0x1ccf0, Hi: 0x1ccf9,
			Stride: 1},
		{Lo: 0x1e5f1, Hi: 0x1e5fa, Stride: 1},
	}}
)

// classTableSize covers every script; above it are rare ideographs only.
const classTableSize = 0x20000

// classTable has the class of every rune below its length.
var classTable = sync.OnceValue(func() []class {
	t := make([]class, classTableSize)
	fill := func(c class, tables ...*unicode.RangeTable) {
		for _, rt := range tables {
			for _, r := range rt.R16 {
				for x := uint32(r.Lo); x <= uint32(r.Hi); x += uint32(r.Stride) {
					t[x] = c
				}
			}
			for _, r := range rt.R32 {
				for x := r.Lo; x <= r.Hi && x < classTableSize; x += r.Stride {
					t[x] = c
				}
			}
		}
	}
	fill(letter, unicode.L, newLetters)
	fill(number, unicode.N, newNumbers)
	fill(space, unicode.White_Space)
	t['\r'], t['\n'] = newline, newline
	return t
})

// classes is a scanner's view of a text: the class and length of the character
// at a byte position.
type classes []class

func (t classes) at(s string, i int) (class, int) {
	if i >= len(s) {
		return other, 0
	}
	if b := s[i]; b < utf8.RuneSelf {
		return t[b], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	switch {
	case r == utf8.RuneError && n == 1:
		return other, 1
	case r < classTableSize:
		return t[r], n
	case unicode.Is(unicode.L, r) || unicode.Is(newLetters, r):
		return letter, n
	case unicode.Is(unicode.N, r):
		return number, n
	}
	return other, n
}

// run returns where the run of class c that starts at i ends.
func (t classes) run(s string, i int, c class) int {
	for {
		k, n := t.at(s, i)
		if n == 0 || k != c {
			return i
		}
		i += n
	}
}
