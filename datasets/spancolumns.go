package datasets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/parquet-go/parquet-go"
)

// SpanColumns are the rows of one row group of a timeline, by column. Lane,
// Kernel, Class and Evidence are indexes into the reader's [Names].
type SpanColumns struct {
	Step, StartNS, EndNS          []int64
	Rank                          []int32
	Lane, Kernel, Class, Evidence []int32
	Layer, Call, Groups           []int32
	Bytes, WireBytes, FLOPs       []int64
	Correlation, Slots            []int64
	GridX, BlockX, K              []int32

	// Of a reader that was opened for all columns only; elsewhere zeros.
	M, N, Heads, TopK, Ranks     []int32
	GridY, GridZ, BlockY, BlockZ []int32
	Ctx, Graph                   []int64
}

// Rows returns the number of rows.
func (c *SpanColumns) Rows() int { return len(c.Step) }

// spanColumn ties a column's name to its place. One of wide, narrow and text is set.
type spanColumn struct {
	name   string
	must   bool // a timeline without it is refused; others are 0 where they lack
	detail bool // read only where all columns are asked for
	wide   func(*SpanColumns) *[]int64
	narrow func(*SpanColumns) *[]int32
	text   func(*SpanColumns) *[]int32
}

var spanColumns = []spanColumn{
	{name: "step", must: true, wide: func(c *SpanColumns) *[]int64 { return &c.Step }},
	{name: "rank", must: true, narrow: func(c *SpanColumns) *[]int32 { return &c.Rank }},
	{name: "lane", must: true, text: func(c *SpanColumns) *[]int32 { return &c.Lane }},
	{name: "kernel", must: true, text: func(c *SpanColumns) *[]int32 { return &c.Kernel }},
	{name: "class", must: true, text: func(c *SpanColumns) *[]int32 { return &c.Class }},
	{name: "start_ns", must: true, wide: func(c *SpanColumns) *[]int64 { return &c.StartNS }},
	{name: "end_ns", must: true, wide: func(c *SpanColumns) *[]int64 { return &c.EndNS }},
	{name: "evidence", text: func(c *SpanColumns) *[]int32 { return &c.Evidence }},
	{name: "layer", narrow: func(c *SpanColumns) *[]int32 { return &c.Layer }},
	{name: "call", narrow: func(c *SpanColumns) *[]int32 { return &c.Call }},
	{name: "groups", narrow: func(c *SpanColumns) *[]int32 { return &c.Groups }},
	{name: "bytes", wide: func(c *SpanColumns) *[]int64 { return &c.Bytes }},
	{name: "wire_bytes", wide: func(c *SpanColumns) *[]int64 { return &c.WireBytes }},
	{name: "flops", wide: func(c *SpanColumns) *[]int64 { return &c.FLOPs }},
	{name: "correlation", wide: func(c *SpanColumns) *[]int64 { return &c.Correlation }},
	{name: "slots", wide: func(c *SpanColumns) *[]int64 { return &c.Slots }},
	{name: "grid_x", narrow: func(c *SpanColumns) *[]int32 { return &c.GridX }},
	{name: "block_x", narrow: func(c *SpanColumns) *[]int32 { return &c.BlockX }},
	{name: "k", narrow: func(c *SpanColumns) *[]int32 { return &c.K }},

	{name: "m", detail: true, narrow: func(c *SpanColumns) *[]int32 { return &c.M }},
	{name: "n", detail: true, narrow: func(c *SpanColumns) *[]int32 { return &c.N }},
	{name: "heads", detail: true, narrow: func(c *SpanColumns) *[]int32 { return &c.Heads }},
	{name: "top_k", detail: true, narrow: func(c *SpanColumns) *[]int32 { return &c.TopK }},
	{name: "ranks", detail: true, narrow: func(c *SpanColumns) *[]int32 { return &c.Ranks }},
	{name: "grid_y", detail: true, narrow: func(c *SpanColumns) *[]int32 { return &c.GridY }},
	{name: "grid_z", detail: true, narrow: func(c *SpanColumns) *[]int32 { return &c.GridZ }},
	{name: "block_y", detail: true, narrow: func(c *SpanColumns) *[]int32 { return &c.BlockY }},
	{name: "block_z", detail: true, narrow: func(c *SpanColumns) *[]int32 { return &c.BlockZ }},
	{name: "ctx", detail: true, wide: func(c *SpanColumns) *[]int64 { return &c.Ctx }},
	{name: "graph", detail: true, wide: func(c *SpanColumns) *[]int64 { return &c.Graph }},
}

// Names are the distinct texts of a timeline's text columns, numbered in order
// of appearance. They may be read while a reader adds more.
type Names struct {
	lock  sync.RWMutex
	list  []string
	index map[string]int32
}

// maxNames bounds the distinct texts of a timeline; those of real ones are few.
const maxNames = 1 << 20

// Len returns how many names there are.
func (n *Names) Len() int {
	n.lock.RLock()
	defer n.lock.RUnlock()
	return len(n.list)
}

// Name returns the text of a number.
func (n *Names) Name(i int32) string {
	n.lock.RLock()
	defer n.lock.RUnlock()
	return n.list[i]
}

// Number returns the number of a text, a new one if it was not there.
func (n *Names) Number(s string) int32 { return n.number([]byte(s)) }

