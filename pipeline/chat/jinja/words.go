package jinja

import (
	"fmt"
	"html"
	"math/big"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Filters of text that str has no method for.

var wordStart = regexp.MustCompile(`[-\s\x1c-\x1f\x{85}\p{Z}({\[<]+`)

// titleWords is Jinja2's own title: words begin after space, hyphen and opening
// brackets, not after an apostrophe.
func titleWords(s string) string {
	var b strings.Builder
	word := func(w string) {
		if w != "" {
			c, n := utf8.DecodeRuneInString(w)
			b.WriteString(upperText(string(c)) + lowerText(w[n:]))
		}
	}
	at := 0
	for _, m := range wordStart.FindAllStringIndex(s, -1) {
		word(s[at:m[0]])
		b.WriteString(s[m[0]:m[1]])
		at = m[1]
	}
	word(s[at:])
	return b.String()
}

func wordCount(s string) int {
	n, inside := 0, false
	for _, c := range s {
		w := isWord(c)
		if w && !inside {
			n++
		}
		inside = w
	}
	return n
}

func indent(r *run, a []any) any {
	s := r.text(a[0])
	by, ok := textOf(a[1])
	if !ok {
		n := max(0, index(or(a[1], 4)))
		r.make(n)
		by = strings.Repeat(" ", n)
	}
	lines := r.lines(s+"\n", false)
	if len(lines) > 0 && len(by) > maxMade/len(lines) {
		fail("indent: a string of more than %d bytes", maxMade)
	}
	r.make(2*len(s) + len(lines)*len(by))
	blank := truth(or(a[3], false))
	var b strings.Builder
	if truth(or(a[2], false)) {
		b.WriteString(by)
	}
	for i, v := range lines {
		line := v.(string)
		if i > 0 {
			b.WriteByte('\n')
			if line != "" || blank {
				b.WriteString(by)
			}
		}
		b.WriteString(line)
	}
	if _, safe := a[0].(markup); safe {
		return markup(b.String())
	}
	return b.String()
}

func truncate(r *run, a []any) any {
	s, length, end := r.text(a[0]), index(or(a[1], 255)), r.text(or(a[3], "..."))
	leeway := 5
	if v := orNone(a[4]); v != nil {
		leeway = index(v)
	}
	switch {
	case length < runeCount(end):
		fail("AssertionError: expected length >= %d, got %d", runeCount(end), length)
	case leeway < 0:
		fail("AssertionError: expected leeway >= 0, got %d", leeway)
	}
	r.look(len(s))
	if runeCount(s)-leeway <= length {
		return a[0]
	}
	to := length - runeCount(end)
	s = cutText(r, s, nil, &to, nil)
	if !truth(or(a[2], false)) {
		if i := strings.LastIndexByte(s, ' '); i >= 0 {
			s = s[:i]
		}
	}
	return s + end
}

// wordWrap breaks lines at spaces and, in long words, anywhere.
func wordWrap(r *run, a []any) any {
	width, between := index(or(a[1], 79)), "\n"
	if v := orNone(a[3]); v != nil {
		between = r.text(v)
	}
	if width <= 0 {
		fail("ValueError: invalid width %d (must be > 0)", width)
	}
	s := r.text(a[0])
	r.make(4 * len(s))
	var out []string
	for _, line := range r.lines(s, false) {
		out = append(out, strings.Join(r.wrapLine(line.(string), width, truth(or(a[2], true)), truth(or(a[4], true))),
			between))
	}
	r.make(len(out) * len(between))
	return strings.Join(out, between)
}

var chunkSpace = regexp.MustCompile(`[\t\n\v\f\r ]+|[^\t\n\v\f\r ]+`)

func (r *run) wrapLine(line string, width int, breakLong, hyphens bool) []string {
	chunks := chunkSpace.FindAllString(line, -1)
	if hyphens {
		chunks = r.hyphenChunks(chunks)
	}
	blank := func(s string) bool { return strings.TrimLeft(s, "\t\n\v\f\r ") == "" }
	var out []string
	for len(chunks) > 0 {
		r.step(1)
		var line []string
		size := 0
		if len(out) > 0 && blank(chunks[0]) {
			chunks = chunks[1:]
		}
		for len(chunks) > 0 && size+runeCount(chunks[0]) <= width {
			line, size, chunks = append(line, chunks[0]), size+runeCount(chunks[0]), chunks[1:]
		}
		if len(chunks) > 0 && runeCount(chunks[0]) > width {
			switch n := width - size; {
			case breakLong && n > 0:
				head := cutText(r, chunks[0], nil, &n, nil)
				if hyphens && runeCount(chunks[0]) > n {
					if i := strings.LastIndexByte(head, '-'); i > 0 && strings.Trim(head[:i], "-") != "" {
						head = head[:i+1]
					}
				}
				line = append(line, head)
				rest := append([]string{chunks[0][len(head):]}, chunks[1:]...)
				chunks = rest
			case !breakLong && len(line) == 0:
				line, chunks = append(line, chunks[0]), chunks[1:]
			}
		}
		if len(line) > 0 && blank(line[len(line)-1]) {
			line = line[:len(line)-1]
		}
		if len(line) > 0 {
			out = append(out, strings.Join(line, ""))
		}
	}
	return out
}

// hyphenChunks cuts words after a hyphen between letters.
func (r *run) hyphenChunks(words []string) []string {
	var out []string
	for _, w := range words {
		at := 0
		for i := 1; i+1 < len(w); i++ {
			if w[i] == '-' && letterAt(w, i-1) && letterAt(w, i+1) && i-at >= 2 {
				out = append(out, w[at:i+1])
				at = i + 1
			}
		}
		out = append(out, w[at:])
	}
	return out
}

func letterAt(s string, i int) bool {
	c := s[i]
	return c >= utf8.RuneSelf || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

var (
	comments = regexp.MustCompile(`(?s)<!--.*?-->`)
	tags     = regexp.MustCompile(`(?s)<.*?>`)
)

func stripTags(s string) string {
	s = tags.ReplaceAllString(comments.ReplaceAllString(s, ""), "")
	return html.UnescapeString(strings.Join(strings.FieldsFunc(s, isSpace), " "))
}

func urlEncode(r *run, a []any) any {
	quote := func(v any, query bool) string {
		s := r.str(v)
		r.make(3 * len(s))
		s = strings.ReplaceAll(url.QueryEscape(s), "%7E", "~")
		if query {
			return s
		}
		return strings.ReplaceAll(strings.ReplaceAll(s, "+", "%20"), "%2F", "/")
	}
	var items any = a[0]
	switch v := a[0].(type) {
	case string, markup:
		return quote(v, false)
	case *Dict:
		items = view{v, "items"}
	}
	next, ok := r.iterator(items)
	if !ok {
		return quote(a[0], false)
	}
	var parts []string
	for v, ok := next(); ok; v, ok = next() {
		pair := r.collect(v)
		if len(pair) != 2 {
			fail("ValueError: urlencode takes pairs")
		}
		parts = append(parts, quote(pair[0], true)+"="+quote(pair[1], true))
	}
	return strings.Join(parts, "&")
}

func fileSize(f float64, binary bool) string {
	base, units := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if binary {
		base, units = 1024.0, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	switch {
	case f == 1:
		return "1 Byte"
	case f < base:
		return fmt.Sprintf("%d Bytes", int64(f))
	}
	unit := base
	for i, name := range units {
		if unit *= base; f < unit || i == len(units)-1 {
			return fmt.Sprintf("%.1f %s", base*f/unit, name)
		}
	}
	return ""
}

// parseFloat reads a float as Python's float does.
func parseFloat(s string) (float64, bool) {
	s = strings.ToLower(strings.TrimFunc(s, isSpace))
	sign := strings.TrimLeft(s, "+-")
	if strings.HasPrefix(sign, "0x") || !goodUnderscores(s) {
		return 0, false
	}
	switch sign {
	case "inf", "infinity", "nan":
	default:
		if strings.Trim(sign, "0123456789.e+-_") != "" {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if e, ok := err.(*strconv.NumError); ok && e.Err == strconv.ErrRange {
		err = nil
	}
	return f, err == nil
}

// goodUnderscores: each is between two digits.
func goodUnderscores(s string) bool {
	alnum := func(i int) bool {
		return i >= 0 && i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' &&
			s[i] <= 'Z')
	}
	for i := range len(s) {
		if s[i] == '_' && (!alnum(i-1) || !alnum(i+1)) {
			return false
		}
	}
	return true
}

// parseInt reads an integer as Python's int does with a base.
func parseInt(s string, base int) (any, bool) {
	s = strings.TrimFunc(s, isSpace)
	if base != 0 && (base < 2 || base > 36) || len(s) > maxIntBits/4 || !goodUnderscores(s) {
		return nil, false
	}
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 {
		return nil, false
	}
	if len(digits) > 2 && digits[0] == '0' {
		prefix := map[byte]int{'x': 16, 'o': 8, 'b': 2}[digits[1]|0x20]
		switch {
		case prefix != 0 && prefix == base:
			digits = strings.TrimPrefix(digits[2:], "_")
		case base == 0 && prefix == 0 && strings.Trim(digits, "0_") != "":
			return nil, false
		}
	}
	if base == 10 {
		digits = asciiDigits(digits)
	}
	i, ok := new(big.Int).SetString(strings.ReplaceAll(digits, "_", ""), base)
	if !ok || digits == "" || digits[0] == '-' || digits[0] == '+' {
		return nil, false
	}
	if s[0] == '-' {
		i.Neg(i)
	}
	return normalInt(i), true
}

// asciiDigits writes the decimal digits of other scripts as ours.
func asciiDigits(s string) string {
	return strings.Map(func(c rune) rune {
		for _, t := range unicode.Nd.R16 {
			if rune(t.Lo) <= c && c <= rune(t.Hi) {
				return '0' + (c-rune(t.Lo))%10
			}
		}
		for _, t := range unicode.Nd.R32 {
			if rune(t.Lo) <= c && c <= rune(t.Hi) {
				return '0' + (c-rune(t.Lo))%10
			}
		}
		return c
	}, s)
}

// parseFixed is f with so many digits after the point.
func parseFixed(f float64, digits int) float64 {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
	return v
}
