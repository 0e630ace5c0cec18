package datasets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// arrowNode is a column for an Arrow field, as Arrow's own writers have it.
func arrowNode(f arrow.Field) (*node, error) {
	n := &node{name: f.Name, enc: &parquet.Plain}
	if f.Nullable || f.Type.ID() == arrow.NULL {
		n.rep = optional
	}
	typ := f.Type
	for {
		if d, ok := typ.(*arrow.DictionaryType); ok {
			typ = d.ValueType
		} else if e, ok := typ.(arrow.ExtensionType); ok {
			typ = e.StorageType()
		} else {
			break
		}
	}
	group := func(t parquet.Type, fields ...*node) {
		n.typ, n.stored = t, t
		for _, c := range fields {
			n.fields = append(n.fields, c)
		}
	}
	switch t := typ.(type) {
	case *arrow.MapType:
		key, err := arrowNode(arrow.Field{Name: "key", Type: t.KeyType()})
		if err != nil {
			return nil, err
		}
		value, err := arrowNode(arrow.Field{Name: "value", Type: t.ItemType(), Nullable: t.ItemField().Nullable})
		if err != nil {
			return nil, err
		}
		entries := &node{name: "key_value", rep: repeated, typ: parquet.Group{}.Type(), stored: parquet.Group{}.Type(), fields: []parquet.Field{key, value}}
		group(parquet.Map(parquet.String(), parquet.String()).Type(), entries)
		return n, nil
	case arrow.ListLikeType:
		elem := t.ElemField()
		elem.Name = "element"
		e, err := arrowNode(elem)
		if err != nil {
			return nil, err
		}
		list := &node{name: "list", rep: repeated, typ: parquet.Group{}.Type(), stored: parquet.Group{}.Type(), fields: []parquet.Field{e}}
		group(parquet.List(parquet.String()).Type(), list)
		return n, nil
	case *arrow.StructType:
		var fields []*node
		for _, c := range t.Fields() {
			child, err := arrowNode(c)
			if err != nil {
				return nil, fmt.Errorf("field %q: %w", c.Name, err)
			}
			fields = append(fields, child)
		}
		if len(fields) == 0 {
			return nil, errors.New("structs without fields cannot be stored")
		}
		group(parquet.Group{}.Type(), fields...)
		return n, nil
	}
	n.leaf = true
	if n.typ = leafType(typ); n.typ == nil {
		return nil, fmt.Errorf("the Arrow type %s cannot be read", typ)
	}
	n.stored = n.typ
	switch typ.ID() {
	case arrow.NULL:
		n.stored = annotated{Type: parquet.Int32Type, logical: &format.LogicalType{Value: &format.NullType{}}}
	case arrow.FLOAT16:
		n.stored = annotated{Type: n.typ, logical: &format.LogicalType{Value: &format.Float16Type{}}}
	}
	return n, nil
}

// leafType is the Parquet type that holds all values of an Arrow type; nil: none does.
func leafType(typ arrow.DataType) parquet.Type {
	units := map[arrow.TimeUnit]parquet.TimeUnit{arrow.Second: parquet.Millisecond, arrow.Millisecond: parquet.Millisecond, arrow.Microsecond: parquet.Microsecond, arrow.Nanosecond: parquet.Nanosecond}
	switch t := typ.(type) {
	case *arrow.NullType:
		return parquet.NullType
	case *arrow.BooleanType:
		return parquet.BooleanType
	case *arrow.Int8Type, *arrow.Int16Type:
		return parquet.Int(t.(arrow.FixedWidthDataType).BitWidth()).Type()
	case *arrow.Int32Type:
		return parquet.Int32Type
	case *arrow.Int64Type, *arrow.DurationType:
		return parquet.Int64Type
	case *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type:
		return parquet.Uint(t.(arrow.FixedWidthDataType).BitWidth()).Type()
	case *arrow.Float16Type:
		return parquet.FixedLenByteArrayType(2)
	case *arrow.Float32Type:
		return parquet.FloatType
	case *arrow.Float64Type:
		return parquet.DoubleType
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return parquet.String().Type()
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return parquet.ByteArrayType
	case *arrow.FixedSizeBinaryType:
		return parquet.FixedLenByteArrayType(t.ByteWidth)
	case *arrow.Date32Type, *arrow.Date64Type:
		return parquet.Date().Type()
	case *arrow.Time32Type:
		return parquet.Time(units[t.Unit]).Type()
	case *arrow.Time64Type:
		return parquet.Time(units[t.Unit]).Type()
	case *arrow.TimestampType:
		return parquet.TimestampAdjusted(units[t.Unit], t.TimeZone != "").Type()
	case *arrow.Decimal128Type:
		return decimalType(t.Precision, t.Scale)
	case *arrow.Decimal256Type:
		return decimalType(t.Precision, t.Scale)
	}
	return nil
}

