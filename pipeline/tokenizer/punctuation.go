package tokenizer

import "unicode"

// punctuation is what the library's Punctuation cuts at: ASCII's symbols too, and of
// others the category P of the older Unicode version that it has. A comparison with the
// library has every code point.
func punctuation(c rune) bool {
	switch {
	case c < 128:
		return c > ' ' && c < 127 && !('0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z')
	case c == 0x166d || c == 0x111c9: // symbols and marks since
		return true
	}
	return unicode.IsPunct(c) && !unicode.Is(punctuationSince, c)
}

// punctuationSince are those of Go's version that are newer, but for those that were
// between the others.
var punctuationSince = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x61d, Hi: 0x61d, Stride: 1}, {Lo: 0x9fd, Hi: 0x9fd, Stride: 1}, {Lo: 0xa76, Hi: 0xa76, Stride: 1},
		{Lo: 0xc77, Hi: 0xc77, Stride: 1}, {Lo: 0xc84, Hi: 0xc84, Stride: 1}, {Lo: 0x1b7d, Hi: 0x1b7e, Stride: 1},
		{Lo: 0x2e43, Hi: 0x2e4f, Stride: 1}, {Lo: 0x2e52, Hi: 0x2e5d, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x10ead, Hi: 0x10ead, Stride: 1}, {Lo: 0x10f55, Hi: 0x10f59, Stride: 1},
		{Lo: 0x10f86, Hi: 0x10f89, Stride: 1}, {Lo: 0x1144b, Hi: 0x1144f, Stride: 1},
		{Lo: 0x1145a, Hi: 0x1145b, Stride: 1}, {Lo: 0x1145d, Hi: 0x1145d, Stride: 1},
		{Lo: 0x11660, Hi: 0x1166c, Stride: 1}, {Lo: 0x116b9, Hi: 0x116b9, Stride: 1},
		{Lo: 0x1183b, Hi: 0x1183b, Stride: 1}, {Lo: 0x11944, Hi: 0x11946, Stride: 1},
		{Lo: 0x119e2, Hi: 0x119e2, Stride: 1}, {Lo: 0x11a3f, Hi: 0x11a46, Stride: 1},
		{Lo: 0x11a9a, Hi: 0x11a9c, Stride: 1}, {Lo: 0x11a9e, Hi: 0x11aa2, Stride: 1},
		{Lo: 0x11b00, Hi: 0x11b09, Stride: 1}, {Lo: 0x11c41, Hi: 0x11c45, Stride: 1},
		{Lo: 0x11c70, Hi: 0x11c71, Stride: 1}, {Lo: 0x11ef7, Hi: 0x11ef8, Stride: 1},
		{Lo: 0x11f43, Hi: 0x11f4f, Stride: 1}, {Lo: 0x11fff, Hi: 0x11fff, Stride: 1},
		{Lo: 0x12ff1, Hi: 0x12ff2, Stride: 1}, {Lo: 0x16e97, Hi: 0x16e9a, Stride: 1},
		{Lo: 0x16fe2, Hi: 0x16fe2, Stride: 1}, {Lo: 0x1e95e, Hi: 0x1e95f, Stride: 1},
	},
}
