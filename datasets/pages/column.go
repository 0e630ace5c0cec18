package pages

import (
	"fmt"
	"hash/crc32"
	"io"
)

const maxWindow = 1 << 20 // bytes of a window's values of one width

// Window is the next values of a column. Values that are there (whose definition
// level is the column's greatest) lie in Fixed or in Texts, in order.
type Window struct {
	N        int
	Rep, Def []uint8  // of each value; nil where the column has none
	Fixed    []byte   // Width bytes each, little endian; a boolean is a byte
	Texts    [][]byte // of byte arrays

	// Of a page of dictionary positions: of each value that is there. Dict stays
	// the same while the dictionary does.
	Index []uint32
	Dict  *Dictionary
}

// Text returns the text of value i, of those that are there, also where
// [Column.OnlyPositions] leaves Texts empty.
func (w *Window) Text(i int) []byte {
	if w.Texts == nil && w.Dict != nil {
		return w.Dict.Text(int(w.Index[i]))
	}
	return w.Texts[i]
}

// Len and Text show a dictionary of byte arrays.
func (d *Dictionary) Len() int { return d.n }

// Text returns value i.
func (d *Dictionary) Text(i int) []byte { return d.text(uint32(i)) }

// Column reads the values of a column chunk in order.
type Column struct {
	file   *File
	leaf   *Leaf
	chunk  *Chunk
	budget *Budget
	window int // most values of a window

	onlyPositions bool
	memory        *Memory // nil: its own

	at    int64 // of the next page
	end   int64 // of the column's pages
	left  int64 // values of pages not opened yet
	dict  *Dictionary
	page  []byte // the memory of the open page
	taken int64  // of the budget

	values   int // left of the open page
	rep, def levels
	dec      decoder // nil until a value is asked for: pages of nulls alone may have no bytes to make one of
	encoding int32
	rest     []byte // of the page, after its levels
	dictMem  int64
	w        Window
	fixed    []byte
	texts    [][]byte
}

// Column opens a column chunk. A window has at most n values.
func (f *File) Column(group, leaf, n int, budget *Budget) *Column {
	c := &f.Groups[group].Chunks[leaf]
	if w := f.Leaves[leaf].Width(); w > 0 {
		n = max(1, min(n, maxWindow/w))
	}
	return &Column{file: f, leaf: &f.Leaves[leaf], chunk: c, budget: budget, window: n, at: c.start(), end: f.end(c),
		left: c.Values}
}

// Memory is what columns need while they are read; one column after the other may use
// it. Windows are good until the next column has it.
type Memory struct{ raw, page []byte }

// Use makes a column that was not read from yet use m.
func (c *Column) Use(m *Memory) {
	if m != nil {
		c.memory, c.page = m, m.page
	}
}

// OnlyPositions leaves the texts of dictionary positions out of the windows.
func (c *Column) OnlyPositions() { c.onlyPositions = true }

// Close gives the column's memory back to the budget.
func (c *Column) Close() {
	_ = c.budget.take(-c.taken)
	if c.memory != nil && c.chunk.Codec != 0 {
		c.memory.page = c.page
	}
	c.taken, c.page, c.dict = 0, nil, nil
}

// Next returns the next values, or io.EOF after the last.
func (c *Column) Next() (*Window, error) {
	for c.values == 0 {
		if c.left == 0 {
			return nil, io.EOF
		}
		if err := c.open(); err != nil {
			return nil, c.failed(err)
		}
	}
	if err := c.read(min(c.values, c.window)); err != nil {
		return nil, c.failed(err)
	}
	return &c.w, nil
}

func (c *Column) failed(err error) error { return fmt.Errorf("column %q: %w", c.leaf.Name, err) }

// open opens the next data page.
func (c *Column) open() error {
	for {
		h, err := readHeader(c.file.r, c.at, c.end)
		if err != nil {
			return err
		}
		at := c.at + int64(h.size)
		if h.compressed > c.end-at {
			return damaged("the page at byte %d ends at %d, but the column at %d, as total_compressed_size in the "+
				"footer has it: write the file again", c.at, at+h.compressed, c.end)
		}
		c.at = at + h.compressed
		switch h.kind {
		case dictionaryPage:
			if c.dict != nil {
				return damaged("two dictionaries")
			}
			b, err := c.load(&h, at, nil) // before any data page: none is open
			if err != nil {
				return err
			}
			if h.encoding != plain && h.encoding != plainDictionary {
				return unsupported("encoding %d of a dictionary", h.encoding)
			}
			if c.dict, err = newDictionary(c.leaf, b, int(h.values)); err != nil {
				return err
			}
			c.dictMem = int64(len(b)) + 4*int64(len(c.dict.ends))
			if err := c.hold(c.dictMem); err != nil {
				return err
			}
		case dataPage, dataPageV2:
			// Values that a page has beyond the column's are not read, as others do.
			c.values = int(min(h.values, c.left))
			c.left -= int64(c.values)
			if c.values > 0 {
				return c.openData(&h, at)
			}
			if _, err := c.raw(&h, at); err != nil || c.left == 0 {
				return err
			}
		case indexPage:
		default:
			return unsupported("a page of kind %d", h.kind)
		}
	}
}

