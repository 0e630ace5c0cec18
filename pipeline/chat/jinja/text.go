package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// str is Python's str.
func (r *run) str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case markup:
		return string(v)
	case *undefined:
		return ""
	case int:
		return strconv.Itoa(v)
	}
	return string(r.appendRepr(nil, v, 0))
}

// repr is Python's repr.
func (r *run) repr(v any) string { return string(r.appendRepr(nil, v, 0)) }

func (r *run) appendRepr(dst []byte, v any, depth int) []byte {
	if depth > maxValueDepth {
		fail("a value nested more than %d deep", maxValueDepth)
	}
	r.make(8)
	switch v := v.(type) {
	case nil:
		return append(dst, "None"...)
	case bool:
		if v {
			return append(dst, "True"...)
		}
		return append(dst, "False"...)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case *big.Int:
		return v.Append(dst, 10)
	case float64:
		return appendFloat(dst, v)
	case string:
		return r.appendQuoted(dst, v)
	case markup:
		return append(r.appendQuoted(append(dst, "Markup("...), string(v)), ')')
	case *List:
		return append(r.appendItems(append(dst, '['), v.Items, depth), ']')
	case *tuple:
		dst = r.appendItems(append(dst, '('), v.items, depth)
		if len(v.items) == 1 {
			dst = append(dst, ',')
		}
		return append(dst, ')')
	case *Dict:
		dst = append(dst, '{')
		for i, k := range v.keys {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(r.appendRepr(dst, k, depth+1), ": "...)
			dst = r.appendRepr(dst, v.values[i], depth+1)
		}
		return append(dst, '}')
	case view:
		dst = append(dst, "dict_"+v.what+"(["...)
		for i := range v.of.keys {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = r.appendRepr(dst, v.at(r, i), depth+1)
		}
		return append(dst, "])"...)
	case span:
		dst = append(dst, "range("+strconv.Itoa(v.start)+", "+strconv.Itoa(v.stop)...)
		if v.step != 1 {
			dst = append(dst, ", "+strconv.Itoa(v.step)...)
		}
		return append(dst, ')')
	case *undefined:
		return append(dst, "Undefined"...)
	case *namespace:
		return append(r.appendRepr(append(dst, "<Namespace "...), v.attrs, depth+1), '>')
	case *macro:
		return append(r.appendQuoted(append(dst, "<Macro "...), v.name), '>')
	case *loopContext:
		return append(dst, "<LoopContext "+strconv.Itoa(v.index0+1)+"/"+strconv.Itoa(v.length(r))+">"...)
	}
	fail("printing a %s, which has no text but its address", typeName(v))
	return nil
}

func (r *run) appendItems(dst []byte, items []any, depth int) []byte {
	for i, x := range items {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = r.appendRepr(dst, x, depth+1)
	}
	return dst
}

// appendFloat writes the shortest digits that are the number, as Python does.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case math.IsNaN(f):
		return append(dst, "nan"...)
	}
	from := len(dst)
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if strings.IndexByte(string(dst[from:]), '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendQuoted writes a string as Python's repr does.
func (r *run) appendQuoted(dst []byte, s string) []byte {
	r.make(len(s) + 2)
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	dst = append(dst, quote)
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case c == rune(quote) || c == '\\':
			dst = append(dst, '\\', byte(c))
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case unicode.IsPrint(c):
			dst = utf8.AppendRune(dst, c)
		case c < 0x100:
			dst = appendHex(append(dst, `\x`...), c, 2)
		case c < 0x10000:
			dst = appendHex(append(dst, `\u`...), c, 4)
		default:
			dst = appendHex(append(dst, `\U`...), c, 8)
		}
	}
	return append(dst, quote)
}

func appendHex(dst []byte, c rune, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		dst = append(dst, "0123456789abcdef"[c>>(4*i)&15])
	}
	return dst
}
