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
	offset, meta, body := int64(binary.LittleEndian.Uint64(b)), int64(int32(binary.LittleEndian.Uint32(b[8:]))), int64(binary.LittleEndian.Uint64(b[16:]))
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
	switch kind {
	case 2: // a dictionary
		if header, err = header.table(1); err != nil || header == nil {
			return errors.Join(err, errArrow)
		}
	case 3: // a record batch
	default:
		return fmt.Errorf("%w: a batch of kind %d", errArrow, kind)
	}
	return c.recordBatch(header, offset+meta, body)
}

// recordBatch checks {length, nodes, buffers, compression} of the body at offset at.
func (c *arrowCheck) recordBatch(t *flatTable, at, body int64) error {
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

func (c *arrowCheck) schema(t *flatTable) error {
	if err := c.list(t, 1, 0); err != nil {
		return err
	}
	if _, _, err := t.vector(3, 8); err != nil {
		return err
	}
	return keyValues(t, 2)
}

// list checks the fields in a vector of a schema's or a field's table.
func (c *arrowCheck) list(t *flatTable, field, depth int) error {
	if depth > maxArrowDepth {
		return fmt.Errorf("%w: columns nest more than %d deep", errArrow, maxArrowDepth)
	}
	return t.tables(field, func(f *flatTable) error {
		if c.fields++; c.fields > maxArrowFields {
			return fmt.Errorf("%w: more than %d columns", errArrow, maxArrowFields)
		}
		if _, _, err := f.vector(0, 1); err != nil { // the name
			return err
		}
		kind, err := f.table(3)
		if err != nil {
			return err
		}
		union, err := f.byte(2)
		if err == nil && union == 14 && kind != nil {
			_, _, err = kind.vector(1, 4)
		}
		if err != nil {
			return err
		}
		if _, err := f.table(4); err != nil { // its dictionary
			return err
		}
		if err := keyValues(f, 6); err != nil {
			return err
		}
		return c.list(f, 5, depth+1)
	})
}

func keyValues(t *flatTable, field int) error {
	return t.tables(field, func(kv *flatTable) error {
		for i := range 2 {
			if _, _, err := kv.vector(i, 1); err != nil {
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
