package pages

import (
	"encoding/binary"
)

// deltas reads DELTA_BINARY_PACKED: blocks of miniblocks of differences.
type deltas struct {
	b         []byte // what follows the miniblock at hand
	block     int    // values of a block
	mini      int    // values of a miniblock
	left      int    // values not read yet
	last      int64
	first     bool // the first value has not been read
	least     int64
	widths    []byte // of the block's next miniblocks
	packed    []byte // the miniblock at hand
	bit       int
	width     uint
	remaining int // values left in the miniblock
}

func newDeltas(b []byte) (*deltas, error) {
	d := &deltas{b: b, first: true}
	block, minis, total := d.uvarint(), d.uvarint(), d.uvarint()
	v := d.uvarint()
	d.last = int64(v>>1) ^ -int64(v&1)
	if d.b == nil || block == 0 || minis == 0 || block > 1<<24 || minis > block || block%minis != 0 ||
		total > MaxPageValues {
		return nil, damaged("the head of delta-encoded values")
	}
	d.block, d.mini, d.left = int(block), int(block/minis), int(total)
	if d.mini%8 != 0 {
		return nil, damaged("miniblocks of %d values", d.mini)
	}
	return d, nil
}

// uvarint leaves b nil after an error.
func (d *deltas) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b = nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// advance opens the next miniblock.
func (d *deltas) advance() error {
	if len(d.widths) == 0 {
		v := d.uvarint()
		minis := d.block / d.mini
		if d.b == nil || len(d.b) < minis {
			return damaged("delta-encoded values end early")
		}
		d.least = int64(v>>1) ^ -int64(v&1)
		d.widths, d.b = d.b[:minis], d.b[minis:]
	}
	d.width, d.widths = uint(d.widths[0]), d.widths[1:]
	if d.width > 64 {
		return damaged("differences of %d bits", d.width)
	}
	size := d.mini / 8 * int(d.width)
	if size > len(d.b) {
		// Some writers cut the last miniblock.
		if need := (min(d.left, d.mini)*int(d.width) + 7) / 8; need > len(d.b) {
			return damaged("delta-encoded values end early")
		}
		size = len(d.b)
	}
	d.packed, d.b, d.bit, d.remaining = d.b[:size:size], d.b[size:], 0, d.mini
	return nil
}

func (d *deltas) next() (int64, error) {
	if d.left == 0 {
		return 0, damaged("delta-encoded values end early")
	}
	if d.first {
		d.first = false
		d.left--
		return d.last, nil
	}
	if d.remaining == 0 {
		if err := d.advance(); err != nil {
			return 0, err
		}
	}
	d.remaining--
	d.left--
	delta := d.least
	if d.width > 0 {
		delta += int64(bitsAt(d.packed, d.bit, d.width))
		d.bit += int(d.width)
	}
	d.last += delta
	return d.last, nil
}

// rest returns what follows all values, and leaves d where it is.
func (d *deltas) rest() ([]byte, error) {
	c := *d
	if c.first && c.left > 0 {
		c.first = false
		c.left--
	}
	for c.left > 0 {
		if err := c.advance(); err != nil {
			return nil, err
		}
		c.left -= min(c.left, c.remaining)
	}
	return c.b, nil
}
