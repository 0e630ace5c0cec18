package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"glmbatch/datasets/pages"
)

const (
	batchRows    = 256       // most rows of a batch
	batchBytes   = 1 << 20   // a batch ends with the row that passes this
	maxRow       = 256 << 20 // bytes of one row, packed as a [Record]
	windowValues = 1024      // values of a column that are decoded at once
	windowsTotal = 1 << 18   // values of all columns that are decoded at once
)

// Reader reads the rows of an [Input] in order, a page of each column at a time.
type Reader struct {
	in   *Input
	next int64 // row
	end  int64

	file    int // place in in.Files of the open file
	open    *parquetFile
	group   int // row group being read
	left    int64
	columns []column // of the row group, one for each leaf of the table
	budget  pages.Budget
}

// Each hands every row to f, in order, until f has an error. A record is valid until f
// returns.
func (in *Input) Each(f func(Record) error) error {
	r := in.Reader(0, in.Rows)
	defer r.Close()
	for {
		records, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, rec := range records {
			if err := f(rec); err != nil {
				return err
			}
		}
	}
}

// Reader starts to read at row from and ends before row to, or at the last row.
func (in *Input) Reader(from, to int64) *Reader {
	return &Reader{in: in, next: max(0, from), end: min(to, in.Rows), file: -1}
}

// Next is the index of the row that Read returns next.
func (r *Reader) Next() int64 { return r.next }

// Close ends the reading; it may come at any time.
func (r *Reader) Close() error {
	r.closeGroup()
	if r.open == nil {
		return nil
	}
	err := r.open.Close()
	r.open = nil
	return err
}

// Read returns the next rows, at most 256 of them, or io.EOF after the last.
func (r *Reader) Read() ([]Record, error) {
	if r.next >= r.end {
		return nil, io.EOF
	}
	b := batch{}
	for len(b.records) < batchRows && len(b.data) < batchBytes && r.next < r.end {
		for r.left == 0 {
			if err := r.advance(); err != nil {
				return nil, err
			}
		}
		b.begin(r.next)
		if err := guard(func() error { return r.row(&b) }); err != nil {
			return nil, badFile(r.in.Files[r.file].Path, fmt.Errorf("row %d: %w", r.next, err))
		}
		r.next++
		r.left--
	}
	return b.finish(), nil
}

func (r *Reader) row(b *batch) error {
	for i := range r.columns {
		c := &r.columns[i]
		if c.Column == nil { // the file has no such column
			b.cell(c.table, c.feed.value)
		} else if err := c.row(b); err != nil {
			return err
		}
		if b.rowBytes() > maxRow {
			return errRow
		}
		b.endLeaf()
	}
	return nil
}

// advance opens the next row group that has rows, here or in the next file.
func (r *Reader) advance() error {
	if r.file < 0 {
		return r.advanceFile()
	}
	if err := r.ended(); err != nil {
		return badFile(r.open.path, err)
	}
	if r.group+1 >= len(r.open.Groups) {
		return r.advanceFile()
	}
	return r.openGroup(r.group+1, 0)
}

// ended checks that the columns of a row group have no row too many.
func (r *Reader) ended() error {
	for i := range r.columns {
		c := &r.columns[i]
		if c.Column == nil {
			continue
		}
		if ok, err := c.more(); err != nil {
			return err
		} else if ok {
			return fmt.Errorf("column %q of row group %d: %w: it has more rows than the row group", c.leaf.Name,
				r.group, pages.ErrDamaged)
		}
	}
	return nil
}

func (r *Reader) advanceFile() error {
	if err := r.Close(); err != nil {
		return err
	}
	skip := r.next
	for i := range r.in.Files {
		f := &r.in.Files[i]
		if skip >= f.Rows {
			skip -= f.Rows
			continue
		}
		open, err := openParquet(source{path: cmp.Or(f.local, f.Path), data: f.data})
		if err != nil {
			return err
		}
		r.open, r.file = open, i
		if open.size != f.Size || open.Rows != f.Rows || len(open.Leaves) != f.leaves {
			return badFile(f.Path, errors.New("the file changed while it was read"))
		}
		for g := range open.Groups {
			if skip < open.Groups[g].Rows {
				return r.openGroup(g, skip)
			}
			skip -= open.Groups[g].Rows
		}
	}
	return fmt.Errorf("row %d is past the input's end", r.next)
}

func (r *Reader) closeGroup() {
	for i := range r.columns {
		if r.columns[i].Column != nil {
			r.columns[i].Column.Close()
		}
	}
	r.columns = r.columns[:0]
}

// openGroup begins a row group and passes over its first rows.
func (r *Reader) openGroup(g int, skip int64) error {
	r.closeGroup()
	r.group, r.left = g, r.open.Groups[g].Rows
	leaves := r.in.root.leafNodes()
	window := max(32, min(windowValues, windowsTotal/len(leaves)))
	for i, f := range r.in.Files[r.file].feeds {
		c := column{feed: f, table: leaves[i], texts: leaves[i].typ.width() == 0}
		if f.leaf >= 0 {
			c.Column, c.leaf = r.open.Column(g, f.leaf, window, &r.budget), &r.open.Leaves[f.leaf]
			c.width = c.leaf.Width()
		}
		r.columns = append(r.columns, c)
	}
	if r.left == 0 {
		return nil
	}
	err := guard(func() error { return r.skip(skip) })
	return badFile(r.open.path, err)
}

// skip passes over rows.
func (r *Reader) skip(rows int64) error {
	for i := range r.columns {
		c := &r.columns[i]
		if c.Column == nil {
			continue
		}
		if err := c.skip(rows); err != nil {
			return err
		}
	}
	r.left -= rows
	return nil
}

// skip passes over rows of one column.
func (c *column) skip(rows int64) error {
	for rows > 0 {
		ok, err := c.more()
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("column %q: %w: it has fewer rows than the row group", c.leaf.Name, pages.ErrDamaged)
		}
		// A row is passed when the next one begins.
		c.pass()
		for c.leaf.MaxRep > 0 {
			if ok, err := c.more(); err != nil || !ok || c.w.Rep[c.at] == 0 {
				if err != nil {
					return err
				}
				break
			}
			c.pass()
		}
		rows--
	}
	return nil
}

// pass steps over the value at hand.
func (c *column) pass() {
	if c.leaf.MaxDef == 0 || c.w.Def[c.at] == c.leaf.MaxDef {
		c.value++
	}
	c.at++
}
