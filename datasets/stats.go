package datasets

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/parquet-go/parquet-go/format"

	"glmbatch/datasets/pages"
)

// bounds are the statistics of one leaf column of a row group, in the order of
// what its values mean. The library orders by physical type: its bounds of
// unsigned numbers, decimals, short floats and NaN would make readers pass over
// rows that they look for.
type bounds struct {
	typ      leafType
	ordered  bool // values of the type have an order
	nulls    int64
	seen     bool
	min, max []byte
	odd      bool // a NaN or a zero was seen, which the library's bounds of pages get wrong
}

// ordered reports whether readers may trust bounds of a type.
func ordered(t leafType) bool {
	switch t.logical.Class {
	case pages.Interval, pages.Unknown, pages.Null:
		return false
	}
	return t.kind != pages.Int96
}

// byPhysical reports that a type's order is the library's.
func byPhysical(t leafType) bool {
	switch l := t.logical; l.Class {
	case pages.Integer:
		return !l.Unsigned
	case pages.Decimal:
		return t.kind == pages.Int32 || t.kind == pages.Int64
	case pages.Half:
		return false
	}
	return ordered(t)
}

// add takes a value into account; nil is a null. v is not kept.
func (b *bounds) add(v []byte) {
	if v == nil {
		b.nulls++
		return
	}
	if !b.ordered {
		return
	}
	if b.typ.isFloat() {
		f := b.typ.float(v)
		if f == 0 {
			b.odd = true
		}
		if math.IsNaN(f) {
			b.odd = true
			return
		}
	}
	if b.typ.kind == pages.ByteArray && b.typ.logical.Class != pages.Decimal {
		v = v[:min(len(v), maxBound+1)] // two that are equal so far are both too long to be written
	}
	if !b.seen {
		b.seen = true
		b.min, b.max = append(b.min[:0], v...), append(b.max[:0], v...)
		return
	}
	if less(b.typ, v, b.min) {
		b.min = append(b.min[:0], v...)
	} else if less(b.typ, b.max, v) {
		b.max = append(b.max[:0], v...)
	}
}

func less(t leafType, a, b []byte) bool {
	le := binary.LittleEndian
	switch {
	case t.logical.Class == pages.Decimal && (t.kind == pages.ByteArray || t.kind == pages.FixedLenByteArray):
		return lessSigned(a, b)
	case t.isFloat():
		x, y := t.float(a), t.float(b)
		return x < y || x == y && math.Signbit(x) && !math.Signbit(y)
	case t.logical.Unsigned && t.kind == pages.Int64:
		return le.Uint64(a) < le.Uint64(b)
	case t.kind == pages.Int32 || t.kind == pages.Int64:
		return t.integer(a) < t.integer(b)
	}
	return bytes.Compare(a, b) < 0
}

// lessSigned compares big-endian numbers in two's complement, of any lengths.
func lessSigned(a, b []byte) bool {
	sign := func(v []byte) byte {
		if len(v) > 0 && v[0]&0x80 != 0 {
			return 0xFF
		}
		return 0
	}
	sa, sb := sign(a), sign(b)
	if sa != sb {
		return sa == 0xFF
	}
	at := func(v []byte, s byte, i, n int) byte { // as if it had n bytes
		if i -= n - len(v); i < 0 {
			return s
		}
		return v[i]
	}
	for i, n := 0, max(len(a), len(b)); i < n; i++ {
		if x, y := at(a, sa, i, n), at(b, sb, i, n); x != y {
			return x < y
		}
	}
	return false
}

// put writes the bounds into a footer's statistics. Zeros are -0 as least and +0
// as greatest value, so that either is found.
func (b *bounds) put(c *format.ColumnMetaData) {
	s := &c.Statistics
	*s = format.Statistics{NullCount: b.nulls}
	if b.seen && len(b.min) <= maxBound && len(b.max) <= maxBound {
		s.MinValue, s.MaxValue = bytes.Clone(b.min), bytes.Clone(b.max)
		if b.typ.isFloat() {
			signZero(b.typ, s.MinValue, true)
			signZero(b.typ, s.MaxValue, false)
		}
	}
}

func signZero(t leafType, v []byte, negative bool) {
	if t.float(v) != 0 {
		return
	}
	clear(v)
	if negative {
		v[len(v)-1] = 0x80
	}
}

// reset begins a row group.
func (b *bounds) reset() { *b = bounds{typ: b.typ, ordered: b.ordered, min: b.min[:0], max: b.max[:0]} }

// snapshot is a copy that reset does not change.
func (b *bounds) snapshot() bounds {
	c := *b
	c.min, c.max = bytes.Clone(b.min), bytes.Clone(b.max)
	return c
}
