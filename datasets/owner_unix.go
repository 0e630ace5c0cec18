//go:build unix

package datasets

import (
	"io/fs"
	"os"
	"syscall"
)

// foreign reports whether another user made a file, who is not root: root needs no
// tricks.
func foreign(i fs.FileInfo) bool {
	s, ok := i.Sys().(*syscall.Stat_t)
	return !ok || s.Uid != 0 && int(s.Uid) != os.Geteuid()
}

// ForeignLink reports whether path is a link that another user made.
func ForeignLink(path string) bool {
	i, err := os.Lstat(path)
	return err == nil && i.Mode()&fs.ModeSymlink != 0 && foreign(i)
}
