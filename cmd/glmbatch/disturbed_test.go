package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"glmbatch/datasets"
)

// What asks for more: GLMBATCH_TERMS says how many times a job is told to stop,
// GLMBATCH_FAULTS how many of each system call fail (strace is needed).
const (
	moreTerms  = "GLMBATCH_TERMS"
	moreFaults = "GLMBATCH_FAULTS"
)

// disturbedRow is an input row of jobs that are disturbed: some have errors.
type disturbedRow struct {
	Prompt   *string `parquet:"prompt"`
	Expected string  `parquet:"expected"`
	Kind     string  `parquet:"kind"`
}

func disturbedInput(t *testing.T, dir string, n int) string {
	t.Helper()
	path := filepath.Join(dir, "prompts.parquet")
	w, err := datasets.Create[disturbedRow](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var rows []disturbedRow
	for i := range n {
		prompt := fmt.Sprintf("Count: %d", i)
		r := disturbedRow{&prompt, fmt.Sprint(i % 3), []string{"odd", "even"}[i%2]}
		if i%7 == 3 {
			r.Prompt = nil
		}
		rows = append(rows, r)
	}
	if err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// left is what a job leaves that must not depend on disturbances: the bytes of outputs and
// the counts.
func left(t *testing.T, dir string) (files map[string]string, counts string) {
	t.Helper()
	files = map[string]string{}
	paths, err := filepath.Glob(filepath.Join(dir, datasets.OutputsDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = string(data)
	}
	data, err := os.ReadFile(filepath.Join(dir, datasets.ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Status string          `json:"status"`
		Counts json.RawMessage `json:"counts"`
	}
	if err := json.Unmarshal(data, &m); err != nil || m.Status != "complete" {
		t.Fatal(err, m.Status)
	}
	return files, string(m.Counts)
}

// TestTerms: shards with errors and right answers to compare with, told to stop again and
// again: codes, counts and bytes are those of jobs that nobody disturbed.
func TestTerms(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	want := 1
	if n, err := strconv.Atoi(os.Getenv(moreTerms)); err == nil {
		want = n
	}
	dir := t.TempDir()
	path := disturbedInput(t, dir, 150)
	args := func(out string, shard int) []string {
		return []string{"run", path, "--tp", "1", "--max-tokens", "24", "--ignore-eos", "--check", "expected",
			"--check-by", "kind", "--quiet", "--grace", "0s", "--max-seqs", "8",
			"--out", out, "--shard", fmt.Sprintf("%d/3", shard)}
	}
	shardOf := func(out string, i int) string { return filepath.Join(out, datasets.Shard{Index: i, Of: 3}.Dir()) }
	whole := filepath.Join(dir, "whole")
	var took time.Duration
	for i := range 3 {
		began := time.Now()
		if code, _, errs := glmbatch(args(whole, i)...); code != exitRowErrors {
			t.Fatal(code, errs)
		}
		took = max(took, time.Since(began))
	}
	rng := rand.New(rand.NewPCG(3, 4))
	terms := 0
	for jobs := 0; terms < want; jobs++ {
		out := filepath.Join(dir, fmt.Sprint("out", jobs))
		for i := range 3 {
			for tries := 0; ; tries++ {
				c := child(t, args(out, i)...)
				var text bytes.Buffer
				c.Stdout, c.Stderr = &text, &text
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				wait := time.Duration(rng.Int64N(int64(took)+int64(took)*int64(tries)/2)) + 20*time.Millisecond
				timer := time.AfterFunc(wait, func() { _ = c.Process.Signal(syscall.SIGTERM) })
				_ = c.Wait() // the code says
				timer.Stop()
				if code := c.ProcessState.ExitCode(); code == exitRowErrors {
					break
				} else if code == exitInterrupted {
					terms++
				} else if s := c.ProcessState.String(); s != "signal: terminated" { // before it listened
					t.Fatalf("try %d: %s\n%s", tries, s, text.String())
				}
				if tries > 100 {
					t.Fatal("no end")
				}
			}
			files, counts := left(t, shardOf(out, i))
			wantFiles, wantCounts := left(t, shardOf(whole, i))
			if !maps.Equal(files, wantFiles) || counts != wantCounts {
				t.Fatalf("shard %d: counts\n%s, undisturbed\n%s; %d files", i, counts, wantCounts, len(files))
			}
			if code, _, _ := glmbatch(args(out, i)...); code != exitRowErrors {
				t.Errorf("again: exit code %d", code)
			}
		}
		if code, says, errs := glmbatch("merge", out); code != 0 {
			t.Fatal(code, says, errs)
		}
		os.RemoveAll(out)
	}
	t.Logf("%d times told to stop", terms)
}

// TestFaults: system calls that fail end the job with the output's code and one line, or
// do not matter; the same command then leaves the bytes of a job that nobody disturbed.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace")
	}
	n := 1
	calls := []string{"fsync", "renameat"}
	if k, err := strconv.Atoi(os.Getenv(moreFaults)); err == nil {
		n, calls = k, []string{"fsync", "renameat", "write", "pwrite64", "openat", "ftruncate", "unlinkat", "mkdirat",
			"close", "read", "pread64"}
	}
	dir := t.TempDir()
	path := disturbedInput(t, dir, 40)
	args := func(out string) []string {
		return []string{"run", path, "--tp", "1", "--max-tokens", "8", "--quiet", "--max-errors", "99", "--check",
			"expected", "--out", out}
	}
	whole := filepath.Join(dir, "whole")
	if code, _, errs := glmbatch(args(whole)...); code != 0 {
		t.Fatal(code, errs)
	}
	wantFiles, wantCounts := left(t, whole)
	codes := map[string]map[int]int{}
	for _, call := range calls {
		codes[call] = map[int]int{}
		for i := range n {
			out := filepath.Join(dir, fmt.Sprint(call, i))
			c := child(t, args(out)...)
			c.Args = append([]string{strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e",
				fmt.Sprintf("inject=%s:error=EIO:when=%d", call, 1+i*i), c.Path}, c.Args[1:]...)
			c.Path = strace
			var text bytes.Buffer
			c.Stderr = &text
			_ = c.Run() // the code says
			code := c.ProcessState.ExitCode()
			codes[call][code]++
			lines := slices.DeleteFunc(strings.Split(text.String(), "\n"), func(l string) bool {
				return !strings.Contains(l, "glmbatch: ")
			})
			if strings.Contains(text.String(), "error while loading shared libraries") { // it did not begin
				continue
			}
			if code == 2 || code < 0 || code > 0 && len(lines) != 1 {
				t.Errorf("%s, call %d: exit code %d: %s", call, 1+i*i, code, text.String())
			}
			// there may be fewer calls
			if (call == "fsync" || call == "renameat") && code != exitOutput && (i == 0 || code != 0) {
				t.Errorf("%s, call %d: exit code %d: %s", call, 1+i*i, code, text.String())
			}
			if code, _, errs := glmbatch(args(out)...); code != 0 {
				t.Errorf("%s, call %d: then exit code %d: %s", call, 1+i*i, code, errs)
				continue
			}
			if files, counts := left(t, out); !maps.Equal(files, wantFiles) || counts != wantCounts {
				t.Errorf("%s, call %d: then counts\n%s, undisturbed\n%s", call, 1+i*i, counts, wantCounts)
			}
			os.RemoveAll(out)
		}
	}
	t.Logf("exit codes: %v", codes)
}
