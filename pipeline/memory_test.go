package pipeline

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// memoryFile names the input of the child process of BenchmarkMemory.
const memoryFile = "GLMBATCH_MEMORY_FILE"

// TestMemoryChild is that child: it runs one job and prints its peak memory.
func TestMemoryChild(t *testing.T) {
	path := os.Getenv(memoryFile)
	if path == "" {
		t.Skip("only as a child of BenchmarkMemory")
	}
	runStub(t, path, t.TempDir(), Options{Raw: true})
	fmt.Printf("peak %d kB\n", peakKB(t))
}

// peakKB is the largest resident memory that this process has had.
func peakKB(t testing.TB) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc on this system")
	}
	for line := range bytes.Lines(status) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "VmHWM:" {
			n, err := strconv.Atoi(string(f[1]))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no VmHWM in /proc/self/status")
	return 0
}

// BenchmarkMemory compares the peak memory of jobs of 10,000 and of 1,000,000
// rows, each in a process of its own.
func BenchmarkMemory(b *testing.B) {
	peak := map[int]float64{}
	for _, rows := range []int{10_000, 1_000_000} {
		path := benchInput(b, b.TempDir(), rows)
		cmd := exec.Command(os.Args[0], "-test.run=^TestMemoryChild$", "-test.v")
		cmd.Env = append(os.Environ(), memoryFile+"="+path)
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		at := bytes.Index(out, []byte("peak "))
		if at < 0 {
			b.Fatalf("no figure in\n%s", out)
		}
		var kb int
		if _, err := fmt.Sscanf(string(out[at:]), "peak %d kB", &kb); err != nil {
			b.Fatal(err)
		}
		peak[rows] = float64(kb)
	}
	for b.Loop() {
	}
	b.ReportMetric(peak[10_000]/1024, "MiB/10k-rows")
	b.ReportMetric(peak[1_000_000]/1024, "MiB/1M-rows")
	b.ReportMetric(peak[1_000_000]/peak[10_000], "ratio")
	b.ReportMetric(0, "ns/op")
}