// decimalType is that of decimals in as many bytes as they need.
func decimalType(precision, scale int32) parquet.Type {
	if precision < 1 || precision > 76 || scale < 0 || scale > precision {
		return nil
	}
	return parquet.Decimal(int(scale), int(precision), parquet.FixedLenByteArrayType(decimalBytes(precision))).Type()
}

func decimalBytes(precision int32) int {
	most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	return most.BitLen()/8 + 1
}

// signedBytes is a whole number in n bytes, big-endian two's complement.
func signedBytes(v *big.Int, n int) []byte {
	if v.Sign() < 0 {
		v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	return v.FillBytes(make([]byte, n))
}

// arrowValue is value i of an array of leaves, which is not null.
func arrowValue(a arrow.Array, i int) (parquet.Value, error) {
	int32Of := func(v int32) (parquet.Value, error) { return parquet.Int32Value(v), nil }
	int64Of := func(v int64) (parquet.Value, error) { return parquet.Int64Value(v), nil }
	bytesOf := func(v []byte) (parquet.Value, error) { return parquet.ByteArrayValue(v), nil }
	switch a := a.(type) {
	case *array.Boolean:
		return parquet.BooleanValue(a.Value(i)), nil
	case *array.Int8:
		return int32Of(int32(a.Value(i)))
	case *array.Int16:
		return int32Of(int32(a.Value(i)))
	case *array.Int32:
		return int32Of(a.Value(i))
	case *array.Int64:
		return int64Of(a.Value(i))
	case *array.Uint8:
		return int32Of(int32(a.Value(i)))
	case *array.Uint16:
		return int32Of(int32(a.Value(i)))
	case *array.Uint32:
		return int32Of(int32(a.Value(i)))
	case *array.Uint64:
		return int64Of(int64(a.Value(i)))
	case *array.Duration:
		return int64Of(int64(a.Value(i)))
	case *array.Float16:
		return parquet.FixedLenByteArrayValue(binary.LittleEndian.AppendUint16(nil, a.Value(i).Uint16())), nil
	case *array.Float32:
		return parquet.FloatValue(a.Value(i)), nil
	case *array.Float64:
		return parquet.DoubleValue(a.Value(i)), nil
	case *array.String:
		return bytesOf([]byte(a.Value(i)))
	case *array.LargeString:
		return bytesOf([]byte(a.Value(i)))
	case *array.StringView:
		return bytesOf([]byte(a.Value(i)))
	case *array.Binary:
		return bytesOf(a.Value(i))
	case *array.LargeBinary:
		return bytesOf(a.Value(i))
	case *array.BinaryView:
		return bytesOf(a.Value(i))
	case *array.FixedSizeBinary:
		return parquet.FixedLenByteArrayValue(a.Value(i)), nil
	case *array.Date32:
		return int32Of(int32(a.Value(i)))
	case *array.Date64:
		return int32Of(int32(int64(a.Value(i)) / 86_400_000))
	case *array.Time32:
		v := int32(a.Value(i))
		if a.DataType().(*arrow.Time32Type).Unit == arrow.Second {
			v *= 1000
		}
		return int32Of(v)
	case *array.Time64:
		return int64Of(int64(a.Value(i)))
	case *array.Timestamp:
		v := int64(a.Value(i))
		if a.DataType().(*arrow.TimestampType).Unit == arrow.Second {
			if v > 1<<53 || v < -1<<53 {
				return parquet.Value{}, fmt.Errorf("the time of %d seconds cannot be stored", v)
			}
			v *= 1000
		}
		return int64Of(v)
	case *array.Decimal128:
		n := decimalBytes(a.DataType().(*arrow.Decimal128Type).Precision)
		return decimalValue(a.Value(i).BigInt(), n)
	case *array.Decimal256:
		n := decimalBytes(a.DataType().(*arrow.Decimal256Type).Precision)
		return decimalValue(a.Value(i).BigInt(), n)
	}
	return parquet.Value{}, fmt.Errorf("values of the Arrow type %s cannot be read", a.DataType())
}

func decimalValue(v *big.Int, n int) (parquet.Value, error) {
	if v.BitLen() > 8*n-1 {
		return parquet.Value{}, errors.New("a decimal has more digits than its type")
	}
	return parquet.FixedLenByteArrayValue(signedBytes(v, n)), nil
}
