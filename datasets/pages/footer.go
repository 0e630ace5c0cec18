package pages

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is a physical type, numbered as in the format.
type Kind int32

const (
	Boolean Kind = iota
	Int32
	Int64
	Int96
	Float
	Double
	ByteArray
	FixedLenByteArray
	Group Kind = -1 // no type: the element has children
)

// Repetitions of an element.
const (
	Required = iota
	Optional
	Repeated
)

// Element is a node of a schema, as the file has it.
type Element struct {
	Raw        []byte // all of it in Thrift's compact protocol, whole and walked
	Kind       Kind
	Length     int32 // bytes of a value of FixedLenByteArray
	Repetition int32
	Name       string
	Children   int32
}

// Leaf is a leaf column.
type Leaf struct {
	*Element
	Path           []string
	MaxRep, MaxDef uint8
}

// Width is the bytes of a value, or 0 if they differ.
func (l *Leaf) Width() int {
	switch l.Kind {
	case Boolean:
		return 1
	case Int32, Float:
		return 4
	case Int64, Double:
		return 8
	case Int96:
		return 12
	case FixedLenByteArray:
		return int(l.Length)
	}
	return 0
}

// Chunk is where a column of a row group lies.
type Chunk struct {
	Kind       Kind
	Codec      int32
	Values     int64  // with nulls
	Nulls      int64  // by the statistics; -1: unknown
	Min, Max   []byte // by the statistics, of any length; nil: unknown
	Compressed int64  // bytes of all pages
	DataPage   int64
	Dictionary int64 // 0: none
	Encrypted  bool
	Elsewhere  bool // in another file

	reps, defs int  // entries of the level histograms of the size statistics; 0: there are none
	unencoded  bool // the size statistics have the bytes of byte arrays
}

// RowGroup is a part of a file's rows.
type RowGroup struct {
	Rows   int64
	Chunks []Chunk
}

// KeyValue is an entry of a file's metadata. Value is empty where it is absent.
type KeyValue struct{ Key, Value string }

// File is an open file: what its footer says.
type File struct {
	Elements  []Element // depth first; the first is the root
	Leaves    []Leaf
	Groups    []RowGroup
	Rows      int64 // of all row groups
	Meta      []KeyValue
	CreatedBy string
	Footer    []byte

	r    io.ReaderAt
	data int64 // bytes before the footer
}

const (
	magic          = "PAR1"
	magicEncrypted = "PARE"
	minFile        = 12 // magic, empty footer, its length, magic
)

// Open reads a footer; no page is read yet.
func Open(r io.ReaderAt, size int64) (*File, error) {
	if size < minFile {
		return nil, fmt.Errorf("not a Parquet file: %d bytes", size)
	}
	var head [4]byte
	var tail [8]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return nil, err
	}
	if _, err := r.ReadAt(tail[:], size-8); err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case string(head[:]) == magicEncrypted || string(tail[4:]) == magicEncrypted:
		return nil, fmt.Errorf("the Parquet file is %w: decrypt it first", ErrEncrypted)
	case string(head[:]) != magic:
		return nil, fmt.Errorf("not a Parquet file: it starts with %q", head[:])
	case string(tail[4:]) != magic:
		return nil, fmt.Errorf("the Parquet file is cut off: its footer is missing")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-minFile {
		return nil, fmt.Errorf("damaged Parquet footer: %d bytes in a file of %d", n, size)
	}
	if n > MaxFooter {
		return nil, unsupported("a footer of %d MiB; at most %d MiB are read", n>>20, MaxFooter>>20)
	}
	f := &File{r: r, data: size - 8 - n, Footer: make([]byte, n)}
	if _, err := r.ReadAt(f.Footer, f.data); err != nil {
		return nil, err
	}
	if err := f.parse(); err != nil {
		return nil, fmt.Errorf("damaged Parquet footer: %w", err)
	}
	return f, f.check()
}

