package datasets

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Aside is a file that is written under a name of its own, which starts with a dot, and
// gets the name that it is for only when it is whole and on the disk. Two that are for
// one name have two names: the last that is committed is there, whole.
type Aside struct {
	file *os.File
	buf  *bufio.Writer
	path string
}

// unfinished are the files of this process that have no name yet, for a process that
// has no time to end in order.
var unfinished sync.Map

// RemoveUnfinished removes the files that were begun and have no name yet. Whoever
// writes them may go on: their commit is an error then.
func RemoveUnfinished() {
	unfinished.Range(func(path, _ any) bool {
		_ = os.Remove(path.(string))
		return true
	})
}

// Replaceable returns the path of the file that is to be renamed to path: links are
// followed, so that they stay, if this user made them. What is there already must be a
// regular file: a rename would put the file in the place of a device or a pipe.
func Replaceable(path string) (string, error) {
	if i, err := os.Lstat(path); err == nil && i.Mode()&fs.ModeSymlink != 0 && foreign(i) {
		return "", fmt.Errorf("%s is a link that another user made: remove it, or give another name", path)
	}
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

// CreateAside begins a file that is for path.
func CreateAside(path string) (*Aside, error) {
	path, err := Replaceable(path)
	if err != nil {
		return nil, err
	}
	dir, _ := filepath.Split(path)
	if err := os.MkdirAll(filepath.Clean(dir+"."), 0o777); err != nil {
		return nil, err
	}
	for range asideTries {
		temp := asideName(path)
		f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666) // which follows no link
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		unfinished.Store(temp, nil)
		return &Aside{file: f, buf: bufio.NewWriterSize(f, 64<<10), path: path}, nil
	}
	return nil, fmt.Errorf("%s: no name is free for a file beside it", path)
}

func (a *Aside) Write(p []byte) (int, error) { return a.buf.Write(p) }

// Commit syncs the file, renames it and syncs the folder.
func (a *Aside) Commit() error { return a.commit(true) }

// Place is Commit for a file that need not outlive the machine, only this process: it
// waits for no disk.
func (a *Aside) Place() error { return a.commit(false) }

func (a *Aside) commit(sync bool) error {
	err := a.buf.Flush()
	if err == nil && sync {
		err = a.file.Sync()
	}
	if cerr := a.file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(a.file.Name(), a.path)
	}
	unfinished.Delete(a.file.Name())
	if err != nil {
		os.Remove(a.file.Name())
		return fmt.Errorf("writing %s: %w", a.path, err)
	}
	if !sync {
		return nil
	}
	return syncDir(filepath.Dir(a.path))
}

// Abort drops the file.
func (a *Aside) Abort() {
	a.file.Close()
	os.Remove(a.file.Name())
	unfinished.Delete(a.file.Name())
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
	a, err := CreateAside(path)
	if err != nil {
		return err
	}
	if _, err := a.Write(data); err != nil {
		a.Abort()
		return err
	}
	return a.Commit()
}

// LinkFile makes to another name of the file from, or a copy where the file system
// has no links: aside, synced, renamed.
func LinkFile(from, to string) error {
	for range asideTries {
		temp := asideName(to)
		if err := os.Link(from, temp); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			break
		}
		if err := os.Rename(temp, to); err != nil {
			os.Remove(temp)
			return err
		}
		return syncDir(filepath.Dir(to))
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	a, err := CreateAside(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(a, f); err != nil {
		a.Abort()
		return fmt.Errorf("writing %s: %w", to, err)
	}
	return a.Commit()
}

const (
	asideSuffix = ".tmp"
	asideTries  = 100 // names, should some be taken
)

// asideName is a name beside path that nobody can guess.
func asideName(path string) string {
	dir, name := filepath.Split(path)
	return filepath.Join(dir, "."+name+"."+rand.Text()[:12]+asideSuffix)
}
