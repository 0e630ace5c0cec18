package pages

import (
	"encoding/binary"
)

// decoder reads the values of a page that are there, in order.
type decoder interface {
	// fixed fills dst with values of the column's width.
	fixed(dst []byte, width int) error
	// bytes fills dst with values of any length, which are valid until the next call.
	bytes(dst [][]byte) error
}

// newDecoder makes the decoder of a page that has values.
func newDecoder(encoding int32, l *Leaf, dict *Dictionary, b []byte) (decoder, error) {
	wrong := func() (decoder, error) {
		return nil, unsupported("encoding %d of values of type %d", encoding, l.Kind)
	}
	switch encoding {
	case plain:
		if l.Kind == Boolean {
			return &plainBits{b: b}, nil
		}
		return &plainValues{b: b}, nil
	case plainDictionary, rleDictionary:
		switch {
		case dict == nil:
			return nil, damaged("a page of dictionary positions without a dictionary")
		case len(b) == 0 || b[0] > 32:
			return nil, damaged("dictionary positions")
		}
		return &positions{dict: dict, runs: newHybrid(b[1:], uint(b[0]))}, nil
	case runLength:
		if l.Kind != Boolean {
			return wrong()
		}
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			return nil, damaged("booleans end early")
		}
		return &runBits{newHybrid(b[4:], 1)}, nil
	case deltaBinaryPacked:
		if l.Kind != Int32 && l.Kind != Int64 {
			return wrong()
		}
		d, err := newDeltas(b)
		return &deltaNumbers{d: d}, err
	case deltaLengthByteArray:
		if l.Kind != ByteArray {
			return wrong()
		}
		return newDeltaTexts(b, false)
	case deltaByteArray:
		if l.Kind != ByteArray && l.Kind != FixedLenByteArray {
			return wrong()
		}
		return newDeltaTexts(b, true)
	case byteStreamSplit:
		w := l.Width()
		if l.Kind == Boolean || l.Kind == Int96 || w == 0 {
			return wrong()
		}
		if len(b)%w != 0 {
			return nil, damaged("%d bytes in %d streams", len(b), w)
		}
		return &streams{b: b, n: len(b) / w}, nil
	}
	return nil, unsupported("encoding %d", encoding)
}

var errShort = damaged("values end early")

type plainValues struct{ b []byte }

func (p *plainValues) fixed(dst []byte, width int) error {
	if len(p.b) < len(dst) {
		return errShort
	}
	copy(dst, p.b)
	p.b = p.b[len(dst):]
	return nil
}

func (p *plainValues) bytes(dst [][]byte) error {
	for i := range dst {
		if len(p.b) < 4 {
			return errShort
		}
		n := uint64(binary.LittleEndian.Uint32(p.b))
		if n > uint64(len(p.b)-4) {
			return errShort
		}
		dst[i], p.b = p.b[4:4+n:4+n], p.b[4+n:]
	}
	return nil
}

// noBytes is for decoders of values of one width.
type noBytes struct{}

func (noBytes) bytes([][]byte) error { return unsupported("encoding of texts") }

type plainBits struct {
	noBytes
	b   []byte
	bit int
}

func (p *plainBits) fixed(dst []byte, _ int) error {
	if p.bit+len(dst) > 8*len(p.b) {
		return errShort
	}
	for i := range dst {
		dst[i] = p.b[p.bit>>3] >> (p.bit & 7) & 1
		p.bit++
	}
	return nil
}

type runBits struct{ runs hybrid }

func (r *runBits) fixed(dst []byte, _ int) error { return read(&r.runs, dst) }
func (r *runBits) bytes([][]byte) error          { return unsupported("encoding of texts") }

type deltaNumbers struct {
	noBytes
	d *deltas
}

func (n *deltaNumbers) fixed(dst []byte, width int) error {
	for ; len(dst) > 0; dst = dst[width:] {
		v, err := n.d.next()
		if err != nil {
			return err
		}
		if width == 4 {
			binary.LittleEndian.PutUint32(dst, uint32(v))
		} else {
			binary.LittleEndian.PutUint64(dst, uint64(v))
		}
	}
	return nil
}

type streams struct {
	noBytes
	b     []byte
	n, at int
}

func (s *streams) fixed(dst []byte, width int) error {
	k := len(dst) / width
	if s.at+k > s.n {
		return errShort
	}
	for w := range width {
		from := s.b[w*s.n+s.at:]
		for i := range k {
			dst[i*width+w] = from[i]
		}
	}
	s.at += k
	return nil
}

// deltaTexts reads DELTA_LENGTH_BYTE_ARRAY and, with prefixes, DELTA_BYTE_ARRAY.
type deltaTexts struct {
	prefixes *deltas // nil: none
	lengths  *deltas
	b        []byte
	last     []byte
	arena    []byte
}

