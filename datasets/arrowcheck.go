package datasets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The Arrow library trusts the lengths that a file states, and allocates by them.
// checkArrow walks everything that it will trust before it is given the file: the
// footer, its schema, and the metadata of each batch (Arrow columnar format,
// sections "IPC File Format" and "Message"; FlatBuffers internals for the layout
// of tables, vectors and strings).

const (
	arrowMagic = "ARROW1"
	// maxArrowMeta bounds the footer and each batch's metadata.
	maxArrowMeta = 64 << 20
	// maxArrowFields and maxArrowDepth bound a schema.
	maxArrowFields = 1 << 16
	maxArrowDepth  = 64
)

var errArrow = errors.New("damaged Arrow metadata")

// checkArrow reports an error if the metadata of an Arrow IPC file of the given
// size refer to anything outside of it.
func checkArrow(r io.ReaderAt, size int64) error {
	var tail [10]byte
	if size < int64(len(arrowMagic)+2+len(tail)) {
		return errors.New("not an Arrow IPC file: too short")
	}
	if _, err := r.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return err
	}
	if string(tail[4:]) != arrowMagic {
		return errors.New("not an Arrow IPC file, or cut off: its end is not that of one")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-int64(len(tail)) || n > maxArrowMeta {
		return fmt.Errorf("%w: a footer of %d bytes in a file of %d", errArrow, n, size)
	}
	footer := make(flat, n)
	if _, err := r.ReadAt(footer, size-int64(len(tail))-n); err != nil {
		return err
	}
	c := arrowCheck{r: r, size: size}
	return c.footer(footer)
}

type arrowCheck struct {
	r      io.ReaderAt
	size   int64
	fields int
	later  bool // types that Arrow has not yet pass: there are no batches of them
	batch  arrowNeed
	tops   []int               // the nodes of the batch's columns
	values map[int64]arrowNeed // of dictionaries, by id
}

func (c *arrowCheck) footer(b flat) error {
	root, err := b.root()
	if err != nil {
		return err
	}
	schema, err := root.table(1)
	if err != nil || schema == nil {
		return errors.Join(err, errArrow)
	}
	if err := c.schema(schema); err != nil {
		return err
	}
	for _, field := range []int{2, 3} { // dictionaries, record batches
		at, n, err := root.vector(field, 24)
		if err != nil {
			return err
		}
		for i := range n {
			if err := c.block(b[at+24*i : at+24*i+24]); err != nil {
				return err
			}
		}
	}
	return keyValues(root, 4)
}

// block checks a batch: {offset int64, metadata int32, padding, body int64}.
func (c *arrowCheck) block(b []byte) error {
	offset, meta, body := int64(binary.LittleEndian.Uint64(b)), int64(int32(binary.LittleEndian.Uint32(b[8:]))), int64(
		binary.LittleEndian.Uint64(b[16:]))
	if offset < 0 || meta < 8 || body < 0 || meta > maxArrowMeta || offset > c.size || body > c.size || offset+meta+
		body > c.size {
		return fmt.Errorf("%w: a batch at %d of %d + %d bytes in a file of %d", errArrow, offset, meta, body, c.size)
	}
	message := make(flat, meta)
	if _, err := c.r.ReadAt(message, offset); err != nil {
		return err
	}
	// A marker and the length come first; old files have the length alone.
	skip := int64(4)
	if binary.LittleEndian.Uint32(message) == 0xFFFFFFFF {
		skip = 8
	}
	if n := int64(int32(binary.LittleEndian.Uint32(message[skip-4:]))); n < 0 || n > meta-skip {
		return fmt.Errorf("%w: a message of %d bytes in %d", errArrow, n, meta)
	}
	root, err := message[skip:].root()
	if err != nil {
		return err
	}
	header, err := root.table(2)
	if err != nil || header == nil {
		return errors.Join(err, errArrow)
	}
	kind, err := root.byte(1)
	if err != nil {
		return err
	}
	return c.message(kind, header, offset+meta, body)
}

