package datasets

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Output is the schema of result files: the input's columns as they are, then
// those of our structs.
type Output struct {
	Names  []string // of our columns, in order
	Prefix string   // that they all have, but for a response with a name of its own

	schema *parquet.Schema
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
	o := &Output{inputs: in.root.leaves, meta: keptMetadata(in.meta)}
	root := &node{name: "schema", typ: in.root.typ, stored: in.root.typ}
	root.fields = append(root.fields, in.root.fields...)
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
		root.fields = append(root.fields, c)
	}
	root.number(0, 0)
	in.root.number(0, 0)
	o.schema = parquet.NewSchema("schema", root)
	added := root.fields[len(in.root.fields):]
	o.describe(in.meta, added)
	return o, nil
}

// Part is one file of results.
type Part struct {
	Rows int64

	o    *Output
	file *Aside
	//lint:ignore SA1019 GenericWriter needs a Go type for each node of the schema; users' schemas have none
	w     *parquet.Writer
	rows  []parquet.Row // not yet given to w
	bytes int           // of the open row group
}

// Create begins a file. meta is stored beside the input's own metadata.
func (o *Output) Create(path string, meta map[string]string) (*Part, error) {
	file, err := CreateAside(path)
	if err != nil {
		return nil, err
	}
	options := []parquet.WriterOption{o.schema, parquet.MaxRowsPerRowGroup(groupRows), parquet.PageBufferSize(pageBytes), createdBy, noPageBounds}
	if len(o.schema.Columns()) <= maxPageFiles {
		options = append(options, parquet.ColumnPageBuffers(parquet.NewFileBufferPool(filepath.Dir(path), pageFiles(file))))
	}
	for _, m := range []map[string]string{o.meta, meta} {
		for k, v := range m {
			options = append(options, parquet.KeyValueMetadata(k, v))
		}
	}
	p := &Part{o: o, file: file}
	err = guard(func() error {
		p.w = parquet.NewWriter(file, options...)
		return nil
	})
	if err != nil {
		file.Abort()
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return p, nil
}

// Set adds to the file's metadata.
func (p *Part) Set(key, value string) { p.w.SetKeyValueMetadata(key, value) }

// Write appends one row: the input's record and one struct, or a pointer to it,
// of each type that NewOutput was given.
func (p *Part) Write(r Record, rows ...any) error {
	n := len(p.rows)
	if n < cap(p.rows) {
		p.rows = p.rows[:n+1]
	} else {
		p.rows = append(p.rows, nil)
	}
	row := append(p.rows[n][:0], r.values...)
	err := guard(func() error {
		for i, ours := range p.o.ours {
			start := len(row)
			row = ours.schema.Deconstruct(row, rows[i])
			for k := start; k < len(row); k++ {
				v := &row[k]
				*v = v.Level(v.RepetitionLevel(), v.DefinitionLevel(), v.Column()+ours.first)
			}
		}
		return nil
	})
	p.rows[n] = row
	p.Rows++
	for i := range row {
		p.bytes += valueBytes
		if row[i].Kind() == parquet.ByteArray {
			p.bytes += len(row[i].ByteArray())
		}
	}
	if err == nil && (len(p.rows) >= chunkRows || p.bytes > groupBytes) {
		err = p.push()
	}
	if err == nil && p.bytes > groupBytes {
		p.bytes = 0
		err = guard(p.w.Flush)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", p.file.path, err)
	}
	return nil
}

// push gives the rows collected to the library.
func (p *Part) push() error {
	err := guard(func() error {
		_, err := p.w.WriteRows(p.rows)
		return err
	})
	p.rows = p.rows[:0]
	return err
}

// Close finishes the file and gives it its name.
func (p *Part) Close() error {
	err := p.push()
	if err == nil {
		err = guard(p.w.Close)
	}
	if err == nil {
		err = trimFooter(p.file, p.w.File().Metadata())
	}
	if err != nil {
		p.Abort()
		return fmt.Errorf("writing %s: %w", p.file.path, err)
	}
	return p.file.Commit()
}

// Abort drops the file.
func (p *Part) Abort() {
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
		for _, prefix := range []string{arrowSchemaKey, "org.apache.spark.", "spark.", "iceberg.", "avro.", "parquet.avro.", "writer.model.", "glmbatch."} {
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
	return f.keyValues(), f.NumRows(), nil
}
