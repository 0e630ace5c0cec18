package datasets

import (
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/decimal128"
	"github.com/apache/arrow/go/v17/arrow/decimal256"
	"github.com/apache/arrow/go/v17/arrow/float16"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// WriteArrow writes all rows to w as an Arrow IPC stream. Types are those that the
// files' own types have in Arrow.
func (in *Input) WriteArrow(w io.Writer) error {
	fields := make([]arrow.Field, len(in.root.fields))
	for i := range fields {
		f, err := arrowField(in.root.child(i))
		if err != nil {
			return badFile(in.Paths(), fmt.Errorf("column %q: %w", in.root.child(i).name, err))
		}
		fields[i] = f
	}
	schema := arrow.NewSchema(fields, nil)
	mem := memory.NewGoAllocator()
	out := ipc.NewWriter(w, ipc.WithSchema(schema), ipc.WithAllocator(mem))
	b := array.NewRecordBuilder(mem, schema)
	r := in.Reader(0, in.Rows)
	defer r.Close()
	for {
		records, err := r.Read()
		if err == io.EOF {
			return out.Close()
		}
		if err != nil {
			return err
		}
		err = guard(func() error {
			for _, rec := range records {
				for i := range fields {
					if err := buildArrow(b.Field(i), in.root.child(i), rec); err != nil {
						return fmt.Errorf("column %q: %w", fields[i].Name, err)
					}
				}
			}
			return nil
		})
		if err != nil {
			return badFile(in.Paths(), err)
		}
		if err := out.Write(b.NewRecord()); err != nil {
			return err
		}
	}
}

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
	case isList(n):
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
	case isMap(n):
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

func isList(n *node) bool {
	return len(n.fields) == 1 && n.child(0).rep == repeated && isLogical(n, "LIST")
}

func isMap(n *node) bool {
	return len(n.fields) == 1 && n.child(0).rep == repeated && len(n.child(0).fields) == 2 && isLogical(n, "MAP")
}

// arrowLeaf is the Arrow type of a leaf; nil: there is none.
func arrowLeaf(n *node) arrow.DataType {
	if n.isNull() {
		return arrow.Null
	}
	if isHalf(n) {
		return arrow.FixedWidthTypes.Float16
	}
	var logical any
	if lt := n.typ.LogicalType(); lt != nil {
		logical = lt.Value
	}
	unit := func(u format.TimeUnit) arrow.TimeUnit {
		switch u.Value.(type) {
		case *format.MilliSeconds:
			return arrow.Millisecond
		case *format.MicroSeconds:
			return arrow.Microsecond
		}
		return arrow.Nanosecond
	}
	switch t := logical.(type) {
	case *format.IntType:
		ints := map[int8][2]arrow.DataType{8: {arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Int8}, 16: {arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int16},
			32: {arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Int32}, 64: {arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Int64}}
		if t.IsSigned {
			return ints[t.BitWidth][1]
		}
		return ints[t.BitWidth][0]
	case *format.DecimalType:
		if t.Precision > 38 {
			return &arrow.Decimal256Type{Precision: t.Precision, Scale: t.Scale}
		}
		return &arrow.Decimal128Type{Precision: t.Precision, Scale: t.Scale}
	case *format.DateType:
		return arrow.FixedWidthTypes.Date32
	case *format.TimeType:
		if u := unit(t.Unit); u != arrow.Millisecond {
			return &arrow.Time64Type{Unit: u}
		}
		return arrow.FixedWidthTypes.Time32ms
	case *format.TimestampType:
		typ := &arrow.TimestampType{Unit: unit(t.Unit)}
		if t.IsAdjustedToUTC {
			typ.TimeZone = "UTC"
		}
		return typ
	case *format.StringType, *format.EnumType, *format.JsonType:
		return arrow.BinaryTypes.String
	}
	switch n.typ.Kind() {
	case parquet.Boolean:
		return arrow.FixedWidthTypes.Boolean
	case parquet.Int32:
		return arrow.PrimitiveTypes.Int32
	case parquet.Int64:
		return arrow.PrimitiveTypes.Int64
	case parquet.Int96:
		return arrow.FixedWidthTypes.Timestamp_ns
	case parquet.Float:
		return arrow.PrimitiveTypes.Float32
	case parquet.Double:
		return arrow.PrimitiveTypes.Float64
	case parquet.ByteArray:
		return arrow.BinaryTypes.Binary
	case parquet.FixedLenByteArray:
		return &arrow.FixedSizeBinaryType{ByteWidth: n.typ.Length()}
	}
	return nil
}

// arrowBuilder puts one nested value together, as [assembler] does for JSON.
type arrowBuilder struct{ assembler }

// buildArrow appends a record's value of a column.
func buildArrow(b array.Builder, n *node, r Record) error {
	a := arrowBuilder{assembler{pos: make([]int, n.leaves), cols: make([][]parquet.Value, n.leaves), base: n.first}}
	for i := range a.cols {
		a.cols[i] = r.column(n.first + i)
	}
	a.add(b, n, 0)
	return a.err
}

// add appends the value of n, whose parent is at repetition level rep.
func (a *arrowBuilder) add(b array.Builder, n *node, rep int) {
	v, ok := a.peek(n)
	switch {
	case !ok:
		return
	case n.rep == repeated:
		list := b.(*array.ListBuilder)
		list.Append(true)
		a.each(n, rep, func() { a.there(list.ValueBuilder(), n, rep+1) })
	case n.rep == optional && v.DefinitionLevel() < n.maxDef:
		a.skip(n)
		b.AppendNull()
	default:
		a.there(b, n, rep)
	}
}

// there appends a value that is there.
func (a *arrowBuilder) there(b array.Builder, n *node, rep int) {
	switch {
	case n.leaf:
		v, _ := a.peek(n)
		a.skip(n)
		if v.IsNull() {
			b.AppendNull()
			return
		}
		if err := appendLeaf(b, v); err != nil {
			a.fail(err)
		}
	case isList(n):
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
	case isMap(n):
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

// appendLeaf appends a Parquet value to a builder of the type of [arrowLeaf].
func appendLeaf(b array.Builder, v parquet.Value) error {
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
	case *array.TimestampBuilder:
		if v.Kind() == parquet.Int96 {
			b.Append(arrow.Timestamp(int96Time(v.Int96()).UnixNano()))
			return nil
		}
		b.Append(arrow.Timestamp(v.Int64()))
	case *array.Decimal128Builder:
		n := decimalOf(v)
		if n.BitLen() > 127 {
			return errors.New("a decimal has more digits than its type")
		}
		b.Append(decimal128.FromBigInt(n))
	case *array.Decimal256Builder:
		n := decimalOf(v)
		if n.BitLen() > 255 {
			return errors.New("a decimal has more digits than its type")
		}
		b.Append(decimal256.FromBigInt(n))
	default:
		return fmt.Errorf("no builder for %s", v.Kind())
	}
	return nil
}

// decimalOf is a decimal without its scale.
func decimalOf(v parquet.Value) *big.Int {
	switch v.Kind() {
	case parquet.Int32:
		return big.NewInt(int64(v.Int32()))
	case parquet.Int64:
		return big.NewInt(v.Int64())
	}
	b := v.ByteArray()
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}