// message checks a dictionary (kind 2) or a record batch (3), whose body is at offset at.
func (c *arrowCheck) message(kind byte, header *flatTable, at, body int64) error {
	switch kind {
	case 2:
		id, err := header.long(0)
		if err != nil {
			return err
		}
		need, ok := c.values[id]
		if !ok {
			return fmt.Errorf("%w: dictionary %d is no column's", errArrow, id)
		}
		if header, err = header.table(1); err != nil || header == nil {
			return errors.Join(err, errArrow)
		}
		return c.recordBatch(header, at, body, need, []int{0})
	case 3:
		return c.recordBatch(header, at, body, c.batch, c.tops)
	}
	return fmt.Errorf("%w: a batch of kind %d", errArrow, kind)
}

// recordBatch checks {length, nodes, buffers, compression} of the body at offset at, which
// must have what its columns need; tops are the columns' nodes.
func (c *arrowCheck) recordBatch(t *flatTable, at, body int64, need arrowNeed, tops []int) error {
	content, err := c.buffers(t, at, body)
	if err != nil {
		return err
	}
	rows, err := t.long(0)
	if err != nil {
		return err
	}
	if rows < 0 || rows > 8*content {
		return fmt.Errorf("%w: %d rows in %d bytes", errArrow, rows, content)
	}
	nodes, n, err := t.vector(1, 16)
	if err != nil {
		return err
	}
	for i := range n {
		if length, nulls := t.b.long(nodes+16*i), t.b.long(nodes+16*i+8); length < 0 || length > 8*content ||
			nulls < -1 || nulls > length {
			return fmt.Errorf("%w: a column of %d values, %d of them null, in %d bytes", errArrow, length, nulls,
				content)
		}
	}
	if _, m, err := t.vector(2, 16); err != nil || n < need.nodes || m < need.buffers {
		return errors.Join(err, fmt.Errorf("%w: a batch has %d nodes and %d buffers, its schema needs %d and %d: "+
			"write the file again", errArrow, n, m, need.nodes, need.buffers))
	}
	for i, top := range tops {
		if length := t.b.long(nodes + 16*top); length != rows {
			return fmt.Errorf("%w: column %d has %d values in a batch of %d rows: write the file again", errArrow, i,
				length, rows)
		}
	}
	return nil
}

// A batch may unpack to so many bytes, and so many for each byte of its body.
const (
	arrowUnpacked = 64 << 20
	arrowRatio    = 4096
)

// buffers checks the buffers of a body and returns how many bytes they hold when
// unpacked. A compressed buffer begins with its length, or -1 if it is plain.
func (c *arrowCheck) buffers(t *flatTable, start, body int64) (content int64, err error) {
	compression, err := t.at(3)
	if err != nil {
		return 0, err
	}
	buffers, n, err := t.vector(2, 16)
	if err != nil {
		return 0, err
	}
	limit := arrowUnpacked + arrowRatio*body
	for i := range n {
		offset, length := t.b.long(buffers+16*i), t.b.long(buffers+16*i+8)
		if offset < 0 || length < 0 || offset > body || length > body-offset {
			return 0, fmt.Errorf("%w: a buffer of %d bytes at %d in a body of %d", errArrow, length, offset, body)
		}
		if compression > 0 && length > 0 {
			var head [8]byte
			if length < 8 {
				return 0, errArrow
			}
			if _, err := c.r.ReadAt(head[:], start+offset); err != nil {
				return 0, err
			}
			if n := int64(binary.LittleEndian.Uint64(head[:])); n != -1 {
				length = n
			}
		}
		if length < 0 || length > limit-content {
			return 0, fmt.Errorf("%w: a batch of %d bytes that unpacks to more than %d", errArrow, body, limit)
		}
		content += length
	}
	return content, nil
}

// stored checks a schema's message that is no stream's.
func (c *arrowCheck) stored(message flat) error {
	root, err := message.root()
	if err != nil {
		return err
	}
	schema, err := root.table(2)
	if err != nil || schema == nil {
		return errors.Join(err, errArrow)
	}
	return c.schema(schema)
}

func (c *arrowCheck) schema(t *flatTable) error {
	c.values = map[int64]arrowNeed{}
	err := t.tables(1, func(f *flatTable) error {
		c.tops = append(c.tops, c.batch.nodes)
		need, err := c.field(f, 0)
		c.batch.add(need)
		return err
	})
	if err != nil {
		return err
	}
	if _, _, err := t.vector(3, 8); err != nil {
		return err
	}
	return keyValues(t, 2)
}

