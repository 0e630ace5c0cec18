package stores

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Mirror takes the finished files of a folder to a URL.
type Mirror struct {
	Dir  string
	URL  string
	Last []string // names that are uploaded last, in this order, and only by Finish
	Late string   // a folder whose files change all the time: only Finish uploads them; "": none

	done map[string]stamp // what was uploaded, by name
}

// stamp tells a file from its next version.
type stamp struct {
	size int64
	mod  time.Time
}

// Push uploads the files that are new or have changed. Names that start with a dot
// are unfinished and stay here.
func (m *Mirror) Push(ctx context.Context) error { return m.pushAll(ctx, false) }

func (m *Mirror) pushAll(ctx context.Context, late bool) error {
	names, err := files(m.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.Contains(m.Last, name) || !late && m.Late != "" && strings.HasPrefix(name, m.Late+"/") {
			continue
		}
		if err := m.push(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Finish uploads all that is left, removes from the URL what is no longer in the
// folder, and then uploads the last names, as far as there are such files.
func (m *Mirror) Finish(ctx context.Context) error {
	if err := m.pushAll(ctx, true); err != nil {
		return err
	}
	have, err := files(m.Dir)
	if err != nil {
		return err
	}
	for name := range m.done {
		if !slices.Contains(have, name) {
			if err := Delete(ctx, Join(m.URL, name)); err != nil {
				return err
			}
			delete(m.done, name)
		}
	}
	for _, name := range m.Last {
		if slices.Contains(have, name) {
			if err := m.push(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Mirror) push(ctx context.Context, name string) error {
	path := filepath.Join(m.Dir, filepath.FromSlash(name))
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has another name by now, or was no longer needed
	}
	if err != nil {
		return err
	}
	now := stamp{info.Size(), info.ModTime()}
	if m.done[name] == now {
		return nil
	}
	if err := Upload(ctx, path, Join(m.URL, name)); err != nil {
		return err
	}
	if m.done == nil {
		m.done = map[string]stamp{}
	}
	m.done[name] = now
	return nil
}

// files lists a folder's finished files, with slashes, sorted. A folder that is not there
// is an error, or what is at the URL would be taken for removed.
func files(dir string) ([]string, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case path != dir && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	slices.Sort(names)
	return names, err
}

// Compare takes what is at the URL for uploaded where the folder has a file of the
// same size: finished files do not change.
func (m *Mirror) Compare(there []Entry) error {
	m.done = map[string]stamp{}
	for _, e := range there {
		if slices.Contains(m.Last, e.Key) || !fs.ValidPath(e.Key) {
			continue
		}
		info, err := os.Stat(filepath.Join(m.Dir, filepath.FromSlash(e.Key)))
		switch {
		case err == nil && info.Size() == e.Size:
			m.done[e.Key] = stamp{info.Size(), info.ModTime()}
		case err == nil || errors.Is(err, fs.ErrNotExist):
			m.done[e.Key] = stamp{size: -1} // to be written again, or removed
		default:
			return err
		}
	}
	return nil
}

// Pull downloads all objects below the URL into the folder, which must not be there
// or be empty. They are then as uploaded.
func (m *Mirror) Pull(ctx context.Context) error {
	entries, err := List(ctx, m.URL)
	if err != nil {
		return err
	}
	m.done = map[string]stamp{}
	for _, e := range entries {
		if !fs.ValidPath(e.Key) || strings.HasPrefix(filepath.Base(e.Key), ".") {
			continue // no file of ours has such a name
		}
		path := filepath.Join(m.Dir, filepath.FromSlash(e.Key))
		if info, err := os.Stat(path); err != nil || info.Size() != e.Size || info.ModTime().UnixNano() != e.ModTime {
			if err := Download(ctx, e.URL, path); err != nil {
				return err
			}
			if err := os.Chtimes(path, time.Time{}, time.Unix(0, e.ModTime)); err != nil {
				return err
			}
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		m.done[e.Key] = stamp{info.Size(), info.ModTime()}
	}
	return nil
}
