package cpu

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// mapped is the size from which memory comes from the kernel: outside the heap
// that the collector paces itself by, and on huge pages, which spares a
// streamed weight most of its TLB misses.
const mapped = 1 << 20

func allocate(n int64) (data []byte, free func(), err error) {
	if n < mapped {
		return heap(n), nil, nil
	}
	data, err = unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	_ = unix.Madvise(data, unix.MADV_HUGEPAGE) // a kernel without huge pages is only slower
	return data, func() { _ = unix.Munmap(data) }, nil
}

// totalMemory returns the machine's memory in bytes, 0 where it is unknown.
func totalMemory() int64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return int64(s.Totalram) * int64(s.Unit)
}

// cpuName returns the processor's name as the kernel prints it.
func cpuName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "cpu"
	}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return "cpu"
}
