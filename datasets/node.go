package datasets

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"

	"glmbatch/datasets/pages"
)

var codec = &zstd.Codec{Level: zstd.SpeedFastest}

type repetition uint8

const (
	required repetition = iota
	optional
	repeated
)

// leafType is the type of a leaf's values: equal types are equal values.
type leafType struct {
	kind     pages.Kind
	length   int32 // bytes of a value of FixedLenByteArray
	logical  pages.Logical
	duration pages.Unit // of integers that Arrow's schema says are durations
}

// textType is the type of texts.
var textType = leafType{kind: pages.ByteArray, logical: pages.Logical{Class: pages.String}}

// jsonType is the type of texts that are JSON documents.
var jsonType = leafType{kind: pages.ByteArray, logical: pages.Logical{Class: pages.JSON}}

func (t leafType) width() int {
	l := pages.Leaf{Element: &pages.Element{Kind: t.kind, Length: t.length}}
	return l.Width()
}

func (t leafType) String() string {
	kind := [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY",
		"FIXED_LEN_BYTE_ARRAY"}[t.kind]
	switch {
	case t.duration != pages.NoUnit:
		return "DURATION(" + t.duration.String() + ")"
	case t.logical.Class != pages.Plain:
		return t.logical.String()
	case t.kind == pages.FixedLenByteArray:
		return fmt.Sprintf("%s(%d)", kind, t.length)
	}
	return kind
}

// node is a node of a schema. It keeps its fields in the file's order (the
// library's own Group sorts them), and is a parquet.Field that the library's
// writer takes: to that it shows physical types alone. What they mean is in elem
// and is put into the footer, see [trimFooter].
type node struct {
	name    string
	rep     repetition
	leaf    bool
	typ     leafType        // of a leaf
	logical pages.Class     // of a group: List, Map, or Plain
	elem    *pages.Element  // as a file has it; nil: none has it so
	ours    parquet.Node    // of a struct of ours
	nulls   bool            // a leaf that has nulls alone in its file
	fields  []parquet.Field // all *node
	brief   bool            // is not read often: see [tableOf]

	first, leaves  int // leaf columns below: [first, first+leaves)
	maxRep, maxDef uint8
}

func (n *node) ID() int                 { return 0 }
func (n *node) Name() string            { return n.name }
func (n *node) String() string          { return signature(n) }
func (n *node) Optional() bool          { return n.rep == optional }
func (n *node) Repeated() bool          { return n.rep == repeated }
func (n *node) Required() bool          { return n.rep == required }
func (n *node) Leaf() bool              { return n.leaf }
func (n *node) Fields() []parquet.Field { return n.fields }
func (n *node) GoType() reflect.Type    { return reflect.TypeFor[any]() }

func (n *node) Encoding() encoding.Encoding {
	if n.ours != nil && n.ours.Encoding() != nil {
		return n.ours.Encoding()
	}
	switch {
	case !n.leaf:
		return nil
	case n.typ.kind == pages.ByteArray && !n.brief:
		return &parquet.RLEDictionary // the library's dictionaries of numbers have one place for 0 and -0
	}
	return &parquet.Plain
}

func (n *node) Compression() compress.Codec {
	if n.leaf {
		return codec
	}
	return nil
}

func (n *node) Type() parquet.Type {
	switch {
	case n.ours != nil && n.leaf:
		return ownPages{n.ours.Type()}
	case n.ours != nil:
		return n.ours.Type()
	case !n.leaf:
		return parquet.Group{}.Type()
	case n.typ.kind == pages.FixedLenByteArray:
		return ownPages{parquet.FixedLenByteArrayType(int(n.typ.length))}
	}
	return ownPages{[...]parquet.Type{parquet.BooleanType, parquet.Int32Type, parquet.Int64Type, parquet.Int96Type,
		parquet.FloatType, parquet.DoubleType,
		parquet.ByteArrayType}[n.typ.kind]}
}

// endlessPage is a size of pages that none reaches.
const endlessPage = math.MaxInt32

// ownPages is a type whose pages end where [Part] says: the writer's own limit is
// out of reach, and must not be taken for a page's size.
type ownPages struct{ parquet.Type }

func (t ownPages) EstimateNumValues(int) int { return t.Type.EstimateNumValues(pageBytes) }

func (t ownPages) NewDictionary(columnIndex, numValues int, data encoding.Values) parquet.Dictionary {
	return ownPagesDictionary{t.Type.NewDictionary(columnIndex, numValues, data), t}
}

type ownPagesDictionary struct {
	parquet.Dictionary
	plain ownPages
}

func (d ownPagesDictionary) Type() parquet.Type {
	return positions{ownPages{d.Dictionary.Type()}, d.plain}
}

// positions is the type of a column of positions in a dictionary. The writer asks for a
// buffer of the size of [endlessPage] when the dictionary is full: then it wants the values.
type positions struct {
	ownPages
	plain ownPages
}

