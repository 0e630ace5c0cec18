package datasets

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// Temporary is a folder in the system's place for files that do not stay. A process
// that is killed leaves it: the next call of [NewTemporary] removes it.
type Temporary struct {
	Dir  string
	lock *flock.Flock // held as long as the process lives
}

// Nothing else has these names: a job's folder may be called glmbatch-out, and has a .lock.
const (
	temporaryPrefix = "glmbatch.temporary-"
	beginPrefix     = "glmbatch.begin-" // before it is locked
	temporaryLock   = ".glmbatch.temporary"
)

// NewTemporary makes a folder that this user alone can read.
func NewTemporary() (t *Temporary, err error) {
	removeLeft(os.TempDir())
	begin, err := os.MkdirTemp("", beginPrefix)
	if err != nil {
		return nil, err
	}
	t = &Temporary{Dir: filepath.Join(filepath.Dir(begin), temporaryPrefix+strings.TrimPrefix(filepath.Base(begin),
		beginPrefix))}
	t.lock = flock.New(filepath.Join(begin, temporaryLock))
	_, err = t.lock.TryLock() // without it the folder stays, at worst
	if err != nil {
		t.lock = nil
	}
	if err = os.Rename(begin, t.Dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(begin))
	}
	return t, nil
}

// Remove removes the folder with what it has.
func (t *Temporary) Remove() error {
	err := os.RemoveAll(t.Dir)
	if t.lock != nil {
		err = errors.Join(err, t.lock.Close())
	}
	return err
}

// removeLeft removes the folders of this user's processes that were killed: nobody has
// their locks. What cannot be removed stays.
func removeLeft(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, temporaryPrefix+"*")) // the pattern is ours
	for _, path := range left {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 || foreign(info) {
			continue
		}
		name := filepath.Join(path, temporaryLock)
		if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeType != 0 {
			continue
		}
		l := flock.New(name)
		if ok, err := l.TryLock(); ok && err == nil {
			_ = os.RemoveAll(path)
			_ = l.Close()
		}
	}
}
