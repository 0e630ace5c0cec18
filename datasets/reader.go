package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// Record is one row of an [Input], as its file has it. It stays valid.
type Record struct {
	Index  int64           // of the row, through all files
	values []parquet.Value // sorted by leaf column; column indexes are the table's
}

// Bytes is about the memory that the record's values take.
func (r Record) Bytes() int {
	n := len(r.values) * valueBytes
	for i := range r.values {
		if k := r.values[i].Kind(); k == parquet.ByteArray || k == parquet.FixedLenByteArray {
			n += len(r.values[i].ByteArray())
		}
	}
	return n
}

const (
	valueBytes = 24
	batchRows  = 256     // most rows of a batch
	batchBytes = 1 << 20 // a batch ends with the row that passes this
	chunkRows  = 32      // rows read from a file at once
	maxRow     = 1 << 30 // bytes of one row: more is taken for damage
)

// Reader reads the rows of an [Input] in order, a page of each column at a time.
type Reader struct {
	in    *Input
	next  int64 // row
	end   int64
	file  int // place in in.Files of the open file
	group int // row group being read
	left  int64

	open   *parquetFile
	rows   parquet.Rows
	buf    []parquet.Row
	filled int // rows of buf that hold data
	taken  int // rows of buf that were handed out
}

// Reader starts to read at row from and ends before row to, or at the last row.
func (in *Input) Reader(from, to int64) *Reader {
	return &Reader{in: in, next: max(0, from), end: min(to, in.Rows), file: -1, buf: make([]parquet.Row, chunkRows)}
}

// Next is the index of the row that Read returns next.
func (r *Reader) Next() int64 { return r.next }

// Close ends the reading; it may come at any time.
func (r *Reader) Close() error {
	var err error
	if r.rows != nil {
		err = guard(r.rows.Close)
		r.rows = nil
	}
	if r.open != nil {
		err = errors.Join(err, r.open.Close())
		r.open = nil
	}
	return err
}

// Read returns the next rows, at most 256 of them, or io.EOF after the last.
func (r *Reader) Read() ([]Record, error) {
	if r.next >= r.end {
		return nil, io.EOF
	}
	var b batch
	for len(b.records) < batchRows && b.bytes < batchBytes && r.next < r.end {
		if r.taken == r.filled {
			if err := r.fill(); err != nil {
				return nil, err
			}
		}
		row := r.buf[r.taken]
		r.taken++
		if err := b.add(r.next, row, &r.in.Files[r.file]); err != nil {
			return nil, badFile(r.in.Files[r.file].Path, fmt.Errorf("row %d: %w", r.next, err))
		}
		r.next++
	}
	return b.finish(), nil
}

// fill reads the next rows of the row group, of the next one, or of the next file.
func (r *Reader) fill() error {
	for r.left == 0 {
		if err := r.advance(); err != nil {
			return err
		}
	}
	n := 0
	err := guard(func() (err error) {
		n, err = r.rows.ReadRows(r.buf[:min(int64(chunkRows), r.left)])
		return err
	})
	if err == io.EOF && n > 0 {
		err = nil
	}
	if err == nil && n == 0 || err == io.EOF {
		err = fmt.Errorf("row group %d ends %d rows early", r.group, r.left)
	}
	if err != nil {
		return badFile(r.open.path, fmt.Errorf("damaged Parquet data: %w", err))
	}
	r.left -= int64(n)
	r.filled, r.taken = n, 0
	return nil
}

// advance opens the row group that has row r.next.
func (r *Reader) advance() error {
	if r.file < 0 || r.group+1 >= len(r.open.RowGroups()) {
		return r.advanceFile()
	}
	return r.openGroup(r.group+1, 0)
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
		if open.size != f.Size || open.NumRows() != f.Rows {
			return badFile(f.Path, errors.New("the file changed while it was read"))
		}
		for g, rg := range open.RowGroups() {
			if skip < rg.NumRows() {
				return r.openGroup(g, skip)
			}
			skip -= rg.NumRows()
		}
	}
	return fmt.Errorf("row %d is past the input's end", r.next)
}

func (r *Reader) openGroup(g int, skip int64) error {
	if r.rows != nil {
		guard(r.rows.Close)
		r.rows = nil
	}
	r.group = g
	rg := r.open.RowGroups()[g]
	r.left = rg.NumRows() - skip
	err := guard(func() error {
		if err := checkGroup(r.open, g); err != nil {
			return err
		}
		r.rows = rg.Rows()
		if skip > 0 {
			return r.rows.SeekToRow(skip)
		}
		return nil
	})
	return badFile(r.open.path, err)
}

// batch copies rows out of the reader's buffers: their values into one slab and
// their bytes into another, so that a batch is few allocations.
type batch struct {
	records []Record
	ends    []int
	values  []parquet.Value
	arena   []byte
	bytes   int
}

func (b *batch) add(index int64, row parquet.Row, file *File) error {
	leaves := file.leaves
	if b.records == nil {
		b.records = make([]Record, 0, batchRows)
		b.ends = make([]int, 0, batchRows)
		b.values = make([]parquet.Value, 0, batchRows*(len(row)+len(file.hive)))
	}
	start := len(b.values)
	size := 0
	for _, v := range row {
		rep, def, col := v.RepetitionLevel(), v.DefinitionLevel(), v.Column()
		if leaves != nil && col >= 0 && col < len(leaves) && leaves[col].to < 0 {
			continue
		}
		switch v.Kind() {
		case parquet.ByteArray:
			v = parquet.ByteArrayValue(b.copy(v.ByteArray()))
			size += len(v.ByteArray())
		case parquet.FixedLenByteArray:
			v = parquet.FixedLenByteArrayValue(b.copy(v.ByteArray()))
			size += len(v.ByteArray())
		case parquet.Int96:
			v = v.Clone()
		}
		if leaves != nil {
			if col < 0 || col >= len(leaves) {
				return fmt.Errorf("damaged Parquet data: column %d", col)
			}
			m := leaves[col]
			col = m.to
			def += m.shift
		}
		b.values = append(b.values, v.Level(rep, def, col))
	}
	b.values = append(b.values, file.hive...)
	if leaves != nil {
		sortByColumn(b.values[start:])
	}
	b.bytes += size + (len(row)+len(file.hive))*valueBytes
	if size > maxRow {
		return fmt.Errorf("the row has %d bytes", size)
	}
	b.records = append(b.records, Record{Index: index})
	b.ends = append(b.ends, len(b.values))
	return nil
}

func (b *batch) copy(s []byte) []byte {
	if cap(b.arena)-len(b.arena) < len(s) {
		b.arena = make([]byte, 0, max(len(s), 64<<10)) // earlier values keep the old one
	}
	n := len(b.arena)
	b.arena = append(b.arena, s...)
	return b.arena[n:len(b.arena):len(b.arena)]
}

func (b *batch) finish() []Record {
	start := 0
	for i, end := range b.ends {
		b.records[i].values = b.values[start:end:end]
		start = end
	}
	return b.records
}

// sortByColumn is a stable insertion sort: rows come nearly sorted.
func sortByColumn(v []parquet.Value) {
	for i := 1; i < len(v); i++ {
		for j := i; j > 0 && v[j].Column() < v[j-1].Column(); j-- {
			v[j], v[j-1] = v[j-1], v[j]
		}
	}
}
