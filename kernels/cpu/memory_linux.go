package cpu

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// mapped is the size from which memory comes from the kernel: outside the heap
// that the collector paces itself by.
const mapped = 1 << 20

func allocate(n int64) (data []byte, free func(), err error) {
	if n < mapped {
		return heap(n), nil, nil
	}
	data, err = unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	return data, func() { _ = unix.Munmap(data) }, nil
}

// streamed puts weights on huge pages, which spares them most of their TLB misses.
// Other memory stays on small ones: it comes to be in the midst of a step, where the
// kernel may take 20 ms to find a huge page.
func streamed(data []byte) {
	if len(data) >= mapped {
		_ = unix.Madvise(data, unix.MADV_HUGEPAGE) // a kernel without them is only slower
	}
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
