package datasets

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/parquet-go/parquet-go"
)

// Lines is the format of a [Printer] that writes an object a line; the other is [Arrow].
const Lines = "jsonl"

// Printer writes rows to a stream while they come: as JSON lines, where keys whose value
// is null are left out, or as an Arrow IPC stream. It holds at most [batchRows] rows, and
// about [batchBytes] of them.
type Printer struct {
	o      *Output
	schema *node

	lines *bufio.Writer
	line  []byte

	stream  *ipc.Writer
	build   *array.RecordBuilder
	waiting int // rows in build
	bytes   int // of them
}

// Printer begins to write rows of the output's schema to w.
func (o *Output) Printer(w io.Writer, format string) (*Printer, error) {
	p, err := newPrinter(o.root, w, format)
	if err == nil {
		p.o = o
	}
	return p, err
}

func newPrinter(root *node, w io.Writer, format string) (*Printer, error) {
	p := &Printer{schema: root}
	if format == Lines {
		p.lines = bufio.NewWriter(w)
		return p, nil
	}
	fields := make([]arrow.Field, len(root.fields))
	for i := range fields {
		var err error
		if fields[i], err = arrowField(root.child(i)); err != nil {
			return nil, fmt.Errorf("column %q: %w", root.child(i).name, err)
		}
	}
	mem, schema := memory.NewGoAllocator(), arrow.NewSchema(fields, nil)
	p.stream = ipc.NewWriter(w, ipc.WithSchema(schema), ipc.WithAllocator(mem))
	p.build = array.NewRecordBuilder(mem, schema)
	return p, nil
}

// Write prints one row: the input's record and one struct, or a pointer to it, of each
// type that NewOutput was given.
func (p *Printer) Write(r Record, rows ...any) error {
	whole, err := p.o.record(r, rows)
	if err != nil {
		return err
	}
	return p.record(p.schema, whole)
}

// File prints the rows of a file that has the printer's schema.
func (p *Printer) File(path string) error {
	in, err := Open([]string{path})
	if err != nil {
		return err
	}
	return p.input(in)
}

func (p *Printer) input(in *Input) error {
	return in.Each(func(rec Record) error {
		if err := p.record(in.root, rec); err != nil {
			return badFile(in.Paths(), fmt.Errorf("row %d: %w", rec.Index, err))
		}
		return nil
	})
}

// record prints a record of a table.
func (p *Printer) record(table *node, r Record) error {
	if p.lines != nil {
		var err error
		if p.line, _, err = (Field{node: table}).document(p.line[:0], r); err != nil {
			return err
		}
		_, err = p.lines.Write(append(p.line, '\n'))
		return err
	}
	err := guard(func() error {
		for i := range table.fields {
			if err := buildArrow(p.build.Field(i), table.child(i), r); err != nil {
				return fmt.Errorf("column %q: %w", table.child(i).name, err)
			}
		}
		return nil
	})
	p.waiting++
	p.bytes += r.Bytes()
	if err == nil && (p.waiting == batchRows || p.bytes >= batchBytes) {
		err = p.Flush()
	}
	return err
}

// Flush writes what is held.
func (p *Printer) Flush() error {
	if p.lines != nil {
		return p.lines.Flush()
	}
	if p.waiting == 0 {
		return nil
	}
	p.waiting, p.bytes = 0, 0
	rec := p.build.NewRecord()
	defer rec.Release()
	return p.stream.Write(rec)
}

// Close writes what is held, and the stream's end.
func (p *Printer) Close() error {
	err := p.Flush()
	if p.stream != nil {
		err = errors.Join(err, p.stream.Close())
	}
	return err
}

// record is a row of the output as it lies in its files.
func (o *Output) record(r Record, rows []any) (whole Record, err error) {
	whole = Record{Index: r.Index, data: r.data[:len(r.data):len(r.data)], ends: r.ends[:len(r.ends):len(r.ends)]}
	leaves := o.root.leafNodes()[o.inputs:]
	err = guard(func() error {
		at := 0
		for i, ours := range o.ours {
			row := ours.schema.Deconstruct(nil, rows[i])
			for n := 0; n < len(row); at++ {
				leaf, column := leaves[at], row[n].Column()
				for ; n < len(row) && row[n].Column() == column; n++ {
					v := &row[n]
					whole.data = appendCell(whole.data, leaf, uint8(v.RepetitionLevel()), uint8(v.DefinitionLevel()),
						packed(*v))
				}
				whole.ends = append(whole.ends, uint32(len(whole.data)))
			}
		}
		return nil
	})
	return whole, err
}

// packed is a library's value as a [Record] has it; nil is null.
func packed(v parquet.Value) []byte {
	if v.IsNull() {
		return nil
	}
	return v.AppendBytes([]byte{})
}
