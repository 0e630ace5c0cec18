package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Decode returns the text of ids. Bytes that do not form characters become
// U+FFFD, one for each maximal part of a character, as in the library; ids that
// no token has are passed over. With skipSpecial, special tokens are left out.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(t.piece(id, skipSpecial))
	}
	s := b.String()
	if utf8.ValidString(s) {
		return s
	}
	out, rest := appendText(nil, s)
	if rest != "" {
		out = append(out, "\uFFFD"...)
	}
	return string(out)
}

// piece is the bytes of one token.
func (t *Tokenizer) piece(id int32, skipSpecial bool) string {
	if id < 0 || int(id) >= len(t.text) || skipSpecial && t.special[id] {
		return ""
	}
	return t.text[id]
}

// Bytes returns the bytes that a token decodes to; none for an id that no token has.
func (t *Tokenizer) Bytes(id int32) string { return t.piece(id, false) }

// Decoder turns ids into text as they come. What Next and Flush return, put
// together, is what Decode returns for all the ids.
type Decoder struct {
	t           *Tokenizer
	skipSpecial bool
	held        string // the start of a character whose rest has not come
}

// NewDecoder returns a Decoder at the start of a text.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder {
	return &Decoder{t: t, skipSpecial: skipSpecial}
}

// Next returns the text that id completes; it may be empty, and is always whole
// characters.
func (d *Decoder) Next(id int32) string {
	s := d.t.piece(id, d.skipSpecial)
	if d.held == "" && utf8.ValidString(s) {
		return s
	}
	out, rest := appendText(nil, d.held+s)
	d.held = rest
	return string(out)
}

// Flush returns what is left at the end of the text, U+FFFD if a character was
// cut short, and starts over.
func (d *Decoder) Flush() string {
	if d.held == "" {
		return ""
	}
	d.held = ""
	return "\uFFFD"
}

// appendText appends s to dst with U+FFFD for what is not UTF-8, up to the start
// of a character at the end of s that more bytes could complete, the rest.
func appendText(dst []byte, s string) (out []byte, rest string) {
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r != utf8.RuneError || n > 1 {
			dst, s = append(dst, s[:n]...), s[n:]
			continue
		}
		n = prefixLen(s)
		if n == len(s) && !utf8.FullRuneInString(s) {
			return dst, s
		}
		dst, s = append(dst, "\uFFFD"...), s[n:]
	}
	return dst, ""
}

// prefixLen returns how many bytes at the start of s, which does not start with
// a character, are the start of one: the "maximal subpart" that the Unicode
// Standard (section 3.9) replaces by one U+FFFD. At least 1.
func prefixLen(s string) int {
	n := 1
	for n < len(s) && n < utf8.UTFMax && !utf8.FullRuneInString(s[:n]) {
		n++
	}
	// s[:n] is the shortest start that cannot become a character, or all of s;
	// one byte less could have, unless the first byte alone could not.
	if n > 1 && utf8.FullRuneInString(s[:n]) {
		n--
	}
	return n
}
