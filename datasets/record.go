package datasets

import (
	"encoding/binary"
	"slices"
)

// Record is one row of an [Input], as its files have it. It stays valid.
//
// It is packed: the values of each leaf column one behind the other, and each
// value as its repetition level and its definition level (a byte, where the
// column has such levels) and then, if it is there, its bytes: of one width, or
// behind their length.
type Record struct {
	Index int64 // of the row, through all files
	data  []byte
	ends  []uint32 // of each leaf column
}

// Bytes is the memory that the record's values take.
func (r Record) Bytes() int { return len(r.data) + 4*len(r.ends) }

// cells are the values of one leaf column of one row.
type cells struct {
	b              []byte
	maxRep, maxDef uint8
	width          int

	// The value at hand.
	ok       bool // there is one
	rep, def uint8
	value    []byte // nil: null
}

// cells returns the values of a leaf; the first is at hand.
func (r Record) cells(leaf *node) cells {
	start := uint32(0)
	if leaf.first > 0 {
		start = r.ends[leaf.first-1]
	}
	c := cells{b: r.data[start:r.ends[leaf.first]], maxRep: leaf.maxRep, maxDef: leaf.maxDef, width: leaf.typ.width()}
	c.next()
	return c
}

func (c *cells) next() {
	c.ok, c.value = len(c.b) > 0, nil
	if !c.ok {
		return
	}
	if c.maxRep > 0 {
		c.rep, c.b = c.b[0], c.b[1:]
	}
	if c.maxDef > 0 {
		c.def, c.b = c.b[0], c.b[1:]
	}
	if c.def < c.maxDef {
		return
	}
	n := c.width
	if n == 0 {
		size, used := binary.Uvarint(c.b)
		n, c.b = int(size), c.b[used:]
	}
	c.value, c.b = c.b[:n:n], c.b[n:]
}

// batch packs the rows of one call of [Reader.Read].
type batch struct {
	records []Record
	starts  []int // of each record in data; their bytes are given to them at last
	data    []byte
	ends    []uint32
	scratch []byte
}

func (b *batch) begin(index int64) {
	b.records = append(b.records, Record{Index: index})
	b.starts = append(b.starts, len(b.data))
}

// appendLevels appends a value's levels.
func appendLevels(dst []byte, n *node, rep, def uint8) []byte {
	if n.maxRep > 0 {
		dst = append(dst, rep)
	}
	if n.maxDef > 0 {
		dst = append(dst, def)
	}
	return dst
}

// appendCell appends a value of a leaf; v is nil if there is none at its level.
func appendCell(dst []byte, n *node, rep, def uint8, v []byte) []byte {
	dst = appendLevels(dst, n, rep, def)
	if v == nil {
		return dst
	}
	if n.typ.width() == 0 {
		dst = binary.AppendUvarint(dst, uint64(len(v)))
	}
	return append(dst, v...)
}

// cell appends a value that is its column's only one in the row; nil is null.
func (b *batch) cell(n *node, v []byte) {
	def := n.maxDef
	if v == nil {
		def = 0
	}
	b.data = appendCell(b.data, n, 0, def, v)
}

// rowBytes is the size of the row at hand.
func (b *batch) rowBytes() int { return len(b.data) - b.starts[len(b.starts)-1] }

// endLeaf ends the values of a leaf column of the row at hand.
func (b *batch) endLeaf() {
	b.ends = append(b.ends, uint32(b.rowBytes()))
}

func (b *batch) finish() []Record {
	b.data, b.ends = slices.Clip(b.data), slices.Clip(b.ends)
	leaves := 0
	if len(b.records) > 0 {
		leaves = len(b.ends) / len(b.records)
	}
	for i := range b.records {
		end := len(b.data)
		if i+1 < len(b.starts) {
			end = b.starts[i+1]
		}
		b.records[i].data = b.data[b.starts[i]:end:end]
		b.records[i].ends = b.ends[i*leaves : (i+1)*leaves : (i+1)*leaves]
	}
	return b.records
}
