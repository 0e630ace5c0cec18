package datasets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
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

	dictionaries int // batches of them so far

	lz4  *lz4.Reader
	zstd *zstd.Decoder
}

func (c *arrowCheck) footer(b flat) error {
	root, err := b.verify("Footer")
	if err != nil {
		return err
	}
	schema, err := root.table(1)
	if err != nil || schema == nil {
		return damagedArrow(err)
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

// open checks a message and returns its header, what it is, and how long its body is.
func (c *arrowCheck) open(b flat) (header *flatTable, kind byte, body int64, err error) {
	root, err := b.verify("Message")
	if err != nil {
		return nil, 0, 0, err
	}
	version, err := root.number(0, 2, 0)
	if err == nil && version != 3 && version != 4 {
		err = fmt.Errorf("%w: metadata of version %d; versions 4 and 5 are read: write the file again", errArrow,
			version+1)
	}
	if err != nil {
		return nil, 0, 0, err
	}
	if header, err = root.table(2); err != nil || header == nil {
		return nil, 0, 0, damagedArrow(err)
	}
	if kind, err = root.byte(1); err != nil {
		return nil, 0, 0, err
	}
	body, err = root.long(3)
	return header, kind, body, err
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
	header, kind, said, err := c.open(message[skip:])
	if err != nil {
		return err
	}
	if said != body {
		return fmt.Errorf("%w: the body of a batch has %d bytes, %d by the footer: write the file again", errArrow, said,
			body)
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
			return damagedArrow(err)
		}
		c.dictionaries++
		return c.recordBatch(header, at, body, need, []int{0})
	case 3:
		if c.dictionaries < len(c.values) {
			return fmt.Errorf("%w: %d dictionaries before the first batch, the schema has %d: write the file again",
				errArrow, c.dictionaries, len(c.values))
		}
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
	counts, views, err := t.vector(4, 8)
	if err != nil {
		return err
	}
	_, m, err := t.vector(2, 16)
	if err != nil {
		return err
	}
	more := int64(0) // buffers of views
	for i := range min(views, need.views) {
		count := t.b.long(counts + 8*i)
		if count < 0 || count > int64(m) {
			return fmt.Errorf("%w: views of %d buffers in a batch of %d", errArrow, count, m)
		}
		more += count
	}
	if n < need.nodes || int64(m) < int64(need.buffers)+more || views < need.views {
		return fmt.Errorf("%w: a batch has %d nodes and %d buffers, its schema needs %d and %d: write the file again",
			errArrow, n, m, need.nodes, int64(need.buffers)+more)
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
	compression, err := t.table(3)
	if err != nil {
		return 0, err
	}
	codec := int64(0)
	if compression != nil {
		method, err := compression.number(1, 1, 0)
		if err != nil {
			return 0, err
		}
		if codec, err = compression.number(0, 1, 0); err != nil {
			return 0, err
		}
		if method != 0 || codec < 0 || codec > 1 {
			return 0, fmt.Errorf("%w: buffers compressed by codec %d, method %d; LZ4 frames (0) and ZSTD (1) of whole "+
				"buffers (0) are read", errArrow, codec, method)
		}
	}
	buffers, n, err := t.vector(2, 16)
	if err != nil {
		return 0, err
	}
	limit := arrowUnpacked + arrowRatio*body
	for i := range n {
		offset, length := t.b.long(buffers+16*i), t.b.long(buffers+16*i+8)
		if offset < 0 || length < 0 || offset > body || length > body-offset || length > 0 && offset%8 != 0 {
			return 0, fmt.Errorf("%w: a buffer of %d bytes at %d in a body of %d", errArrow, length, offset, body)
		}
		packed := length
		if compression != nil && length > 0 {
			var head [8]byte
			if length < 8 {
				return 0, errArrow
			}
			if _, err := c.r.ReadAt(head[:], start+offset); err != nil {
				return 0, err
			}
			if length = int64(binary.LittleEndian.Uint64(head[:])); length == -1 {
				length, packed = packed-8, -1
			}
		}
		if length < 0 || length > limit-content {
			return 0, fmt.Errorf("%w: a batch of %d bytes that unpacks to more than %d", errArrow, body, limit)
		}
		if compression != nil && packed > 0 {
			if err := c.unpacks(io.NewSectionReader(c.r, start+offset+8, packed-8), codec, length); err != nil {
				return 0, err
			}
		}
		content += length
	}
	return content, nil
}

// stored checks a schema's message that is no stream's.
func (c *arrowCheck) stored(message flat) error {
	schema, kind, _, err := c.open(message)
	if err != nil {
		return err
	}
	if kind != 1 {
		return fmt.Errorf("%w: a message of kind %d where a schema should be", errArrow, kind)
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
	if order, err := t.number(0, 2, 0); err != nil || order < 0 || order > 1 {
		return damagedArrow(err)
	}
	return keyValues(t, 2)
}

// arrowNeed is how many nodes and buffers a batch has for a column, and how many of its nodes
// are views, which have more buffers.
type arrowNeed struct{ nodes, buffers, views int }

func (n *arrowNeed) add(m arrowNeed) {
	n.nodes, n.buffers, n.views = n.nodes+m.nodes, n.buffers+m.buffers, n.views+m.views
}

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
	union, err := f.byte(2)
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
	need = arrowNeed{nodes: 1, buffers: buffers}
	if union == 23 || union == 24 {
		need.views = 1
	}
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
	return arrowNeed{nodes: 1, buffers: 2}, err
}

// keyValues checks that metadata have both parts of each entry.
func keyValues(t *flatTable, field int) error {
	return t.tables(field, func(kv *flatTable) error {
		for i := range 2 {
			if at, err := kv.at(i); err != nil || at == 0 {
				return damagedArrow(err)
			}
		}
		return nil
	})
}

// unpacks reports whether a compressed buffer is so many bytes, and its own checksum is right:
// the library stops reading behind them.
func (c *arrowCheck) unpacks(packed io.Reader, codec, want int64) (err error) {
	var unpacked io.Reader
	switch {
	case codec == 0 && c.lz4 == nil:
		c.lz4 = lz4.NewReader(packed)
	case codec == 0:
		c.lz4.Reset(packed)
	case c.zstd == nil:
		c.zstd, err = zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(arrowUnpacked))
	default:
		err = c.zstd.Reset(packed)
	}
	if unpacked = c.zstd; codec == 0 {
		unpacked = c.lz4
	}
	n := int64(0)
	if err == nil {
		n, err = io.Copy(io.Discard, io.LimitReader(unpacked, want+1))
	}
	if err == nil && n != want {
		err = fmt.Errorf("%d bytes, or more, that should be %d", n, want)
	}
	if err != nil {
		return fmt.Errorf("%w: a compressed buffer: %w", errArrow, err)
	}
	return nil
}
