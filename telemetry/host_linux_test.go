package telemetry

import (
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	h := parseStat([]byte("cpu  100 10 20 9000 50 3 4 5 7 0\ncpu0 50 5 10 4500 25 1 2 2 3 0\ncpu1 50 5 10 4500 25 2 " +
		"2 3 4 0\nintr 1 2 3\n"))
	if h.CPUs != 2 || h.All != 142*tick {
		t.Errorf("%+v", h)
	}
	for _, bad := range []string{"", "cpu", "cpu  x 10 20 9000 50 3 4 5 7 0\ncpu0 1 1 1 1 1 1 1 1\n"} {
		if h := parseStat([]byte(bad)); h.All != 0 {
			t.Errorf("%q: %+v", bad, h)
		}
	}
	if h := readHost(); h.CPUs < 1 || h.All < time.Second {
		t.Errorf("this machine: %+v", h)
	}
}
