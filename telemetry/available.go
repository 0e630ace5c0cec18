package telemetry

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// AvailableMemory is what the system could give to this program now, within the limits
// of its control groups; 0: unknown.
func AvailableMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	n := memAvailable(string(text))
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return n
	}
	return within(n, groupRoom("/sys/fs/cgroup", string(groups)))
}

// within is n, or most if that is less; most is -1 where there is no limit, and n 0
// where it is unknown.
func within(n, most int64) int64 {
	if most >= 0 && (n == 0 || most < n) {
		return max(1, most)
	}
	return n
}

func memAvailable(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		if k, v, ok := strings.Cut(line, ":"); ok && k == "MemAvailable" {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// groupRoom is what the control groups that a process is in, as /proc/self/cgroup has
// them, leave of their limits; -1: there is no limit. A group's files that nobody uses
// any more count as room.
func groupRoom(root, groups string) int64 {
	room := int64(-1)
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		dir, limit, used, idle := root, "memory.max", "memory.current", "inactive_file"
		switch {
		case parts[1] == "": // version 2
		case strings.Contains(","+parts[1]+",", ",memory,"):
			dir, limit, used, idle = filepath.Join(root,
				"memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		default:
			continue
		}
		for path := filepath.Clean("/" + parts[2]); ; path = filepath.Dir(path) {
			if n := roomOf(filepath.Join(dir, path), limit, used, idle); n >= 0 && (room < 0 || n < room) {
				room = n
			}
			if path == "/" {
				break
			}
		}
	}
	return room
}

// roomOf is what one group leaves of its limit; -1: it has none.
func roomOf(dir, limit, used, idle string) int64 {
	number := func(name string) int64 {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return -1
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil { // "max"
			return -1
		}
		return n
	}
	most, has := number(limit), number(used)
	if most < 0 || most >= 1<<60 || has < 0 {
		return -1
	}
	if text, err := os.ReadFile(filepath.Join(dir, "memory.stat")); err == nil {
		for line := range strings.Lines(string(text)) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), " "); ok && k == idle {
				if n, err := strconv.ParseInt(v, 10, 64); err == nil {
					has -= n
				}
			}
		}
	}
	return max(0, most-max(0, has))
}
