package datasets

import (
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"

	"glmbatch/datasets/pages"
)

// Read calls f with the rows of a file, or of every Parquet and Arrow file of a
// folder in the order of their names, a block at a time. Columns that a file
// lacks are zero, and so are nulls where the struct has no pointer. The rows are
// f's only until it returns.
func Read[T any](path string, f func(rows []T) error) error {
	files, err := tables(path)
	if err != nil {
		return err
	}
	for _, file := range files {
		if isArrow(file) {
			err = readArrow(file, f)
		} else {
			err = readParquet(file, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func tables(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, badFile(path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	return tablesBelow(path)
}

func readParquet[T any](path string, f func([]T) error) error {
	schema := parquet.SchemaOf(*new(T))
	in, rows, err := openStructs(path, schema)
	if err != nil {
		return badFile(path, err)
	}
	r := in.Reader(0, in.Rows)
	defer r.Close()
	var block []T
	for {
		records, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		block = block[:0]
		for _, rec := range records {
			var row T
			if err := guard(func() error { return schema.Reconstruct(&row, rows.of(rec)) }); err != nil {
				return badFile(path, err)
			}
			block = append(block, row)
		}
		if err := f(block); err != nil {
			return err
		}
	}
}

// openStructs opens a file as the table of a struct's columns: those that a file
// has beside them are not read.
func openStructs(path string, schema *parquet.Schema) (*Input, *structRows, error) {
	f, err := openParquet(source{path: path})
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	in := &Input{}
	var rows *structRows
	err = guard(func() error {
		file, _, err := in.add(f)
		if err != nil {
			return err
		}
		ours := structNode(schema)
		in.root = copyNode(ours)
		in.root.nullable()
		in.root.number(0, 0, 0)
		for i := range in.root.fields {
			t := in.root.child(i)
			c := file.field(t.name)
			if c == nil {
				continue
			}
			if err := readable(c, t); err != nil {
				return fmt.Errorf("column %q is %s, want %s", c.name, signature(c), signature(t))
			}
		}
		in.Files[0].feeds, err = place(file, in.root, true)
		rows = &structRows{nullable: in.root.leafNodes(), leaves: ours.leafNodes(), levels: structLevels(ours, in.root)}
		return err
	})
	return in, rows, err
}

// nullable makes every node below n optional, so that a file's nulls have a place.
func (n *node) nullable() {
	for i := range n.fields {
		c := n.child(i)
		c.optional()
		c.nullable()
	}
}

// readable reports whether a file's column fits a struct's field: its numbers may
// be of another width, its texts of another kind.
func readable(c, t *node) error {
	switch {
	case c.leaf != t.leaf || c.isList() != t.isList():
		return errTypes
	case !c.leaf && c.isList():
		return readable(element(c.child(0)), element(t.child(0)))
	case !c.leaf:
		for i := range t.fields {
			if f := c.field(t.child(i).name); f != nil {
				if err := readable(f, t.child(i)); err != nil {
					return err
				}
			}
		}
		return nil
	case c.isNull(), c.nulls, c.typ == t.typ:
		return nil
	case t.typ.isInt() && c.typ.isInt(), t.typ.isFloat() && (c.typ.isFloat() || c.typ.isInt()),
		t.typ.kind == pages.ByteArray && c.typ.kind == pages.ByteArray:
		return nil
	}
	return errTypes
}

// structRows turns records of a nullable table into the library's rows of a struct.
type structRows struct {
	nullable, leaves []*node
	levels           [][]uint8 // of each leaf: the struct's definition level of the table's
	row              parquet.Row
}

// structLevels follows both trees, which differ in what is optional alone.
func structLevels(ours, table *node) [][]uint8 {
	var all [][]uint8
	var walk func(n, t *node, levels []uint8)
	walk = func(n, t *node, levels []uint8) {
		levels = levels[:len(levels):len(levels)]
		if t.rep != required {
			levels = append(levels, n.maxDef)
		}
		if n.leaf {
			all = append(all, levels)
		}
		for i := range n.fields {
			walk(n.child(i), t.child(i), levels)
		}
	}
	walk(ours, table, []uint8{0})
	return all
}

func (s *structRows) of(r Record) parquet.Row {
	s.row = s.row[:0]
	for i, leaf := range s.leaves {
		for c := r.cells(s.nullable[i]); c.ok; c.next() {
			def := s.levels[i][c.def]
			v := libraryValue(leaf.typ.kind, c.value)
			if c.value == nil && def == leaf.maxDef { // null where the struct has no pointer
				v = parquet.ZeroValue(parquet.Kind(leaf.typ.kind))
			}
			s.row = append(s.row, v.Level(int(c.rep), int(def), i))
		}
	}
	return s.row
}
