package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A job in the throughput layout has the same bytes whatever its limits, and is another job
// than one in the other layout.
func TestLayout(t *testing.T) {
	dir := t.TempDir()
	run := func(out string, args ...string) (code int, rows []byte, errs string) {
		save := filepath.Join(dir, out+".jsonl")
		code, _, errs = glmbatch(
			append([]string{"run", "--demo", "--limit", "24", "--tp", "4", "--max-tokens", "9", "--device", "cpu",
				"--out", filepath.Join(dir, out), "--save", save}, args...)...)
		rows, _ = os.ReadFile(save)
		return code, rows, errs
	}
	code, want, errs := run("a", "--layout", "throughput")
	if code != 0 || len(want) == 0 {
		t.Fatalf("exit code %d, %d bytes: %s", code, len(want), errs)
	}
	for _, args := range [][]string{{"--max-seqs", "1"}, {"--max-seqs", "5", "--max-batch-tokens", "19"},
		{"--prefix-sharing", "off"}} {
		if code, rows, errs := run(strings.Join(args, ""), append(args, "--layout", "throughput")...); code != 0 ||
			!bytes.Equal(rows, want) {
			t.Errorf("%v: exit code %d, other rows: %s", args, code, errs)
		}
	}
	if code, _, errs := run("a", "--layout", "latency"); code == 0 || !strings.Contains(errs, "settings differ") {
		t.Errorf("going on in another layout: exit code %d: %s", code, errs)
	}
}
