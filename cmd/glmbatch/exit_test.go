package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"glmbatch/datasets"
	"glmbatch/datasets/demo"
	"glmbatch/golden"
	"glmbatch/kernels"
	"glmbatch/pipeline"
)

// TestDocsExitCodes: docs/jobs.md lists the codes as the program has them.
func TestDocsExitCodes(t *testing.T) {
	var table strings.Builder
	table.WriteString("| code | meaning |\n|---|---|\n")
	seen := map[int]bool{2: true} // Go's own
	for _, c := range exitCodes {
		fmt.Fprintf(&table, "| %d | %s |\n", c.code, c.means)
		if seen[c.code] {
			t.Errorf("code %d means two things", c.code)
		}
		seen[c.code] = true
	}
	path := filepath.Join("..", "..", "docs", "jobs.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const open, end = "<!-- exit codes -->\n", "<!-- /exit codes -->"
	i, j := strings.Index(string(b), open), strings.Index(string(b), end)
	if i < 0 || j < i {
		t.Fatalf("%s has no table of exit codes", path)
	}
	want := string(b[:i+len(open)]) + table.String() + string(b[j:])
	if want == string(b) {
		return
	}
	if !golden.Update() {
		t.Fatalf("%s is not the program's: run the test with -update", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestOutcome: how a job ended is one exit code, whatever else is in the error.
func TestOutcome(t *testing.T) {
	bad := &pipeline.Counts{}
	bad.Errors.Store(3)
	midway := fmt.Errorf("%w: %w", pipeline.ErrInput, datasets.ErrFile)
	for _, c := range []struct {
		err    error
		counts *pipeline.Counts
		want   int
	}{
		{nil, &pipeline.Counts{}, exitOK},
		{nil, bad, exitRowErrors},
		{pipeline.ErrInterrupted, bad, exitInterrupted},
		{midway, bad, exitMidway},
		{fmt.Errorf("%w: %w", pipeline.ErrOutput, syscall.EIO), bad, exitOutput},
		{fmt.Errorf("%w: %w", pipeline.ErrOutput, fs.ErrPermission), bad, exitOutput},
		{fmt.Errorf("writing: %w", syscall.ENOSPC), bad, exitOutput},
		{fmt.Errorf("step 4: %w", kernels.ErrDevice), bad, exitDevice},
		{errors.Join(pipeline.ErrInterrupted, fmt.Errorf("%w: %w", pipeline.ErrOutput, syscall.EIO)), bad, exitOutput},
		{errors.New("no name for it"), bad, exitFailed},
	} {
		r := runFlags{out: "job"}
		if got := codeOf(r.outcome(c.counts, c.err)); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

// TestAgain: the same command on a complete job does nothing and has the job's exit
// code; another is refused and leaves all as it is; a lock says who has it.
func TestAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	dir := t.TempDir()
	type prompt struct {
		Prompt *string `parquet:"prompt"`
	}
	prompts := filepath.Join(dir, "p.parquet")
	w, err := datasets.Create[prompt](prompts, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := "Capital of Japan?"
	if err := errors.Join(w.Write([]prompt{{&text}, {nil}, {&text}}), w.Close()); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	base := []string{"run", prompts, "--out", out, "--timeline", "off"}
	if code, _, errs := glmbatch(base...); code != exitRowErrors {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	before := outputs(t, out)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(prompts, later, later); err != nil { // content decides
		t.Fatal(err)
	}
	for _, c := range []struct {
		more []string
		code int
		says string
	}{
		{nil, exitRowErrors, "nothing to do: " + out + " has all of this job already: 3 rows, 1 of them with errors"},
		{[]string{"--max-errors", "1"}, exitOK, "nothing to do"},
		{[]string{"--seed", "3"}, exitInput, `--seed was "0" and is "3"`},
		// the old output stays
		{[]string{"--overwrite", "--kv-tokens", "2000000000"}, exitDevice, "try a smaller --kv-tokens"},
	} {
		code, _, errs := glmbatch(append(base, c.more...)...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit code %d, %s; want %d, %q", c.more, code, errs, c.code, c.says)
		}
		if !bytes.Equal(outputs(t, out), before) {
			t.Fatalf("%v: the outputs changed", c.more)
		}
	}
	chained := filepath.Join(dir, "chained") // the folder of a job stands for its output rows
	if code, _, errs := glmbatch("run", out, "--out", chained, "--timeline", "off", "--prompt-column", "prompt",
		"--max-errors", "1"); code != exitOK {
		t.Errorf("a job's folder as input: exit code %d, %s", code, errs)
	}
	part := filepath.Join(out, "outputs", datasets.PartName(0, datasets.Parquet))
	for _, c := range []struct {
		damage func() error
		says   string
	}{
		{func() error { return os.Truncate(part, 100) }, part},
		{func() error { return os.Remove(part) }, "the job is complete with row 3, but outputs has rows up to 0 only"},
	} {
		if err := c.damage(); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := glmbatch(base...); code != exitInput || !strings.Contains(errs, c.says) {
			t.Errorf("outputs that are not whole: exit code %d, %s; want %d, %q", code, errs, exitInput, c.says)
		}
	}
	f, err := pipeline.OpenFolder(filepath.Join(dir, "held"), &pipeline.Manifest{}, pipeline.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code, _, errs := glmbatch("run", prompts, "--out", f.Dir)
	if want := fmt.Sprintf("process %d on ", os.Getpid()); code != exitLocked || !strings.Contains(errs, want) {
		t.Errorf("exit code %d, %s; want %d, %q", code, errs, exitLocked, want)
	}
	if os.Geteuid() == 0 { // for whom nothing is forbidden
		return
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o555); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := glmbatch("run", prompts, "--out", filepath.Join(closed, "out")); code != exitOutput {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// TestDeadline: a job stops at its deadline with what is finished, and goes on.
func TestDeadline(t *testing.T) {
	now := time.Date(2026, 3, 4, 22, 30, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"":         {},
		"4h":       now.Add(4 * time.Hour),
		"06:00":    time.Date(2026, 3, 5, 6, 0, 0, 0, time.Local),
		"23:15":    time.Date(2026, 3, 4, 23, 15, 0, 0, time.Local),
		"22:30":    time.Date(2026, 3, 5, 22, 30, 0, 0, time.Local),
		"22:30:05": time.Date(2026, 3, 4, 22, 30, 5, 0, time.Local),
	} {
		if got, err := deadline(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "-1h", "25:00", "tomorrow", "6"} {
		if _, err := deadline(text, now); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	if testing.Short() {
		t.Skip("runs a model")
	}
	out := t.TempDir()
	base := []string{"run", "--demo", "--limit", "500", "--timeline", "off", "--quiet", "--out", out}
	if code, _, errs := glmbatch(append(base, "--deadline", "1ns", "--grace", "1ns")...); code != exitInterrupted ||
		!strings.Contains(errs, "run the same command again to go on") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if err := os.WriteFile(filepath.Join(out, "_manifest.json"), demo.Prompts(), 0o666); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := glmbatch(base...); code != exitInput || !strings.Contains(errs, "start anew with --overwrite") {
		t.Errorf("a manifest that is none: exit code %d: %s", code, errs)
	}
}
