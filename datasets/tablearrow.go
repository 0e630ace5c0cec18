package datasets

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/decimal128"
	"github.com/apache/arrow/go/v17/arrow/decimal256"
	"github.com/apache/arrow/go/v17/arrow/float16"

	"glmbatch/datasets/pages"
)

// WriteArrow writes all rows to w as an Arrow IPC stream. Types are those that the
// files' own types have in Arrow.
func (in *Input) WriteArrow(w io.Writer) error { return in.print(w, Arrow) }

// arrowField is a column as Arrow has it.
func arrowField(n *node) (arrow.Field, error) {
	f := arrow.Field{Name: n.name, Nullable: n.rep == optional}
	var err error
	if n.rep == repeated { // a list without a list's type
		one := *n
		one.rep = required
		elem, err := arrowField(&one)
		f.Type = arrow.ListOfNonNullable(elem.Type)
		return f, err
	}
	switch {
	case n.leaf:
		if f.Type = arrowLeaf(n); f.Type == nil {
			err = fmt.Errorf("there is no Arrow type for %s", signature(n))
		}
	case n.isList():
		list := n.child(0)
		var elem arrow.Field
		if e := element(list); e == list {
			one := *list
			one.rep = required
			elem, err = arrowField(&one)
		} else {
			elem, err = arrowField(e)
		}
		f.Type = arrow.ListOfField(elem)
	case n.isMap():
		entries := n.child(0)
		var key, item arrow.Field
		if key, err = arrowField(entries.child(0)); err == nil {
			item, err = arrowField(entries.child(1))
		}
		if err == nil {
			m := arrow.MapOf(key.Type, item.Type)
			m.SetItemNullable(item.Nullable)
			f.Type = m
		}
	default:
		var members []arrow.Field
		for i := range n.fields {
			c, cerr := arrowField(n.child(i))
			if cerr != nil {
				return f, cerr
			}
			members = append(members, c)
		}
		f.Type = arrow.StructOf(members...)
	}
	return f, err
}

// arrowLeaf is the Arrow type of a leaf; nil: there is none.
func arrowLeaf(n *node) arrow.DataType {
	units := [...]arrow.TimeUnit{arrow.Second, arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond}
	l := n.typ.logical
	switch l.Class {
	case pages.String, pages.Enum, pages.JSON:
		return arrow.BinaryTypes.String
	case pages.Integer:
		signed := [...]arrow.DataType{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32,
			arrow.PrimitiveTypes.Int64}
		unsigned := [...]arrow.DataType{arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16,
			arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64}
		for i, bits := range []int8{8, 16, 32, 64} {
			if bits == l.Bits && l.Unsigned {
				return unsigned[i]
			} else if bits == l.Bits {
				return signed[i]
			}
		}
		return nil
	case pages.Decimal:
		if l.Precision > 38 {
			return &arrow.Decimal256Type{Precision: l.Precision, Scale: l.Scale}
		}
		return &arrow.Decimal128Type{Precision: l.Precision, Scale: l.Scale}
	case pages.Date:
		return arrow.FixedWidthTypes.Date32
	case pages.Time:
		if l.Unit == pages.Millis {
			return arrow.FixedWidthTypes.Time32ms
		}
		return &arrow.Time64Type{Unit: units[l.Unit]}
	case pages.Timestamp:
		t := &arrow.TimestampType{Unit: units[l.Unit]}
		if l.UTC {
			t.TimeZone = "UTC"
		}
		return t
	case pages.Half:
		return arrow.FixedWidthTypes.Float16
	case pages.Null:
		return arrow.Null
	}
	switch n.typ.kind {
	case pages.Boolean:
		return arrow.FixedWidthTypes.Boolean
	case pages.Int32:
		return arrow.PrimitiveTypes.Int32
	case pages.Int64:
		if n.typ.duration != pages.NoUnit {
			return &arrow.DurationType{Unit: units[n.typ.duration]}
		}
		return arrow.PrimitiveTypes.Int64
	case pages.Int96:
		return arrow.FixedWidthTypes.Timestamp_ns
	case pages.Float:
		return arrow.PrimitiveTypes.Float32
	case pages.Double:
		return arrow.PrimitiveTypes.Float64
	case pages.ByteArray:
		return arrow.BinaryTypes.Binary
	}
	return &arrow.FixedSizeBinaryType{ByteWidth: int(n.typ.length)}
}

// arrowBuilder puts one nested value together, as [assembler] does for JSON.
type arrowBuilder struct{ assembler }

