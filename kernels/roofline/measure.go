package roofline

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"glmbatch/kernels"
)

// probe is the code that measures a CPU.
type probe struct {
	read     func(b []byte) // b is a multiple of blockBytes
	multiply func(rounds int)
	flops    int64 // of a round
}

const (
	blockBytes   = 64 << 10
	bufferBytes  = 192 << 20 // several times the largest caches, over all threads
	measurePass  = 8         // the best of so many counts
	multiplyWork = 200_000   // rounds a pass: a few hundred microseconds
)

// sink keeps the plain probe's results alive.
var sink struct {
	sync.Mutex
	bits uint64
	sum  float32
}

// plainProbe is in Go, for CPUs without a faster one; compilers make scalar code of it.
var plainProbe = probe{
	read: func(b []byte) {
		var x, y uint64
		for i := 0; i+16 <= len(b); i += 16 {
			x ^= binary.LittleEndian.Uint64(b[i:])
			y ^= binary.LittleEndian.Uint64(b[i+8:])
		}
		sink.Lock()
		sink.bits ^= x ^ y
		sink.Unlock()
	},
	multiply: func(rounds int) {
		var a, b, c, d, e, f, g, h float32
		for i := range rounds {
			v := float32(i)
			a, b, c, d = a*v+v, b*v+v, c*v+v, d*v+v
			e, f, g, h = e*v+v, f*v+v, g*v+v, h*v+v
		}
		sink.Lock()
		sink.sum += a + b + c + d + e + f + g + h
		sink.Unlock()
	},
	flops: 16,
}

// Measure finds what this machine's CPU can do with the given threads (0: all):
// plain reads, copies, and float32 multiply-adds on all of them at once. It takes
// less than a second. Pipes that it does not measure (int8, fp4) stay unknown.
func Measure(threads int) Machine {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	p := probes()
	n := bufferBytes / threads / blockBytes * blockBytes
	buffers := make([][]byte, threads)
	together(threads, func(i int) {
		buffers[i] = make([]byte, n)
		for j := 0; j < n; j += 4096 {
			buffers[i][j] = byte(j >> 12) // have the memory
		}
	})
	// Pass by pass, not probe by probe: what else runs on the machine for a while
	// must not spoil all passes of one.
	var read, moved, multiplied shortest
	for range measurePass {
		read.time(threads, func(i int) {
			for at := 0; at < n; at += blockBytes {
				p.read(buffers[i][at : at+blockBytes])
			}
		})
		moved.time(threads, func(i int) { copy(buffers[i][:n/2], buffers[i][n/2:]) })
		multiplied.time(threads, func(int) { p.multiply(multiplyWork) })
	}
	flops := perSecond(int64(threads)*multiplyWork*p.flops, multiplied.d)
	return Machine{
		Name:  CPU(),
		Read:  perSecond(int64(threads*n), read.d),
		Copy:  perSecond(int64(threads*(n/2)*2), moved.d),
		FLOPs: map[kernels.Pipe]int64{kernels.OnVector: flops, kernels.OnMatrix: flops},
	}
}

func perSecond(amount int64, d time.Duration) int64 {
	return int64(float64(amount) / max(d.Seconds(), 1e-9))
}

// shortest is the best of some passes.
type shortest struct{ d time.Duration }

// time runs f on all threads at once.
func (s *shortest) time(threads int, f func(i int)) {
	start := time.Now()
	together(threads, f)
	if d := time.Since(start); s.d == 0 || d < s.d {
		s.d = d
	}
}

func together(threads int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range threads {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// CPU returns the CPU's model as its maker calls it, or the architecture.
func CPU() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// Cached returns the machine stored at path, or measures it with the given
// threads and stores it. A file that cannot be used is measured anew; one that
// cannot be written costs only the next run's time.
func Cached(path string, threads int) Machine {
	var m Machine
	if b, err := os.ReadFile(path); err == nil && json.Unmarshal(b, &m) == nil && m.Read > 0 &&
		m.FLOPs[kernels.OnVector] > 0 {
		return m
	}
	return Renewed(path, threads)
}

// Renewed measures the machine and stores it at path, for Cached.
func Renewed(path string, threads int) Machine {
	m := Measure(threads)
	if b, err := json.MarshalIndent(m, "", "  "); err == nil {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			tmp := fmt.Sprintf("%s.%d", path, os.Getpid())
			if os.WriteFile(tmp, b, 0o644) != nil || os.Rename(tmp, path) != nil {
				os.Remove(tmp)
			}
		}
	}
	return m
}
