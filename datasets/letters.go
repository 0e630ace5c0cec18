package datasets

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown is a text from a file as a person may see it: what a terminal would obey or
// what changes the order of letters is written as an escape (control characters but
// line breaks and tabs, C1, bidirectional marks, bytes that are no UTF-8).
func Shown(s string) string { return shown(s, false) }

// ShownName is the same for a name, which has no line breaks and tabs.
func ShownName(s string) string { return shown(s, true) }

func shown(s string, name bool) string {
	plain := func(c byte) bool { return c >= ' ' && c < 0x7f || !name && (c == '\n' || c == '\t') }
	i := 0
	for i < len(s) && plain(s[i]) {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r < utf8.RuneSelf && plain(byte(r)):
			b.WriteByte(byte(r))
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case !unicode.IsGraphic(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}