// buildArrow appends a record's value of a column.
func buildArrow(b array.Builder, n *node, r Record) error {
	a := arrowBuilder{assembler{base: n.first}}
	for _, leaf := range n.leafNodes() {
		a.cols = append(a.cols, r.cells(leaf))
	}
	a.add(b, n, 0)
	return a.err
}

// add appends the value of n, whose parent is at repetition level rep.
func (a *arrowBuilder) add(b array.Builder, n *node, rep uint8) {
	v := a.peek(n)
	switch {
	case v == nil:
		return
	case n.rep == repeated:
		list := b.(*array.ListBuilder)
		list.Append(true)
		a.each(n, rep, func() { a.there(list.ValueBuilder(), n, rep+1) })
	case n.rep == optional && v.def < n.maxDef:
		a.skip(n)
		b.AppendNull()
	default:
		a.there(b, n, rep)
	}
}

// there appends a value that is there.
func (a *arrowBuilder) there(b array.Builder, n *node, rep uint8) {
	switch {
	case n.leaf:
		c := a.peek(n)
		if c == nil {
			return
		}
		v := c.value
		c.next()
		if v == nil {
			b.AppendNull()
			return
		}
		if err := appendLeaf(b, n.typ.kind, v); err != nil {
			a.fail(err)
		}
	case n.isList():
		list := b.(*array.ListBuilder)
		list.Append(true)
		elem := element(n.child(0))
		a.each(n.child(0), rep, func() {
			if elem == n.child(0) {
				a.there(list.ValueBuilder(), elem, rep+1)
			} else {
				a.add(list.ValueBuilder(), elem, rep+1)
			}
		})
	case n.isMap():
		m := b.(*array.MapBuilder)
		m.Append(true)
		a.each(n.child(0), rep, func() {
			a.add(m.KeyBuilder(), n.child(0).child(0), rep+1)
			a.add(m.ItemBuilder(), n.child(0).child(1), rep+1)
		})
	default:
		s := b.(*array.StructBuilder)
		s.Append(true)
		for i := range n.fields {
			a.add(s.FieldBuilder(i), n.child(i), rep)
		}
	}
}

// appendLeaf appends a packed value to a builder of the type of [arrowLeaf].
func appendLeaf(b array.Builder, kind pages.Kind, packed []byte) error {
	v := libraryValue(kind, packed)
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.Boolean())
	case *array.Int8Builder:
		b.Append(int8(v.Int32()))
	case *array.Int16Builder:
		b.Append(int16(v.Int32()))
	case *array.Int32Builder:
		b.Append(v.Int32())
	case *array.Int64Builder:
		b.Append(v.Int64())
	case *array.Uint8Builder:
		b.Append(uint8(v.Int32()))
	case *array.Uint16Builder:
		b.Append(uint16(v.Int32()))
	case *array.Uint32Builder:
		b.Append(uint32(v.Int32()))
	case *array.Uint64Builder:
		b.Append(uint64(v.Int64()))
	case *array.Float16Builder:
		b.Append(float16.FromLEBytes(v.ByteArray()))
	case *array.Float32Builder:
		b.Append(v.Float())
	case *array.Float64Builder:
		b.Append(v.Double())
	case *array.StringBuilder:
		b.Append(string(v.ByteArray()))
	case *array.BinaryBuilder:
		b.Append(v.ByteArray())
	case *array.FixedSizeBinaryBuilder:
		b.Append(v.ByteArray())
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.Int32()))
	case *array.Time32Builder:
		b.Append(arrow.Time32(v.Int32()))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.Int64()))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(v.Int64()))
	case *array.TimestampBuilder:
		if kind == pages.Int96 {
			day, ns := int96(packed)
			b.Append(arrow.Timestamp(time.Unix(day*86400, ns).UnixNano()))
			return nil
		}
		b.Append(arrow.Timestamp(v.Int64()))
	case *array.Decimal128Builder:
		n := unscaled(kind, packed)
		if n.BitLen() > 127 {
			return errors.New("a decimal has more digits than its type")
		}
		b.Append(decimal128.FromBigInt(n))
	case *array.Decimal256Builder:
		n := unscaled(kind, packed)
		if n.BitLen() > 255 {
			return errors.New("a decimal has more digits than its type")
		}
		b.Append(decimal256.FromBigInt(n))
	default:
		return fmt.Errorf("no builder for %s", v.Kind())
	}
	return nil
}
