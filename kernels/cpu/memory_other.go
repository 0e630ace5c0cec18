//go:build !linux

package cpu

import (
	"fmt"
	"runtime"
)

func allocate(n int64) (data []byte, free func(), err error) {
	if int64(int(n)) != n || n > 1<<46 {
		return nil, nil, fmt.Errorf("no memory of %d bytes", n)
	}
	return heap(n), nil, nil
}

func streamed([]byte) {}

// totalMemory returns the machine's memory in bytes, 0 where it is unknown.
func totalMemory() int64 { return 0 }

func cpuName() string { return runtime.GOARCH }
