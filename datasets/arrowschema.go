package datasets

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/parquet-go/parquet-go"

	"glmbatch/datasets/pages"
)

// arrowSchemaKey is where Arrow's writers store the schema that a Parquet file
// was made from. Readers restore types from it that Parquet lacks: large_string,
// dictionaries, time zones, durations. It must describe all columns, so ours are
// added. Its fields are moved as the FlatBuffers tables that they are: what the Arrow
// library does not know of them goes through as well. A schema with types that Arrow
// has not is left out: a damaged one would make outputs that no reader of it opens.
const arrowSchemaKey = "ARROW:schema"

// arrowSchema is an Arrow schema of a file or of the table.
type arrowSchema struct {
	fields []flatField
	meta   flatField // its key-value metadata; at is 0: none
}

// flatField is a FlatBuffers table or vector in a message.
type flatField struct {
	message []byte
	at      int
}

// Places of fields in the vtables of Arrow's Message, Schema and Field.
const (
	messageHeader = 2
	schemaFields  = 1
	schemaMeta    = 2
	fieldName     = 0
	fieldKind     = 2
	fieldType     = 3
	fieldChildren = 5
	kindInt       = 2
	kindDuration  = 18
	lastKind      = 26 // of the Type union in Schema.fbs
)

func (f flatField) u32(at int) int { return int(binary.LittleEndian.Uint32(f.message[at:])) }

// slot returns where field i of the table lies; 0: it is absent.
func (f flatField) slot(i int) int {
	vtable := f.at - int(int32(f.u32(f.at)))
	size := int(binary.LittleEndian.Uint16(f.message[vtable:]))
	if 4+2*i+2 > size {
		return 0
	}
	off := int(binary.LittleEndian.Uint16(f.message[vtable+4+2*i:]))
	if off == 0 {
		return 0
	}
	return f.at + off
}

// ref follows the offset in field i; its at is 0 if the field is absent.
func (f flatField) ref(i int) flatField {
	at := f.slot(i)
	if at == 0 {
		return flatField{}
	}
	return flatField{f.message, at + f.u32(at)}
}

// tables lists the tables of the vector in field i.
func (f flatField) tables(i int) []flatField {
	v := f.ref(i)
	if v.at == 0 {
		return nil
	}
	n := v.u32(v.at)
	if n > len(f.message)/4 {
		return nil
	}
	all := make([]flatField, n)
	for k := range all {
		at := v.at + 4 + 4*k
		all[k] = flatField{f.message, at + f.u32(at)}
	}
	return all
}

func (f flatField) name() string {
	s := f.ref(fieldName)
	if s.at == 0 {
		return ""
	}
	return string(s.message[s.at+4 : s.at+4+s.u32(s.at)])
}

// parseArrowSchema reads a stored schema, which must describe root's columns, and
// tells root what only Arrow knows. It may panic on what is not Arrow's.
func parseArrowSchema(stored string, root *node) (s *arrowSchema, err error) {
	if stored == "" {
		return nil, nil
	}
	raw, err := base64.StdEncoding.DecodeString(stored)
	if err != nil {
		return nil, err
	}
	err = guard(func() error {
		if s, err = readArrowSchema(raw); err != nil {
			return err
		}
		if len(s.fields) != len(root.fields) {
			return errors.New("it describes other columns")
		}
		for i, f := range s.fields {
			if f.name() != root.child(i).name {
				return errors.New("it describes other columns")
			}
			if err := f.tell(root.child(i)); err != nil {
				return err
			}
		}
		return nil
	})
	return s, err
}

// readArrowSchema reads an encapsulated message, with or without the mark that
// newer ones begin with.
func readArrowSchema(raw []byte) (*arrowSchema, error) {
	if len(raw) >= 4 && binary.LittleEndian.Uint32(raw) == 0xFFFFFFFF {
		raw = raw[4:]
	}
	if len(raw) < 8 || uint64(binary.LittleEndian.Uint32(raw)) > uint64(len(raw)-4) {
		return nil, errors.New("a message that ends early")
	}
	message := raw[4 : 4+binary.LittleEndian.Uint32(raw)]
	if err := (&arrowCheck{later: true}).stored(message); err != nil {
		return nil, err
	}
	root := flatField{message, int(binary.LittleEndian.Uint32(message))}
	schema := root.ref(messageHeader)
	if schema.at == 0 {
		return nil, errors.New("a message without a schema")
	}
	return &arrowSchema{schema.tables(schemaFields), schema.ref(schemaMeta)}, nil
}

