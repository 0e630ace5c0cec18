package pipeline

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"glmbatch/datasets"
)

// lock is this process's hold of a folder.
type lock struct{ file *flock.Flock }

// owner is who holds a lock, as the lock's file says it.
type owner struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Started time.Time `json:"started"`
}

// lockFolder takes the folder; the system gives it back when the process ends,
// however it ends. The file may be anyone's who can read it: a group can share a folder.
func lockFolder(dir string, none bool) (*lock, error) {
	if none {
		return &lock{}, nil
	}
	path := filepath.Join(dir, datasets.LockFile)
	l := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDONLY|noFollow), flock.SetPermissions(0o666))
	ok, err := l.TryLock()
	switch {
	case noLocks(err):
		return nil,
			fmt.Errorf("%s: %w: its file system has no locks (%w); see to it that no other run has the folder, and "+
				"give --no-lock", dir, ErrOutput, err)
	case err != nil:
		return nil, fmt.Errorf("locking %s: %w: %w", dir, ErrOutput, err)
	case !ok:
		return nil, fmt.Errorf("%s: %w%s: wait for its end, or choose another --out", dir, ErrLocked, holder(path))
	}
	// Who else can write the file may have made it: then it says nothing of the holder.
	if f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC|noFollow, 0); err == nil {
		host, _ := os.Hostname()
		_ = json.NewEncoder(f).Encode(owner{os.Getpid(), host, time.Now().UTC().Truncate(time.Second)})
		_ = f.Close()
	}
	return &lock{l}, nil
}

// holder says who has a lock, as far as is known.
func holder(path string) string {
	var o owner
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &o) != nil || o.PID == 0 {
		return ""
	}
	return fmt.Sprintf(", process %d on %q since %s", o.PID, o.Host, o.Started.Format(time.RFC3339))
}

func (l *lock) release() error {
	if l == nil || l.file == nil {
		return nil
	}
	return l.file.Unlock()
}

// checkLinks refuses a folder in which another user has put links where a job writes,
// and one that is such a link itself.
func checkLinks(dir string) error {
	for _, name := range append([]string{".", datasets.LockFile}, datasets.JobNames...) {
		path := filepath.Join(dir, name)
		if datasets.ForeignLink(path) {
			return fmt.Errorf("%s: %w: it is a link that this user did not make; remove it, or choose another --out",
				path, ErrFolder)
		}
	}
	return nil
}
