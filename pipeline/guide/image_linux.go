package guide

import (
	"bytes"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newImage keeps a box's memory.
func newImage(memory []byte) *image {
	i := &image{size: int64(len(memory))}
	fd, err := unix.MemfdCreate("glmbatch-guide", unix.MFD_CLOEXEC)
	if err == nil {
		i.file = os.NewFile(uintptr(fd), "guide")
		if _, err = i.file.Write(memory); err == nil {
			return i
		}
		i.file.Close()
	}
	i.file, i.data = nil, bytes.Clone(memory)
	return i
}

// space is a box's memory: addresses for all that it may ever have, so that it grows without
// being copied.
type space struct{ all []byte }

// reserve returns a space; nil: the system gives none, and the box has memory as Go has it.
func reserve() *space {
	all, err := unix.Mmap(-1, 0, most<<16, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return &space{all}
}

// show puts an image's pages at the beginning, and reports whether it could.
func (s *space) show(i *image) bool {
	if i.file == nil || i.size == 0 {
		return false
	}
	_, err := unix.MmapPtr(int(i.file.Fd()), 0, unsafe.Pointer(&s.all[0]), uintptr(i.size),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	return err == nil
}

func (s *space) release() { _ = unix.Munmap(s.all) }
