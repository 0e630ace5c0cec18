package datasets

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// arrowColumn is one field of a struct as an Arrow column.
type arrowColumn struct {
	field arrow.Field
	index int // of the struct's field
	dict  bool
}

// arrowColumns returns the columns of a struct type by its `arrow:"name,dict"`
// tags; fields without one, or named "-", are left out.
func arrowColumns(t reflect.Type) ([]arrowColumn, error) {
	var cols []arrowColumn
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("arrow"), ",")
		if tag[0] == "" || tag[0] == "-" {
			continue
		}
		c := arrowColumn{index: i, dict: slices.Contains(tag[1:], "dict")}
		typ, err := arrowType(f.Type)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		if c.dict {
			typ = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: typ}
		}
		c.field = arrow.Field{Name: tag[0], Type: typ}
		cols = append(cols, c)
	}
	return cols, nil
}

func arrowType(t reflect.Type) (arrow.DataType, error) {
	switch t.Kind() {
	case reflect.Bool:
		return arrow.FixedWidthTypes.Boolean, nil
	case reflect.Int8:
		return arrow.PrimitiveTypes.Int8, nil
	case reflect.Int16:
		return arrow.PrimitiveTypes.Int16, nil
	case reflect.Int32:
		return arrow.PrimitiveTypes.Int32, nil
	case reflect.Int64:
		return arrow.PrimitiveTypes.Int64, nil
	case reflect.Uint8:
		return arrow.PrimitiveTypes.Uint8, nil
	case reflect.Uint32:
		return arrow.PrimitiveTypes.Uint32, nil
	case reflect.Uint64:
		return arrow.PrimitiveTypes.Uint64, nil
	case reflect.Float32:
		return arrow.PrimitiveTypes.Float32, nil
	case reflect.Float64:
		return arrow.PrimitiveTypes.Float64, nil
	case reflect.String:
		return arrow.BinaryTypes.String, nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return arrow.BinaryTypes.LargeBinary, nil
		}
		elem, err := arrowType(t.Elem())
		if err != nil {
			return nil, err
		}
		return arrow.ListOfNonNullable(elem), nil
	}
	return nil, fmt.Errorf("no Arrow type for %v", t)
}

// batchArrow is the rows of a record batch. Dictionaries grow from batch to
// batch, which the file format allows as deltas.
const batchArrow = 1 << 16

// arrowWriter writes structs as record batches of an Arrow IPC file.
type arrowWriter[T any] struct {
	cols    []arrowColumn
	builder *array.RecordBuilder
	out     *ipc.FileWriter
	rows    int // in builder
}

func newArrowWriter[T any](w io.WriteSeeker, meta map[string]string) (*arrowWriter[T], error) {
	cols, err := arrowColumns(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = c.field
	}
	md := arrow.MetadataFrom(meta)
	schema := arrow.NewSchema(fields, &md)
	mem := memory.NewGoAllocator()
	out, err := ipc.NewFileWriter(w, ipc.WithSchema(schema), ipc.WithAllocator(mem), ipc.WithZstd())
	if err != nil {
		return nil, err
	}
	a := &arrowWriter[T]{cols: cols, builder: array.NewRecordBuilder(mem, schema), out: out}
	return a, nil
}

func (a *arrowWriter[T]) write(rows []T) error {
	for len(rows) > 0 {
		n := min(len(rows), batchArrow-a.rows)
		part := reflect.ValueOf(rows[:n])
		for i, c := range a.cols {
			b := a.builder.Field(i)
			b.Reserve(n)
			for r := range n {
				if err := appendArrow(b, part.Index(r).Field(c.index)); err != nil {
					return fmt.Errorf("column %q: %w", c.field.Name, err)
				}
			}
		}
		a.rows += n
		rows = rows[n:]
		if a.rows == batchArrow {
			if err := a.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func appendArrow(b array.Builder, v reflect.Value) error {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.Bool())
	case *array.Int8Builder:
		b.Append(int8(v.Int()))
	case *array.Int16Builder:
		b.Append(int16(v.Int()))
	case *array.Int32Builder:
		b.Append(int32(v.Int()))
	case *array.Int64Builder:
		b.Append(v.Int())
	case *array.Uint8Builder:
		b.Append(uint8(v.Uint()))
	case *array.Uint32Builder:
		b.Append(uint32(v.Uint()))
	case *array.Uint64Builder:
		b.Append(v.Uint())
	case *array.Float32Builder:
		b.Append(float32(v.Float()))
	case *array.Float64Builder:
		b.Append(v.Float())
	case *array.StringBuilder:
		b.Append(v.String())
	case *array.BinaryBuilder:
		b.Append(v.Bytes())
	case *array.BinaryDictionaryBuilder:
		return b.AppendString(v.String())
	case *array.ListBuilder:
		b.Append(true)
		for i := range v.Len() {
			if err := appendArrow(b.ValueBuilder(), v.Index(i)); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("no builder for %v", v.Type())
	}
	return nil
}

func (a *arrowWriter[T]) flush() error {
	rec := a.builder.NewRecord()
	defer rec.Release()
	a.rows = 0
	return a.out.Write(rec)
}

func (a *arrowWriter[T]) close() error {
	var err error
	if a.rows > 0 {
		err = a.flush()
	}
	a.builder.Release()
	if cerr := a.out.Close(); err == nil {
		err = cerr
	}
	return err
}
