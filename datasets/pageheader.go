package datasets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"
)

// Page headers are walked here before the library decodes them: it trusts their
// sizes, and takes minutes over some damaged ones (lists that claim billions of
// entries). The walk touches headers only, not pages.

const (
	firstWindow = 4 << 10  // bytes read for a header at first
	maxHeader   = 16 << 20 // headers have statistics, which may be long
	maxPage     = 1 << 30  // bytes of an uncompressed page
	maxValues   = 1 << 30  // of a page
	maxNesting  = 32
)

// pageHeader is what matters of a header.
type pageHeader struct {
	size         int // of the header itself
	uncompressed int64
	compressed   int64
	values       int64
}

// checkPages walks the pages of one column chunk of a file of the given size.
func checkPages(r io.ReaderAt, size int64, c *format.ColumnMetaData) error {
	at := c.DataPageOffset
	if d := c.DictionaryPageOffset; d > 0 && d < at {
		at = d
	}
	end := at + c.TotalCompressedSize
	if end > size {
		return fmt.Errorf("the pages end at byte %d of %d", end, size)
	}
	for at < end {
		h, err := readPageHeader(r, at, end)
		if err != nil {
			return fmt.Errorf("page header at byte %d: %w", at, err)
		}
		at += int64(h.size)
		if h.compressed < 0 || h.compressed > end-at || h.uncompressed < 0 || h.uncompressed > maxPage || h.values < 0 || h.values > maxValues {
			return fmt.Errorf("page header before byte %d: a page of %d bytes, %d uncompressed, with %d values", at, h.compressed, h.uncompressed, h.values)
		}
		at += h.compressed
	}
	return nil
}

func readPageHeader(r io.ReaderAt, at, end int64) (pageHeader, error) {
	for window := int64(firstWindow); ; window *= 16 {
		n := min(window, end-at)
		buf := make([]byte, n)
		if _, err := r.ReadAt(buf, at); err != nil && err != io.EOF {
			return pageHeader{}, err
		}
		h, err := parsePageHeader(buf)
		switch {
		case !errors.Is(err, io.ErrUnexpectedEOF) || n == end-at:
			return h, err
		case window >= maxHeader:
			return h, fmt.Errorf("it is longer than %d MiB", maxHeader>>20)
		}
	}
}

// parsePageHeader reads a PageHeader of the format's parquet.thrift in Thrift's
// compact protocol.
func parsePageHeader(b []byte) (h pageHeader, err error) {
	t := thriftReader{b: b}
	nested := func(id int64, typ byte) bool {
		if id == 1 && typ == thriftI32 {
			h.values = t.zigzag()
			return true
		}
		return false
	}
	t.fields(0, func(id int64, typ byte) bool {
		switch {
		case id == 2 && typ == thriftI32:
			h.uncompressed = t.zigzag()
		case id == 3 && typ == thriftI32:
			h.compressed = t.zigzag()
		case (id == 5 || id == 7 || id == 8) && typ == thriftStruct:
			t.fields(1, nested)
		default:
			return false
		}
		return true
	})
	h.size = t.at
	return h, t.err
}

// The types of the compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftI8     = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// thriftReader walks a value. After an error it returns zeros.
type thriftReader struct {
	b   []byte
	at  int
	err error
}

func (t *thriftReader) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.at = len(t.b)
}

func (t *thriftReader) byte() byte {
	if t.at >= len(t.b) {
		t.fail(io.ErrUnexpectedEOF)
		return 0
	}
	t.at++
	return t.b[t.at-1]
}

func (t *thriftReader) pass(n uint64) {
	if n > uint64(len(t.b)-t.at) {
		t.fail(io.ErrUnexpectedEOF)
		return
	}
	t.at += int(n)
}

func (t *thriftReader) uvarint() uint64 {
	v, n := binary.Uvarint(t.b[t.at:])
	switch {
	case n == 0:
		t.fail(io.ErrUnexpectedEOF)
		return 0
	case n < 0:
		t.fail(errors.New("a number of more than 64 bits"))
		return 0
	}
	t.at += n
	return v
}

func (t *thriftReader) zigzag() int64 {
	v := t.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// fields walks a struct. f takes a field or returns false to have it skipped.
func (t *thriftReader) fields(depth int, f func(id int64, typ byte) bool) {
	id := int64(0)
	for t.err == nil {
		head := t.byte()
		typ := head & 15
		if head == 0 || t.err != nil {
			return
		}
		if delta := int64(head >> 4); delta > 0 {
			id += delta
		} else {
			id = t.zigzag()
		}
		if !f(id, typ) {
			t.skip(typ, depth+1, false)
		}
	}
}

// skip passes over a value; item: it is in a container, where booleans take a byte.
func (t *thriftReader) skip(typ byte, depth int, item bool) {
	if depth > maxNesting {
		t.fail(errors.New("nested too deep"))
	}
	if t.err != nil {
		return
	}
	switch typ {
	case thriftTrue, thriftFalse:
		if item {
			t.pass(1)
		}
	case thriftI8:
		t.pass(1)
	case thriftI16, thriftI32, thriftI64:
		t.uvarint()
	case thriftDouble:
		t.pass(8)
	case thriftUUID:
		t.pass(16)
	case thriftBinary:
		t.pass(t.uvarint())
	case thriftList, thriftSet:
		head := t.byte()
		n := uint64(head >> 4)
		if n == 15 {
			n = t.uvarint()
		}
		t.items(n, depth, head&15)
	case thriftMap:
		if n := t.uvarint(); n > 0 {
			types := t.byte()
			t.items(n, depth, types>>4, types&15)
		}
	case thriftStruct:
		t.fields(depth, func(int64, byte) bool { return false })
	default:
		t.fail(fmt.Errorf("unknown type %d", typ))
	}
}

// items passes over n entries, each of which takes a byte at least.
func (t *thriftReader) items(n uint64, depth int, types ...byte) {
	if n > uint64(len(t.b)-t.at) {
		t.fail(io.ErrUnexpectedEOF)
	}
	for ; n > 0 && t.err == nil; n-- {
		for _, typ := range types {
			t.skip(typ, depth+1, true)
		}
	}
}
