package telemetry

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemAvailable(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal: 100 kB\nMemAvailable:   24 kB\n": 24 << 10,
		"MemTotal: 100 kB\n":                        0,
		"MemAvailable: many kB\n":                   0,
		"":                                          0,
	} {
		if n := memAvailable(text); n != want {
			t.Errorf("%q: %d, want %d", text, n, want)
		}
	}
}

// The limit of a group above counts too, and files that nobody uses are room.
func TestGroupRoom(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"job/memory.max": "max\n", "job/memory.current": "700\n",
		"job/step/memory.max": "1000\n", "job/step/memory.current": "600\n",
		"job/step/memory.stat": "anon 5\ninactive_file 150\nactive_file 7\n",
		"other/memory.max":     "100\n", "other/memory.current": "170\n",
		"memory/old/memory.limit_in_bytes": "5000\n", "memory/old/memory.usage_in_bytes": "4000\n",
		"memory/old/memory.stat":            "total_inactive_file 1000\n",
		"memory/free/memory.limit_in_bytes": "9223372036854771712\n", "memory/free/memory.usage_in_bytes": "4000\n",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		groups string
		want   int64
	}{
		{"0::/job\n", -1},
		{"0::/job/step\n", 550},
		{"0::/job/step/within\n", 550},
		{"0::/other\n", 0},
		{"0::/nowhere/at/all\n", -1},
		{"12:cpu,cpuacct:/old\n5:memory:/old\n", 2000},
		{"5:memory:/free\n", -1},
		{"0::/../../job/step\n", 550},
		{"rubbish\n", -1}, {"", -1},
	} {
		if got := groupRoom(root, c.groups); got != c.want {
			t.Errorf("%q: %d, want %d", c.groups, got, c.want)
		}
	}
	for _, c := range [][3]int64{{100, -1, 100}, {100, 50, 50}, {100, 500, 100}, {0, -1, 0}, {0, 70, 70}, {100, 0, 1}} {
		if got := within(c[0], c[1]); got != c[2] {
			t.Errorf("%d within %d: %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
