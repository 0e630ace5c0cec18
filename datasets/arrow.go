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
	index []int // of the struct's field, through structs that are embedded
	dict  bool
}

// arrowColumns returns the columns of a struct type by its `arrow:"name,dict"`
// tags; fields without one, or named "-", are left out.
func arrowColumns(t reflect.Type) ([]arrowColumn, error) {
	var cols []arrowColumn
	for _, f := range reflect.VisibleFields(t) {
		tag := strings.Split(f.Tag.Get("arrow"), ",")
		if tag[0] == "" || tag[0] == "-" {
			continue
		}
		c := arrowColumn{index: f.Index, dict: slices.Contains(tag[1:], "dict")}
		of := f.Type
		if of.Kind() == reflect.Pointer { // null where nil
			of = of.Elem()
		}
		typ, err := arrowType(of)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		if c.dict {
			typ = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: typ}
		}
		c.field = arrow.Field{Name: tag[0], Type: typ, Nullable: f.Type.Kind() == reflect.Pointer}
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

const batchArrow = 1 << 16 // rows of a record batch

// arrowWriter writes structs as record batches of an Arrow IPC file. The format
// has one dictionary a column and it comes first, so a type with dictionaries
// keeps its batches in memory until the file is closed: [Parts] bounds them.
type arrowWriter[T any] struct {
	cols     []arrowColumn
	schema   *arrow.Schema
	mem      memory.Allocator
	builders []array.Builder // by column; of the indexes where there is a dictionary
	dicts    []*arrowDict    // by column; nil: none
	out      *ipc.FileWriter
	rows     int // in builders
	pending  []arrowBatch
}

type arrowBatch struct {
	arrays []arrow.Array
	rows   int
}

// arrowDict is the dictionary of one text column through the whole file.
type arrowDict struct {
	index  map[string]int32
	values *array.StringBuilder
}

func newArrowWriter[T any](w io.WriteSeeker, meta map[string]string) (*arrowWriter[T], error) {
	cols, err := arrowColumns(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	a := &arrowWriter[T]{cols: cols, mem: memory.NewGoAllocator(), dicts: make([]*arrowDict, len(cols))}
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = c.field
		if c.dict {
			a.dicts[i] = &arrowDict{index: map[string]int32{}, values: array.NewStringBuilder(a.mem)}
			a.builders = append(a.builders, array.NewInt32Builder(a.mem))
			continue
		}
		a.builders = append(a.builders, array.NewBuilder(a.mem, c.field.Type))
	}
	md := arrow.MetadataFrom(meta)
	a.schema = arrow.NewSchema(fields, &md)
	a.out, err = ipc.NewFileWriter(w, ipc.WithSchema(a.schema), ipc.WithAllocator(a.mem), ipc.WithZstd())
	return a, err
}

func (a *arrowWriter[T]) write(rows []T) error {
	for len(rows) > 0 {
		n := min(len(rows), batchArrow-a.rows)
		part := reflect.ValueOf(rows[:n])
		for i, c := range a.cols {
			a.builders[i].Reserve(n)
			for r := range n {
				v := part.Index(r).FieldByIndex(c.index)
				if d := a.dicts[i]; d != nil {
					a.builders[i].(*array.Int32Builder).Append(d.number(v.String()))
				} else if err := appendArrow(a.builders[i], v); err != nil {
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

func (d *arrowDict) number(s string) int32 {
	i, ok := d.index[s]
	if !ok {
		i = int32(len(d.index))
		d.index[strings.Clone(s)] = i
		d.values.Append(s)
	}
	return i
}

// flush ends a record batch.
func (a *arrowWriter[T]) flush() error {
	b := arrowBatch{arrays: make([]arrow.Array, len(a.cols)), rows: a.rows}
	wait := false
	for i := range a.cols {
		b.arrays[i] = a.builders[i].NewArray()
		wait = wait || a.dicts[i] != nil
	}
	a.rows = 0
	if wait {
		a.pending = append(a.pending, b)
		return nil
	}
	return a.out.Write(array.NewRecord(a.schema, b.arrays, int64(b.rows)))
}

func (a *arrowWriter[T]) close() error {
	if a.rows > 0 {
		if err := a.flush(); err != nil {
			return err
		}
	}
	values := make([]arrow.Array, len(a.cols))
	for i, d := range a.dicts {
		if d != nil {
			values[i] = d.values.NewArray()
		}
	}
	for _, b := range a.pending {
		for i, c := range a.cols {
			if values[i] != nil {
				b.arrays[i] = array.NewDictionaryArray(c.field.Type, b.arrays[i], values[i])
			}
		}
		if err := a.out.Write(array.NewRecord(a.schema, b.arrays, int64(b.rows))); err != nil {
			return err
		}
	}
	return a.out.Close()
}

func appendArrow(b array.Builder, v reflect.Value) error {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			b.AppendNull()
			return nil
		}
		v = v.Elem()
	}
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
