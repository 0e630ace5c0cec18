package datasets

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
)

// arrowTable writes the rows of an Arrow IPC file or stream as a Parquet file.
func arrowTable(raw *os.File, name, path string) error {
	info, err := raw.Stat()
	if err != nil {
		return badFile(name, err)
	}
	err = guard(func() error {
		var magic [6]byte
		if _, err := raw.ReadAt(magic[:], 0); err != nil {
			return err
		}
		if string(magic[:]) == arrowMagic {
			if err := checkArrow(raw, info.Size()); err != nil {
				return err
			}
			r, err := ipc.NewFileReader(raw)
			if err != nil {
				return fmt.Errorf("not an Arrow IPC file: %w", err)
			}
			defer r.Close()
			return writeRecords(r.Schema(), fileRecords(r), path)
		}
		if err := checkArrowStream(raw, info.Size()); err != nil {
			return err
		}
		r, err := ipc.NewReader(raw)
		if err != nil {
			return fmt.Errorf("not an Arrow IPC stream: %w", err)
		}
		defer r.Release()
		return writeRecords(r.Schema(), r.Read, path)
	})
	return badFile(name, err)
}

// fileRecords reads a file's batches one after the other.
func fileRecords(r *ipc.FileReader) func() (arrow.Record, error) {
	next := 0
	return func() (arrow.Record, error) {
		if next == r.NumRecords() {
			return nil, io.EOF
		}
		next++
		return r.Record(next - 1)
	}
}

// checkArrowStream is checkArrow for the stream format: messages one after the other.
func checkArrowStream(r io.ReaderAt, size int64) error {
	c := arrowCheck{r: r, size: size}
	for at, first := int64(0), true; at < size; first = false {
		var head [8]byte
		if n, err := r.ReadAt(head[:], at); n < 4 {
			return damagedArrow(err)
		}
		skip, meta := int64(8), int64(int32(binary.LittleEndian.Uint32(head[4:])))
		if binary.LittleEndian.Uint32(head[:]) != 0xFFFFFFFF {
			skip, meta = 4, int64(int32(binary.LittleEndian.Uint32(head[:])))
		}
		if meta == 0 { // the end
			return nil
		}
		if meta < 8 || meta > maxArrowMeta || at+skip+meta > size {
			return fmt.Errorf("%w: a message of %d bytes at %d of %d", errArrow, meta, at, size)
		}
		message := make(flat, meta)
		if _, err := r.ReadAt(message, at+skip); err != nil {
			return err
		}
		at += skip + meta
		header, kind, body, err := c.open(message)
		if err != nil {
			return err
		}
		if body < 0 || body > size-at {
			return fmt.Errorf("%w: a body of %d bytes at %d of %d", errArrow, body, at, size)
		}
		switch {
		case first != (kind == 1):
			return fmt.Errorf("%w: a message of kind %d", errArrow, kind)
		case kind == 1:
			err = c.schema(header)
		default:
			err = c.message(kind, header, at, body)
		}
		if err != nil {
			return err
		}
		at += body
	}
	return nil
}

// damagedArrow is err, or that something is missing.
func damagedArrow(err error) error {
	if err == nil {
		err = errArrow
	}
	return err
}

// writeRecords writes batches until they end.
func writeRecords(schema *arrow.Schema, next func() (arrow.Record, error), path string) error {
	root := &node{name: "schema"}
	for _, f := range schema.Fields() {
		n, err := arrowNode(f)
		if err != nil {
			return fmt.Errorf("column %q: %w", f.Name, err)
		}
		root.fields = append(root.fields, n)
	}
	if len(root.fields) == 0 {
		return errors.New("there are no columns")
	}
	root.number(0, 0, 0)
	meta := map[string]string{}
	for i, key := range schema.Metadata().Keys() {
		meta[key] = schema.Metadata().Values()[i]
	}
	var buf bytes.Buffer
	if err := ipc.NewWriter(&buf, ipc.WithSchema(schema)).Close(); err != nil {
		return err
	}
	meta[arrowSchemaKey] = base64.StdEncoding.EncodeToString(buf.Bytes())
	part, err := tableOf(root, meta).Create(path, nil)
	if err != nil {
		return err
	}
	s := shredder{leaves: root.leafNodes(), root: root, columns: make([][]byte, root.leaves)}
	err = func() error {
		for {
			batch, err := next()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if err := s.batch(batch, part); err != nil {
				return err
			}
		}
	}()
	if err != nil {
		part.Abort()
		return err
	}
	return part.Close()
}

