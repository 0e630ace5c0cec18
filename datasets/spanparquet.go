package datasets

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
)

// parquetSpans reads timelines from Parquet, whole pages at a time where a column
// is as we write it.
type parquetSpans struct {
	*parquetFile
	names  *Names
	groups []parquet.RowGroup
	leaf   []int // column of the file for each of spanColumns; -1: it lacks
	buffer []parquet.Value
}

func openParquetSpans(path string, names *Names, all bool) (spanSource, error) {
	f, err := openParquet(source{path: path})
	if err != nil {
		return nil, err
	}
	r := &parquetSpans{parquetFile: f, names: names, groups: f.RowGroups()}
	for _, c := range spanColumns {
		leaf, err := r.find(c)
		if err != nil {
			f.Close()
			return nil, err
		}
		if c.detail && !all {
			leaf = -1
		}
		r.leaf = append(r.leaf, leaf)
	}
	return r, nil
}

func (r *parquetSpans) find(c spanColumn) (int, error) {
	col := r.Root().Column(c.name)
	if col == nil {
		if c.must {
			return -1, fmt.Errorf("not a timeline: no column %q", c.name)
		}
		return -1, nil
	}
	kind := parquet.Kind(-1)
	if col.Leaf() && !col.Repeated() {
		kind = col.Type().Kind()
	}
	switch {
	case c.text != nil && kind == parquet.ByteArray,
		c.text == nil && (kind == parquet.Int64 || kind == parquet.Int32):
		return int(col.Index()), nil
	}
	return -1, fmt.Errorf("not a timeline: column %q is %v", c.name, col)
}

func (r *parquetSpans) blocks() int { return len(r.groups) }

func (r *parquetSpans) metadata(key string) (string, bool) { return r.Lookup(key) }

func (r *parquetSpans) bounds(i int) (lo, hi int64) {
	if c, ok := r.groups[i].ColumnChunks()[r.leaf[0]].(*parquet.FileColumnChunk); ok {
		if a, b, ok := c.Bounds(); ok && a.Kind() == parquet.Int64 && a.Int64() <= b.Int64() {
			return a.Int64(), b.Int64()
		}
	}
	return math.MinInt64, math.MaxInt64
}

func (r *parquetSpans) steps(i int, c *SpanColumns) error {
	if err := checkGroup(r.parquetFile, i); err != nil {
		return err
	}
	_, err := r.column(r.groups[i], r.leaf[0], spanColumns[0], c, 0)
	return err
}

func (r *parquetSpans) read(i int, c *SpanColumns) error {
	g := r.groups[i]
	rows := g.NumRows()
	if rows > maxBlockRows {
		return fmt.Errorf("%d rows in one row group; at most %d can be read", rows, maxBlockRows)
	}
	if err := checkGroup(r.parquetFile, i); err != nil {
		return err
	}
	for i, col := range spanColumns {
		n, err := r.column(g, r.leaf[i], col, c, int(rows))
		if err == nil && n != int(rows) {
			err = fmt.Errorf("%d values in %d rows", n, rows)
		}
		if err != nil {
			return fmt.Errorf("column %q: %w", col.name, err)
		}
	}
	return nil
}

func (r *parquetSpans) column(g parquet.RowGroup, leaf int, col spanColumn, c *SpanColumns, rows int) (int, error) {
	switch {
	case col.wide != nil:
		dst := col.wide(c)
		*dst = (*dst)[:0]
		if leaf < 0 {
			*dst = zeros(*dst, rows)
			return rows, nil
		}
		err := eachPage(g.ColumnChunks()[leaf], func(p parquet.Page) error {
			if plainPage(p) && p.Type().Kind() == parquet.Int64 {
				data := p.Data()
				*dst = append(*dst, data.Int64()...)
				return nil
			}
			return r.values(p, func(v parquet.Value) { *dst = append(*dst, integer(v)) })
		})
		return len(*dst), err
	case col.narrow != nil:
		dst := col.narrow(c)
		*dst = (*dst)[:0]
		if leaf < 0 {
			*dst = zeros(*dst, rows)
			return rows, nil
		}
		err := eachPage(g.ColumnChunks()[leaf], func(p parquet.Page) error {
			if plainPage(p) && p.Type().Kind() == parquet.Int32 {
				data := p.Data()
				*dst = append(*dst, data.Int32()...)
				return nil
			}
			return r.values(p, func(v parquet.Value) { *dst = append(*dst, clamp32(integer(v))) })
		})
		return len(*dst), err
	}
	dst := col.text(c)
	*dst = (*dst)[:0]
	if leaf < 0 {
		empty := r.names.Number("")
		for range rows {
			*dst = append(*dst, empty)
		}
		return rows, nil
	}
	return r.texts(g.ColumnChunks()[leaf], dst)
}

// texts reads a text column. A page of dictionary indexes is mapped by a table
// that is made once a dictionary.
func (r *parquetSpans) texts(chunk parquet.ColumnChunk, dst *[]int32) (int, error) {
	var dict parquet.Dictionary
	var table []int32
	err := eachPage(chunk, func(p parquet.Page) error {
		d := p.Dictionary()
		if d == nil || p.NumNulls() > 0 || len(p.DefinitionLevels()) > 0 {
			last, number := []byte(nil), int32(-1)
			return r.values(p, func(v parquet.Value) {
				if b := v.ByteArray(); number < 0 || !bytes.Equal(b, last) {
					last, number = append(last[:0], b...), r.names.number(b)
				}
				*dst = append(*dst, number)
			})
		}
		if d != dict {
			dict, table = d, table[:0]
			for i := range d.Len() {
				table = append(table, r.names.number(d.Index(int32(i)).ByteArray()))
			}
		}
		data := p.Data()
		for _, i := range data.Int32() {
			if uint(i) >= uint(len(table)) {
				return errors.New("dictionary index out of range")
			}
			*dst = append(*dst, table[i])
		}
		return r.names.check()
	})
	return len(*dst), err
}

// values is the way for pages of any other make: nulls, other widths.
func (r *parquetSpans) values(p parquet.Page, each func(parquet.Value)) error {
	if r.buffer == nil {
		r.buffer = make([]parquet.Value, 1024)
	}
	for v := p.Values(); ; {
		n, err := v.ReadValues(r.buffer)
		for _, x := range r.buffer[:n] {
			each(x)
		}
		if err == io.EOF {
			return r.names.check()
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrNoProgress
		}
	}
}

func eachPage(chunk parquet.ColumnChunk, f func(parquet.Page) error) error {
	pages := chunk.Pages()
	defer pages.Close()
	for {
		p, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		err = f(p)
		parquet.Release(p)
		if err != nil {
			return err
		}
	}
}

// plainPage reports whether a page's data are its values.
func plainPage(p parquet.Page) bool {
	return p.Dictionary() == nil && len(p.DefinitionLevels()) == 0
}

func integer(v parquet.Value) int64 {
	switch v.Kind() {
	case parquet.Int64:
		return v.Int64()
	case parquet.Int32:
		return int64(v.Int32())
	}
	return 0
}
