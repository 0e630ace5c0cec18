package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBenchCollectives(t *testing.T) {
	code, out, errs := glmbatch("bench", "--collectives", "--ranks", "2", "--device", "cpu", "--format", "json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var c collectiveTimes
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatal(err)
	}
	if c.Schema != "glmbatch.collectives/1" || c.Ranks != 2 || len(c.Lines) < 4 {
		t.Fatalf("%+v", c)
	}
	for i, l := range c.Lines {
		if l.Bytes != int64(l.Rows)*4*6144 || l.NS["cpu"] <= 0 || i > 0 && l.Bytes <= c.Lines[i-1].Bytes {
			t.Errorf("line %d: %+v", i, l)
		}
	}
	code, out, _ = glmbatch("bench", "--collectives", "--ranks", "2", "--device", "cpu")
	if code != 0 || !strings.Contains(out, "sum over 2 ranks, with residual and norm") ||
		!strings.Contains(out, "24.6 kB") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	narrow(t, out)
	if code, _, errs := glmbatch("bench", "--collectives", "--ranks", "9", "--device", "cpu", "--format",
		"xml"); code != exitInput || !strings.Contains(errs, "ranks") || !strings.Contains(errs, "format") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