func newDeltaTexts(b []byte, prefixed bool) (d *deltaTexts, err error) {
	d = &deltaTexts{b: b}
	if prefixed {
		if d.prefixes, err = newDeltas(d.b); err != nil {
			return nil, err
		}
		if d.b, err = d.prefixes.rest(); err != nil {
			return nil, err
		}
	}
	if d.lengths, err = newDeltas(d.b); err != nil {
		return nil, err
	}
	d.b, err = d.lengths.rest()
	return d, err
}

func (d *deltaTexts) next() ([]byte, error) {
	n, err := d.lengths.next()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > int64(len(d.b)) {
		return nil, errShort
	}
	suffix := d.b[:n:n]
	d.b = d.b[n:]
	if d.prefixes == nil {
		return suffix, nil
	}
	p, err := d.prefixes.next()
	if err != nil {
		return nil, err
	}
	if p < 0 || p > int64(len(d.last)) {
		return nil, damaged("a prefix of %d bytes of %d", p, len(d.last))
	}
	if p == 0 {
		d.last = suffix
		return suffix, nil
	}
	if n == 0 {
		d.last = d.last[:p:p]
		return d.last, nil
	}
	if need := int(p) + int(n); cap(d.arena)-len(d.arena) < need {
		d.arena = make([]byte, 0, max(need, 16<<10)) // earlier values keep the old one
	}
	at := len(d.arena)
	d.arena = append(append(d.arena, d.last[:p]...), suffix...)
	d.last = d.arena[at:len(d.arena):len(d.arena)]
	return d.last, nil
}

func (d *deltaTexts) bytes(dst [][]byte) (err error) {
	size := 0
	for i := range dst {
		if dst[i], err = d.next(); err != nil {
			return err
		}
		// Prefixes make values of any size of a few bytes.
		if size += len(dst[i]); d.prefixes != nil && size > maxPrefixed {
			return unsupported("values that share prefixes, of more than %d MiB", maxPrefixed>>20)
		}
	}
	return nil
}

func (d *deltaTexts) fixed(dst []byte, width int) error {
	for ; len(dst) > 0; dst = dst[width:] {
		v, err := d.next()
		if err != nil {
			return err
		}
		if len(v) != width {
			return damaged("a value of %d bytes, want %d", len(v), width)
		}
		copy(dst, v)
	}
	return nil
}

// Dictionary is a chunk's dictionary.
type Dictionary struct {
	b     []byte
	width int      // of a value; 0: they differ
	ends  []uint32 // of values that differ, with the place of each one's length
	n     int
}

func newDictionary(l *Leaf, b []byte, n int) (*Dictionary, error) {
	d := &Dictionary{b: b, width: l.Width(), n: n}
	if l.Kind == Boolean {
		return nil, unsupported("a dictionary of booleans")
	}
	if d.width > 0 {
		if uint64(n)*uint64(d.width) > uint64(len(b)) {
			return nil, damaged("a dictionary of %d values in %d bytes", n, len(b))
		}
		return d, nil
	}
	if n > len(b)/4 {
		return nil, damaged("a dictionary of %d values in %d bytes", n, len(b))
	}
	d.ends = make([]uint32, n)
	at := uint64(0)
	for i := range n {
		if at+4 > uint64(len(b)) {
			return nil, damaged("a dictionary ends early")
		}
		at += 4 + uint64(binary.LittleEndian.Uint32(b[at:]))
		if at > uint64(len(b)) {
			return nil, damaged("a dictionary ends early")
		}
		d.ends[i] = uint32(at)
	}
	return d, nil
}

// text returns value i of a dictionary of texts.
func (d *Dictionary) text(i uint32) []byte {
	start := uint32(4)
	if i > 0 {
		start += d.ends[i-1]
	}
	return d.b[start:d.ends[i]:d.ends[i]]
}

type positions struct {
	dict  *Dictionary
	runs  hybrid
	index []uint32
}

func (p *positions) read(n int) ([]uint32, error) {
	if cap(p.index) < n {
		p.index = make([]uint32, n)
	}
	index := p.index[:n]
	if err := read(&p.runs, index); err != nil {
		return nil, err
	}
	for _, i := range index {
		if int(i) >= p.dict.n {
			return nil, damaged("position %d in a dictionary of %d", i, p.dict.n)
		}
	}
	return index, nil
}

func (p *positions) fixed(dst []byte, width int) error {
	index, err := p.read(len(dst) / width)
	for i, k := range index {
		copy(dst[i*width:(i+1)*width], p.dict.b[int(k)*width:])
	}
	return err
}

func (p *positions) bytes(dst [][]byte) error {
	index, err := p.read(len(dst))
	for i, k := range index {
		dst[i] = p.dict.text(k)
	}
	return err
}
