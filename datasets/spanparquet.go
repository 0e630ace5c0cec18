package datasets

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"glmbatch/datasets/pages"
)

// parquetSpans reads timelines from Parquet, a window of values at a time.
type parquetSpans struct {
	*parquetFile
	names *Names
	also  Columns

	memory pages.Memory
	root   *node
	leaf   []*node // column of the file for each of spanColumns; nil: it lacks
}

func openParquetSpans(path string, names *Names, also Columns) (spanSource, error) {
	f, err := openParquet(source{path: path})
	if err != nil {
		return nil, err
	}
	r := &parquetSpans{parquetFile: f, names: names, also: also}
	err = guard(func() error {
		r.root = fileNode(f.File)
		for _, c := range spanColumns {
			leaf, err := r.find(c)
			if err != nil {
				return err
			}
			r.leaf = append(r.leaf, leaf)
		}
		return nil
	})
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

func (r *parquetSpans) find(c spanColumn) (*node, error) {
	col := r.root.field(c.name)
	if col == nil {
		if c.must {
			return nil, fmt.Errorf("not a timeline: no column %q", c.name)
		}
		return nil, nil
	}
	kind := pages.Group
	if col.leaf && col.rep != repeated {
		kind = col.typ.kind
	}
	switch {
	case c.text && kind == pages.ByteArray,
		!c.text && (kind == pages.Int64 || kind == pages.Int32):
		return col, nil
	}
	return nil, fmt.Errorf("not a timeline: column %q is %s", c.name, signature(col))
}

func (r *parquetSpans) blocks() int { return len(r.Groups) }

func (r *parquetSpans) metadata(key string) (string, bool) {
	v, ok := r.keyValues()[key]
	return v, ok
}

func (r *parquetSpans) bounds(i int) (lo, hi int64) {
	if step := r.leaf[0]; step.typ.kind == pages.Int64 {
		c := &r.Groups[i].Chunks[step.first]
		if len(c.Min) == 8 && len(c.Max) == 8 {
			if lo, hi = int64(binary.LittleEndian.Uint64(c.Min)), int64(binary.LittleEndian.Uint64(c.Max)); lo <= hi {
				return lo, hi
			}
		}
	}
	return math.MinInt64, math.MaxInt64
}

func (r *parquetSpans) rows(i int) (int, error) {
	rows := r.Groups[i].Rows
	if rows > maxBlockRows {
		return 0, fmt.Errorf("%d rows in one row group; at most %d can be read", rows, maxBlockRows)
	}
	return int(rows), nil
}

func (r *parquetSpans) steps(i int, c *SpanColumns) error {
	rows, err := r.rows(i)
	if err == nil {
		err = r.column(i, 0, c, rows)
	}
	return err
}

func (r *parquetSpans) read(i int, c *SpanColumns) error {
	rows, err := r.rows(i)
	if err != nil {
		return err
	}
	for k := range spanColumns {
		if of := spanColumns[k].of; of&r.also != of {
			continue
		}
		if err := r.column(i, k, c, rows); err != nil {
			return fmt.Errorf("column %q: %w", spanColumns[k].name, err)
		}
	}
	return nil
}

// column reads column k of spanColumns of a row group.
func (r *parquetSpans) column(group, k int, c *SpanColumns, rows int) error {
	col, leaf := spanColumns[k], r.leaf[k]
	if dst := col.wide(c); dst != nil {
		return readIntegers(r, group, leaf, dst, rows, func(v int64) int64 { return v })
	}
	dst := col.narrow(c)
	if !col.text {
		return readIntegers(r, group, leaf, dst, rows, clamp32)
	}
	*dst = zeros(*dst, rows)
	if leaf == nil {
		empty := r.names.Number("")
		for i := range *dst {
			(*dst)[i] = empty
		}
		return nil
	}
	return r.texts(group, leaf, *dst)
}

// readIntegers reads a column of integers; a file may lack it.
func readIntegers[T int32 | int64](r *parquetSpans, group int, leaf *node, dst *[]T, rows int,
	narrow func(int64) T) error {
	if leaf == nil {
		*dst = zeros(*dst, rows)
		return nil
	}
	if leaf.maxDef > 0 || cap(*dst) < rows {
		*dst = zeros(*dst, rows)
	}
	*dst = (*dst)[:rows]
	if v, ok := r.constant(group, leaf); ok {
		for i, v := 0, narrow(v); i < rows; i++ {
			(*dst)[i] = v
		}
		return nil
	}
	return r.windows(group, leaf, rows, &r.memory, func(at int, w *pages.Window) error {
		windowIntegers(leaf, w, (*dst)[at:at+w.N], narrow)
		return nil
	})
}

// constant returns the one value that a column has in a row group, as its statistics
// say. Half of a timeline's columns of integers have one.
func (r *parquetSpans) constant(group int, leaf *node) (v int64, ok bool) {
	g := &r.Groups[group]
	c := &g.Chunks[leaf.first]
	if leaf.maxDef > 0 && c.Nulls != 0 || c.Values != g.Rows || !bytes.Equal(c.Min, c.Max) {
		return 0, false
	}
	switch {
	case leaf.typ.kind == pages.Int64 && len(c.Min) == 8:
		return int64(binary.LittleEndian.Uint64(c.Min)), true
	case leaf.typ.kind == pages.Int32 && len(c.Min) == 4:
		return int64(int32(binary.LittleEndian.Uint32(c.Min))), true
	}
	return 0, false
}

// windows calls f with all values of a column, which must be one a row.
func (p *parquetFile) windows(group int, leaf *node, rows int, memory *pages.Memory,
	f func(at int, w *pages.Window) error) error {
	var budget pages.Budget
	c := p.Column(group, leaf.first, 8*windowValues, &budget)
	c.OnlyPositions()
	c.Use(memory)
	defer c.Close()
	at := 0
	for {
		w, err := c.Next()
		if err == io.EOF && at != rows {
			err = fmt.Errorf("%w: %d values in %d rows", pages.ErrDamaged, at, rows)
		} else if err == io.EOF {
			return nil
		}
		if err == nil && w.N > rows-at {
			err = fmt.Errorf("%w: more values than rows", pages.ErrDamaged)
		}
		if err == nil {
			err = f(at, w)
		}
		if err != nil {
			return err
		}
		at += w.N
	}
}

// windowIntegers puts a window's values into dst, where nulls stay 0.
func windowIntegers[T int32 | int64](leaf *node, w *pages.Window, dst []T, narrow func(int64) T) {
	le := binary.LittleEndian
	if leaf.maxDef == 0 { // a value in each row
		if leaf.typ.kind == pages.Int32 {
			for i := range dst {
				dst[i] = T(int32(le.Uint32(w.Fixed[4*i:])))
			}
			return
		}
		if wide, ok := any(dst).([]int64); ok {
			for i := range wide {
				wide[i] = int64(le.Uint64(w.Fixed[8*i:]))
			}
			return
		}
	}
	next := 0
	for i := range dst {
		if leaf.maxDef > 0 && w.Def[i] < leaf.maxDef {
			continue
		}
		if leaf.typ.kind == pages.Int64 {
			dst[i] = narrow(int64(le.Uint64(w.Fixed[8*next:])))
		} else {
			dst[i] = narrow(int64(int32(le.Uint32(w.Fixed[4*next:]))))
		}
		next++
	}
}

// texts reads a text column. Dictionary positions are mapped by a table that is
// made once a dictionary.
func (r *parquetSpans) texts(group int, leaf *node, dst []int32) error {
	var dict *pages.Dictionary
	var table []int32
	var last []byte
	number := int32(-1)
	return r.windows(group, leaf, len(dst), &r.memory, func(at int, w *pages.Window) error {
		if w.Dict != nil && w.Dict != dict {
			dict, table = w.Dict, table[:0]
			for i := range min(dict.Len(), maxNames+1) {
				table = append(table, r.names.number(dict.Text(i)))
			}
		}
		if w.Dict != nil && leaf.maxDef == 0 && len(table) == dict.Len() {
			for i, k := range w.Index {
				dst[at+i] = table[k]
			}
			return r.names.check()
		}
		next := 0
		for i := range w.N {
			switch {
			case leaf.maxDef > 0 && w.Def[i] < leaf.maxDef:
				dst[at+i] = r.names.number(nil)
				continue
			case w.Dict != nil && int(w.Index[next]) < len(table):
				dst[at+i] = table[w.Index[next]]
			default:
				if v := w.Text(next); number < 0 || !bytes.Equal(v, last) {
					last, number = append(last[:0], v...), r.names.number(v)
				}
				dst[at+i] = number
			}
			next++
		}
		return r.names.check()
	})
}
