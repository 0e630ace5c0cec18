package datasets

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"
)

var codec = &zstd.Codec{Level: zstd.SpeedFastest}

type repetition uint8

const (
	required repetition = iota
	optional
	repeated
)

// node is a node of a schema that keeps its fields in the file's order (the
// library's own Group sorts them) and every annotation as the file has it. It is
// a parquet.Field.
type node struct {
	name   string
	id     int
	rep    repetition
	leaf   bool
	typ    parquet.Type
	stored parquet.Type      // typ with the annotations of its file, where they differ; else typ
	enc    encoding.Encoding // nil: the writer's default
	fields []parquet.Field   // all *node

	first, leaves int // leaf columns below: [first, first+leaves)
	maxDef        int // definition level of a value that is there
}

func (n *node) ID() int                     { return n.id }
func (n *node) Name() string                { return n.name }
func (n *node) String() string              { return signature(n) }
func (n *node) Type() parquet.Type          { return n.stored }
func (n *node) Optional() bool              { return n.rep == optional }
func (n *node) Repeated() bool              { return n.rep == repeated }
func (n *node) Required() bool              { return n.rep == required }
func (n *node) Leaf() bool                  { return n.leaf }
func (n *node) Fields() []parquet.Field     { return n.fields }
func (n *node) Encoding() encoding.Encoding { return n.enc }
func (n *node) GoType() reflect.Type        { return reflect.TypeFor[any]() }
func (n *node) Compression() compress.Codec {
	if n.leaf {
		return codec
	}
	return nil
}

// Value is for rows that are Go values; ours never are.
func (n *node) Value(base reflect.Value) reflect.Value { return base }

func (n *node) child(i int) *node { return n.fields[i].(*node) }

// annotated is a type with the annotations that its file has, where the library
// would write others (INT(64,true) for a bare INT64) or none (FLOAT16).
type annotated struct {
	parquet.Type
	logical   *format.LogicalType
	converted *deprecated.ConvertedType
}

func (a annotated) LogicalType() *format.LogicalType         { return a.logical }
func (a annotated) ConvertedType() *deprecated.ConvertedType { return a.converted }

func annotate(typ parquet.Type, e *format.SchemaElement) parquet.Type {
	a := annotated{Type: typ}
	if e.LogicalType.Value != nil {
		a.logical = &e.LogicalType
	}
	if e.ConvertedType.Valid {
		a.converted = &e.ConvertedType.V
	}
	lt, ct := typ.LogicalType(), typ.ConvertedType()
	sameLogical := (lt == nil) == (a.logical == nil)
	sameConverted := (ct == nil) == (a.converted == nil) && (ct == nil || *ct == *a.converted)
	if sameLogical && sameConverted {
		return typ
	}
	return a
}

// fileNode returns the schema of a file as a tree of nodes.
func fileNode(f *parquet.File) *node {
	elems := f.Metadata().Schema
	var build func(c *parquet.Column) *node
	build = func(c *parquet.Column) *node {
		e := elems[0]
		elems = elems[1:]
		n := &node{name: c.Name(), id: c.ID(), leaf: c.Leaf(), typ: c.Type()}
		switch {
		case c.Optional():
			n.rep = optional
		case c.Repeated():
			n.rep = repeated
		}
		n.stored = n.typ
		if n.leaf {
			n.stored = annotate(n.typ, &e)
			if n.isNull() { // the library's null type has no physical type, which footers need
				n.stored = annotated{Type: parquet.Int32Type, logical: &e.LogicalType}
			}
			n.enc = &parquet.Plain
		}
		for _, child := range c.Columns() {
			n.fields = append(n.fields, build(child))
		}
		return n
	}
	root := build(f.Root())
	root.rep = required
	root.number(0, 0)
	return root
}

// structNode returns the schema of a Go struct as a tree of nodes.
func structNode(s *parquet.Schema) *node {
	var build func(name string, p parquet.Node) *node
	build = func(name string, p parquet.Node) *node {
		n := &node{name: name, id: p.ID(), leaf: p.Leaf(), typ: p.Type(), stored: p.Type(), enc: p.Encoding()}
		switch {
		case p.Optional():
			n.rep = optional
		case p.Repeated():
			n.rep = repeated
		}
		if n.leaf && n.enc == nil {
			n.enc = &parquet.Plain
		}
		for _, f := range p.Fields() {
			n.fields = append(n.fields, build(f.Name(), f))
		}
		return n
	}
	root := build(s.Name(), s)
	root.number(0, 0)
	return root
}

// number sets the leaf ranges and levels below n and returns the next leaf. def
// is the level of n's parent.
func (n *node) number(first, def int) int {
	n.first = first
	if n.rep != required {
		def++
	}
	n.maxDef = def
	if n.leaf {
		n.leaves = 1
		return first + 1
	}
	for i := range n.fields {
		first = n.child(i).number(first, def)
	}
	n.leaves = first - n.first
	return first
}

// signature writes a node's type below its own repetition, so that equal types
// have equal signatures. It is also what errors show.
func signature(n *node) string {
	if n.leaf {
		return n.typ.String()
	}
	name := "struct"
	if lt := n.typ.LogicalType(); lt != nil {
		name = strings.ToLower(lt.String())
	}
	parts := make([]string, len(n.fields))
	for i := range n.fields {
		c := n.child(i)
		parts[i] = fmt.Sprintf("%s%s: %s", c.name, [...]string{"", "?", "*"}[c.rep], signature(c))
	}
	return name + "<" + strings.Join(parts, ", ") + ">"
}

// isNull reports a leaf of the type of columns that only ever hold nulls.
func (n *node) isNull() bool {
	if !n.leaf {
		return false
	}
	lt := n.typ.LogicalType()
	if lt == nil {
		return false
	}
	_, ok := lt.Value.(*format.NullType)
	return ok
}
