package datasets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"glmbatch/datasets/pages"
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

const parquetMagic = "PAR1"

// source is a file on disk, or one in memory under a name for messages.
type source struct {
	path string
	data []byte // nil: on disk
	bare bool   // the path is not the user's: its folders are no partition columns
}

// parquetFile is an open file whose footer has been checked against its size.
type parquetFile struct {
	*pages.File
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
		p.File, err = pages.Open(p.r, p.size)
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

// keyValues are the file's own metadata.
func (p *parquetFile) keyValues() map[string]string {
	meta := map[string]string{}
	for _, kv := range p.File.Meta {
		meta[kv.Key] = kv.Value
	}
	return meta
}
