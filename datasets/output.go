package datasets

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Output is the schema of result files: the input's columns as they are, then
// those of our structs. A column of ours whose name the input has already, gets
// the prefix "glm_".
type Output struct {
	Names []string // of our columns, in order

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

const namePrefix = "glm_"

// NewOutput makes the schema. rows are zero values of the structs, in order.
func NewOutput(in *Input, rows ...any) *Output {
	o := &Output{inputs: in.root.leaves, meta: keptMetadata(in.meta)}
	root := &node{name: "schema", typ: in.root.typ, stored: in.root.typ}
	root.fields = append(root.fields, in.root.fields...)
	first := in.root.leaves
	for _, row := range rows {
		s := parquet.SchemaOf(row)
		n := structNode(s)
		o.ours = append(o.ours, ourColumns{reflect.TypeOf(row), s, first})
		first += n.leaves
		for i := range n.fields {
			c := n.child(i)
			for root.field(c.name) != nil {
				c.name = namePrefix + c.name
			}
			root.fields = append(root.fields, c)
			o.Names = append(o.Names, c.name)
		}
	}
	root.number(0, 0)
	in.root.number(0, 0)
	o.schema = parquet.NewSchema("schema", root)
	added := root.fields[len(in.root.fields):]
	o.describe(in.meta, added)
	return o
}

// Part is one file of results.
type Part struct {
	o     *Output
	file  *aside
	w     *parquet.Writer
	row   parquet.Row
	Rows  int64
	bytes int // of the open row group
}

// Create begins a file. meta is stored beside the input's own metadata.
func (o *Output) Create(path string, meta map[string]string) (*Part, error) {
	file, err := createAside(path)
	if err != nil {
		return nil, err
	}
	options := []parquet.WriterOption{o.schema, parquet.MaxRowsPerRowGroup(groupRows), parquet.PageBufferSize(pageBytes), createdBy}
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
		file.abort()
		return nil, fmt.Errorf("writing %s: %w", path, err)
	}
	return p, nil
}

// Write appends one row: the input's record and one struct of each type that
// NewOutput was given.
func (p *Part) Write(r Record, rows ...any) error {
	row := append(p.row[:0], r.values...)
	err := guard(func() error {
		for i, ours := range p.o.ours {
			start := len(row)
			row = ours.schema.Deconstruct(row, rows[i])
			for k := start; k < len(row); k++ {
				v := &row[k]
				*v = v.Level(v.RepetitionLevel(), v.DefinitionLevel(), v.Column()+ours.first)
			}
		}
		_, err := p.w.WriteRows([]parquet.Row{row})
		return err
	})
	p.row = row
	p.Rows++
	for i := range row {
		p.bytes += valueBytes
		if row[i].Kind() == parquet.ByteArray {
			p.bytes += len(row[i].ByteArray())
		}
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

// Close finishes the file and gives it its name.
func (p *Part) Close() error {
	if err := guard(p.w.Close); err != nil {
		p.file.abort()
		return fmt.Errorf("writing %s: %w", p.file.path, err)
	}
	return p.file.commit()
}

// Abort drops the file.
func (p *Part) Abort() { p.file.abort() }

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
	meta = map[string]string{}
	for _, kv := range f.File.Metadata().KeyValueMetadata {
		meta[kv.Key] = kv.Value
	}
	return meta, f.NumRows(), nil
}