func (p positions) NewColumnBuffer(columnIndex, numValues int) parquet.ColumnBuffer {
	if numValues > endlessPage/2 { // it leaves some room
		return p.plain.NewColumnBuffer(columnIndex, 0)
	}
	return p.ownPages.NewColumnBuffer(columnIndex, numValues)
}

// Value is for rows that are Go values; ours never are.
func (n *node) Value(base reflect.Value) reflect.Value { return base }

func (n *node) child(i int) *node { return n.fields[i].(*node) }

func (n *node) field(name string) *node {
	for i := range n.fields {
		if c := n.child(i); c.name == name {
			return c
		}
	}
	return nil
}

// fileNode returns the schema of a file as a tree of nodes.
func fileNode(f *pages.File) *node {
	at, leaf := 0, 0
	var build func() *node
	build = func() *node {
		e := &f.Elements[at]
		at++
		n := &node{name: e.Name, elem: e, rep: repetition(e.Repetition), leaf: e.Kind != pages.Group}
		logical := e.Logical()
		if n.leaf {
			n.typ = leafType{kind: e.Kind, logical: logical}
			if e.Kind == pages.FixedLenByteArray {
				n.typ.length = e.Length
			}
			n.nulls = onlyNulls(f, leaf)
			leaf++
			return n
		}
		switch logical.Class {
		case pages.List:
			n.logical = pages.List
		case pages.Map, pages.MapEntry:
			n.logical = pages.Map
		}
		for range e.Children {
			n.fields = append(n.fields, build())
		}
		return n
	}
	root := build()
	root.rep, root.logical = required, pages.Plain
	root.number(0, 0, 0)
	return root
}

// onlyNulls reports whether a leaf has no value in any row, by its statistics.
func onlyNulls(f *pages.File, leaf int) bool {
	for i := range f.Groups {
		if c := &f.Groups[i].Chunks[leaf]; c.Values != 0 && c.Nulls != c.Values {
			return false
		}
	}
	return true
}

// structNode returns the schema of a Go struct as a tree of nodes.
func structNode(s *parquet.Schema) *node {
	var build func(name string, p parquet.Node) *node
	build = func(name string, p parquet.Node) *node {
		n := &node{name: name, leaf: p.Leaf(), ours: p}
		lt := p.Type().LogicalType()
		if n.leaf {
			n.typ.kind = pages.Kind(p.Type().Kind())
		}
		if lt != nil {
			switch lt.Value.(type) {
			case *format.StringType:
				n.typ.logical.Class = pages.String
			case *format.ListType:
				n.logical = pages.List
			}
		}
		switch {
		case p.Optional():
			n.rep = optional
		case p.Repeated():
			n.rep = repeated
		}
		for _, f := range p.Fields() {
			n.fields = append(n.fields, build(f.Name(), f))
		}
		return n
	}
	root := build(s.Name(), s)
	root.number(0, 0, 0)
	return root
}

// number sets the leaf ranges and levels below n and returns the next leaf. rep
// and def are the levels of n's parent.
func (n *node) number(first int, rep, def uint8) int {
	n.first = first
	if n.rep != required {
		def++
	}
	if n.rep == repeated {
		rep++
	}
	n.maxRep, n.maxDef = rep, def
	if n.leaf {
		n.leaves = 1
		return first + 1
	}
	for i := range n.fields {
		first = n.child(i).number(first, rep, def)
	}
	n.leaves = first - n.first
	return first
}

// leafNodes lists the leaves below n, in order.
func (n *node) leafNodes() []*node {
	if n.leaf {
		return []*node{n}
	}
	var all []*node
	for i := range n.fields {
		all = append(all, n.child(i).leafNodes()...)
	}
	return all
}

// signature writes a node's type below its own repetition. It is what errors show.
func signature(n *node) string {
	if n.leaf {
		return n.typ.String()
	}
	if n.isList() {
		return "list<" + signature(element(n.child(0))) + ">"
	}
	name := "struct"
	if n.isMap() {
		name, n = "map", n.child(0)
	}
	parts := make([]string, len(n.fields))
	for i := range n.fields {
		c := n.child(i)
		parts[i] = fmt.Sprintf("%s%s: %s", c.name, [...]string{"", "?", "*"}[c.rep], signature(c))
	}
	return name + "<" + strings.Join(parts, ", ") + ">"
}

// isList reports the outer group of a list.
func (n *node) isList() bool {
	return !n.leaf && n.logical == pages.List && len(n.fields) == 1 && n.child(0).rep == repeated
}

// isMap reports the outer group of a map.
func (n *node) isMap() bool {
	return !n.leaf && n.logical == pages.Map && len(n.fields) == 1 && n.child(0).rep == repeated &&
		len(n.child(0).fields) == 2
}

// isNull reports a leaf of the type of columns that only ever hold nulls.
func (n *node) isNull() bool { return n.leaf && n.typ.logical.Class == pages.Null }

// element returns what a list's repeated field holds: three-level lists wrap the
// element, two-level lists are the element.
func element(rep *node) *node {
	if !rep.leaf && len(rep.fields) == 1 && rep.name != "array" && !strings.HasSuffix(rep.name, "_tuple") {
		return rep.child(0)
	}
	return rep
}
