package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/engine/fit"
	"glmbatch/engine/glm5"
)

// A job in the throughput layout has the same bytes whatever its limits, and is another job
// than one in the other layout.
func TestLayout(t *testing.T) {
	dir := t.TempDir()
	run := func(out string, args ...string) (code int, rows []byte, errs string) {
		save := filepath.Join(dir, out+".jsonl")
		code, _, errs = glmbatch(append([]string{"run", "--demo", "--limit", "24", "--tp", "4", "--max-tokens", "9",
			"--device", "cpu", "--out", filepath.Join(dir, out), "--save", save}, args...)...)
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
	if code, _, errs := run("a", "--layout", "auto"); code != 0 ||
		!strings.Contains(errs, "layout throughput, as the job has begun in it") {
		t.Errorf("going on with auto: exit code %d: %s", code, errs)
	}
	if code, _, errs := run("a", "--layout", "latency"); code == 0 ||
		!strings.Contains(errs, `--layout was "throughput" and is left out`) {
		t.Errorf("going on in another layout: exit code %d: %s", code, errs)
	}
}

// auto chooses by the job, and says why.
func TestLayoutFor(t *testing.T) {
	fits, not := &fit.Fit{Fits: true, Tokens: 800_000}, &fit.Fit{Fault: "a GPU has 80 GB free"}
	for _, c := range []struct {
		rows   int64
		tp     int
		device string
		needs  string
		apart  *fit.Fit
		want   glm5.Layout
		why    string
	}{
		{1000, 8, "cuda", "", fits, glm5.Throughput, "each of 8 ranks has 125 of 1,000 rows, and a cache of up to 800,000"},
		{1000, 1, "cuda", "", fits, glm5.Latency, "one rank"},
		{1000, 8, "cpu", "", fits, glm5.Latency, "CPU"},
		{1000, 8, "cuda", "it has drafts", fits, glm5.Latency, "drafts"},
		{255, 8, "cuda", "", fits, glm5.Latency, "255 rows are few"},
		{256, 8, "cuda", "", not, glm5.Latency, "a GPU has 80 GB free"},
	} {
		if l, why := layoutFor(c.rows, c.tp, c.device, c.needs, c.apart); l != c.want ||
			!strings.Contains(why, c.why) {
			t.Errorf("%+v: %s, as %s", c, l, why)
		}
	}
}

// TestLayoutWithoutCaptures: what cannot be captured is said before weights are loaded, or looked for.
func TestLayoutWithoutCaptures(t *testing.T) {
	s := ends(t, exitInput, "run", "none.jsonl", "--model", "none", "--layout", "throughput", "--tp", "4",
		"--out", t.TempDir(), "--capture", "first=1")
	if !strings.Contains(s, "--capture is for --layout latency") {
		t.Error(s)
	}
	if r := (runFlags{capture: captureFlags{steps: "first=1"}}); r.needsLatency() != "steps are captured in it alone" {
		t.Errorf("auto with captures: %q", r.needsLatency())
	}
}
