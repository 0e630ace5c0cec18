package importer

import "bytes"

// What scanning a value came to.
type outcome uint8

const (
	whole outcome = iota
	short         // the text ends inside the value
	bad           // the text is not JSON
)

// plain[c] says what a byte may be outside of strings: 0 part of a literal,
// number, comma, colon or white space; 1 the start or end of something; 2 an
// error. NaN, Infinity and -Infinity are literals here.
var plain = func() (t [256]uint8) {
	for i := range t {
		t[i] = 2
	}
	for _, c := range "0123456789+-.eE:, \n\r\ttruefalsnNaIity" {
		t[c] = 0
	}
	for _, c := range "{}[]\"" {
		t[c] = 1
	}
	return t
}()

// cursor scans JSON in memory. In lenient mode a string ends only where what
// follows can follow a string, so that unescaped quotes and a backslash before
// the closing quote do no harm.
type cursor struct {
	b       []byte
	i       int
	lenient bool
	member  int   // how many objects the cursor is in, of those that fields reads
	commas  int64 // numbers with a decimal comma that were met
}

func (c *cursor) blank() {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\n', '\r', '\t':
			c.i++
		default:
			return
		}
	}
}

// str scans a string from its opening quote and returns what is between the
// quotes, escapes as they are. Keys are never read leniently.
func (c *cursor) str(key bool) ([]byte, outcome) {
	if c.i >= len(c.b) {
		return nil, short
	}
	if c.b[c.i] != '"' {
		return nil, bad
	}
	from := c.i + 1
	for i := from; ; {
		j := bytes.IndexByte(c.b[i:], '"')
		if j < 0 {
			return nil, short
		}
		j += i
		if c.lenient && !key {
			if !closes(c.b[j+1:]) {
				i = j + 1
				continue
			}
		} else {
			slashes := 0
			for k := j - 1; k >= from && c.b[k] == '\\'; k-- {
				slashes++
			}
			if slashes%2 == 1 {
				i = j + 1
				continue
			}
			if bytes.IndexByte(c.b[i:j], '\n') >= 0 {
				return nil, bad // a line break: likely the text between two strings
			}
		}
		c.i = j + 1
		return c.b[from:j], whole
	}
}

// closes reports whether rest can follow a string that is a value.
func closes(rest []byte) bool {
	d := cursor{b: rest}
	d.blank()
	if d.i == len(rest) {
		return true
	}
	switch rest[d.i] {
	case '}', ']':
		return true
	case ',':
	default:
		return false
	}
	d.i++
	d.blank()
	if d.i == len(rest) {
		return true
	}
	switch c := rest[d.i]; c {
	case '"', '{', '[', '-':
		return true
	default:
		return c >= '0' && c <= '9'
	}
}

// value scans any value and returns its text.
func (c *cursor) value() ([]byte, outcome) {
	c.blank()
	if c.i >= len(c.b) {
		return nil, short
	}
	from := c.i
	switch c.b[c.i] {
	case '"':
		_, o := c.str(false)
		return c.b[from:c.i], o
	case '{', '[':
		c.i++
		o := c.leave(1)
		return c.b[from:c.i], o
	}
	for ; c.i < len(c.b); c.i++ {
		switch c.b[c.i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			if c.i == from {
				return nil, bad
			}
			if c.decimalComma() {
				c.commas++
				continue
			}
			return c.b[from:c.i], whole
		case '"', '{', '[':
			return nil, bad
		}
	}
	return nil, short
}

// decimalComma reports whether a comma stands between digits of one number: in an
// object a key must follow a comma, so that a digit does not. Programs that print
// numbers by their user's locale write such.
func (c *cursor) decimalComma() bool {
	digit := func(i int) bool { return i < len(c.b) && c.b[i] >= '0' && c.b[i] <= '9' }
	return c.member > 0 && c.b[c.i] == ',' && digit(c.i-1) && digit(c.i+1)
}

// leave scans to behind the end of the depth-th enclosing object or list.
func (c *cursor) leave(depth int) outcome {
	for c.i < len(c.b) {
		ch := c.b[c.i]
		switch plain[ch] {
		case 0:
			c.i++
		case 2:
			return bad
		default:
			switch ch {
			case '"':
				if _, o := c.str(c.lenient && c.atKey()); o != whole {
					return o
				}
				continue
			case '{', '[':
				depth++
			default:
				depth--
			}
			c.i++
			if depth == 0 {
				return whole
			}
		}
	}
	return short
}

// atKey guesses whether the string that begins here is a key, for lenient mode.
func (c *cursor) atKey() bool {
	for k := c.i - 1; k >= 0; k-- {
		switch c.b[k] {
		case ' ', '\n', '\r', '\t':
		case '{':
			return true
		case ',':
			// A key, or an item of a list: a key where a colon comes after the quote.
			j := bytes.IndexByte(c.b[c.i+1:], '"')
			d := cursor{b: c.b, i: c.i + 2 + j}
			d.blank()
			return j >= 0 && d.i < len(d.b) && d.b[d.i] == ':'
		default:
			return false
		}
	}
	return false
}

// fields calls f for every key of the object that begins here, with the cursor
// on the value; f scans the value. f may return stop to leave the object.
func (c *cursor) fields(f func(key []byte) (o outcome, stop bool)) outcome {
	c.blank()
	if c.i >= len(c.b) {
		return short
	}
	if c.b[c.i] != '{' {
		return bad
	}
	c.i++
	c.member++
	defer func() { c.member-- }()
	for first := true; ; first = false {
		c.blank()
		if c.i >= len(c.b) {
			return short
		}
		switch ch := c.b[c.i]; {
		case ch == '}':
			c.i++
			return whole
		case !first && ch != ',':
			return bad
		case !first:
			c.i++
			c.blank()
			if c.i < len(c.b) && c.b[c.i] == '}' { // a trailing comma
				c.i++
				return whole
			}
		}
		key, o := c.str(true)
		if o != whole {
			return o
		}
		c.blank()
		if c.i >= len(c.b) {
			return short
		}
		if c.b[c.i] != ':' {
			return bad
		}
		c.i++
		c.blank()
		o, stop := f(key)
		if o != whole || stop {
			return o
		}
	}
}

// eventKeys are the keys that an event may begin with.
var eventKeys = map[string]bool{
	"ph": true, "cat": true, "name": true, "pid": true, "tid": true, "ts": true, "dur": true,
	"args": true, "id": true, "s": true, "bp": true, "schema": true,
}

// nextEvent returns the place of the next text in b that looks like the start
// of an event after another one, or -1. ends is the place behind the event
// before it.
func nextEvent(b []byte) (start, ends int) {
	for i := 0; ; i++ {
		j := bytes.IndexByte(b[i:], '{')
		if j < 0 {
			return -1, 0
		}
		i += j
		k := i - 1
		for k >= 0 && isBlank(b[k]) {
			k--
		}
		if k < 0 || b[k] != ',' {
			continue
		}
		k--
		for k >= 0 && isBlank(b[k]) {
			k--
		}
		if k < 0 || b[k] != '}' {
			continue
		}
		c := cursor{b: b, i: i + 1}
		c.blank()
		key, o := c.str(true)
		if o == short {
			return -1, 0
		}
		if o == whole && eventKeys[string(key)] {
			return i, k + 1
		}
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