func (f *File) parse() error {
	t := thriftReader{b: f.Footer}
	if t.verify("FileMetaData"); t.err != nil {
		return t.err
	}
	t = thriftReader{b: f.Footer}
	orders := -1
	t.fields(func(id int64, typ byte) bool {
		switch {
		case id == 2 && typ == thriftList:
			t.list(thriftStruct, func() {
				if len(f.Elements) > 4*MaxColumns {
					t.fail(unsupported("more than %d columns", MaxColumns))
					return
				}
				f.Elements = append(f.Elements, t.element())
			})
		case id == 4 && typ == thriftList:
			chunks := 0
			t.list(thriftStruct, func() {
				g := t.rowGroup()
				if chunks += len(g.Chunks); chunks > MaxChunks {
					t.fail(unsupported("more than %d column chunks", MaxChunks))
					return
				}
				f.Groups = append(f.Groups, g)
			})
		case id == 5 && typ == thriftList:
			t.list(thriftStruct, func() { f.Meta = append(f.Meta, t.keyValue()) })
		case id == 6 && typ == thriftBinary:
			f.CreatedBy = string(t.binary())
		case id == 7 && typ == thriftList:
			orders = t.count(thriftStruct)
		default:
			return false
		}
		return true
	})
	if t.err == nil {
		t.err = f.findLeaves()
	}
	if t.err == nil && orders >= 0 && orders < len(f.Leaves) {
		t.err = damaged("%d column orders of %d columns", orders, len(f.Leaves))
	}
	return t.err
}

func (t *thriftReader) element() Element {
	e := Element{Kind: Group}
	at := t.at
	t.fields(func(id int64, typ byte) bool {
		switch {
		case id == 1 && typ == thriftI32:
			e.Kind = Kind(t.i32())
		case id == 2 && typ == thriftI32:
			e.Length = t.i32()
		case id == 3 && typ == thriftI32:
			e.Repetition = t.i32()
		case id == 4 && typ == thriftBinary:
			e.Name = string(t.binary())
		case id == 5 && typ == thriftI32:
			e.Children = t.i32()
		default:
			return false
		}
		return true
	})
	e.Raw = t.b[at:t.at]
	return e
}

func (t *thriftReader) keyValue() (kv KeyValue) {
	t.fields(func(id int64, typ byte) bool {
		switch {
		case id == 1 && typ == thriftBinary:
			kv.Key = string(t.binary())
		case id == 2 && typ == thriftBinary:
			kv.Value = string(t.binary())
		default:
			return false
		}
		return true
	})
	return kv
}

func (t *thriftReader) rowGroup() (g RowGroup) {
	t.fields(func(id int64, typ byte) bool {
		switch {
		case id == 1 && typ == thriftList:
			t.list(thriftStruct, func() { g.Chunks = append(g.Chunks, t.chunk()) })
		case id == 3 && typ == thriftI64:
			g.Rows = t.zigzag()
		default:
			return false
		}
		return true
	})
	return g
}

func (t *thriftReader) chunk() Chunk {
	c := Chunk{Kind: Group, Nulls: -1}
	t.fields(func(id int64, typ byte) bool {
		switch {
		case id == 1 && typ == thriftBinary:
			c.Elsewhere = len(t.binary()) > 0
		case id == 3 && typ == thriftStruct:
			t.chunkMeta(&c)
		case id == 8 && typ == thriftStruct, id == 9 && typ == thriftBinary:
			c.Encrypted = true
			return false
		default:
			return false
		}
		return true
	})
	return c
}

func (t *thriftReader) chunkMeta(c *Chunk) {
	t.fields(func(id int64, typ byte) bool {
		switch {
		case id == 1 && typ == thriftI32:
			c.Kind = Kind(t.i32())
		case id == 4 && typ == thriftI32:
			c.Codec = t.i32()
		case id == 5 && typ == thriftI64:
			c.Values = t.zigzag()
		case id == 7 && typ == thriftI64:
			c.Compressed = t.zigzag()
		case id == 9 && typ == thriftI64:
			c.DataPage = t.zigzag()
		case id == 11 && typ == thriftI64:
			c.Dictionary = t.zigzag()
		case id == 12 && typ == thriftStruct:
			t.fields(func(id int64, typ byte) bool {
				switch {
				case id == 3 && typ == thriftI64:
					c.Nulls = t.zigzag()
				case id == 5 && typ == thriftBinary:
					c.Max = t.binary()
				case id == 6 && typ == thriftBinary:
					c.Min = t.binary()
				default:
					return false
				}
				return true
			})
		case id == 16 && typ == thriftStruct:
			t.fields(func(id int64, typ byte) bool {
				switch {
				case id == 1 && typ == thriftI64:
					c.unencoded = true
					return false
				case id == 2 && typ == thriftList:
					c.reps = t.count(thriftI64)
				case id == 3 && typ == thriftList:
					c.defs = t.count(thriftI64)
				default:
					return false
				}
				return true
			})
		default:
			return false
		}
		return true
	})
}

