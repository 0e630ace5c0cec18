package tokenizer

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// nfc composes text canonically. Bytes that are not UTF-8 stay as they are.
func nfc(text string) string {
	if norm.NFC.IsNormalString(text) {
		return text
	}
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
