package pages

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The types of Thrift's compact protocol.
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
	b     []byte
	at    int
	depth int
	err   error
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

// take returns the next n bytes, which are the reader's own.
func (t *thriftReader) take(n uint64) []byte {
	if n > uint64(len(t.b)-t.at) {
		t.fail(io.ErrUnexpectedEOF)
		return nil
	}
	t.at += int(n)
	return t.b[t.at-int(n) : t.at : t.at]
}

func (t *thriftReader) binary() []byte { return t.take(t.uvarint()) }

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

func (t *thriftReader) i32() int32 {
	v := t.zigzag()
	if int64(int32(v)) != v {
		t.fail(fmt.Errorf("a number of 32 bits is %d", v))
		return 0
	}
	return int32(v)
}

// need is a field that a struct must have.
type need struct {
	id  int64
	typ byte
}

// fields walks a struct. f takes a field or returns false to have it skipped. required are
// the fields without which the struct is damaged.
func (t *thriftReader) fields(f func(id int64, typ byte) bool, required ...need) {
	t.depth++
	defer func() { t.depth-- }()
	if t.depth > MaxNesting {
		t.fail(errors.New("nested too deep"))
	}
	id, seen := int64(0), uint64(0)
	for t.err == nil {
		head := t.byte()
		typ := head & 15
		if head == 0 || t.err != nil {
			for i, r := range required {
				if seen>>i&1 == 0 {
					t.fail(fmt.Errorf("field %d of a struct is missing", r.id))
				}
			}
			return
		}
		if delta := int64(head >> 4); delta > 0 {
			id += delta
		} else {
			id = t.zigzag()
		}
		for i, r := range required {
			if r == (need{id, typ}) || typ == thriftFalse && r == (need{id, thriftTrue}) {
				seen |= 1 << i
			}
		}
		if !f(id, typ) {
			t.skip(typ, false)
		}
	}
}

// list walks a list, whose entries take a byte at least; f reads one, of type typ. All
// are skipped if f is nil.
func (t *thriftReader) list(typ byte, f func()) {
	head := t.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = t.uvarint()
	}
	if n > uint64(len(t.b)-t.at) {
		t.fail(io.ErrUnexpectedEOF)
	}
	if n > 0 && f != nil && head&15 != typ {
		t.fail(fmt.Errorf("a list has entries of type %d, not %d", head&15, typ))
	}
	for ; n > 0 && t.err == nil; n-- {
		if f != nil {
			f()
		} else {
			t.skip(head&15, true)
		}
	}
}

// count walks a list of entries of a type and returns how many there are.
func (t *thriftReader) count(typ byte) (n int) {
	t.list(typ, func() {
		t.skip(typ, true)
		n++
	})
	return n
}

// skip passes over a value; item: it is in a container, where booleans take a byte.
func (t *thriftReader) skip(typ byte, item bool) {
	t.depth++
	defer func() { t.depth-- }()
	if t.depth > MaxNesting {
		t.fail(errors.New("nested too deep"))
	}
	if t.err != nil {
		return
	}
	switch typ {
	case thriftTrue, thriftFalse:
		if item {
			t.byte()
		}
	case thriftI8:
		t.byte()
	case thriftI16, thriftI32, thriftI64:
		t.uvarint()
	case thriftDouble:
		t.take(8)
	case thriftUUID:
		t.take(16)
	case thriftBinary:
		t.binary()
	case thriftList, thriftSet:
		t.list(0, nil)
	case thriftMap:
		if n := t.uvarint(); n > 0 {
			types := t.byte()
			if n > uint64(len(t.b)-t.at) {
				t.fail(io.ErrUnexpectedEOF)
			}
			for ; n > 0 && t.err == nil; n-- {
				t.skip(types>>4, true)
				t.skip(types&15, true)
			}
		}
	case thriftStruct:
		t.fields(func(int64, byte) bool { return false })
	default:
		t.fail(fmt.Errorf("unknown type %d", typ))
	}
}
