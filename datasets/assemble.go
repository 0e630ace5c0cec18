package datasets

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"glmbatch/datasets/pages"
)

// assembler puts one nested value together from its leaf columns: the levels say
// where lists begin and what is null (the Dremel paper's record assembly).
type assembler struct {
	dst  []byte
	base int     // leaf column of cols[0]
	cols []cells // of this row
	err  error   // the first

	documents bool // texts that are marked as JSON stay lists and objects
}

// peek returns the first leaf column below n, whose value at hand tells of n.
func (a *assembler) peek(n *node) *cells {
	i := n.first - a.base
	if i < 0 || i >= len(a.cols) || !a.cols[i].ok {
		a.fail(errors.New("damaged nested value"))
		return nil
	}
	return &a.cols[i]
}

func (a *assembler) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// skip passes over the one value that stands for a null in each leaf below n.
func (a *assembler) skip(n *node) {
	for i := range n.leaves {
		if c := &a.cols[n.first-a.base+i]; c.ok {
			c.next()
		}
	}
}

// value appends the value of n, whose parent is at repetition level rep, and
// returns false if it is null: then nothing was appended.
func (a *assembler) value(n *node, rep uint8) bool {
	if n.leaves == 0 { // an empty struct has no column to say anything
		a.dst = append(a.dst, "{}"...)
		return true
	}
	v := a.peek(n)
	if v == nil {
		return false
	}
	switch {
	case n.rep == repeated:
		a.list(n, n, rep)
		return true
	case n.rep == optional && v.def < n.maxDef:
		a.skip(n)
		return false
	}
	return a.present(n, rep)
}

func (a *assembler) present(n *node, rep uint8) bool {
	switch {
	case n.leaf:
		c := a.peek(n)
		if c == nil {
			return false
		}
		v := c.value
		c.next()
		if v == nil {
			return false
		}
		a.scalar(n, v)
		return true
	case n.isList():
		a.list(n.child(0), element(n.child(0)), rep)
	case n.isMap():
		a.entries(n.child(0), rep)
	default:
		a.object(n, rep)
	}
	return true
}

func (a *assembler) list(n, elem *node, rep uint8) {
	a.dst = append(a.dst, '[')
	first := true
	a.each(n, rep, func() {
		if !first {
			a.dst = append(a.dst, ',')
		}
		first = false
		ok := false
		if elem == n {
			ok = a.present(elem, rep+1)
		} else {
			ok = a.value(elem, rep+1)
		}
		if !ok {
			a.dst = append(a.dst, "null"...)
		}
	})
	a.dst = append(a.dst, ']')
}

// each calls f at each element of the repeated node n.
func (a *assembler) each(n *node, rep uint8, f func()) {
	v := a.peek(n)
	if v == nil {
		return
	}
	if v.def < n.maxDef {
		a.skip(n)
		return
	}
	for {
		before := len(v.b)
		f()
		if a.err != nil || !v.ok || v.rep != rep+1 || len(v.b) == before {
			return
		}
	}
}

func (a *assembler) entries(n *node, rep uint8) {
	a.dst = append(a.dst, '{')
	first := true
	a.each(n, rep, func() {
		if !first {
			a.dst = append(a.dst, ',')
		}
		first = false
		start := len(a.dst)
		if !a.value(n.child(0), rep+1) {
			a.dst = append(a.dst, `""`...)
		} else if a.dst[start] != '"' { // keys of objects are strings
			key := slices.Clone(a.dst[start:])
			a.dst = a.dst[:start]
			a.quote(key)
		}
		a.dst = append(a.dst, ':')
		if !a.value(n.child(1), rep+1) {
			a.dst = append(a.dst, "null"...)
		}
	})
	a.dst = append(a.dst, '}')
}

func (a *assembler) object(n *node, rep uint8) {
	a.dst = append(a.dst, '{')
	first := true
	for i := range n.fields {
		c := n.child(i)
		start := len(a.dst)
		if !first {
			a.dst = append(a.dst, ',')
		}
		a.quote([]byte(c.name))
		a.dst = append(a.dst, ':')
		if !a.value(c, rep) {
			a.dst = a.dst[:start]
			continue
		}
		first = false
	}
	a.dst = append(a.dst, '}')
}

func (a *assembler) quote(s []byte) {
	if !utf8.Valid(s) {
		a.fail(ErrUTF8)
		return
	}
	for _, c := range s {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			q, err := json.Marshal(string(s))
			if err != nil {
				a.fail(err)
			}
			a.dst = append(a.dst, q...)
			return
		}
	}
	a.dst = append(append(append(a.dst, '"'), s...), '"')
}

func (a *assembler) scalar(n *node, v []byte) {
	t := n.typ
	switch l := t.logical; l.Class {
	case pages.Integer:
		if l.Unsigned && l.Bits == 64 {
			a.dst = strconv.AppendUint(a.dst, binary.LittleEndian.Uint64(v), 10)
		} else {
			a.dst = strconv.AppendInt(a.dst, t.integer(v), 10)
		}
		return
	case pages.Decimal:
		a.decimal(int(l.Scale), unscaled(t.kind, v))
		return
	case pages.Date:
		a.quote([]byte(time.Unix(t.integer(v)*86400, 0).UTC().Format(time.DateOnly)))
		return
	case pages.Timestamp:
		a.time(timestamp(l.Unit, t.integer(v)))
		return
	case pages.Half:
		a.float(half(v), 32)
		return
	case pages.JSON:
		if a.documents && utf8.Valid(v) {
			b := bytes.NewBuffer(a.dst)
			if json.Compact(b, v) == nil {
				a.dst = b.Bytes()
				return
			}
		}
	}
	switch t.kind {
	case pages.Boolean:
		a.dst = strconv.AppendBool(a.dst, v[0] != 0)
	case pages.Int32, pages.Int64:
		a.dst = strconv.AppendInt(a.dst, t.integer(v), 10)
	case pages.Float:
		a.float(t.float(v), 32)
	case pages.Double:
		a.float(t.float(v), 64)
	case pages.Int96:
		day, ns := int96(v)
		a.time(time.Unix(day*86400, ns).UTC())
	case pages.ByteArray:
		if t.logical.Class != pages.Plain || utf8.Valid(v) {
			a.quote(v)
			return
		}
		fallthrough
	default:
		a.quote([]byte(base64.StdEncoding.EncodeToString(v)))
	}
}

func (a *assembler) float(f float64, bits int) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		a.quote(strconv.AppendFloat(nil, f, 'g', -1, bits)) // JSON has no such numbers
		return
	}
	a.dst = strconv.AppendFloat(a.dst, f, 'g', -1, bits)
}

func (a *assembler) time(t time.Time) {
	a.dst = append(a.dst, '"')
	a.dst = t.UTC().AppendFormat(a.dst, "2006-01-02T15:04:05.999999999Z07:00")
	a.dst = append(a.dst, '"')
}

func timestamp(unit pages.Unit, v int64) time.Time {
	switch unit {
	case pages.Millis:
		return time.UnixMilli(v)
	case pages.Micros:
		return time.UnixMicro(v)
	}
	return time.Unix(0, v)
}

func (a *assembler) decimal(scale int, n *big.Int) {
	if scale <= 0 || scale > 100 {
		a.dst = n.Append(a.dst, 10)
		return
	}
	if n.Sign() < 0 {
		a.dst = append(a.dst, '-')
		n.Neg(n)
	}
	digits := n.String()
	digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
	a.dst = append(append(append(a.dst, digits[:len(digits)-scale]...), '.'), digits[len(digits)-scale:]...)
}