func (n *Names) number(s []byte) int32 {
	n.lock.Lock()
	defer n.lock.Unlock()
	if i, ok := n.index[string(s)]; ok {
		return i
	}
	if n.index == nil {
		n.index = map[string]int32{}
	}
	i := int32(len(n.list))
	n.list = append(n.list, string(s))
	n.index[n.list[i]] = i
	return i
}

// SpanReader reads the columns of a timeline that attribution needs, a row group
// at a time.
type SpanReader struct {
	file   *parquetFile
	names  *Names
	groups []parquet.RowGroup
	leaf   []int // column of the file for each of spanColumns; -1: it lacks
	next   int
	wide   []parquet.Value
}

// maxGroupRows bounds the rows of a row group: a reader holds one.
const maxGroupRows = 1 << 24

// OpenSpans opens a timeline. Names may be shared by the readers of one timeline's
// files. all: also read the columns that only pictures of single calls need.
func OpenSpans(path string, names *Names, all bool) (*SpanReader, error) {
	f, err := openParquet(source{path: path})
	if err != nil {
		return nil, err
	}
	r := &SpanReader{file: f, names: names, groups: f.RowGroups()}
	for _, c := range spanColumns {
		leaf, err := r.find(c)
		if err != nil {
			f.Close()
			return nil, badFile(path, err)
		}
		if c.detail && !all {
			leaf = -1
		}
		r.leaf = append(r.leaf, leaf)
	}
	return r, nil
}

func (r *SpanReader) find(c spanColumn) (int, error) {
	col := r.file.Root().Column(c.name)
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

// Findings returns what an importer stored about the timeline.
func (r *SpanReader) Findings() ([]Finding, error) {
	text, ok := r.file.Lookup(FindingsKey)
	if !ok {
		return nil, nil
	}
	var f []Finding
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return nil, badFile(r.file.path, fmt.Errorf("metadata %s: %w", FindingsKey, err))
	}
	return f, nil
}

// Groups returns the number of row groups.
func (r *SpanReader) Groups() int { return len(r.groups) }

// Steps returns bounds on the steps that row group i has, from its statistics,
// or the widest there are.
func (r *SpanReader) Steps(i int) (lo, hi int64) {
	lo, hi = math.MinInt64, math.MaxInt64
	// Damaged statistics may have any length.
	_ = guard(func() error {
		if c, ok := r.groups[i].ColumnChunks()[r.leaf[0]].(*parquet.FileColumnChunk); ok {
			if a, b, ok := c.Bounds(); ok && a.Kind() == parquet.Int64 && a.Int64() <= b.Int64() {
				lo, hi = a.Int64(), b.Int64()
			}
		}
		return nil
	})
	return lo, hi
}

// LeastStep reads the steps of row group i and returns the least that is not
// negative, or the largest number there is.
func (r *SpanReader) LeastStep(i int) (int64, error) {
	least := int64(math.MaxInt64)
	var steps SpanColumns
	err := guard(func() error {
		_, err := r.column(r.groups[i], r.leaf[0], spanColumns[0], &steps, 0)
		return err
	})
	for _, s := range steps.Step {
		if s >= 0 {
			least = min(least, s)
		}
	}
	if err != nil {
		err = badFile(r.file.path, fmt.Errorf("row group %d: %w", i, err))
	}
	return least, err
}

// Skip passes over the next row group.
func (r *SpanReader) Skip() { r.next++ }

// Next reads the next row group into c, whose memory it reuses, and returns
// io.EOF after the last.
func (r *SpanReader) Next(c *SpanColumns) error {
	if r.next >= len(r.groups) {
		return io.EOF
	}
	g := r.groups[r.next]
	r.next++
	err := guard(func() error {
		if err := checkGroup(r.file, r.next-1); err != nil {
			return err
		}
		return r.group(g, c)
	})
	if err != nil {
		return badFile(r.file.path, fmt.Errorf("row group %d: %w", r.next-1, err))
	}
	return nil
}

// Close closes the file.
func (r *SpanReader) Close() error { return r.file.Close() }

func (r *SpanReader) group(g parquet.RowGroup, c *SpanColumns) error {
	rows := g.NumRows()
	if rows > maxGroupRows {
		return fmt.Errorf("%d rows in one row group; at most %d can be read", rows, maxGroupRows)
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

func (r *SpanReader) column(g parquet.RowGroup, leaf int, col spanColumn, c *SpanColumns, rows int) (int, error) {
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
func (r *SpanReader) texts(chunk parquet.ColumnChunk, dst *[]int32) (int, error) {
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
		return r.checkNames()
	})
	return len(*dst), err
}

func (r *SpanReader) checkNames() error {
	if r.names.Len() > maxNames {
		return fmt.Errorf("more than %d distinct names", maxNames)
	}
	return nil
}

// values is the way for pages of any other make: nulls, other widths.
func (r *SpanReader) values(p parquet.Page, each func(parquet.Value)) error {
	if r.wide == nil {
		r.wide = make([]parquet.Value, 1024)
	}
	for v := p.Values(); ; {
		n, err := v.ReadValues(r.wide)
		for _, x := range r.wide[:n] {
			each(x)
		}
		if err == io.EOF {
			return r.checkNames()
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

func clamp32(v int64) int32 { return int32(min(max(v, math.MinInt32), math.MaxInt32)) }

func zeros[T int32 | int64](s []T, n int) []T {
	if cap(s) < n {
		s = make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
