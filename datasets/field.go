package datasets

import (
	"errors"
	"sort"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
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
		one := *f.node
		one.rep = required
		return shape(&one)
	case len(f.node.fields) != 1:
		return Other
	}
	e := element(f.node.child(0))
	if e == f.node.child(0) {
		one := *e
		one.rep = required
		return shape(&one)
	}
	return shape(e)
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
	case n.rep == repeated, isLogical(n, "LIST"):
		return List
	case !n.leaf:
		return Struct
	case n.isNull():
		return Null
	}
	if isDecimal(n) || isHalf(n) {
		return Float
	}
	switch n.typ.Kind() {
	case parquet.Boolean:
		return Bool
	case parquet.Int32, parquet.Int64:
		if plainInt(n.typ) {
			return Int
		}
	case parquet.Float, parquet.Double:
		return Float
	case parquet.ByteArray:
		switch {
		case n.typ.LogicalType() == nil && n.typ.ConvertedType() == nil,
			isLogical(n, "STRING"), isLogical(n, "ENUM"), isLogical(n, "JSON"):
			return Text
		}
	}
	return Other
}

func isLogical(n *node, name string) bool {
	lt := n.typ.LogicalType()
	return lt != nil && logicalName(lt) == name
}

// column returns the values of leaf column i.
func (r Record) column(i int) []parquet.Value {
	v := r.values
	if i < len(v) && v[i].Column() == i && (i+1 == len(v) || v[i+1].Column() != i) && (i == 0 || v[i-1].Column() != i) {
		return v[i : i+1] // every column before it has one value
	}
	lo := sort.Search(len(v), func(k int) bool { return v[k].Column() >= i })
	hi := lo
	for hi < len(v) && v[hi].Column() == i {
		hi++
	}
	return v[lo:hi]
}

// leaf returns the only value of a leaf column; ok is false for null.
func (f Field) leaf(r Record) (v parquet.Value, ok bool) {
	vs := r.column(f.node.first)
	if len(vs) != 1 || vs[0].IsNull() {
		return parquet.Value{}, false
	}
	return vs[0], true
}

// Text returns the text of a Text column; ok is false for null. The bytes are
// the record's own. Its error is ErrUTF8.
func (f Field) Text(r Record) (s []byte, ok bool, err error) {
	v, ok := f.leaf(r)
	if !ok || v.Kind() != parquet.ByteArray {
		return nil, false, nil
	}
	s = v.ByteArray()
	if !utf8.Valid(s) {
		return nil, true, ErrUTF8
	}
	return s, true, nil
}

// JSON appends the value as JSON, whatever its type. Fields of structs that are
// null are left out. ok is false for null, which appends nothing. Its error is
// ErrUTF8, or says what is damaged.
func (f Field) JSON(dst []byte, r Record) (json []byte, ok bool, err error) {
	a := assembler{dst: dst, pos: make([]int, f.node.leaves), cols: make([][]parquet.Value, f.node.leaves), base: f.node.first}
	for i := range a.cols {
		a.cols[i] = r.column(f.node.first + i)
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
