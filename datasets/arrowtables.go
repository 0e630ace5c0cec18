package datasets

import (
	"encoding/binary"
	"fmt"
)

// A slot is a field of a FlatBuffers table.
type slot struct {
	kind slotKind
	size int    // bytes of a scalar, or of an entry of a vector
	of   string // the table, or the tables of a union by its number
}

type slotKind uint8

const (
	slotScalar slotKind = iota
	slotText
	slotVector // of scalars or structs
	slotTable
	slotTables
	slotUnion // the slot before it has its number
)

func scalar(size int) slot      { return slot{kind: slotScalar, size: size} }
func vectorOf(size int) slot    { return slot{kind: slotVector, size: size} }
func tableSlot(of string) slot  { return slot{kind: slotTable, of: of} }
func tablesSlot(of string) slot { return slot{kind: slotTables, of: of} }
func unionSlot(of string) slot  { return slot{kind: slotUnion, of: of} }

var textSlot = slot{kind: slotText}

// arrowTables are the tables of Arrow's metadata by their names in Message.fbs, Schema.fbs and
// File.fbs of the Arrow columnar format, with their fields in order.
var arrowTables = map[string][]slot{
	"Footer": {scalar(2), tableSlot("Schema"), vectorOf(24), vectorOf(24), tablesSlot("KeyValue")},
	"Message": {scalar(2), scalar(1), unionSlot("MessageHeader"), scalar(8),
		tablesSlot("KeyValue")},
	"DictionaryBatch":    {scalar(8), tableSlot("RecordBatch"), scalar(1)},
	"RecordBatch":        {scalar(8), vectorOf(16), vectorOf(16), tableSlot("BodyCompression"), vectorOf(8)},
	"BodyCompression":    {scalar(1), scalar(1)},
	"Schema":             {scalar(2), tablesSlot("Field"), tablesSlot("KeyValue"), vectorOf(8)},
	"KeyValue":           {textSlot, textSlot},
	"DictionaryEncoding": {scalar(8), tableSlot("Int"), scalar(1), scalar(2)},
	"Field": {textSlot, scalar(1), scalar(1), unionSlot("Type"), tableSlot("DictionaryEncoding"),
		tablesSlot("Field"), tablesSlot("KeyValue")},
	"Int":             {scalar(4), scalar(1)},
	"FloatingPoint":   {scalar(2)},
	"Decimal":         {scalar(4), scalar(4), scalar(4)},
	"Date":            {scalar(2)},
	"Time":            {scalar(2), scalar(4)},
	"Timestamp":       {scalar(2), textSlot},
	"Interval":        {scalar(2)},
	"Union":           {scalar(2), vectorOf(4)},
	"FixedSizeBinary": {scalar(4)},
	"FixedSizeList":   {scalar(4)},
	"Map":             {scalar(1)},
	"Duration":        {scalar(2)},
	"Empty":           {}, // the types that have no fields
}

// arrowUnions are what the numbers of a union stand for; "" is no table.
var arrowUnions = map[string][]string{
	"MessageHeader": {"", "Schema", "DictionaryBatch", "RecordBatch"},
	"Type": {"", "Empty", "Int", "FloatingPoint", "Empty", "Empty", "Empty", "Decimal", "Date", "Time", "Timestamp",
		"Interval", "Empty", "Empty", "Union", "FixedSizeBinary", "FixedSizeList", "Map", "Duration", "Empty", "Empty",
		"Empty", "Empty", "Empty", "Empty", "Empty", "Empty"},
}

// verify walks all that a buffer's root table refers to: what is read of it later lies inside,
// where its alignment says, and texts end in the zero that they have (FlatBuffers internals;
// the rules are those of FlatBuffers' own verifier, which Arrow's other readers use).
func (b flat) verify(root string) (*flatTable, error) {
	t, err := b.root()
	if err != nil {
		return nil, err
	}
	left := len(b)/4 + 1 // each table takes so much of the buffer, in whole ones
	return t, t.verify(root, 0, &left)
}

func (t *flatTable) verify(name string, depth int, left *int) error {
	if depth > 2*maxArrowDepth {
		return fmt.Errorf("%w: columns nest more than %d deep", errArrow, maxArrowDepth)
	}
	if *left--; *left < 0 {
		return fmt.Errorf("%w: tables lie over each other", errArrow)
	}
	for i, s := range arrowTables[name] {
		if err := t.verifySlot(i, s, depth, left); err != nil {
			return err
		}
	}
	return nil
}

func (t *flatTable) verifySlot(i int, s slot, depth int, left *int) error {
	switch s.kind {
	case slotScalar:
		at, err := t.at(i)
		if err == nil && at > 0 && (at%s.size != 0 || !t.b.has(at, s.size)) {
			err = errArrow
		}
		return err
	case slotText:
		return t.text(i)
	case slotVector:
		_, _, err := t.vector(i, s.size)
		return err
	case slotTables:
		return t.tables(i, func(x *flatTable) error { return x.verify(s.of, depth+1, left) })
	case slotUnion:
		number, err := t.byte(i - 1)
		if err != nil || int(number) >= len(arrowUnions[s.of]) || arrowUnions[s.of][number] == "" {
			return err // types that are not known here are refused where they are needed
		}
		s.of = arrowUnions[s.of][number]
	}
	x, err := t.table(i)
	if err != nil || x == nil {
		return err
	}
	return x.verify(s.of, depth+1, left)
}

