package pages

import (
	"errors"
	"io"
)

// The types of pages.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPageV2     = 3
)

// The encodings.
const (
	plain                = 0
	plainDictionary      = 2
	runLength            = 3
	bitPacked            = 4
	deltaBinaryPacked    = 5
	deltaLengthByteArray = 6
	deltaByteArray       = 7
	rleDictionary        = 8
	byteStreamSplit      = 9
)

// header is what matters of a page's header.
type header struct {
	size         int // of the header itself
	kind         int32
	uncompressed int64
	compressed   int64
	hasCRC       bool
	crc          uint32

	values         int64 // with nulls
	encoding       int32
	defEnc, repEnc int32 // of levels, version 1
	defLen, repLen int64 // of levels, version 2
	plain          bool  // version 2: its values are not compressed
}

const firstWindow = 512 // bytes read for a header at first; most take less than 100

func readHeader(r io.ReaderAt, at, end int64) (header, error) {
	var first [firstWindow]byte
	buf := first[:]
	for {
		n := min(int64(len(buf)), end-at)
		if _, err := r.ReadAt(buf[:n], at); err != nil && err != io.EOF {
			return header{}, err
		}
		h, err := parseHeader(buf[:n])
		switch {
		case err == nil:
			return h, h.check()
		case !errors.Is(err, io.ErrUnexpectedEOF) || n == end-at:
			return h, damaged("page header at byte %d: %v", at, err)
		case len(buf) >= MaxHeader:
			return h, unsupported("a page header of more than %d MiB at byte %d", MaxHeader>>20, at)
		}
		buf = make([]byte, 16*len(buf))
	}
}

func (h *header) check() error {
	switch {
	case h.compressed < 0 || h.uncompressed < 0 || h.values < 0 || h.defLen < 0 || h.repLen < 0 || h.defLen+
		h.repLen > min(h.compressed, h.uncompressed):
		return damaged("a page of %d bytes, %d uncompressed, with %d values", h.compressed, h.uncompressed, h.values)
	case h.uncompressed > MaxPage || h.compressed > MaxPage:
		return unsupported("a page of %d MiB; at most %d MiB are read", max(h.uncompressed, h.compressed)>>20,
			MaxPage>>20)
	case h.values > MaxPageValues:
		return unsupported("a page of %d values; at most %d are read", h.values, MaxPageValues)
	}
	return nil
}

// parseHeader reads a PageHeader.
func parseHeader(b []byte) (h header, err error) {
	t := thriftReader{b: b}
	if t.verify("PageHeader"); t.err != nil {
		return h, t.err
	}
	t = thriftReader{b: b}
	known := false
	t.fields(func(id int64, typ byte) bool {
		switch {
		case id == 1 && typ == thriftI32:
			h.kind = t.i32()
		case id == 2 && typ == thriftI32:
			h.uncompressed = t.zigzag()
		case id == 3 && typ == thriftI32:
			h.compressed = t.zigzag()
		case id == 4 && typ == thriftI32:
			h.crc, h.hasCRC = uint32(t.zigzag()), true
		case (id == 5 || id == 7 || id == 8) && typ == thriftStruct:
			known = true
			t.fields(func(sub int64, typ byte) bool { return h.field(&t, id, sub, typ) })
		default:
			return false
		}
		return true
	})
	if t.err == nil && !known && h.kind != indexPage {
		t.err = errors.New("a page of no known kind")
	}
	h.size = t.at
	return h, t.err
}

// field reads a field of the header of one kind of page: 5 data, 7 dictionary,
// 8 data of version 2.
func (h *header) field(t *thriftReader, page, id int64, typ byte) bool {
	if page == 8 && id == 7 && (typ == thriftTrue || typ == thriftFalse) {
		h.plain = typ == thriftFalse
		return true
	}
	if typ != thriftI32 {
		return false
	}
	switch {
	case id == 1:
		h.values = t.zigzag()
	case id == 2 && page != 8, id == 4 && page == 8:
		h.encoding = t.i32()
	case id == 3 && page == 5:
		h.defEnc = t.i32()
	case id == 4 && page == 5:
		h.repEnc = t.i32()
	case id == 5 && page == 8:
		h.defLen = t.zigzag()
	case id == 6 && page == 8:
		h.repLen = t.zigzag()
	default:
		return false
	}
	return true
}
