package cpu

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// hugePages reports whether memory was asked to be on huge pages; it skips the test
// where the kernel does not say.
func hugePages(t *testing.T, data []byte) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	at, inside := uint64(address(data)), false
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = from <= at && at < to
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			return strings.Contains(flags, " hg")
		}
	}
	t.Skip("no flags of this memory")
	return false
}

// TestHugePages: only weights are on them.
func TestHugePages(t *testing.T) {
	h := &hub{}
	for _, weights := range []bool{false, true} {
		s, err := h.memory(4 * mapped)
		if err != nil {
			t.Fatal(err)
		}
		if weights {
			streamed(s.data)
		}
		if got := hugePages(t, s.data); got != weights {
			t.Errorf("weights %v: huge pages %v", weights, got)
		}
		h.release(s)
	}
}
