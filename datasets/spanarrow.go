package datasets

import (
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
)

// arrowSpans reads timelines from Arrow IPC files.
type arrowSpans struct {
	arrowFile
	names *Names
	also  Columns
}

func openArrowSpans(path string, names *Names, also Columns) (spanSource, error) {
	file, err := openArrow(path)
	if err != nil {
		return nil, err
	}
	a := &arrowSpans{arrowFile: file, names: names, also: also}
	for _, c := range spanColumns {
		if c.must && len(a.Schema().FieldIndices(c.name)) == 0 {
			a.Close()
			return nil, fmt.Errorf("not a timeline: no column %q", c.name)
		}
	}
	return a, nil
}

func (a *arrowSpans) blocks() int { return a.NumRecords() }

func (a *arrowSpans) bounds(int) (lo, hi int64) { return math.MinInt64, math.MaxInt64 }

func (a *arrowSpans) metadata(key string) (string, bool) {
	return a.Schema().Metadata().GetValue(key)
}

func (a *arrowSpans) steps(i int, c *SpanColumns) error {
	rec, err := a.record(i)
	if err != nil {
		return err
	}
	return a.column(rec, spanColumns[0], c)
}

func (a *arrowSpans) read(i int, c *SpanColumns) error {
	rec, err := a.record(i)
	if err != nil {
		return err
	}
	for _, col := range spanColumns {
		if col.of&a.also != col.of {
			continue
		}
		if err := a.column(rec, col, c); err != nil {
			return fmt.Errorf("column %q: %w", col.name, err)
		}
	}
	return nil
}

// record returns a record batch, which is the reader's until the next.
func (a *arrowSpans) record(i int) (arrow.Record, error) {
	rec, err := a.Record(i)
	if err == nil && rec.NumRows() > maxBlockRows {
		err = fmt.Errorf("%d rows in one record batch; at most %d can be read", rec.NumRows(), maxBlockRows)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = checkBatch(rec)
	}
	return rec, err
}

func (a *arrowSpans) column(rec arrow.Record, col spanColumn, c *SpanColumns) error {
	rows := int(rec.NumRows())
	var values arrow.Array
	if at := rec.Schema().FieldIndices(col.name); len(at) > 0 {
		values = rec.Column(at[0])
		if values.Len() != rows {
			return fmt.Errorf("%d values in %d rows", values.Len(), rows)
		}
	}
	if dst := col.wide(c); dst != nil {
		*dst = zeros(*dst, rows)
		return integers(values, func(i int, v int64) { (*dst)[i] = v })
	}
	dst := col.narrow(c)
	*dst = zeros(*dst, rows)
	if col.text {
		return a.texts(values, *dst)
	}
	return integers(values, func(i int, v int64) { (*dst)[i] = clamp32(v) })
}

// integers calls each with the values that are there; values may be nil.
func integers(values arrow.Array, each func(i int, v int64)) error {
	if values == nil {
		return nil
	}
	for i := range values.Len() {
		if values.IsNull(i) {
			continue
		}
		v, ok := arrowInt(values, i)
		if !ok {
			return fmt.Errorf("%s where a number is needed", values.DataType())
		}
		each(i, v)
	}
	return nil
}

// texts turns a text column into numbers of names.
func (a *arrowSpans) texts(values arrow.Array, dst []int32) error {
	empty := a.names.Number("")
	var table []int32
	dict, coded := values.(*array.Dictionary)
	if coded {
		for i := range dict.Dictionary().Len() {
			s, ok := arrowText(dict.Dictionary(), i)
			if !ok {
				return fmt.Errorf("%s where a text is needed", values.DataType())
			}
			table = append(table, a.names.number(s))
		}
	}
	for i := range dst {
		switch {
		case values == nil || values.IsNull(i):
			dst[i] = empty
		case coded:
			at := dict.GetValueIndex(i)
			if uint(at) >= uint(len(table)) {
				return fmt.Errorf("dictionary index out of range")
			}
			dst[i] = table[at]
		default:
			s, ok := arrowText(values, i)
			if !ok {
				return fmt.Errorf("%s where a text is needed", values.DataType())
			}
			dst[i] = a.names.number(s)
		}
	}
	return a.names.check()
}

func arrowText(values arrow.Array, i int) ([]byte, bool) {
	switch v := values.(type) {
	case *array.String:
		return []byte(v.Value(i)), true
	case *array.LargeString:
		return []byte(v.Value(i)), true
	}
	return nil, false
}
