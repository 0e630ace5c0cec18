package datasets

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"glmbatch/datasets/pages"
)

// Output is the schema of result files: the input's columns as they are, then
// those of our structs.
type Output struct {
	Names  []string // of our columns, in order
	Prefix string   // that they all have, but for a response with a name of its own

	schema *parquet.Schema
	root   *node
	inputs int // leaf columns of the input
	ours   []ourColumns
	meta   map[string]string
}

// ourColumns is one struct type behind the input's columns.
type ourColumns struct {
	typ    reflect.Type
	schema *parquet.Schema
	first  int // leaf column of the output
}

// NewOutput makes the schema. rows are zero values of the structs, in order.
func NewOutput(in *Input, naming Naming, rows ...any) (*Output, error) {
	o := &Output{root: &node{name: "schema"}, inputs: in.root.leaves, meta: keptMetadata(in.meta)}
	if o.meta == nil {
		o.meta = map[string]string{}
	}
	o.root.fields = append(o.root.fields, in.root.fields...)
	first := in.root.leaves
	var ours []*node
	var plain []string
	for _, row := range rows {
		s := parquet.SchemaOf(row)
		n := structNode(s)
		o.ours = append(o.ours, ourColumns{reflect.TypeOf(row), s, first})
		first += n.leaves
		for i := range n.fields {
			ours = append(ours, n.child(i))
			plain = append(plain, n.child(i).name)
		}
	}
	var err error
	if o.Names, o.Prefix, err = naming.choose(in, plain); err != nil {
		return nil, fmt.Errorf("%s: %w", in.Paths(), err)
	}
	if o.Prefix != "" {
		o.meta[keyPrefix] = o.Prefix
	}
	if naming.Response != "" {
		o.meta[keyResponse] = naming.Response
	}
	for i, c := range ours {
		c.name = o.Names[i]
		o.root.fields = append(o.root.fields, c)
	}
	o.root.number(0, 0, 0)
	o.schema = parquet.NewSchema("schema", o.root)
	if in.arrow != nil {
		if more, err := fieldsOf(ours); err == nil {
			o.meta[arrowSchemaKey] = in.arrow.text(more)
		}
	}
	return o, nil
}

// Part is one file of results.
type Part struct {
	Rows int64

	o    *Output
	file *Aside
	//lint:ignore SA1019 GenericWriter needs a Go type for each node of the schema; users' schemas have none
	w       *parquet.Writer
	set     [][2]string // metadata that is added at the end
	chunk   *chunk      // the rows not yet given to w
	bytes   int         // of the open row group
	inGroup int         // rows of it

	// A goroutine gives chunks to w while the next is filled.
	full, spare chan *chunk
	end         sync.WaitGroup
	failed      atomic.Pointer[error]

	// Of that goroutine.
	leaves []*node           // of the input
	values []parquet.Value   // of one column of the input
	added  [][]parquet.Value // of each column of ours
	paged  []int             // bytes of each column's open page
	bounds []bounds          // of the input's columns in the open row group
	groups [][]bounds        // of the row groups before it
}

// chunk is rows that go to the library at once.
type chunk struct {
	records []Record      // of the input
	rows    []parquet.Row // our columns, of the same rows
	bytes   int
	ends    bool // the row group
}

