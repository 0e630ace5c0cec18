package datasets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/parquet-go/parquet-go"

	"glmbatch/datasets/pages"
)

// arrowNode is a column for an Arrow field, as Arrow's own writers have it.
func arrowNode(f arrow.Field) (*node, error) {
	if !utf8.ValidString(f.Name) {
		return nil, errors.New("its name is not UTF-8")
	}
	n := &node{name: f.Name}
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
	group := func(class pages.Class, fields ...*node) {
		n.logical = class
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
		entries := &node{name: "key_value", rep: repeated, fields: []parquet.Field{key, value}}
		group(pages.Map, entries)
		return n, nil
	case arrow.ListLikeType:
		elem := t.ElemField()
		elem.Name = "element"
		e, err := arrowNode(elem)
		if err != nil {
			return nil, err
		}
		list := &node{name: "list", rep: repeated, fields: []parquet.Field{e}}
		group(pages.List, list)
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
		group(pages.Plain, fields...)
		return n, nil
	}
	n.leaf = true
	var ok bool
	if n.typ, ok = parquetLeaf(typ); !ok {
		return nil, fmt.Errorf("the Arrow type %s cannot be read", typ)
	}
	return n, nil
}

// parquetLeaf is the Parquet type that holds all values of an Arrow type.
func parquetLeaf(typ arrow.DataType) (leafType, bool) {
	units := [...]pages.Unit{arrow.Second: pages.Millis, arrow.Millisecond: pages.Millis,
		arrow.Microsecond: pages.Micros, arrow.Nanosecond: pages.Nanos}
	plain := func(kind pages.Kind) (leafType, bool) { return leafType{kind: kind}, true }
	integer := func(unsigned bool) (leafType, bool) {
		bits := typ.(arrow.FixedWidthDataType).BitWidth()
		t := leafType{kind: pages.Int32, logical: pages.Logical{Class: pages.Integer, Bits: int8(bits),
			Unsigned: unsigned}}
		if bits == 64 {
			t.kind = pages.Int64
		}
		return t, true
	}
	timed := func(kind pages.Kind, class pages.Class, unit pages.Unit, utc bool) (leafType, bool) {
		return leafType{kind: kind, logical: pages.Logical{Class: class, Unit: unit, UTC: utc}}, true
	}
	switch t := typ.(type) {
	case *arrow.NullType:
		return leafType{kind: pages.Int32, logical: pages.Logical{Class: pages.Null}}, true
	case *arrow.BooleanType:
		return plain(pages.Boolean)
	case *arrow.Int8Type, *arrow.Int16Type:
		return integer(false)
	case *arrow.Int32Type:
		return plain(pages.Int32)
	case *arrow.Int64Type, *arrow.DurationType:
		return plain(pages.Int64)
	case *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type:
		return integer(true)
	case *arrow.Float16Type:
		return leafType{kind: pages.FixedLenByteArray, length: 2, logical: pages.Logical{Class: pages.Half}}, true
	case *arrow.Float32Type:
		return plain(pages.Float)
	case *arrow.Float64Type:
		return plain(pages.Double)
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return textType, true
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return plain(pages.ByteArray)
	case *arrow.FixedSizeBinaryType:
		return leafType{kind: pages.FixedLenByteArray, length: int32(t.ByteWidth)}, t.ByteWidth > 0
	case *arrow.Date32Type, *arrow.Date64Type:
		return leafType{kind: pages.Int32, logical: pages.Logical{Class: pages.Date}}, true
	case *arrow.Time32Type:
		return timed(pages.Int32, pages.Time, units[t.Unit], true)
	case *arrow.Time64Type:
		return timed(pages.Int64, pages.Time, units[t.Unit], true)
	case *arrow.TimestampType:
		return timed(pages.Int64, pages.Timestamp, units[t.Unit], t.TimeZone != "")
	case *arrow.Decimal128Type:
		return decimalType(t.Precision, t.Scale)
	case *arrow.Decimal256Type:
		return decimalType(t.Precision, t.Scale)
	}
	return leafType{}, false
}

// decimalType is that of decimals in as many bytes as they need.
func decimalType(precision, scale int32) (leafType, bool) {
	if precision < 1 || precision > 76 || scale < 0 || scale > precision {
		return leafType{}, false
	}
	return leafType{kind: pages.FixedLenByteArray, length: int32(decimalBytes(precision)),
		logical: pages.Logical{Class: pages.Decimal, Precision: precision, Scale: scale}}, true
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

// arrowValue is value i of an array of leaves, which is not null, packed as in a [Record].
func arrowValue(a arrow.Array, i int) ([]byte, error) {
	le := binary.LittleEndian
	int32Of := func(v int32) ([]byte, error) { return le.AppendUint32(nil, uint32(v)), nil }
	int64Of := func(v int64) ([]byte, error) { return le.AppendUint64(nil, uint64(v)), nil }
	bytesOf := func(v []byte) ([]byte, error) { return append([]byte{}, v...), nil } // never nil, which is null
	switch a := a.(type) {
	case *array.Boolean:
		if a.Value(i) {
			return []byte{1}, nil
		}
		return []byte{0}, nil
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
		return le.AppendUint16(nil, a.Value(i).Uint16()), nil
	case *array.Float32:
		return le.AppendUint32(nil, math.Float32bits(a.Value(i))), nil
	case *array.Float64:
		return le.AppendUint64(nil, math.Float64bits(a.Value(i))), nil
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
		return bytesOf(a.Value(i))
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
				return nil, fmt.Errorf("the time of %d seconds cannot be stored", v)
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
	return nil, fmt.Errorf("values of the Arrow type %s cannot be read", a.DataType())
}

func decimalValue(v *big.Int, n int) ([]byte, error) {
	if v.BitLen() > 8*n-1 {
		return nil, errors.New("a decimal has more digits than its type")
	}
	return signedBytes(v, n), nil
}
