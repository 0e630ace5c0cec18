package datasets

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"glmbatch/datasets/pages"
)

// maxBound is the longest minimum or maximum of a column that a footer keeps.
// The library puts whole values there, and other readers refuse a file whose
// footer holds a text of many MiB.
const maxBound = 1 << 10

// fileMeta is a footer as it is written. The library's own has no place for a field
// id of 0.
type fileMeta struct {
	Version          int32                            `thrift:"1,required"`
	Schema           thrift.Slice[schemaElement]      `thrift:"2,required"`
	NumRows          int64                            `thrift:"3,required"`
	RowGroups        thrift.Slice[format.RowGroup]    `thrift:"4,required"`
	KeyValueMetadata thrift.Slice[format.KeyValue]    `thrift:"5,optional"`
	CreatedBy        string                           `thrift:"6,optional"`
	ColumnOrders     thrift.Slice[format.ColumnOrder] `thrift:"7,optional"`
}

type schemaElement struct {
	Type           thrift.Null[format.Type]                `thrift:"1,optional"`
	TypeLength     thrift.Null[int32]                      `thrift:"2,optional"`
	RepetitionType thrift.Null[format.FieldRepetitionType] `thrift:"3,optional"`
	Name           string                                  `thrift:"4,required"`
	NumChildren    thrift.Null[int32]                      `thrift:"5,optional"`
	ConvertedType  thrift.Null[deprecated.ConvertedType]   `thrift:"6,optional"`
	Scale          thrift.Null[int32]                      `thrift:"7,optional"`
	Precision      thrift.Null[int32]                      `thrift:"8,optional"`
	FieldID        thrift.Null[int32]                      `thrift:"9,optional"`
	LogicalType    format.LogicalType                      `thrift:"10,optional"`
}

// ownElement is an element of the library's schema, which has no field ids.
func ownElement(e format.SchemaElement) schemaElement {
	return schemaElement{Type: e.Type, TypeLength: e.TypeLength, RepetitionType: e.RepetitionType, Name: e.Name,
		NumChildren:   e.NumChildren,
		ConvertedType: e.ConvertedType, Scale: e.Scale, Precision: e.Precision, LogicalType: e.LogicalType}
}

// rewriteFooter writes the footer of a complete file again, as meta.
func rewriteFooter(a *Aside, meta *fileMeta) error {
	if err := a.buf.Flush(); err != nil {
		return err
	}
	size, err := a.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	var tail [8]byte // length of the footer, magic
	if _, err := a.file.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return err
	}
	at := size - int64(len(tail)) - int64(binary.LittleEndian.Uint32(tail[:]))
	if at < int64(len(parquetMagic)) {
		return fmt.Errorf("a footer of %d bytes in a file of %d", binary.LittleEndian.Uint32(tail[:]), size)
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(tail[:], uint32(len(footer)))
	if err := a.file.Truncate(at); err != nil {
		return err
	}
	_, err = a.file.WriteAt(append(footer, tail[:]...), at)
	return err
}

// footer is the library's footer with what the library does not know: the schema of
// the input as its file has it, and bounds by what values mean.
func (p *Part) footer(meta *format.FileMetaData) *fileMeta {
	own := &fileMeta{Version: meta.Version, NumRows: meta.NumRows, RowGroups: meta.RowGroups,
		KeyValueMetadata: meta.KeyValueMetadata,
		CreatedBy:        meta.CreatedBy, ColumnOrders: meta.ColumnOrders}
	for i, n := range p.o.root.elements(nil) {
		e := ownElement(meta.Schema[i])
		if i > 0 && n.ours == nil { // the root stays the library's
			e = n.element(e)
		}
		own.Schema = append(own.Schema, e)
	}
	for g := range meta.RowGroups {
		columns := meta.RowGroups[g].Columns
		for i := range columns {
			c := &columns[i]
			if i >= p.o.inputs || g >= len(p.groups) {
				trimBounds(&c.MetaData.Statistics)
				continue
			}
			b := &p.groups[g][i]
			b.put(&c.MetaData)
			if b.odd || !byPhysical(b.typ) {
				c.ColumnIndexOffset, c.ColumnIndexLength = 0, 0
			}
		}
	}
	return own
}

// elements lists a tree's nodes as footers do.
func (n *node) elements(all []*node) []*node {
	all = append(all, n)
	for i := range n.fields {
		all = n.child(i).elements(all)
	}
	return all
}

// element returns a node of an input as its file describes it. physical is what
// the library makes of it.
func (n *node) element(physical schemaElement) schemaElement {
	e := physical
	if n.elem != nil {
		known := schemaElement{}
		err := guard(func() error { return thrift.Unmarshal(new(thrift.CompactProtocol), n.elem.Raw, &known) })
		if err == nil {
			e = known
		}
	} else if n.leaf {
		n.typ.annotate(&e)
	} else if n.logical == pages.List {
		e.LogicalType.Value, e.ConvertedType = &format.ListType{}, thrift.New(deprecated.List)
	} else if n.logical == pages.Map {
		e.LogicalType.Value, e.ConvertedType = &format.MapType{}, thrift.New(deprecated.Map)
	}
	e.Name, e.RepetitionType, e.NumChildren = physical.Name, physical.RepetitionType, physical.NumChildren
	e.Type, e.TypeLength = physical.Type, physical.TypeLength
	return e
}

// annotate writes the annotations of a type that several files' types made.
func (t leafType) annotate(e *schemaElement) {
	l := t.logical
	units := [...]format.TimeUnit{{}, {}, {Value: &format.MilliSeconds{}}, {Value: &format.MicroSeconds{}},
		{Value: &format.NanoSeconds{}}}
	converted := func(c deprecated.ConvertedType) { e.ConvertedType = thrift.New(c) }
	switch l.Class {
	case pages.String:
		e.LogicalType.Value = &format.StringType{}
		converted(deprecated.UTF8)
	case pages.JSON:
		e.LogicalType.Value = &format.JsonType{}
		converted(deprecated.Json)
	case pages.Date:
		e.LogicalType.Value = &format.DateType{}
		converted(deprecated.Date)
	case pages.Half:
		e.LogicalType.Value = &format.Float16Type{}
	case pages.Null:
		e.LogicalType.Value = &format.NullType{}
	case pages.Integer:
		e.LogicalType.Value = &format.IntType{BitWidth: l.Bits, IsSigned: !l.Unsigned}
		order := map[int8]deprecated.ConvertedType{8: deprecated.Int8, 16: deprecated.Int16, 32: deprecated.Int32,
			64: deprecated.Int64}
		if l.Unsigned {
			order = map[int8]deprecated.ConvertedType{8: deprecated.Uint8, 16: deprecated.Uint16, 32: deprecated.Uint32,
				64: deprecated.Uint64}
		}
		converted(order[l.Bits])
	case pages.Decimal:
		e.LogicalType.Value = &format.DecimalType{Precision: l.Precision, Scale: l.Scale}
		e.Precision, e.Scale = thrift.New(l.Precision), thrift.New(l.Scale)
		converted(deprecated.Decimal)
	case pages.Timestamp:
		e.LogicalType.Value = &format.TimestampType{IsAdjustedToUTC: l.UTC, Unit: units[l.Unit]}
	case pages.Time:
		e.LogicalType.Value = &format.TimeType{IsAdjustedToUTC: l.UTC, Unit: units[l.Unit]}
	}
}

// trimBounds removes bounds that are long.
func trimBounds(s *format.Statistics) {
	if len(s.MinValue) > maxBound || len(s.MaxValue) > maxBound {
		s.MinValue, s.MaxValue = nil, nil
	}
}
