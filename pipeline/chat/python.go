package chat

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

// str is Python's str(): what Jinja2 prints.
func str(v jinja.Value) string {
	switch {
	case v.IsUndefined():
		return ""
	case v.IsString():
		return v.AsString()
	}
	var b strings.Builder
	repr(&b, v)
	return b.String()
}

// repr writes Python's repr().
func repr(b *strings.Builder, v jinja.Value) {
	switch {
	case v.IsUndefined():
		b.WriteString("Undefined")
	case v.IsFloat():
		b.WriteString(floatText(v.AsFloat(), "inf", "nan"))
	case v.IsString():
		quotePython(b, v.AsString())
	case v.IsList():
		b.WriteByte('[')
		for i, item := range v.AsList().Items {
			if i > 0 {
				b.WriteString(", ")
			}
			repr(b, item)
		}
		b.WriteByte(']')
	case v.IsDict():
		d := v.AsDict()
		b.WriteByte('{')
		for i, key := range d.Keys {
			if i > 0 {
				b.WriteString(", ")
			}
			quotePython(b, key)
			b.WriteString(": ")
			repr(b, d.Data[key])
		}
		b.WriteByte('}')
	default:
		if s, ok := digits(v); ok {
			b.WriteString(s)
			return
		}
		b.WriteString(v.String())
	}
}

func quotePython(b *strings.Builder, s string) {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	b.WriteByte(q)
	for _, r := range s {
		switch {
		case r == '\\' || r == rune(q):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == ' ' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			b.WriteString(`\x` + hex(r, 2))
		case r < 0x10000:
			b.WriteString(`\u` + hex(r, 4))
		default:
			b.WriteString(`\U` + hex(r, 8))
		}
	}
	b.WriteByte(q)
}

func hex(r rune, width int) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(0, width-len(s))) + s
}

// floatText is Python's repr of a float: the shortest digits that read back the
// same, with an exponent below 1e-4 and from 1e16 on.
func floatText(f float64, inf, nan string) string {
	switch {
	case math.IsNaN(f):
		return nan
	case math.IsInf(f, 1):
		return inf
	case math.IsInf(f, -1):
		return "-" + inf
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// typeName is how Python calls the type of v.
func typeName(v jinja.Value) string {
	switch {
	case v.IsUndefined():
		return "an undefined value"
	case v.IsNone():
		return "None"
	case v.IsBool():
		return "a bool"
	case v.IsInt():
		return "an int"
	case v.IsFloat():
		return "a float"
	case v.IsString():
		return "a string"
	case v.IsList():
		return "a list"
	case v.IsDict():
		return "a mapping"
	}
	return "a function"
}

// jsonStyle is the options of json.dumps.
type jsonStyle struct {
	item, key string // separators
	indent    string // of one level; unused unless lines
	lines     bool
	ascii     bool
	sorted    bool
}

// write writes v as json.dumps does.
func (j *jsonStyle) write(b *strings.Builder, v jinja.Value, depth int) error {
	switch {
	case v.IsNone():
		b.WriteString("null")
	case v.IsBool():
		b.WriteString(strconv.FormatBool(v.AsBool()))
	case v.IsInt():
		b.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		b.WriteString(floatText(v.AsFloat(), "Infinity", "NaN"))
	case v.IsString():
		j.quote(b, v.AsString())
	case v.IsList():
		items := v.AsList().Items
		return j.bracket(b, '[', ']', len(items), depth, func(i int) error { return j.write(b, items[i], depth+1) })
	case v.IsDict():
		d := v.AsDict()
		keys := d.Keys
		if j.sorted {
			keys = slices.Sorted(slices.Values(keys))
		}
		return j.bracket(b, '{', '}', len(keys), depth, func(i int) error {
			j.quote(b, keys[i])
			b.WriteString(j.key)
			return j.write(b, d.Data[keys[i]], depth+1)
		})
	default:
		s, ok := digits(v)
		if !ok {
			return errors.New("tojson: " + typeName(v) + " is not JSON")
		}
		b.WriteString(s)
	}
	return nil
}

func (j *jsonStyle) bracket(b *strings.Builder, open, shut byte, n, depth int, write func(i int) error) error {
	if depth > maxDepth {
		return errors.New("tojson: nested too deep")
	}
	b.WriteByte(open)
	for i := range n {
		if i > 0 {
			b.WriteString(j.item)
		}
		j.line(b, depth+1)
		if err := write(i); err != nil {
			return err
		}
		if b.Len() > maxBytes {
			return errors.New("tojson: the text is too long")
		}
	}
	if n > 0 {
		j.line(b, depth)
	}
	b.WriteByte(shut)
	return nil
}

func (j *jsonStyle) line(b *strings.Builder, depth int) {
	if j.lines {
		b.WriteByte('\n')
		b.WriteString(strings.Repeat(j.indent, depth))
	}
}

func (j *jsonStyle) quote(b *strings.Builder, s string) {
	b.WriteByte('"')
	from := 0
	for i, r := range s {
		var escaped string
		switch {
		case r == '"':
			escaped = `\"`
		case r == '\\':
			escaped = `\\`
		case r == '\n':
			escaped = `\n`
		case r == '\r':
			escaped = `\r`
		case r == '\t':
			escaped = `\t`
		case r == '\b':
			escaped = `\b`
		case r == '\f':
			escaped = `\f`
		case r < ' ' || j.ascii && 0x7e < r && r < 0x10000:
			escaped = `\u` + hex(r, 4)
		case j.ascii && r >= 0x10000:
			r -= 0x10000
			escaped = `\u` + hex(0xd800+r>>10, 4) + `\u` + hex(0xdc00+r&0x3ff, 4)
		default:
			continue
		}
		b.WriteString(s[from:i])
		b.WriteString(escaped)
		_, n := utf8.DecodeRuneInString(s[i:])
		from = i + n
	}
	b.WriteString(s[from:])
	b.WriteByte('"')
}
