package pages

import (
	"encoding/binary"
	"math/bits"
)

// hybrid reads numbers of up to 32 bits in runs of equal ones and in packed
// groups of eight: levels, dictionary positions, booleans.
type hybrid struct {
	b      []byte
	width  uint
	run    int    // values left of the run at hand
	value  uint32 // of a run of equal ones
	packed []byte // nil: the run is of equal ones
	bit    int    // of packed
}

func newHybrid(b []byte, width uint) hybrid { return hybrid{b: b, width: width} }

// next begins the next run.
func (h *hybrid) next() error {
	head, n := binary.Uvarint(h.b)
	if n <= 0 {
		return damaged("runs end early")
	}
	h.b = h.b[n:]
	count := head >> 1
	if count == 0 {
		return damaged("a run of no values")
	}
	if count > MaxPageValues {
		return damaged("a run of %d values", count)
	}
	if head&1 == 0 {
		size := int(h.width+7) / 8
		if size > len(h.b) {
			return damaged("runs end early")
		}
		h.value = 0
		for i := range size {
			h.value |= uint32(h.b[i]) << (8 * i)
		}
		if h.width < 32 && h.value>>h.width != 0 {
			return damaged("%d in %d bits", h.value, h.width)
		}
		h.b, h.run, h.packed = h.b[size:], int(count), nil
		return nil
	}
	size := min(int(count)*int(h.width), len(h.b)) // the last group may be cut
	h.packed, h.b, h.bit, h.run = h.b[:size:size], h.b[size:], 0, int(count)*8
	if h.width == 0 {
		h.packed, h.value = nil, 0
	}
	return nil
}

// read fills dst.
func read[T uint8 | uint32](h *hybrid, dst []T) error {
	for len(dst) > 0 {
		if h.run == 0 {
			if err := h.next(); err != nil {
				return err
			}
		}
		n := min(h.run, len(dst))
		if h.packed == nil {
			for i := range n {
				dst[i] = T(h.value)
			}
		} else {
			if h.bit+n*int(h.width) > 8*len(h.packed) {
				if n = (8*len(h.packed) - h.bit) / int(h.width); n == 0 {
					return damaged("packed values end early")
				}
				h.run = n
			}
			for i := range n {
				dst[i] = T(bitsAt(h.packed, h.bit, h.width))
				h.bit += int(h.width)
			}
		}
		h.run -= n
		dst = dst[n:]
	}
	return nil
}

// bitsAt returns up to 64 bits from a place of b, least first; b has them.
func bitsAt(b []byte, bit int, width uint) uint64 {
	i, shift := bit>>3, uint(bit&7)
	if i+8 <= len(b) {
		v := binary.LittleEndian.Uint64(b[i:]) >> shift
		if shift+width > 64 {
			v |= uint64(b[i+8]) << (64 - shift)
		}
		if width < 64 {
			v &= 1<<width - 1
		}
		return v
	}
	var v uint64
	for k := uint(0); k < width+shift; k += 8 {
		c := uint64(b[i+int(k/8)])
		if k >= shift {
			v |= c << (k - shift)
		} else {
			v |= c >> (shift - k)
		}
	}
	if width < 64 {
		v &= 1<<width - 1
	}
	return v
}

// levels reads the repetition or definition levels of a page.
type levels struct {
	most uint8
	runs hybrid
	old  []byte // the deprecated encoding: packed, most significant bit first; else nil
	bit  int
}

func levelWidth(most uint8) uint { return uint(bits.Len8(most)) }

// newLevels reads levels from the front of a page of version 1 and returns the rest.
func newLevels(b []byte, most uint8, encoding int32, values int) (levels, []byte, error) {
	l := levels{most: most}
	switch {
	case most == 0:
		return l, b, nil
	case encoding == bitPacked:
		size := (values*int(levelWidth(most)) + 7) / 8
		if size > len(b) {
			return l, nil, damaged("levels end early")
		}
		l.old = b[:size:size]
		return l, b[size:], nil
	case encoding != runLength:
		return l, nil, unsupported("encoding %d of levels", encoding)
	}
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
		return l, nil, damaged("levels end early")
	}
	n := int(binary.LittleEndian.Uint32(b))
	l.runs = newHybrid(b[4:4+n], levelWidth(most))
	return l, b[4+n:], nil
}

func (l *levels) read(dst []uint8) error {
	if l.most == 0 {
		clear(dst)
		return nil
	}
	if l.old != nil {
		for i := range dst {
			v := uint8(0)
			for range levelWidth(l.most) {
				if l.bit>>3 >= len(l.old) {
					return damaged("levels end early")
				}
				v = v<<1 | l.old[l.bit>>3]>>(7-l.bit&7)&1
				l.bit++
			}
			dst[i] = v
		}
	} else if err := read(&l.runs, dst); err != nil {
		return err
	}
	for _, v := range dst {
		if v > l.most {
			return damaged("a level of %d, at most %d", v, l.most)
		}
	}
	return nil
}