// shredder turns Arrow values into the leaf columns of a schema.
type shredder struct {
	root    *node
	leaves  []*node
	columns [][]byte // of a row, packed
	valid   arrowValues
}

func (s *shredder) batch(batch arrow.Record, part *Part) error {
	if err := s.valid.batch(batch); err != nil {
		return err
	}
	for i := range int(batch.NumRows()) {
		for k := range s.columns {
			s.columns[k] = s.columns[k][:0]
		}
		for k := range s.root.fields {
			if err := s.value(s.root.child(k), batch.Column(k), i, 0, 0, 0); err != nil {
				return fmt.Errorf("column %q: %w", s.root.child(k).name, err)
			}
		}
		var r Record
		for _, c := range s.columns {
			r.data = append(r.data, c...)
			r.ends = append(r.ends, uint32(len(r.data)))
		}
		if len(r.data) > maxRow {
			return errRow
		}
		if err := part.Write(r); err != nil {
			return err
		}
	}
	return nil
}

// value adds value i of an array at repetition level rep. def is the level of n's
// parent, depth the number of lists around n.
func (s *shredder) value(n *node, a arrow.Array, i int, rep, def, depth uint8) error {
	if a.DataType().ID() == arrow.NULL || a.IsNull(i) {
		if n.rep != optional {
			return errors.New("a null where the schema has none")
		}
		s.nulls(n, rep, def)
		return nil
	}
	if e, ok := a.(array.ExtensionArray); ok {
		return s.value(n, e.Storage(), i, rep, def, depth)
	}
	if d, ok := a.(*array.Dictionary); ok {
		return s.value(n, d.Dictionary(), d.GetValueIndex(i), rep, def, depth)
	}
	switch a := a.(type) {
	case array.ListLike: // maps too: lists of structs
		from, to := a.ValueOffsets(i)
		list := n.child(0)
		if from == to {
			s.nulls(list, rep, n.maxDef)
			return nil
		}
		for k := from; k < to; k++ {
			if err := s.element(list, a.ListValues(), int(k), rep, depth+1); err != nil {
				return err
			}
			rep = depth + 1
		}
		return nil
	case *array.Struct:
		for k := range n.fields {
			if err := s.value(n.child(k), a.Field(k), i, rep, n.maxDef, depth); err != nil {
				return err
			}
		}
		return nil
	}
	v, err := arrowValue(a, i)
	if err != nil {
		return err
	}
	s.columns[n.first] = appendCell(s.columns[n.first], n, rep, n.maxDef, v)
	return nil
}

// element adds one entry of a list or a map.
func (s *shredder) element(list *node, a arrow.Array, k int, rep, depth uint8) error {
	if len(list.fields) == 1 {
		return s.value(list.child(0), a, k, rep, list.maxDef, depth)
	}
	entry, ok := a.(*array.Struct)
	if !ok {
		return errors.New("a map whose entries are no structs")
	}
	for f := range list.fields {
		if err := s.value(list.child(f), entry.Field(f), k, rep, list.maxDef, depth); err != nil {
			return err
		}
	}
	return nil
}

// nulls adds what stands for no value in each leaf below n.
func (s *shredder) nulls(n *node, rep, def uint8) {
	for l := n.first; l < n.first+n.leaves; l++ {
		s.columns[l] = appendCell(s.columns[l], s.leaves[l], rep, def, nil)
	}
}
