//go:build unix

package pipeline

import (
	"errors"
	"syscall"
)

// noFollow keeps a link at the lock's name from being followed.
const noFollow = syscall.O_NOFOLLOW

// noLocks reports whether an error says that a file system has no locks.
func noLocks(err error) bool {
	for _, e := range []error{syscall.ENOLCK, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.ENOTSUP, syscall.EINVAL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// alive reports whether there is a process of a number, whoever's it is.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