// flat is a FlatBuffers buffer.
type flat []byte

// flatTable is a table in it.
type flatTable struct {
	b      flat
	pos    int
	vtable int // place of the table's field offsets
	fields int // how many it has
}

func (b flat) has(at, n int) bool { return at >= 0 && n >= 0 && at <= len(b) && n <= len(b)-at }

func (b flat) int32(at int) int { return int(int32(binary.LittleEndian.Uint32(b[at:]))) }

func (b flat) long(at int) int64 { return int64(binary.LittleEndian.Uint64(b[at:])) }

func (b flat) root() (*flatTable, error) {
	to, err := b.offset(0)
	if err != nil {
		return nil, err
	}
	return b.table(to)
}

// offset returns where the offset at a place leads.
func (b flat) offset(at int) (int, error) {
	if at%4 != 0 || !b.has(at, 4) {
		return 0, errArrow
	}
	n := b.int32(at)
	if n <= 0 || n%4 != 0 || !b.has(at+n, 4) {
		return 0, errArrow
	}
	return at + n, nil
}

func (b flat) table(pos int) (*flatTable, error) {
	if !b.has(pos, 4) {
		return nil, errArrow
	}
	v := pos - b.int32(pos)
	if v%2 != 0 || !b.has(v, 4) {
		return nil, errArrow
	}
	n := int(binary.LittleEndian.Uint16(b[v:]))
	if n < 4 || n%2 != 0 || !b.has(v, n) {
		return nil, errArrow
	}
	return &flatTable{b, pos, v + 4, (n - 4) / 2}, nil
}

// at returns the place of a field, or 0 if the table lacks it.
func (t *flatTable) at(field int) (int, error) {
	if field >= t.fields {
		return 0, nil
	}
	o := int(binary.LittleEndian.Uint16(t.b[t.vtable+2*field:]))
	if o == 0 {
		return 0, nil
	}
	if !t.b.has(t.pos+o, 1) {
		return 0, errArrow
	}
	return t.pos + o, nil
}

// number returns a field of so many bytes, little endian, or what it is where it is absent.
func (t *flatTable) number(field, size int, absent int64) (int64, error) {
	at, err := t.at(field)
	if err != nil || at == 0 {
		return absent, err
	}
	if !t.b.has(at, size) {
		return 0, errArrow
	}
	switch size {
	case 1:
		return int64(int8(t.b[at])), nil
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(t.b[at:]))), nil
	case 4:
		return int64(t.b.int32(at)), nil
	}
	return t.b.long(at), nil
}

func (t *flatTable) byte(field int) (byte, error) {
	n, err := t.number(field, 1, 0)
	return byte(n), err
}

func (t *flatTable) long(field int) (int64, error) { return t.number(field, 8, 0) }

// follow returns where a field's offset leads, or 0.
func (t *flatTable) follow(field int) (int, error) {
	at, err := t.at(field)
	if err != nil || at == 0 {
		return 0, err
	}
	return t.b.offset(at)
}

func (t *flatTable) table(field int) (*flatTable, error) {
	to, err := t.follow(field)
	if err != nil || to == 0 {
		return nil, err
	}
	return t.b.table(to)
}

// vector returns where the elements of a vector (or the bytes of a string) begin
// and how many there are.
func (t *flatTable) vector(field, size int) (at, n int, err error) {
	to, err := t.follow(field)
	if err != nil || to == 0 {
		return 0, 0, err
	}
	n = int(binary.LittleEndian.Uint32(t.b[to:]))
	if n > len(t.b)/size || !t.b.has(to+4, n*size) {
		return 0, 0, errArrow
	}
	return to + 4, n, nil
}

// text checks a string, behind which FlatBuffers have a zero.
func (t *flatTable) text(field int) error {
	at, n, err := t.vector(field, 1)
	if err == nil && at > 0 && (!t.b.has(at+n, 1) || t.b[at+n] != 0) {
		err = fmt.Errorf("%w: the text %q has no zero behind it: write the file again", errArrow, t.b[at:at+n])
	}
	return err
}

// tables calls f with each table of a vector of tables.
func (t *flatTable) tables(field int, f func(*flatTable) error) error {
	at, n, err := t.vector(field, 4)
	if err != nil {
		return err
	}
	for i := range n {
		to, err := t.b.offset(at + 4*i)
		if err != nil {
			return err
		}
		x, err := t.b.table(to)
		if err != nil {
			return err
		}
		if err := f(x); err != nil {
			return err
		}
	}
	return nil
}
