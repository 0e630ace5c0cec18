package datasets

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// aside is a file that is written under a name starting with a dot and gets its
// own name only when it is whole and on the disk.
type aside struct {
	file *os.File
	buf  *bufio.Writer
	path string
}

// Replaceable returns the path of the file that is to be renamed to path: links are
// followed, so that they stay. What is there already must be a regular file: a rename
// would put the file in the place of a device or a pipe.
func Replaceable(path string) (string, error) {
	i, err := os.Stat(path)
	if err != nil { // there is none
		return path, nil
	}
	if !i.Mode().IsRegular() {
		kind := "device or pipe"
		if i.IsDir() {
			kind = "folder"
		}
		return "", fmt.Errorf("%s is a %s: give the name of a file", path, kind)
	}
	return filepath.EvalSymlinks(path)
}

func createAside(path string) (*aside, error) {
	path, err := Replaceable(path)
	if err != nil {
		return nil, err
	}
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(filepath.Clean(dir+"."), 0o777); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, "."+name+".tmp"))
	if err != nil {
		return nil, err
	}
	return &aside{file: f, buf: bufio.NewWriterSize(f, 64<<10), path: path}, nil
}

func (a *aside) Write(p []byte) (int, error) { return a.buf.Write(p) }

// commit syncs the file, renames it and syncs the folder.
func (a *aside) commit() error {
	err := a.buf.Flush()
	if err == nil {
		err = a.file.Sync()
	}
	if cerr := a.file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(a.file.Name(), a.path)
	}
	if err != nil {
		os.Remove(a.file.Name())
		return fmt.Errorf("writing %s: %w", a.path, err)
	}
	return syncDir(filepath.Dir(a.path))
}

func (a *aside) abort() {
	a.file.Close()
	os.Remove(a.file.Name())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// WriteFile writes a small file in the same way: aside, synced, renamed.
func WriteFile(path string, data []byte) error {
	a, err := createAside(path)
	if err != nil {
		return err
	}
	if _, err := a.Write(data); err != nil {
		a.abort()
		return err
	}
	return a.commit()
}

// LinkFile makes to another name of the file from, or a copy where the file system
// has no links: aside, synced, renamed.
func LinkFile(from, to string) error {
	dir, name := filepath.Split(to)
	temp := filepath.Join(dir, "."+name+".tmp")
	if err := os.Remove(temp); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Link(from, temp); err == nil {
		if err := os.Rename(temp, to); err != nil {
			return err
		}
		return syncDir(filepath.Dir(to))
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	a, err := createAside(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(a, f); err != nil {
		a.abort()
		return fmt.Errorf("writing %s: %w", to, err)
	}
	return a.commit()
}
