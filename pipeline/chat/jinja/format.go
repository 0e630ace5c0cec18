package jinja

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is how a value is formatted, by "%" or by "{}".
type spec struct {
	fill      string
	align     byte // '<', '>', '^', '=' or 0
	sign      byte // '+', ' ' or 0
	alternate bool
	grouping  byte // ',' or '_' or 0
	width     int
	precision int // -1: not given
	verb      byte
}

const maxWidth = 1 << 20

// percent is s % args.
func (r *run) percent(s string, args any) string {
	r.look(len(s))
	pos := []any{args}
	t, isTuple := args.(*tuple)
	if isTuple {
		pos = t.items
	}
	d, _ := args.(*Dict)
	used := 0
	next := func() any {
		if used >= len(pos) {
			typeError("not enough arguments for format string")
		}
		used++
		return pos[used-1]
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		var value any = missing
		if strings.HasPrefix(s, "(") {
			end := strings.IndexByte(s, ')')
			if end < 0 {
				fail("ValueError: incomplete format key")
			}
			if d == nil {
				typeError("format requires a mapping")
			}
			v, ok := d.Get(s[1:end])
			if !ok {
				fail("KeyError: '%s'", s[1:end])
			}
			value, s = v, s[end+1:]
		}
		f := spec{fill: " ", align: '>', precision: -1}
		number := func() int {
			if strings.HasPrefix(s, "*") {
				s = s[1:]
				return index(next())
			}
			n := 0
			for s != "" && '0' <= s[0] && s[0] <= '9' {
				n, s = min(10*n+int(s[0]-'0'), maxWidth+1), s[1:]
			}
			return n
		}
	flags:
		for ; s != ""; s = s[1:] {
			switch s[0] {
			case '-':
				f.align = '<'
			case '+':
				f.sign = '+'
			case ' ':
				if f.sign == 0 {
					f.sign = ' '
				}
			case '0':
				f.fill = "0"
			case '#':
				f.alternate = true
			default:
				break flags
			}
		}
		if f.width = number(); f.width < 0 {
			f.align, f.width = '<', -f.width
		}
		if strings.HasPrefix(s, ".") {
			s = s[1:]
			f.precision = max(0, number())
		}
		s = strings.TrimLeft(s, "hlL")
		if s == "" {
			fail("ValueError: incomplete format")
		}
		f.verb, s = s[0], s[1:]
		if f.verb == '%' {
			b.WriteByte('%')
			continue
		}
		if value == missing {
			value = next()
		}
		text := r.percentValue(f, value)
		r.make(len(text))
		b.WriteString(text)
	}
	switch args.(type) {
	case *Dict, *List, span, *undefined: // what has indices counts as a mapping, which need not be used
	default:
		if used < len(pos) {
			typeError("not all arguments converted during string formatting")
		}
	}
	return b.String()
}

func (r *run) percentValue(f spec, v any) string {
	switch f.verb {
	case 's', 'r', 'a':
		f.fill = " "
		text := r.str(v)
		if f.verb != 's' {
			text = r.repr(v)
		}
		if f.precision >= 0 {
			text = cutText(r, text, nil, &f.precision, nil)
		}
		return f.pad(r, text)
	case 'c':
		f.fill = " "
		if s, ok := textOf(v); ok && runeCount(s) == 1 {
			return f.pad(r, s)
		}
		return f.pad(r, string(rune(index(v))))
	case 'd', 'i', 'u', 'x', 'X', 'o':
		if x, ok := v.(float64); ok && strings.IndexByte("diu", f.verb) >= 0 {
			i, _ := big.NewFloat(x).Int(nil)
			v = normalInt(i)
		}
		i, ok := bigOf(v)
		if !ok {
			typeError("%%%c format: a real number is required, not %s", f.verb, typeName(v))
		}
		if strings.IndexByte("iu", f.verb) >= 0 {
			f.verb = 'd'
		}
		if f.precision > 0 { // the least number of digits
			digits := new(big.Int).Abs(i).Text(map[byte]int{'d': 10, 'x': 16, 'X': 16, 'o': 8}[f.verb])
			if n := f.precision - len(digits); n > 0 {
				r.make(n)
				sign := map[bool]string{true: "-", false: ""}[i.Sign() < 0]
				return f.pad(r, sign+strings.Repeat("0", n)+digits)
			}
		}
		f.align = f.numeric()
		return f.pad(r, f.integer(i))
	case 'e', 'E', 'f', 'F', 'g', 'G':
		x, ok := floatOf(v)
		if !ok {
			typeError("must be real number, not %s", typeName(v))
		}
		f.align = f.numeric()
		return f.pad(r, f.float(x))
	}
	fail("ValueError: unsupported format character '%c'", f.verb)
	return ""
}

