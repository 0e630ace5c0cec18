//go:build unix

package checkpoint

import (
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps the first size bytes of f for reading.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	if size == 0 {
		return nil, func() error { return nil }, nil // an empty mapping is an error
	}
	if size > math.MaxInt {
		return nil, nil, fmt.Errorf("%d bytes do not fit the address space", size)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return b, func() error { return unix.Munmap(b) }, nil
}

// willNeed tells the system that bytes [lo, hi) of a mapping will be read. It is a
// wish: what it says is of no use.
func willNeed(mapping []byte, lo, hi int) {
	lo &^= os.Getpagesize() - 1
	_ = unix.Madvise(mapping[lo:hi], unix.MADV_WILLNEED)
}
