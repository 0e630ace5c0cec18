package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxJSONDepth bounds the nesting of messages, tools and arguments.
const maxJSONDepth = 100

// ParseJSON turns JSON text into a value. Objects keep the order of their keys,
// integers their digits.
func ParseJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := parseJSON(d, 0)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more text after the JSON value")
	}
	return v, nil
}

func parseJSON(d *json.Decoder, depth int) (any, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("JSON nested more than %d deep", maxJSONDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			l := &List{}
			for d.More() {
				v, err := parseJSON(d, depth+1)
				if err != nil {
					return nil, err
				}
				l.Items = append(l.Items, v)
			}
			_, err := d.Token()
			return l, err
		}
		object := NewDict(4)
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := parseJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			object.Set(key.(string), v)
		}
		_, err := d.Token()
		return object, err
	case json.Number:
		return parseNumber(token.String())
	}
	return token, nil // nil, bool or string
}

func parseNumber(s string) (any, error) {
	if strings.ContainsAny(s, ".eE") {
		f, _ := strconv.ParseFloat(s, 64) // infinite if too large, as in Python
		return f, nil
	}
	if i, err := strconv.Atoi(s); err == nil {
		return i, nil
	}
	if len(s) > maxIntBits/4 {
		return nil, fmt.Errorf("an integer of %d digits", len(s))
	}
	i, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, fmt.Errorf("not a number: %.20s", s)
	}
	return i, nil
}

// jsonStyle are the arguments of json.dumps.
type jsonStyle struct {
	ascii, sorted bool
	indented      bool
	indent        string
	comma, colon  string
}

// appendJSON is Python's json.dumps.
func (r *run) appendJSON(dst []byte, v any, s *jsonStyle, depth int) []byte {
	if depth > maxValueDepth {
		fail("a value nested more than %d deep", maxValueDepth)
	}
	r.make(8)
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case *big.Int:
		return v.Append(dst, 10)
	case float64:
		return appendJSONFloat(dst, v)
	case string:
		return r.appendJSONString(dst, v, s.ascii)
	case markup:
		return r.appendJSONString(dst, string(v), s.ascii)
	case *List:
		return r.appendJSONArray(dst, v.Items, s, depth)
	case *tuple:
		return r.appendJSONArray(dst, v.items, s, depth)
	case *Dict:
		return r.appendJSONObject(dst, v, s, depth)
	}
	typeError("Object of type %s is not JSON serializable", typeName(v))
	return nil
}

func appendJSONFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	}
	return appendFloat(dst, f)
}

// line starts a line of its own, if the style is indented.
func (s *jsonStyle) line(r *run, dst []byte, depth int) []byte {
	if !s.indented {
		return dst
	}
	r.make(1 + depth*len(s.indent))
	dst = append(dst, '\n')
	for range depth {
		dst = append(dst, s.indent...)
	}
	return dst
}

func (r *run) appendJSONArray(dst []byte, items []any, s *jsonStyle, depth int) []byte {
	if len(items) == 0 {
		return append(dst, "[]"...)
	}
	dst = append(dst, '[')
	for i, x := range items {
		if i > 0 {
			dst = append(dst, s.comma...)
		}
		dst = r.appendJSON(s.line(r, dst, depth+1), x, s, depth+1)
	}
	return append(s.line(r, dst, depth), ']')
}

func (r *run) appendJSONObject(dst []byte, d *Dict, s *jsonStyle, depth int) []byte {
	if d.Len() == 0 {
		return append(dst, "{}"...)
	}
	order := make([]int, d.Len())
	for i := range order {
		order[i] = i
	}
	if s.sorted {
		sort.SliceStable(order, func(a, b int) bool { return r.less(d.keys[order[a]], d.keys[order[b]]) })
	}
	dst = append(dst, '{')
	for n, i := range order {
		if n > 0 {
			dst = append(dst, s.comma...)
		}
		dst = s.line(r, dst, depth+1)
		switch k := d.keys[i].(type) {
		case string:
			dst = r.appendJSONString(dst, k, s.ascii)
		case markup:
			dst = r.appendJSONString(dst, string(k), s.ascii)
		case nil, bool, int, *big.Int, float64:
			dst = append(r.appendJSON(append(dst, '"'), k, s, depth+1), '"')
		default:
			typeError("keys must be str, int, float, bool or None, not %s", typeName(k))
		}
		dst = r.appendJSON(append(dst, s.colon...), d.values[i], s, depth+1)
	}
	return append(s.line(r, dst, depth), '}')
}

func (r *run) appendJSONString(dst []byte, s string, ascii bool) []byte {
	r.make(len(s) + 2)
	dst = append(dst, '"')
	plain := 0 // from here on nothing has been written
	for i := 0; i < len(s); {
		c, n := rune(s[i]), 1
		if c >= utf8.RuneSelf {
			c, n = utf8.DecodeRuneInString(s[i:])
		}
		if c >= ' ' && c != '"' && c != '\\' && !(ascii && c >= 0x7f) {
			i += n
			continue
		}
		dst = append(dst, s[plain:i]...)
		i += n
		plain = i
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', byte(c))
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\b':
			dst = append(dst, `\b`...)
		default:
			if c >= 0x10000 {
				c -= 0x10000
				dst = appendHex(append(dst, `\u`...), 0xd800+c>>10, 4)
				c = 0xdc00 + c&0x3ff
			}
			dst = appendHex(append(dst, `\u`...), c, 4)
		}
	}
	return append(append(dst, s[plain:]...), '"')
}
