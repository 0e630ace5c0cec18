package checkpoint

import (
	"os"

	"golang.org/x/sys/unix"
)

// willNeed tells the system that bytes [lo, hi) of a file will be read. It is a
// wish: what it says is of no use.
func willNeed(f *os.File, lo, hi int64) {
	_ = unix.Fadvise(int(f.Fd()), lo, hi-lo, unix.FADV_WILLNEED)
}
