package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// nfc composes text canonically, as the library does. Bytes that are not UTF-8
// stay as they are.
func nfc(text string) string {
	if norm.NFC.IsNormalString(text) {
		return text
	}
	var b strings.Builder
	from := 0
	for i, r := range text {
		if r >= firstNewMark && unicode.Is(newMarks, r) {
			b.WriteString(nfcPiece(text[from:i]))
			b.WriteRune(r)
			from = i + utf8.RuneLen(r)
		}
	}
	if from == 0 {
		return nfcPiece(text)
	}
	b.WriteString(nfcPiece(text[from:]))
	return b.String()
}

// newMarks are what Unicode 10.0 to 15.0 added to canonical composition: the
// marks with a combining class and one composite with its parts. The library
// normalizes by Unicode 9.0, where they are characters that nothing is ordered
// or composed across.
var newMarks = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x7fd, Hi: 0x7fd, Stride: 1}, {Lo: 0x898, Hi: 0x89f, Stride: 1}, {Lo: 0x8ca, Hi: 0x8d3,
			Stride: 1}, {Lo: 0x9fe, Hi: 0x9fe, Stride: 1},
		{Lo: 0xc3c, Hi: 0xc3c, Stride: 1}, {Lo: 0xd3b, Hi: 0xd3c, Stride: 1}, {Lo: 0xeba, Hi: 0xeba,
			Stride: 1}, {Lo: 0x1715, Hi: 0x1715, Stride: 1},
		{Lo: 0x1abf, Hi: 0x1ace, Stride: 1}, {Lo: 0x1df6, Hi: 0x1dfa, Stride: 1}, {Lo: 0xa82c, Hi: 0xa82c, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x10d24, Hi: 0x10d27, Stride: 1}, {Lo: 0x10eab, Hi: 0x10eac, Stride: 1}, {Lo: 0x10efd, Hi: 0x10eff,
			Stride: 1}, {Lo: 0x10f46, Hi: 0x10f50, Stride: 1},
		{Lo: 0x10f82, Hi: 0x10f85, Stride: 1}, {Lo: 0x11070, Hi: 0x11070, Stride: 1}, {Lo: 0x1133b, Hi: 0x1133b,
			Stride: 1}, {Lo: 0x1145e, Hi: 0x1145e, Stride: 1},
		{Lo: 0x11839, Hi: 0x1183a, Stride: 1}, {Lo: 0x11930, Hi: 0x11930, Stride: 1}, {Lo: 0x11935, Hi: 0x11935,
			Stride: 1}, {Lo: 0x11938, Hi: 0x11938, Stride: 1},
		{Lo: 0x1193d, Hi: 0x1193e, Stride: 1}, {Lo: 0x11943, Hi: 0x11943, Stride: 1}, {Lo: 0x119e0, Hi: 0x119e0,
			Stride: 1}, {Lo: 0x11a34, Hi: 0x11a34, Stride: 1},
		{Lo: 0x11a47, Hi: 0x11a47, Stride: 1}, {Lo: 0x11a99, Hi: 0x11a99, Stride: 1}, {Lo: 0x11d42, Hi: 0x11d42,
			Stride: 1}, {Lo: 0x11d44, Hi: 0x11d45, Stride: 1},
		{Lo: 0x11d97, Hi: 0x11d97, Stride: 1}, {Lo: 0x11f41, Hi: 0x11f42, Stride: 1}, {Lo: 0x16ff0, Hi: 0x16ff1,
			Stride: 1}, {Lo: 0x1e08f, Hi: 0x1e08f, Stride: 1},
		{Lo: 0x1e130, Hi: 0x1e136, Stride: 1}, {Lo: 0x1e2ae, Hi: 0x1e2ae, Stride: 1}, {Lo: 0x1e2ec, Hi: 0x1e2ef,
			Stride: 1}, {Lo: 0x1e4ec, Hi: 0x1e4ef, Stride: 1},
	},
}

const firstNewMark = 0x7fd

func nfcPiece(text string) string {
	if longestMarks(text) <= safeMarks {
		return norm.NFC.String(text)
	}
	return composeLong(text)
}

// safeMarks is the longest run of combining marks that is left to the norm
// package. From 30 on, counted after decomposition, it inserts U+034F into the
// text (the "stream-safe" format), which is not what NFC says.
const safeMarks = 8

// longestMarks returns the length of the longest run of combining marks.
func longestMarks(text string) int {
	most, run := 0, 0
	for _, r := range text {
		if r < 0x300 || !unicode.Is(unicode.M, r) {
			run = 0
			continue
		}
		run++
		most = max(most, run)
	}
	return most
}

// mark is a character of a decomposed text with its combining class.
type mark struct {
	text  string
	class uint8
}

// composeLong is NFC by the book (Unicode Standard Annex 15): decompose, order
// runs of marks by combining class, compose each with the last starter.
func composeLong(text string) string {
	var marks []mark
	for len(text) > 0 {
		p := norm.NFD.PropertiesString(text)
		n := p.Size()
		if n == 0 { // not UTF-8, or cut short
			n = 1
		}
		piece := text[:n]
		if d := p.Decomposition(); d != nil {
			piece = string(d)
		} else if r := []rune(piece); len(r) == 1 && 0xac00 <= r[0] && r[0] <= 0xd7a3 {
			piece = norm.NFD.String(piece) // Hangul syllables decompose by rule
		}
		for len(piece) > 0 {
			q := norm.NFD.PropertiesString(piece)
			k := max(q.Size(), 1)
			marks = append(marks, mark{piece[:k], q.CCC()})
			piece = piece[k:]
		}
		text = text[n:]
	}
	for i := 0; i < len(marks); {
		j := i
		for j < len(marks) && marks[j].class != 0 {
			j++
		}
		slices.SortStableFunc(marks[i:j], func(a, b mark) int { return int(a.class) - int(b.class) })
		i = max(j, i+1)
	}
	starter := -1
	out := marks[:0]
	for _, m := range marks {
		if starter >= 0 {
			last := out[len(out)-1].class
			if starter == len(out)-1 || last != 0 && last < m.class {
				if c, ok := compose(out[starter].text, m.text); ok {
					out[starter].text = c
					continue
				}
			}
		}
		if m.class == 0 {
			starter = len(out)
		}
		out = append(out, m)
	}
	var b strings.Builder
	for _, m := range out {
		b.WriteString(m.text)
	}
	return b.String()
}

// compose returns the one character that a and b make together.
func compose(a, b string) (string, bool) {
	c := norm.NFC.String(a + b)
	r := []rune(c)
	return c, len(r) == 1 && r[0] != unicode.ReplacementChar
}
