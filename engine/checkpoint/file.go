package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// file is a weight file: open, or in memory. It is never mapped: a mapped file that
// shrinks ends the process that reads it, and a read of one gives an error.
type file struct {
	name   string
	size   int64
	header []byte
	memory []byte
	f      *os.File // nil: in memory
}

// openRegular opens a file. Others are refused before they are opened: to open
// a pipe is to wait for a writer.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

func openFile(path, name string) (*file, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &file{name: name, size: info.Size(), f: f}, nil
}

// read fills b from offset at on. It may be called by several goroutines at once.
func (f *file) read(b []byte, at int64) error {
	if f.f == nil {
		copy(b, f.memory[at:])
		return nil
	}
	_, err := f.f.ReadAt(b, at)
	if errors.Is(err, io.EOF) && len(b) > 0 {
		size := int64(0)
		if info, serr := f.f.Stat(); serr == nil {
			size = info.Size()
		}
		return fmt.Errorf("%s was truncated from %d to %d bytes while in use: start again when it is whole", f.name,
			f.size, size)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return nil
}

func (f *file) close() error {
	if f.f == nil {
		return nil
	}
	return f.f.Close()
}

// readSmall reads a file of at most limit bytes.
func readSmall(path string, limit int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return b, err
}
