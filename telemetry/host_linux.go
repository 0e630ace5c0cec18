package telemetry

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// tick is the unit of /proc/stat: the kernel gives user space hundredths of a second.
const tick = 10 * time.Millisecond

// readHost reads /proc/stat and what the process used.
func readHost() Host {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Host{}
	}
	h := parseStat(text)
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return Host{}
	}
	h.Own = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return h
}

// parseStat counts the CPUs and adds up what they did: all but idle and waiting for
// disks, and time of guests, which is in the user's already.
func parseStat(text []byte) (h Host) {
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) < 9 || !bytes.HasPrefix(f[0], []byte("cpu")) {
			continue
		}
		if len(f[0]) > 3 {
			h.CPUs++
			continue
		}
		for _, i := range []int{1, 2, 3, 6, 7, 8} { // user, nice, system, irq, softirq, steal
			n, err := strconv.ParseInt(string(f[i]), 10, 64)
			if err != nil {
				return Host{}
			}
			h.All += time.Duration(n) * tick
		}
	}
	return h
}