// findLeaves checks the tree of elements and lists its leaves.
func (f *File) findLeaves() error {
	at := 0
	var walk func(depth int, path []string, rep, def uint8) error
	walk = func(depth int, path []string, rep, def uint8) error {
		if at >= len(f.Elements) {
			return damaged("the schema has fewer columns than it says")
		}
		e := &f.Elements[at]
		at++
		switch {
		case depth > MaxNesting:
			return unsupported("a schema nested more than %d deep", MaxNesting)
		case !utf8.ValidString(e.Name):
			return damaged("the name of column %q is not UTF-8", e.Name)
		case e.Children < 0 || e.Repetition < Required || e.Repetition > Repeated || e.Kind < Group ||
			e.Kind > FixedLenByteArray:
			return damaged("column %q of the schema", e.Name)
		}
		if e.Children > 0 {
			e.Kind = Group
		}
		if err := e.checkAnnotations(); err != nil {
			return err
		}
		if depth > 0 {
			path = append(path[:len(path):len(path)], e.Name)
			if e.Repetition != Required {
				def++
			}
			if e.Repetition == Repeated {
				rep++
			}
		}
		if e.Kind == Group {
			for range e.Children {
				if err := walk(depth+1, path, rep, def); err != nil {
					return err
				}
			}
			return nil
		}
		if e.Kind == FixedLenByteArray && (e.Length <= 0 || e.Length > MaxPage) {
			return damaged("column %q has values of %d bytes", e.Name, e.Length)
		}
		if len(f.Leaves) >= MaxColumns {
			return unsupported("more than %d columns", MaxColumns)
		}
		f.Leaves = append(f.Leaves, Leaf{e, path, rep, def})
		return nil
	}
	if err := walk(0, nil, 0, 0); err != nil {
		return err
	}
	if at != len(f.Elements) {
		return damaged("the schema has %d columns too many", len(f.Elements)-at)
	}
	return nil
}

// check bounds what later reads trust.
func (f *File) check() error {
	if len(f.Leaves) == 0 {
		return fmt.Errorf("the Parquet file has no columns")
	}
	for i := range f.Groups {
		g := &f.Groups[i]
		if g.Rows < 0 || f.Rows > math.MaxInt64-g.Rows {
			return fmt.Errorf("damaged Parquet footer: row group %d has %d rows", i, g.Rows)
		}
		f.Rows += g.Rows
		if len(g.Chunks) != len(f.Leaves) {
			return fmt.Errorf("damaged Parquet footer: row group %d has %d columns, the schema %d", i, len(g.Chunks),
				len(f.Leaves))
		}
		for j := range g.Chunks {
			c, l := &g.Chunks[j], &f.Leaves[j]
			switch {
			case c.Encrypted:
				return fmt.Errorf("column %q is %w: decrypt the file first", l.Name, ErrEncrypted)
			case c.Elsewhere:
				return unsupported("column %q lies in another file", l.Name)
			case c.Kind != l.Kind:
				return fmt.Errorf("damaged Parquet footer: column %q has two types", l.Name)
			case c.Compressed < 0 || c.DataPage < 0 || c.Dictionary < 0 || c.Values < 0 ||
				(c.Values > 0 && c.start() >= f.data) || c.Compressed > f.data:
				return fmt.Errorf("damaged Parquet footer: column %q of row group %d lies outside the file", l.Name, i)
			case l.MaxRep == 0 && c.Values != g.Rows:
				return fmt.Errorf("damaged Parquet footer: column %q of row group %d has %d values in %d rows", l.Name,
					i, c.Values, g.Rows)
			case c.reps > 0 && c.reps != int(l.MaxRep)+1, c.defs > 0 && c.defs != int(l.MaxDef)+1,
				c.unencoded && l.Kind != ByteArray:
				return fmt.Errorf("damaged Parquet footer: the size statistics of column %q of row group %d are another "+
					"type's", l.Name, i)
			}
		}
	}
	return nil
}

// start is where the pages begin. Some writers give a dictionary's place although
// there is none, or none although there is.
func (c *Chunk) start() int64 {
	if c.Dictionary > 0 && c.Dictionary < c.DataPage {
		return c.Dictionary
	}
	return c.DataPage
}

// end is where a column's pages end at the latest. parquet-mr before 1.2.9 left the header
// of a dictionary out of the size (PARQUET-816).
func (f *File) end(c *Chunk) int64 {
	const dictionaryHeader = 100
	n := c.Compressed
	if rest, ok := strings.CutPrefix(f.CreatedBy, "parquet-mr"); ok {
		v := [3]int{}
		_, _ = fmt.Sscanf(rest, " version %d.%d.%d", &v[0], &v[1], &v[2]) // 0.0.0 if it does not say
		if slices.Compare(v[:], []int{1, 2, 9}) < 0 {
			n += dictionaryHeader
		}
	}
	return c.start() + min(n, f.data-c.start())
}