// arrowNeed is how many nodes and buffers a batch has for a column.
type arrowNeed struct{ nodes, buffers int }

func (n *arrowNeed) add(m arrowNeed) { n.nodes, n.buffers = n.nodes+m.nodes, n.buffers+m.buffers }

// arrowBuffers are the buffers of a column of a type, without its children's, by the numbers
// of the Type union in Schema.fbs; where versions differ, the fewest.
var arrowBuffers = [...]int{2: 2, 3: 2, 4: 3, 5: 3, 6: 2, 7: 2, 8: 2, 9: 2, 10: 2, 11: 2, 12: 2, 13: 1, 14: 1, 15: 2,
	16: 1, 17: 2, 18: 2, 19: 3, 20: 3, 21: 2, 22: 0, 23: 2, 24: 2, 25: 3, 26: 3}

// field checks a field of a schema and those in it, and returns what batches have for it.
func (c *arrowCheck) field(f *flatTable, depth int) (need arrowNeed, err error) {
	if depth > maxArrowDepth {
		return need, fmt.Errorf("%w: columns nest more than %d deep", errArrow, maxArrowDepth)
	}
	if c.fields++; c.fields > maxArrowFields {
		return need, fmt.Errorf("%w: more than %d columns", errArrow, maxArrowFields)
	}
	if err := f.text(0); err != nil { // the name
		return need, err
	}
	kind, err := f.table(3)
	if err != nil {
		return need, err
	}
	union, err := f.byte(2)
	if err == nil && union == 14 && kind != nil {
		_, _, err = kind.vector(1, 4)
	}
	if err == nil && union == 10 && kind != nil {
		err = kind.text(1) // the time zone
	}
	if err != nil {
		return need, err
	}
	buffers := 0
	if int(union) < len(arrowBuffers) {
		buffers = arrowBuffers[union]
	} else if !c.later {
		return need, fmt.Errorf("%w: a column of type %d, which Arrow has not", errArrow, union)
	}
	dictionary, err := f.table(4)
	if err != nil {
		return need, err
	}
	if err := keyValues(f, 6); err != nil {
		return need, err
	}
	need = arrowNeed{1, buffers}
	err = f.tables(5, func(child *flatTable) error {
		n, err := c.field(child, depth+1)
		need.add(n)
		return err
	})
	if err != nil || dictionary == nil {
		return need, err
	}
	id, err := dictionary.long(0)
	c.values[id] = need // batches have positions in it
	return arrowNeed{1, 2}, err
}

func keyValues(t *flatTable, field int) error {
	return t.tables(field, func(kv *flatTable) error {
		for i := range 2 {
			if err := kv.text(i); err != nil {
				return err
			}
		}
		return nil
	})
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
	if !b.has(0, 4) {
		return nil, errArrow
	}
	return b.table(int(binary.LittleEndian.Uint32(b)))
}

func (b flat) table(pos int) (*flatTable, error) {
	if !b.has(pos, 4) {
		return nil, errArrow
	}
	v := pos - b.int32(pos)
	if !b.has(v, 4) {
		return nil, errArrow
	}
	n := int(binary.LittleEndian.Uint16(b[v:]))
	if n < 4 || !b.has(v, n) {
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

func (t *flatTable) byte(field int) (byte, error) {
	at, err := t.at(field)
	if err != nil || at == 0 {
		return 0, err
	}
	return t.b[at], nil
}

func (t *flatTable) long(field int) (int64, error) {
	at, err := t.at(field)
	if err != nil || at == 0 {
		return 0, err
	}
	if !t.b.has(at, 8) {
		return 0, errArrow
	}
	return t.b.long(at), nil
}

// follow returns where a field's offset leads, or 0.
func (t *flatTable) follow(field int) (int, error) {
	at, err := t.at(field)
	if err != nil || at == 0 {
		return 0, err
	}
	if !t.b.has(at, 4) {
		return 0, errArrow
	}
	to := at + int(binary.LittleEndian.Uint32(t.b[at:]))
	if !t.b.has(to, 4) {
		return 0, errArrow
	}
	return to, nil
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
		p := at + 4*i
		x, err := t.b.table(p + int(binary.LittleEndian.Uint32(t.b[p:])))
		if err != nil {
			return err
		}
		if err := f(x); err != nil {
			return err
		}
	}
	return nil
}