// numeric is the alignment of a number whose fill is 0: after the sign.
func (f *spec) numeric() byte {
	if f.align == '<' {
		f.fill = " "
	} else if f.fill == "0" {
		return '='
	}
	return f.align
}

func (f *spec) integer(i *big.Int) string {
	text, prefix := "", ""
	switch f.verb {
	case 'x':
		text, prefix = i.Text(16), "0x"
	case 'X':
		text, prefix = strings.ToUpper(i.Text(16)), "0X"
	case 'o':
		text, prefix = i.Text(8), "0o"
	case 'b':
		text, prefix = i.Text(2), "0b"
	default:
		text = i.Text(10)
	}
	text, negative := strings.CutPrefix(text, "-")
	text = f.group(text)
	if f.alternate {
		text = prefix + text
	}
	return f.signed(text, negative)
}

func (f *spec) float(x float64) string {
	precision, verb := f.precision, f.verb
	if precision < 0 {
		precision = 6
	}
	if precision > 1000 {
		fail("ValueError: precision too big")
	}
	upper := verb == 'E' || verb == 'F' || verb == 'G'
	var text string
	switch verb | 0x20 {
	case 'g':
		text = general(x, max(precision, 1), f.alternate)
	case 'f':
		text = strconv.FormatFloat(x, 'f', precision, 64)
	case 'e':
		text = strconv.FormatFloat(x, 'e', precision, 64)
	case '%':
		text = strconv.FormatFloat(100*x, 'f', precision, 64) + "%"
	}
	text = strings.ToLower(text)
	if upper {
		text = strings.ToUpper(text)
	}
	text = strings.TrimPrefix(text, "+")
	text, negative := strings.CutPrefix(text, "-")
	whole, rest := text, ""
	if i := strings.IndexAny(text, ".eE%"); i >= 0 {
		whole, rest = text[:i], text[i:]
	}
	return f.signed(f.group(whole)+rest, negative)
}

