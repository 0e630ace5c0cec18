package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Letters are changed and classed as Python's str does, by Unicode's full
// mappings: "ß" has the upper case "SS".

func upperText(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func lowerText(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und, cases.HandleFinalSigma(true)).String(s)
}

func titleRune(c rune) string {
	if c < utf8.RuneSelf {
		return string(unicode.ToUpper(c))
	}
	return cases.Title(language.Und).String(string(c))
}

func capitalize(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return titleRune(c) + lowerText(s[n:])
}

// titleText is str.title: a letter after none is in title case, others are lower.
func titleText(s string) string {
	var b strings.Builder
	inside := false
	for i, c := range s {
		switch n := len(string(c)); {
		case !isCased(c):
			b.WriteString(s[i : i+n])
		case inside:
			b.WriteString(lowerText(s[i : i+n]))
		default:
			b.WriteString(titleRune(c))
		}
		inside = isCased(c)
	}
	return b.String()
}

func swapCase(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case isUpperRune(c):
			b.WriteString(lowerText(string(c)))
		case isLowerRune(c):
			b.WriteString(upperText(string(c)))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func isLowerRune(c rune) bool { return unicode.IsLower(c) || unicode.Is(unicode.Other_Lowercase, c) }
func isUpperRune(c rune) bool { return unicode.IsUpper(c) || unicode.Is(unicode.Other_Uppercase, c) }
func isCased(c rune) bool     { return isLowerRune(c) || isUpperRune(c) || unicode.IsTitle(c) }

// isLower: there are letters with a case, and all are lower.
func isLower(s string) bool {
	found := false
	for _, c := range s {
		if isUpperRune(c) || unicode.IsTitle(c) {
			return false
		}
		found = found || isLowerRune(c)
	}
	return found
}

func isUpper(s string) bool {
	found := false
	for _, c := range s {
		if isLowerRune(c) || unicode.IsTitle(c) {
			return false
		}
		found = found || isUpperRune(c)
	}
	return found
}

func isTitle(s string) bool {
	found, inside := false, false
	for _, c := range s {
		switch {
		case isUpperRune(c) || unicode.IsTitle(c):
			if inside {
				return false
			}
			found, inside = true, true
		case isLowerRune(c):
			if !inside {
				return false
			}
			found = true
		default:
			inside = false
		}
	}
	return found
}

// digits are what str.isdigit has besides decimal numbers: small and circled ones.
var digits = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0xb2, Hi: 0xb3, Stride: 1}, {Lo: 0xb9, Hi: 0xb9, Stride: 1}, {Lo: 0x1369, Hi: 0x1371,
			Stride: 1}, {Lo: 0x19da, Hi: 0x19da, Stride: 1},
		{Lo: 0x2070, Hi: 0x2070, Stride: 1}, {Lo: 0x2074, Hi: 0x2079, Stride: 1}, {Lo: 0x2080, Hi: 0x2089,
			Stride: 1}, {Lo: 0x2460, Hi: 0x2468, Stride: 1},
		{Lo: 0x2474, Hi: 0x247c, Stride: 1}, {Lo: 0x2488, Hi: 0x2490, Stride: 1}, {Lo: 0x24ea, Hi: 0x24ea,
			Stride: 1}, {Lo: 0x24f5, Hi: 0x24fd, Stride: 1},
		{Lo: 0x24ff, Hi: 0x24ff, Stride: 1}, {Lo: 0x2776, Hi: 0x277e, Stride: 1}, {Lo: 0x2780, Hi: 0x2788,
			Stride: 1}, {Lo: 0x278a, Hi: 0x2792, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x10a40, Hi: 0x10a43, Stride: 1}, {Lo: 0x10e60, Hi: 0x10e68, Stride: 1},
		{Lo: 0x11052, Hi: 0x1105a, Stride: 1}, {Lo: 0x1f100, Hi: 0x1f10a, Stride: 1}},
	LatinOffset: 2,
}

// numerals are ideographs that are numbers.
const numerals = "一二三四五六七八九十百千万亿億兆零〇两兩参參叁叄肆伍陆陸柒捌玖拾佰仟萬幺廿卅卌"

func isDecimal(c rune) bool { return unicode.Is(unicode.Nd, c) }
func isDigit(c rune) bool   { return isDecimal(c) || unicode.Is(digits, c) }
func isNumeric(c rune) bool { return unicode.IsNumber(c) || strings.ContainsRune(numerals, c) }

// every is the kind of test that str has: not of the empty string.
func every(s string, is func(rune) bool) bool {
	for _, c := range s {
		if !is(c) {
			return false
		}
	}
	return s != ""
}