// Create begins a file. meta is stored beside the input's own metadata.
func (o *Output) Create(path string, meta map[string]string) (*Part, error) {
	file, err := CreateAside(path)
	if err != nil {
		return nil, err
	}
	// pages end where push says
	options := []parquet.WriterOption{o.schema, createdBy, noPageBounds, parquet.PageBufferSize(endlessPage),
		// of version 2 fastparquet fails on categories with nulls
		parquet.DictionaryMaxBytes(dictionaryBytes), parquet.DataPageVersion(1)}
	if len(o.schema.Columns()) <= maxPageFiles {
		options = append(options, parquet.ColumnPageBuffers(parquet.NewFileBufferPool(filepath.Dir(path),
			pageFiles(file))))
	}
	for i, leaf := range o.root.leafNodes() {
		if leaf.brief {
			options = append(options, parquet.SkipPageBounds(o.schema.Columns()[i]...))
		}
	}
	for _, m := range []map[string]string{o.meta, meta} {
		for k, v := range m {
			options = append(options, parquet.KeyValueMetadata(k, v))
		}
	}
	p := &Part{o: o, file: file, chunk: &chunk{}, full: make(chan *chunk), spare: make(chan *chunk, 1)}
	p.spare <- &chunk{}
	p.paged = make([]int, o.root.leaves)
	for _, leaf := range o.root.leafNodes()[:o.inputs] {
		p.leaves = append(p.leaves, leaf)
		p.bounds = append(p.bounds, bounds{typ: leaf.typ, ordered: ordered(leaf.typ)})
	}
	err = guard(func() error {
		p.w = parquet.NewWriter(file, options...)
		return nil
	})
	if err != nil {
		file.Abort()
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	p.end.Go(p.work)
	return p, nil
}

// dictionaryBytes of a column's texts may differ in a row group before the others are
// written as they are.
const dictionaryBytes = 256 << 10

// Set adds to the file's metadata.
func (p *Part) Set(key, value string) { p.set = append(p.set, [2]string{key, value}) }

// Write appends one row: the input's record and one struct, or a pointer to it,
// of each type that NewOutput was given.
func (p *Part) Write(r Record, rows ...any) error {
	c := p.chunk
	n := len(c.rows)
	if n < cap(c.rows) {
		c.rows = c.rows[:n+1]
	} else {
		c.rows = append(c.rows, nil)
	}
	row := c.rows[n][:0]
	err := guard(func() error {
		for i, ours := range p.o.ours {
			if v, ok := rows[i].(valuer); ok {
				row = v.values(row, ours.first)
				continue
			}
			start := len(row)
			row = ours.schema.Deconstruct(row, rows[i])
			for k := start; k < len(row); k++ {
				v := &row[k]
				*v = v.Level(v.RepetitionLevel(), v.DefinitionLevel(), v.Column()+ours.first)
			}
		}
		return nil
	})
	c.rows[n] = row
	c.records = append(c.records, r)
	p.Rows++
	p.inGroup++
	size := len(r.data)
	for i := range row {
		size += valueBytes
		if row[i].Kind() == parquet.ByteArray {
			size += len(row[i].ByteArray())
		}
	}
	p.bytes += size
	c.bytes += size
	if err == nil && (len(c.rows) >= chunkRows || c.bytes > chunkBytes || p.groupIsFull()) {
		err = p.hand()
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", p.file.path, err)
	}
	return nil
}

func (p *Part) groupIsFull() bool { return p.bytes > groupBytes || p.inGroup >= groupRows }

// hand gives the rows collected to the goroutine. It waits where they are large, so that
// no more than one chunk of large rows is there at a time.
func (p *Part) hand() error {
	c := p.chunk
	if c.ends = p.groupIsFull(); c.ends {
		p.bytes, p.inGroup = 0, 0
	}
	large := c.bytes > chunkBytes
	p.full <- c
	p.chunk = <-p.spare
	if large {
		c, p.chunk = p.chunk, <-p.spare // both are there when the work is done
		p.spare <- c
	}
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// work is the goroutine's.
func (p *Part) work() {
	for c := range p.full {
		if p.failed.Load() == nil {
			err := p.push(c)
			if err == nil && c.ends {
				err = p.endGroup()
			}
			if err != nil {
				p.failed.Store(&err)
			}
		}
		clear(c.records)
		c.rows, c.records, c.bytes, c.ends = c.rows[:0], c.records[:0], 0, false
		p.spare <- c
	}
}

// stop ends the goroutine and returns its error.
func (p *Part) stop() error {
	if p.full == nil {
		return nil
	}
	close(p.full)
	p.end.Wait()
	p.full = nil
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return nil
}

const (
	valueBytes = 24      // of a value of the library
	chunkRows  = 32      // rows given to the library at once
	chunkBytes = 1 << 20 // or of as many rows as pass this
)

// push gives rows to the library, column by column.
func (p *Part) push(c *chunk) error {
	return guard(func() error {
		columns := p.w.ColumnWriters()
		for i, leaf := range p.leaves {
			if err := p.column(columns[i], leaf, c.records); err != nil {
				return err
			}
		}
		if p.added == nil {
			p.added = make([][]parquet.Value, len(columns)-p.o.inputs)
		}
		for _, row := range c.rows {
			for _, v := range row {
				at := v.Column() - p.o.inputs
				p.added[at] = append(p.added[at], v)
			}
		}
		for i, values := range p.added {
			size := 0
			for k := range values {
				size += valueBytes
				if values[k].Kind() == parquet.ByteArray {
					size += len(values[k].ByteArray())
				}
			}
			if err := p.give(columns[p.o.inputs+i], p.o.inputs+i, values, size); err != nil {
				return err
			}
			if err := p.endPage(columns[p.o.inputs+i], p.o.inputs+i); err != nil {
				return err
			}
			p.added[i] = values[:0]
		}
		return nil
	})
}

// giveValues are given to a column of the library at once. A row of more is given
// in parts, so that it is never whole in the library's values, which are wide.
const giveValues = 8 << 10

// column gives the rows' values of one column of the input to the library. Pages
// end with rows.
func (p *Part) column(c *parquet.ColumnWriter, leaf *node, records []Record) error {
	b := &p.bounds[leaf.first]
	size := 0
	p.values = p.values[:0]
	give := func() error {
		err := p.give(c, leaf.first, p.values, size)
		p.values, size = p.values[:0], 0
		return err
	}
	for _, r := range records {
		for v := r.cells(leaf); v.ok; v.next() {
			b.add(v.value)
			p.values = append(p.values, libraryValue(leaf.typ.kind, v.value).Level(int(v.rep), int(v.def), leaf.first))
			if size += 2 + len(v.value); len(p.values) == giveValues {
				if err := give(); err != nil {
					return err
				}
			}
		}
		if p.paged[leaf.first]+size >= pageBytes {
			if err := give(); err != nil {
				return err
			}
			if err := p.endPage(c, leaf.first); err != nil {
				return err
			}
		}
	}
	return give()
}

// give writes values to a column, whose page stays open.
func (p *Part) give(c *parquet.ColumnWriter, i int, values []parquet.Value, size int) error {
	if len(values) == 0 {
		return nil
	}
	p.paged[i] += size
	_, err := c.WriteRowValues(values)
	return err
}

// endPage ends a column's page if it is full.
func (p *Part) endPage(c *parquet.ColumnWriter, i int) error {
	if p.paged[i] < pageBytes {
		return nil
	}
	p.paged[i] = 0
	return c.Flush()
}

// libraryValue is a value as the library has it; nil is null.
func libraryValue(kind pages.Kind, v []byte) parquet.Value {
	le := binary.LittleEndian
	if v == nil {
		return parquet.NullValue()
	}
	switch kind {
	case pages.Boolean:
		return parquet.BooleanValue(v[0] != 0)
	case pages.Int32:
		return parquet.Int32Value(int32(le.Uint32(v)))
	case pages.Int64:
		return parquet.Int64Value(int64(le.Uint64(v)))
	case pages.Int96:
		return parquet.Int96Value(deprecated.Int96{le.Uint32(v), le.Uint32(v[4:]), le.Uint32(v[8:])})
	case pages.Float:
		return parquet.FloatValue(math.Float32frombits(le.Uint32(v)))
	case pages.Double:
		return parquet.DoubleValue(math.Float64frombits(le.Uint64(v)))
	case pages.FixedLenByteArray:
		return parquet.FixedLenByteArrayValue(v)
	}
	return parquet.ByteArrayValue(v)
}

// endGroup ends the open row group.
func (p *Part) endGroup() error {
	group := make([]bounds, len(p.bounds))
	for i := range group {
		group[i] = p.bounds[i].snapshot()
		p.bounds[i].reset()
	}
	p.groups = append(p.groups, group)
	clear(p.paged)
	return guard(p.w.Flush)
}

// Close finishes the file and gives it its name.
func (p *Part) Close() error {
	err := p.stop()
	if err == nil {
		err = p.push(p.chunk)
	}
	if err == nil && p.inGroup > 0 {
		err = p.endGroup()
	}
	for _, kv := range p.set {
		p.w.SetKeyValueMetadata(kv[0], kv[1])
	}
	if err == nil {
		err = guard(p.w.Close)
	}
	if err == nil {
		err = rewriteFooter(p.file, p.footer(p.w.File().Metadata()))
	}
	if err != nil {
		p.Abort()
		return fmt.Errorf("writing %s: %w", p.file.path, err)
	}
	return p.file.Commit()
}

// Abort drops the file.
func (p *Part) Abort() {
	_ = p.stop() // the file is dropped
	p.file.Abort()
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(p.file.path), pageFiles(p.file))) // the pattern is ours
	for _, f := range left {
		os.Remove(f)
	}
}

// maxPageFiles bounds the open files of a part: one a column. The pages of the
// row group at hand lie in them, so that memory does not grow with row groups;
// tables with more columns keep theirs in memory.
const maxPageFiles = 256

// pageFiles is the pattern of a part's page files.
func pageFiles(a *Aside) string {
	return strings.TrimSuffix(filepath.Base(a.file.Name()), asideSuffix) + ".*" + asideSuffix
}

// keptMetadata leaves out what describes the old file's columns and would hide
// or contradict the new ones.
func keptMetadata(meta map[string]string) map[string]string {
	kept := maps.Clone(meta)
	for k := range kept {
		for _, prefix := range []string{arrowSchemaKey, "org.apache.spark.", "spark.", "iceberg.", "avro.",
			"parquet.avro.", "writer.model.", "glmbatch."} {
			if strings.HasPrefix(k, prefix) {
				delete(kept, k)
			}
		}
	}
	return kept
}

// Metadata returns the key-value metadata and the number of rows of a Parquet file.
func Metadata(path string) (meta map[string]string, rows int64, err error) {
	f, err := openParquet(source{path: path})
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	return f.keyValues(), f.Rows, nil
}