// tell marks integers that are durations. Its error is of types that Arrow has not: none of
// its readers would open a file with them, nor our outputs if they had them too.
func (f flatField) tell(n *node) error {
	kind := 0
	if at := f.slot(fieldKind); at > 0 {
		kind = int(f.message[at])
	}
	if kind < 1 || kind > lastKind {
		return fmt.Errorf("column %q has type %d", f.name(), kind)
	}
	if kind == kindInt {
		bits := 0
		if at := f.ref(fieldType).slot(0); at > 0 {
			bits = f.u32(at)
		}
		if bits != 8 && bits != 16 && bits != 32 && bits != 64 {
			return fmt.Errorf("column %q has integers of %d bits", f.name(), bits)
		}
	}
	if n.leaf {
		if kind == kindDuration && n.typ == (leafType{kind: pages.Int64}) {
			unit := 1 // what FlatBuffers leave out: milliseconds
			if at := f.ref(fieldType).slot(0); at > 0 {
				unit = int(binary.LittleEndian.Uint16(f.message[at:]))
			}
			n.typ.duration = pages.Seconds + pages.Unit(min(unit, 3))
		}
		return nil
	}
	children := f.tables(fieldChildren)
	below := n.fields
	switch {
	case n.isList():
		below = []parquet.Field{element(n.child(0))}
	case n.isMap():
		below = []parquet.Field{n.child(0)}
	}
	if len(children) != len(below) {
		return nil
	}
	for i, c := range children {
		if err := c.tell(below[i].(*node)); err != nil {
			return err
		}
	}
	return nil
}

// mergeArrow makes the table's Arrow schema: each column's field comes from the
// first file that has the column as the table does. nil: no file has a schema.
func mergeArrow(table *node, roots []*node, arrows []*arrowSchema) *arrowSchema {
	var s *arrowSchema
	for _, a := range arrows {
		if a != nil && s == nil {
			s = &arrowSchema{meta: a.meta}
		}
	}
	if s == nil {
		return nil
	}
	for i := range table.fields {
		t := table.child(i)
		var field flatField
		for k, root := range roots {
			at := indexOf(root, t.name)
			if at >= 0 && arrows[k] != nil && field.message == nil && signature(root.child(at)) == signature(t) {
				field = arrows[k].fields[at]
			}
		}
		if field.message == nil {
			made, err := fieldsOf([]*node{t})
			if err != nil {
				return nil
			}
			field = made[0]
		}
		s.fields = append(s.fields, field)
	}
	return s
}

func indexOf(root *node, name string) int {
	for i := range root.fields {
		if root.child(i).name == name {
			return i
		}
	}
	return -1
}

// text writes the schema, with fields behind its own, as it is stored.
func (s *arrowSchema) text(more []flatField) string {
	fields := append(s.fields[:len(s.fields):len(s.fields)], more...)
	le := binary.LittleEndian
	const head = 64 // bytes before the vector of fields
	b := make([]byte, head+4+4*len(fields))
	places := map[*byte]int{} // of messages
	place := func(f flatField) int {
		at, ok := places[&f.message[0]]
		if !ok {
			for len(b)%8 != 0 {
				b = append(b, 0)
			}
			at = len(b)
			b = append(b, f.message...)
			places[&f.message[0]] = at
		}
		return at + f.at
	}
	put16 := func(at int, v ...uint16) {
		for i, x := range v {
			le.PutUint16(b[at+2*i:], x)
		}
	}
	le.PutUint32(b, 16)            // the Message
	put16(4, 12, 24, 16, 18, 4, 8) // its vtable: version, header's type, header, body's length
	le.PutUint32(b[16:], 12)       // how far its vtable is
	le.PutUint32(b[20:], 52-20)    // the Schema
	put16(32, 4)                   // version 5
	b[34] = 1                      // the header is a Schema
	put16(40, 10, 12, 0, 4, 8)     // its vtable: endianness, fields, metadata
	le.PutUint32(b[52:], 12)       // how far its vtable is
	le.PutUint32(b[56:], head-56)  // the vector of fields
	le.PutUint32(b[head:], uint32(len(fields)))
	for i, f := range fields {
		at := head + 4 + 4*i
		off := place(f) - at // may move b
		le.PutUint32(b[at:], uint32(off))
	}
	if s.meta.at > 0 {
		off := place(s.meta) - 60
		le.PutUint32(b[60:], uint32(off))
	} else {
		put16(48, 0)
	}
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	out := binary.LittleEndian.AppendUint32([]byte{0xFF, 0xFF, 0xFF, 0xFF}, uint32(len(b)))
	return base64.StdEncoding.EncodeToString(append(out, b...))
}

// fieldsOf makes the Arrow fields of columns that have none from a file.
func fieldsOf(columns []*node) ([]flatField, error) {
	fields := make([]arrow.Field, len(columns))
	for i, n := range columns {
		var err error
		if fields[i], err = arrowField(n); err != nil {
			return nil, err
		}
	}
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(arrow.NewSchema(fields, nil)))
	if err := w.Close(); err != nil {
		return nil, err
	}
	s, err := readArrowSchema(buf.Bytes())
	if err != nil {
		return nil, err
	}
	return s.fields, nil
}
