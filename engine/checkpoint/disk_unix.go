//go:build linux || darwin || freebsd

package checkpoint

import "golang.org/x/sys/unix"

// FreeBytes returns the space left for files in dir.
func FreeBytes(dir string) (int64, bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
