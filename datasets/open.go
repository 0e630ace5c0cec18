package datasets

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/parquet-go/parquet-go"

	"glmbatch/stores"
)

// ErrFile marks an input file that cannot be opened or read: missing, damaged,
// or not what its name says.
var ErrFile = errors.New("unreadable file")

// fileError is an ErrFile with its path and cause in one line.
type fileError struct {
	path  string
	cause error
}

func (e *fileError) Error() string   { return e.path + ": " + e.cause.Error() }
func (e *fileError) Unwrap() []error { return []error{ErrFile, e.cause} }

func badFile(path string, cause error) error {
	var known *fileError
	switch {
	case cause == nil:
		return nil
	case errors.As(cause, &known):
		return cause
	case errors.Is(cause, fs.ErrNotExist):
		cause = errors.New("no such file")
	case errors.Is(cause, fs.ErrPermission):
		cause = errors.New("permission denied")
	}
	return &fileError{path, cause}
}

// guard runs f and returns a panic of the columnar libraries as an error.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged data: %v", p)
		}
	}()
	return f()
}

const (
	parquetMagic = "PAR1"
	minParquet   = 12 // magic, empty footer, its length, magic
)

// source is a file on disk, or one in memory under a name for messages.
type source struct {
	path string
	data []byte // nil: on disk
	bare bool   // the path is not the user's: its folders are no partition columns
}

// parquetFile is an open file whose footer has been checked against its size.
type parquetFile struct {
	*parquet.File
	source
	r       io.ReaderAt
	size    int64
	modTime int64 // ns since 1970; 0 in memory
	disk    *os.File
}

func (p *parquetFile) Close() error {
	if p.disk == nil {
		return nil
	}
	return p.disk.Close()
}

// openParquet reads and checks the footer; no page is read yet.
func openParquet(s source) (*parquetFile, error) {
	p := &parquetFile{source: s}
	err := p.open()
	if err == nil {
		p.File, err = parquetFooter(p.r, p.size)
	}
	if err != nil {
		p.Close()
		return nil, badFile(s.path, err)
	}
	return p, nil
}

func (p *parquetFile) open() (err error) {
	if p.data != nil {
		p.r, p.size = bytes.NewReader(p.data), int64(len(p.data))
		return nil
	}
	if stores.IsURL(p.path) {
		o, err := stores.Open(context.Background(), p.path)
		if err == nil {
			p.r, p.size, p.modTime = o, o.Size, o.ModTime
		}
		return err
	}
	if p.disk, err = openRegular(p.path); err != nil {
		return err
	}
	info, err := p.disk.Stat()
	if err != nil {
		return err
	}
	p.r, p.size, p.modTime = p.disk, info.Size(), info.ModTime().UnixNano()
	return nil
}

// openRegular opens a file. Others are refused before they are opened: to open
// a pipe is to wait for a writer.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a file")
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// footer returns the bytes of the footer, whose length has been checked.
func (p *parquetFile) footer() ([]byte, error) {
	var tail [8]byte
	if _, err := p.r.ReadAt(tail[:], p.size-8); err != nil {
		return nil, err
	}
	footer := make([]byte, binary.LittleEndian.Uint32(tail[:]))
	_, err := p.r.ReadAt(footer, p.size-8-int64(len(footer)))
	return footer, err
}

// keyValues are the file's own metadata.
func (p *parquetFile) keyValues() map[string]string {
	meta := map[string]string{}
	for _, kv := range p.File.Metadata().KeyValueMetadata {
		meta[kv.Key] = kv.Value
	}
	return meta
}

func parquetFooter(r io.ReaderAt, size int64) (*parquet.File, error) {
	if size < minParquet {
		return nil, fmt.Errorf("not a Parquet file: %d bytes", size)
	}
	var head [4]byte
	var tail [8]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return nil, err
	}
	if _, err := r.ReadAt(tail[:], size-8); err != nil {
		return nil, err
	}
	if string(head[:]) != parquetMagic {
		return nil, fmt.Errorf("not a Parquet file: it starts with %q", head[:])
	}
	if string(tail[4:]) != parquetMagic {
		return nil, errors.New("the Parquet file is cut off: its footer is missing")
	}
	if n := int64(binary.LittleEndian.Uint32(tail[:])); n > size-minParquet {
		return nil, fmt.Errorf("damaged Parquet footer: %d bytes in a file of %d", n, size)
	}
	var pf *parquet.File
	err := guard(func() (err error) {
		pf, err = parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
			parquet.FileReadMode(parquet.ReadModeSync), parquet.ReadBufferSize(readBuffer))
		if err != nil {
			return fmt.Errorf("damaged Parquet footer: %w", err)
		}
		return checkFooter(pf, size)
	})
	return pf, err
}

// readBuffer is the bytes read at a time from each column of a file.
const readBuffer = 32 << 10

// checkFooter bounds what later reads will trust.
func checkFooter(pf *parquet.File, size int64) error {
	meta := pf.Metadata()
	var rows int64
	for i := range meta.RowGroups {
		g := &meta.RowGroups[i]
		if g.NumRows < 0 || rows+g.NumRows < rows {
			return fmt.Errorf("damaged Parquet footer: row group %d has %d rows", i, g.NumRows)
		}
		rows += g.NumRows
		for j := range g.Columns {
			c := &g.Columns[j].MetaData
			if c.TotalCompressedSize < 0 || c.TotalCompressedSize > size || c.DataPageOffset < 0 || c.DataPageOffset > size ||
				c.DictionaryPageOffset < 0 || c.DictionaryPageOffset > size || c.NumValues < 0 {
				return fmt.Errorf("damaged Parquet footer: column %d of row group %d lies outside the file", j, i)
			}
		}
	}
	if rows != meta.NumRows {
		return fmt.Errorf("damaged Parquet footer: %d rows in all, %d in the row groups", meta.NumRows, rows)
	}
	if len(pf.Root().Columns()) == 0 {
		return errors.New("the Parquet file has no columns")
	}
	return nil
}

// checkGroup walks the page headers of a row group before the library does.
func checkGroup(f *parquetFile, g int) error {
	meta := f.File.Metadata()
	for j := range meta.RowGroups[g].Columns {
		c := &meta.RowGroups[g].Columns[j]
		if err := checkPages(f.r, f.size, &c.MetaData); err != nil {
			return fmt.Errorf("damaged Parquet data: row group %d, column %d: %w", g, j, err)
		}
	}
	return nil
}