// hold sets what the column takes of the budget.
func (c *Column) hold(n int64) error {
	if err := c.budget.take(n - c.taken); err != nil {
		return err
	}
	c.taken = n
	return nil
}

// raw reads a page as it lies in the file, and verifies its checksum.
func (c *Column) raw(h *header, at int64) ([]byte, error) {
	var b []byte
	if c.memory != nil && h.kind != dictionaryPage && c.chunk.Codec != 0 && !h.plain { // the page will be another one's
		c.memory.raw = sized(c.memory.raw, int(h.compressed))
		b = c.memory.raw
	} else {
		b = make([]byte, h.compressed)
	}
	if _, err := c.file.r.ReadAt(b, at); err != nil && err != io.EOF {
		return nil, err
	}
	if h.hasCRC && crc32.ChecksumIEEE(b) != h.crc {
		return nil, damaged("the checksum of the page at byte %d", at-int64(h.size))
	}
	return b, nil
}

// load returns a page decompressed: all of it, or what follows the levels of
// version 2, which are put in front. It uses memory's room if it can.
func (c *Column) load(h *header, at int64, memory []byte) ([]byte, error) {
	n := h.uncompressed
	if err := c.hold(c.dictMem + max(n, int64(cap(memory)))); err != nil {
		return nil, err
	}
	raw, err := c.raw(h, at)
	if err != nil {
		return nil, err
	}
	codec := c.chunk.Codec
	if h.kind == dataPageV2 && h.plain {
		codec = 0
	}
	if codec == 0 {
		if h.compressed != h.uncompressed {
			return nil, damaged("a page of %d bytes, %d uncompressed, without compression", h.compressed,
				h.uncompressed)
		}
		return raw, nil
	}
	if int64(cap(memory)) < n || int64(cap(memory)) > 4*n+1<<20 {
		memory = make([]byte, n)
	}
	page := memory[:n]
	first := int64(0)
	if h.kind == dataPageV2 {
		first = h.defLen + h.repLen
		copy(page, raw[:first])
	}
	if n > first { // some writers leave nothing for pages of nulls
		err = decompress(codec, page[first:], raw[first:])
	}
	return page, err
}

// openData opens a data page: its levels, then its values.
func (c *Column) openData(h *header, at int64) error {
	b, err := c.load(h, at, c.page[:0])
	if err != nil {
		return err
	}
	c.page = b
	if h.kind == dataPageV2 {
		c.rep = levels{most: c.leaf.MaxRep, runs: newHybrid(b[:h.repLen], levelWidth(c.leaf.MaxRep))}
		b = b[h.repLen:]
		c.def = levels{most: c.leaf.MaxDef, runs: newHybrid(b[:h.defLen], levelWidth(c.leaf.MaxDef))}
		b = b[h.defLen:]
	} else {
		if c.rep, b, err = newLevels(b, c.leaf.MaxRep, h.repEnc, int(h.values)); err != nil {
			return err
		}
		if c.def, b, err = newLevels(b, c.leaf.MaxDef, h.defEnc, int(h.values)); err != nil {
			return err
		}
	}
	c.dec, c.encoding, c.rest = nil, h.encoding, b
	return nil
}

// read fills the window with n values of the open page.
func (c *Column) read(n int) error {
	w := &c.w
	w.N = n
	there := n
	if c.leaf.MaxRep > 0 {
		w.Rep = sized(w.Rep, n)
		if err := c.rep.read(w.Rep); err != nil {
			return err
		}
	}
	if most := c.leaf.MaxDef; most > 0 {
		w.Def = sized(w.Def, n)
		if err := c.def.read(w.Def); err != nil {
			return err
		}
		there = 0
		for _, d := range w.Def {
			if d == most {
				there++
			}
		}
	}
	c.values -= n
	w.Fixed, w.Texts, w.Index, w.Dict = nil, nil, nil, nil
	if there == 0 {
		return nil
	}
	var err error
	if c.dec == nil {
		if c.dec, err = newDecoder(c.encoding, c.leaf, c.dict, c.rest); err != nil {
			return err
		}
	}
	if width := c.leaf.Width(); width > 0 {
		c.fixed = sized(c.fixed, there*width)
		w.Fixed = c.fixed
		err = c.dec.fixed(w.Fixed, width)
	} else if p, ok := c.dec.(*positions); ok && c.onlyPositions {
		_, err = p.read(there)
	} else {
		c.texts = sized(c.texts, there)
		w.Texts = c.texts
		err = c.dec.bytes(w.Texts)
	}
	if p, ok := c.dec.(*positions); ok {
		w.Index, w.Dict = p.index[:there], p.dict
	}
	return err
}

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
