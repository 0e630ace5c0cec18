package datasets

import (
	"encoding/binary"
	"fmt"
	"io"

	"glmbatch/datasets/pages"
)

// feed says how one leaf column of the table comes from a file.
type feed struct {
	leaf    int        // of the file; -1: it has nothing, and each row has value
	value   []byte     // of a column that the file's path gives; nil: null
	levels  []uint8    // the file's definition levels as the table's
	convert conversion // nil: values stay as they are
	nulls   bool       // the file's type was let go, for it has no value of it

	// A column that the file lacks within a group that it has: nulls at this level
	// or below, where the leaf's values begin at this repetition level or above it.
	missing  bool
	rep, def uint8
}

// conversion appends a value of a file's type as one of the table's.
type conversion func(dst, v []byte) ([]byte, error)

// column moves the values of one leaf of a row group into records.
type column struct {
	feed
	*pages.Column
	leaf  *pages.Leaf
	width int // of its values; 0: they differ
	table *node
	texts bool // the table's values differ in length

	w     *pages.Window // nil: not read yet, or at the end
	at    int           // of w
	value int           // of w's values that are there
}

// more makes sure that a value is at hand; it returns false at the chunk's end.
func (c *column) more() (bool, error) {
	if c.w != nil && c.at < c.w.N {
		return true, nil
	}
	w, err := c.Next()
	if err == io.EOF {
		c.w = nil
		return false, nil
	}
	c.w, c.at, c.value = w, 0, 0
	return err == nil, err
}

// row appends the next row's values.
func (c *column) row(b *batch) error {
	for first := true; ; first = false {
		ok, err := c.more()
		switch {
		case err != nil:
			return err
		case !ok && first:
			return fmt.Errorf("column %q: %w: it has fewer rows than the row group", c.leaf.Name, pages.ErrDamaged)
		case !ok:
			return nil
		}
		if c.leaf.MaxRep == 0 {
			return c.one(b, 0)
		}
		rep := c.w.Rep[c.at]
		switch {
		case first && rep != 0:
			return fmt.Errorf("column %q: %w: it begins within a row", c.leaf.Name, pages.ErrDamaged)
		case !first && rep == 0:
			return nil
		}
		if err := c.one(b, rep); err != nil {
			return err
		}
		if b.rowBytes() > maxRow {
			return errRow
		}
	}
}

var errRow = fmt.Errorf("%w: a row of more than %d MiB", pages.ErrUnsupported, maxRow>>20)

// one appends the value at hand.
func (c *column) one(b *batch, rep uint8) error {
	most, def := c.leaf.MaxDef, c.leaf.MaxDef
	if most > 0 {
		def = c.w.Def[c.at]
	}
	c.at++
	i := c.value
	if def == most {
		c.value++
	}
	if c.missing {
		if rep <= c.rep {
			b.data = appendLevels(b.data, c.table, rep, min(c.levels[def], c.def))
		}
		return nil
	}
	b.data = appendLevels(b.data, c.table, rep, c.levels[def])
	if def < most {
		return nil
	}
	var v []byte
	if c.w.Texts != nil {
		v = c.w.Texts[i]
	} else {
		v = c.w.Fixed[i*c.width : (i+1)*c.width]
	}
	return b.value(c, v)
}

// value appends a value that is there.
func (b *batch) value(c *column, v []byte) error {
	if c.nulls {
		return fmt.Errorf("column %q: %w: a value in a column of nulls", c.leaf.Name, pages.ErrDamaged)
	}
	if c.convert != nil {
		var err error
		if b.scratch, err = c.convert(b.scratch[:0], v); err != nil {
			return fmt.Errorf("column %q: %w", c.leaf.Name, err)
		}
		v = b.scratch
	}
	if c.texts {
		b.data = binary.AppendUvarint(b.data, uint64(len(v)))
	}
	b.data = append(b.data, v...)
	return nil
}
