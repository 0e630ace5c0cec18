package datasets

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
)

// arrowFile is an open Arrow IPC file whose metadata have been checked.
type arrowFile struct {
	*ipc.FileReader
	disk *os.File
}

func openArrow(path string) (arrowFile, error) {
	disk, err := openRegular(path)
	if err != nil {
		return arrowFile{}, err
	}
	f := arrowFile{disk: disk}
	err = guard(func() error {
		info, err := disk.Stat()
		if err != nil {
			return err
		}
		if err := checkArrow(disk, info.Size()); err != nil {
			return err
		}
		if f.FileReader, err = ipc.NewFileReader(disk); err != nil {
			return fmt.Errorf("not an Arrow IPC file: %w", err)
		}
		return nil
	})
	if err != nil {
		disk.Close()
		return arrowFile{}, err
	}
	return f, nil
}

// Close ends the reader and closes the file.
func (f arrowFile) Close() error { return errors.Join(guard(f.FileReader.Close), f.disk.Close()) }

func readArrow[T any](path string, f func([]T) error) error {
	cols, err := arrowColumns(reflect.TypeFor[T]())
	if err != nil {
		return err
	}
	r, err := openArrow(path)
	if err != nil {
		return badFile(path, err)
	}
	defer r.Close()
	var rows []T
	for i := range r.NumRecords() {
		err := guard(func() error {
			rec, err := r.Record(i) // the reader's until the next
			if err != nil {
				return err
			}
			rows, err = arrowRows(rows, rec, cols)
			return err
		})
		if err != nil {
			return badFile(path, fmt.Errorf("record batch %d: %w", i, err))
		}
		if err := f(rows); err != nil {
			return err
		}
	}
	return nil
}

// arrowRows turns a record batch into structs, in the memory of rows if it fits.
func arrowRows[T any](rows []T, rec arrow.Record, cols []arrowColumn) ([]T, error) {
	if err := checkBatch(rec); err != nil {
		return nil, err
	}
	n := int(rec.NumRows())
	if cap(rows) < n {
		rows = make([]T, n)
	}
	rows = rows[:n]
	clear(rows)
	to := reflect.ValueOf(rows)
	for _, c := range cols {
		at := rec.Schema().FieldIndices(c.field.Name)
		if len(at) == 0 {
			continue
		}
		col := rec.Column(at[0])
		if col.Len() != n {
			return nil, fmt.Errorf("column %q has %d values in %d rows", c.field.Name, col.Len(), n)
		}
		for r := range n {
			if err := fromArrow(to.Index(r).FieldByIndex(c.index), col, r); err != nil {
				return nil, fmt.Errorf("column %q: %w", c.field.Name, err)
			}
		}
	}
	return rows, nil
}

// fromArrow sets v to value i of an array; null leaves it zero.
func fromArrow(v reflect.Value, a arrow.Array, i int) error {
	if a.IsNull(i) {
		return nil
	}
	if d, ok := a.(*array.Dictionary); ok {
		return fromArrow(v, d.Dictionary(), d.GetValueIndex(i))
	}
	switch k := v.Kind(); {
	case k == reflect.Pointer:
		to := reflect.New(v.Type().Elem())
		v.Set(to)
		return fromArrow(to.Elem(), a, i)
	case v.CanInt():
		n, ok := arrowInt(a, i)
		if !ok || v.OverflowInt(n) {
			return fmt.Errorf("%s does not fit %v", a.DataType(), v.Type())
		}
		v.SetInt(n)
		return nil
	case v.CanUint():
		n, ok := arrowInt(a, i)
		if !ok || v.OverflowUint(uint64(n)) {
			return fmt.Errorf("%s does not fit %v", a.DataType(), v.Type())
		}
		v.SetUint(uint64(n))
		return nil
	case v.CanFloat():
		switch a := a.(type) {
		case *array.Float32:
			v.SetFloat(float64(a.Value(i)))
			return nil
		case *array.Float64:
			v.SetFloat(a.Value(i))
			return nil
		}
	case k == reflect.Bool:
		if a, ok := a.(*array.Boolean); ok {
			v.SetBool(a.Value(i))
			return nil
		}
	case k == reflect.String:
		switch a := a.(type) {
		case *array.String:
			v.SetString(strings.Clone(a.Value(i)))
			return nil
		case *array.LargeString:
			v.SetString(strings.Clone(a.Value(i)))
			return nil
		}
	case k == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		switch a := a.(type) {
		case *array.Binary:
			v.SetBytes(append([]byte{}, a.Value(i)...))
			return nil
		case *array.LargeBinary:
			v.SetBytes(append([]byte{}, a.Value(i)...))
			return nil
		}
	case k == reflect.Slice:
		if l, ok := a.(array.ListLike); ok {
			start, end := l.ValueOffsets(i)
			s := reflect.MakeSlice(v.Type(), int(end-start), int(end-start))
			for j := range s.Len() {
				if err := fromArrow(s.Index(j), l.ListValues(), int(start)+j); err != nil {
					return err
				}
			}
			v.Set(s)
			return nil
		}
	}
	return fmt.Errorf("%s does not fit %v", a.DataType(), v.Type())
}

func arrowInt(a arrow.Array, i int) (int64, bool) {
	switch a := a.(type) {
	case *array.Int8:
		return int64(a.Value(i)), true
	case *array.Int16:
		return int64(a.Value(i)), true
	case *array.Int32:
		return int64(a.Value(i)), true
	case *array.Int64:
		return a.Value(i), true
	case *array.Uint8:
		return int64(a.Value(i)), true
	case *array.Uint16:
		return int64(a.Value(i)), true
	case *array.Uint32:
		return int64(a.Value(i)), true
	case *array.Uint64:
		return int64(a.Value(i)), true
	}
	return 0, false
}