// general is C's %g.
func general(x float64, precision int, alternate bool) string {
	if x != x || x-x != 0 {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	e := strconv.FormatFloat(x, 'e', precision-1, 64)
	at := strings.IndexByte(e, 'e')
	exponent, _ := strconv.Atoi(e[at+1:])
	trim := func(s string) string {
		if alternate || strings.IndexByte(s, '.') < 0 {
			return s
		}
		return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	if exponent < -4 || exponent >= precision {
		return trim(e[:at]) + e[at:]
	}
	return trim(strconv.FormatFloat(x, 'f', precision-1-exponent, 64))
}

// group puts a mark between groups of digits.
func (f *spec) group(digits string) string {
	if f.grouping == 0 {
		return digits
	}
	n := 3
	if strings.IndexByte("xXob", f.verb) >= 0 {
		n = 4
	}
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%n == 0 {
			b.WriteByte(f.grouping)
		}
		b.WriteRune(c)
	}
	return b.String()
}

func (f *spec) signed(text string, negative bool) string {
	switch {
	case negative:
		return "-" + text
	case f.sign != 0:
		return string(f.sign) + text
	}
	return text
}

func (f *spec) pad(r *run, text string) string {
	n := f.width - runeCount(text)
	if n <= 0 {
		return text
	}
	if f.width > maxWidth {
		fail("a field of more than %d characters", maxWidth)
	}
	r.make(n * len(f.fill))
	many := func(k int) string { return strings.Repeat(f.fill, k) }
	switch f.align {
	case '<':
		return text + many(n)
	case '^':
		return many(n/2) + text + many(n-n/2)
	case '=':
		at := 0
		if text != "" && strings.IndexByte("+- ", text[0]) >= 0 {
			at = 1
		}
		if f.alternate && len(text) > at+1 && text[at] == '0' {
			at += 2
		}
		return text[:at] + many(n) + text[at:]
	}
	return many(n) + text
}

// escapeAll escapes what is formatted into a safe string.
func (r *run) escapeAll(v any) any {
	switch v := v.(type) {
	case string:
		return string(r.escape(v))
	case *tuple:
		t := &tuple{}
		for _, x := range v.items {
			t.items = append(t.items, r.escapeAll(x))
		}
		return t
	case *Dict:
		d := NewDict(v.Len())
		for i, k := range v.keys {
			d.assign(k, r.escapeAll(v.values[i]))
		}
		return d
	}
	return v
}

// braces is str.format.
func (r *run) braces(self any, pos []any, kw *kwargs) string {
	s, _ := textOf(self)
	_, safe := self.(markup)
	auto := 0
	return r.expand(s, func(field string) any { return r.field(field, &auto, pos, kw) }, safe, 2)
}

// expand replaces the fields of a format string.
func (r *run) expand(s string, value func(field string) any, safe bool, depth int) string {
	if depth < 0 {
		fail("ValueError: Max string recursion exceeded")
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case (c == '{' || c == '}') && i+1 < len(s) && s[i+1] == c:
			b.WriteByte(c)
			i++
		case c == '}':
			fail("ValueError: Single '}' encountered in format string")
		case c == '{':
			end, open := i+1, 1
			for ; end < len(s); end++ {
				if s[end] == '{' {
					open++
				} else if s[end] == '}' {
					if open--; open == 0 {
						break
					}
				}
			}
			if open > 0 {
				fail("ValueError: expected '}' before end of string")
			}
			field, conversion, format := s[i+1:end], "", ""
			if at := strings.IndexAny(field, "!:"); at >= 0 {
				field, format = field[:at], field[at:]
				if format[0] == '!' {
					conversion, format, _ = strings.Cut(format[1:], ":")
				} else {
					format = format[1:]
				}
			}
			v := value(field)
			switch conversion {
			case "":
			case "s":
				v = r.str(v)
			case "r", "a":
				v = r.repr(v)
			default:
				fail("ValueError: Unknown conversion specifier %q", conversion)
			}
			text := r.formatted(v, r.expand(format, value, false, depth-1))
			if _, isSafe := v.(markup); safe && !isSafe {
				text = string(r.escape(text))
			}
			r.make(len(text))
			b.WriteString(text)
			i = end
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// field is the value of a field such as "", "0", "name.attr[key]".
func (r *run) field(field string, auto *int, pos []any, kw *kwargs) any {
	at := strings.IndexAny(field, ".[")
	if at < 0 {
		at = len(field)
	}
	name, rest := field[:at], field[at:]
	var v any
	n, err := strconv.Atoi(name)
	switch {
	case name == "" && rest != "":
		fail("KeyError: ''")
	case name == "":
		if *auto < 0 {
			fail("ValueError: cannot switch from manual field specification to automatic field numbering")
		}
		n, err = *auto, nil
		*auto++
	case err == nil:
		if *auto > 0 {
			fail("ValueError: cannot switch from automatic field numbering to manual field specification")
		}
		*auto = -1
	}
	switch {
	case err == nil && (n < 0 || n >= len(pos)):
		fail("IndexError: Replacement index %d out of range for positional args tuple", n)
	case err == nil:
		v = pos[n]
	default:
		found := false
		for i, k := range kw.names {
			if k == name {
				v, found = kw.values[i], true
			}
		}
		if !found {
			fail("KeyError: '%s'", name)
		}
	}
	for rest != "" {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			v, rest = r.attribute(v, rest[1:end]), rest[end:]
			continue
		}
		key, after, ok := strings.Cut(rest[1:], "]")
		if !ok {
			fail("ValueError: Missing ']' in format string")
		}
		if i, err := strconv.Atoi(key); err == nil {
			v = r.getItem(v, i)
		} else {
			v = r.getItem(v, key)
		}
		rest = after
	}
	return v
}

// formatted is Python's format(v, spec).
func (r *run) formatted(v any, text string) string {
	if text == "" {
		return r.str(v)
	}
	f := parseSpec(text)
	if b, ok := v.(bool); ok && (f.verb != 0 && f.verb != 's') {
		v, _ = intOf(b)
	}
	switch {
	case isNumber(v) && f.verb != 's' && !isBool(v):
		if f.align == 0 {
			f.align = '>'
			if f.fill == "0" {
				f.align = '='
			}
		}
		if i, ok := bigOf(v); ok && strings.IndexByte("eEfFgG%", f.verb) < 0 || ok && f.verb == 0 {
			if f.precision >= 0 {
				fail("ValueError: Precision not allowed in integer format specifier")
			}
			if f.verb == 'c' {
				return f.pad(r, string(rune(index(v))))
			}
			if strings.IndexByte("\x00dxXobn", f.verb) < 0 {
				fail("ValueError: Unknown format code '%c' for object of type 'int'", f.verb)
			}
			return f.pad(r, f.integer(i))
		}
		x, _ := floatOf(v)
		if f.verb == 0 {
			if f.precision < 0 {
				text := string(appendFloat(nil, x))
				text, negative := strings.CutPrefix(text, "-")
				return f.pad(r, f.signed(text, negative))
			}
			f.verb = 'g'
		}
		if strings.IndexByte("eEfFgG%n", f.verb) < 0 {
			fail("ValueError: Unknown format code '%c' for object of type 'float'", f.verb)
		}
		return f.pad(r, f.float(x))
	}
	s, ok := textOf(v)
	if b, isBool := v.(bool); isBool {
		s, ok = r.str(b), true
	}
	if !ok {
		typeError("unsupported format string passed to %s.__format__", typeName(v))
	}
	if f.verb != 0 && f.verb != 's' {
		fail("ValueError: Unknown format code '%c' for object of type 'str'", f.verb)
	}
	if f.align == '=' {
		fail("ValueError: '=' alignment not allowed in string format specifier")
	}
	if f.align == 0 {
		f.align = '<'
	}
	if f.precision >= 0 {
		s = cutText(r, s, nil, &f.precision, nil)
	}
	return f.pad(r, s)
}

func isBool(v any) bool { _, ok := v.(bool); return ok }

// parseSpec reads [[fill]align][sign][#][0][width][grouping][.precision][verb].
func parseSpec(s string) *spec {
	f := &spec{fill: " ", precision: -1}
	_, n := utf8.DecodeRuneInString(s)
	if len(s) > n && strings.IndexByte("<>=^", s[n]) >= 0 {
		f.fill, f.align, s = s[:n], s[n], s[n+1:]
	} else if strings.IndexByte("<>=^", s[0]) >= 0 {
		f.align, s = s[0], s[1:]
	}
	eat := func(set string) byte {
		if s != "" && strings.IndexByte(set, s[0]) >= 0 {
			c := s[0]
			s = s[1:]
			return c
		}
		return 0
	}
	if f.sign = eat("+- "); f.sign == '-' {
		f.sign = 0
	}
	f.alternate = eat("#") != 0
	if eat("0") != 0 && f.align == 0 {
		f.fill = "0"
	}
	number := func() int {
		n := 0
		for c := eat("0123456789"); c != 0; c = eat("0123456789") {
			n = min(10*n+int(c-'0'), maxWidth+1)
		}
		return n
	}
	f.width = number()
	f.grouping = eat(",_")
	if eat(".") != 0 {
		f.precision = number()
	}
	if s != "" {
		f.verb, s = s[0], s[1:]
	}
	if s != "" {
		fail("ValueError: Invalid format specifier")
	}
	return f
}
