package datasets

import (
	"errors"
	"unicode/utf8"

	"glmbatch/datasets/pages"
)

// ErrUTF8 is returned for text that is not valid UTF-8.
var ErrUTF8 = errors.New("invalid UTF-8")

// Shape is what a column can be asked for.
type Shape uint8

const (
	Other Shape = iota
	Text        // string, large_string, dictionary of strings, or bytes without a type
	Int
	Float // also decimals and half floats
	Bool
	List   // also of lists and structs
	Struct // also maps
	Null   // no type: every value is null
)

// Field is one top-level column of an [Input].
type Field struct {
	Name  string
	Shape Shape
	node  *node
}

// Lookup returns the column with a name.
func (in *Input) Lookup(name string) (Field, bool) {
	n := in.root.field(name)
	if n == nil {
		return Field{}, false
	}
	return Field{Name: name, Shape: shape(n), node: n}, true
}

// Element is what a list holds; Other if the field is none.
func (f Field) Element() Shape {
	switch {
	case f.Shape != List:
		return Other
	case f.node.rep == repeated: // of no list type: it is its own element
		return shape(asRequired(f.node))
	}
	return shape(asElement(element(f.node.child(0))))
}

// Names are the columns' names, in order.
func (in *Input) Names() []string {
	names := make([]string, len(in.root.fields))
	for i := range names {
		names[i] = in.root.child(i).name
	}
	return names
}

// Metadata is a value of the first file's own metadata; "": it has none.
func (in *Input) Metadata(key string) string { return in.meta[key] }

// Type describes the column's type for messages.
func (f Field) Type() string { return signature(f.node) }

func shape(n *node) Shape {
	switch {
	case n.rep == repeated, n.isList():
		return List
	case !n.leaf:
		return Struct
	}
	switch t := n.typ; t.logical.Class {
	case pages.Null:
		return Null
	case pages.Plain, pages.Integer:
		switch t.kind {
		case pages.Boolean:
			return Bool
		case pages.Int32, pages.Int64:
			if t.duration == pages.NoUnit {
				return Int
			}
		case pages.Float, pages.Double:
			return Float
		case pages.ByteArray:
			return Text
		}
	case pages.Half, pages.Decimal:
		return Float
	case pages.String, pages.Enum, pages.JSON:
		return Text
	}
	return Other
}

// Text returns the text of a Text column; ok is false for null. The bytes are
// the record's own. Its error is ErrUTF8.
func (f Field) Text(r Record) (s []byte, ok bool, err error) {
	if f.Shape != Text {
		return nil, false, nil
	}
	s = r.cells(f.node).value
	if s == nil {
		return nil, false, nil
	}
	if !utf8.Valid(s) {
		return nil, true, ErrUTF8
	}
	return s, true, nil
}

// JSON appends the value as JSON, whatever its type. Fields of structs that are
// null are left out. ok is false for null, which appends nothing. Its error is
// ErrUTF8, or says what is damaged.
func (f Field) JSON(dst []byte, r Record) (json []byte, ok bool, err error) {
	return f.assemble(assembler{dst: dst}, r)
}

// document is the value as JSON, with what is marked as JSON not as text.
func (f Field) document(dst []byte, r Record) (json []byte, ok bool, err error) {
	return f.assemble(assembler{dst: dst, documents: true}, r)
}

func (f Field) assemble(a assembler, r Record) (json []byte, ok bool, err error) {
	dst := a.dst
	a.base = f.node.first
	for _, leaf := range f.node.leafNodes() {
		a.cols = append(a.cols, r.cells(leaf))
	}
	before := len(dst)
	if !a.value(f.node, 0) {
		return dst[:before], false, a.err
	}
	if a.err != nil {
		return dst[:before], false, a.err
	}
	return a.dst, true, nil
}
