package checkpoint

import (
	"fmt"
	"io"
	"os"
)

// file is a weight file: mapped, or in memory.
type file struct {
	name   string
	data   []byte
	header []byte
	f      *os.File // nil: in memory
	unmap  func() error
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
	data, unmap, err := mapFile(f, info.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("mapping %s: %w", path, err)
	}
	return &file{name: name, data: data, f: f, unmap: unmap}, nil
}

// read copies bytes from offset at on, by a call rather than from the mapping:
// single blocks of a mapping would each make the system read megabytes ahead.
func (f *file) read(b []byte, at int) error {
	if f.f == nil {
		copy(b, f.data[at:])
		return nil
	}
	_, err := f.f.ReadAt(b, int64(at))
	return err
}

// check reports a file that has shrunk since it was opened: its pages are gone.
func (f *file) check() error {
	if f.f == nil {
		return nil
	}
	info, err := f.f.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	if info.Size() < int64(len(f.data)) {
		return fmt.Errorf("%s was truncated from %d to %d bytes while in use: start again when it is whole", f.name, len(f.data), info.Size())
	}
	return nil
}

func (f *file) close() error {
	if f.f == nil {
		return nil
	}
	err := f.unmap()
	f.data = nil
	if cerr := f.f.Close(); err == nil {
		err = cerr
	}
	return err
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
