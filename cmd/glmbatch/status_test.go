package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"glmbatch/pipeline"
)

// TestStateText: a state is said once, and an error if it says more.
func TestStateText(t *testing.T) {
	for want, s := range map[string]pipeline.Status{
		"interrupted":           {State: pipeline.StatusInterrupted, Error: pipeline.ErrInterrupted.Error()},
		"failed: no room":       {State: pipeline.StatusFailed, Error: "no room"},
		"running (process 5)":   {State: pipeline.StatusRunning, Holder: "process 5"},
		"complete":              {State: pipeline.StatusComplete, Error: "of before"},
		"interrupted: by a cat": {State: pipeline.StatusInterrupted, Error: "by a cat"},
	} {
		if got := stateText(&s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestStatus follows a job from another process: while it runs, after it was killed,
// when it is complete.
func TestStatus(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	out := filepath.Join(t.TempDir(), "out")
	type status struct {
		State  string  `json:"state"`
		Rate   float64 `json:"tokens_per_second"`
		Counts struct {
			Rows      int64 `json:"rows"`
			InputRows int64 `json:"input_rows"`
		} `json:"counts"`
	}
	look := func() (s status, code int) {
		t.Helper()
		code, text, _ := glmbatch("status", out, "--format", "json")
		if code == 0 {
			if err := json.Unmarshal([]byte(text), &s); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
		}
		return s, code
	}
	if code, _, errs := glmbatch("status", out); code != exitInput || !strings.Contains(errs, "no such folder") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	c := child(t, "run", "--demo", "--quiet", "--out", out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for s, code := look(); code != 0 || s.State != "running"; s, code = look() {
		if time.Now().After(deadline) {
			t.Fatalf("it never runs: %+v", s)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if code, text, _ := glmbatch("status", out); code != 0 || !strings.Contains(text, "running (process ") {
		t.Errorf("while it runs: exit code %d, %s", code, text)
	}
	_ = c.Process.Kill() // it runs
	_ = c.Wait()
	if s, _ := look(); s.State != "killed" || s.Counts.InputRows != 1000 {
		t.Errorf("after a kill: %+v", s)
	}
	if code, text, _ := glmbatch("status", out); code != 0 || !strings.Contains(text, "\nkilled: ") ||
		!strings.HasSuffix(text, "the same command goes on from there\n") {
		t.Errorf("after a kill: exit code %d, %s", code, text)
	}
	short := filepath.Join(t.TempDir(), "short")
	if code, _, errs := glmbatch("run", "--demo", "--quiet", "--limit", "5", "--max-tokens", "3", "--out",
		short); code != 0 {
		t.Fatal(errs)
	}
	out = short
	if s, _ := look(); s.State != "complete" || s.Counts.Rows != 5 || s.Rate <= 0 {
		t.Errorf("a complete job: %+v", s)
	}
	if _, text, _ := glmbatch("status", out); !strings.HasSuffix(text,
		"complete: 5 of 5 rows (100.0 %), 0 with errors\n") {
		t.Errorf("a complete job: %s", text)
	}
	if code, text, errs := glmbatch("run", "--demo", "--limit", "5", "--max-tokens", "3", "--dry-run", "--out",
		short); code != 0 || !strings.Contains(text, "output           "+short+": of this job, complete: 5 of 5 rows") {
		t.Errorf("a dry run: exit code %d, %s%s", code, text, errs)
	}
	out = filepath.Join(t.TempDir(), "shards")
	if code, _, errs := glmbatch("run", "--demo", "--quiet", "--limit", "5", "--max-tokens", "3", "--out", out,
		"--shard", "1/3"); code != 0 {
		t.Fatal(errs)
	}
	if code, text, _ := glmbatch("status", out); code != 0 || !strings.Contains(text, "shard    0/3     missing\n") ||
		!strings.Contains(text, "shard    1/3     complete, 2 of 2 saved (100.0 %)") ||
		!strings.Contains(text, "\nrows     2 saved, by 1 of 3 shards\n") || strings.Contains(text, "run ,") ||
		strings.Count(text, "%") != 1 ||
		!strings.HasSuffix(text, "\nmissing: 2 rows, by 1 of 3 shards; run the shards that are not complete again\n") {
		t.Errorf("shards: exit code %d, %s", code, text)
	}
	if _, text, _ := glmbatch("status", out, "--format", "json", "--steps", "0"); strings.Count(text,
		`"input_rows": null`) != 3 || strings.Count(text, `"seconds_left": null`) != 3 ||
		strings.Count(text, `"seconds_left": 0`) != 1 {
		t.Errorf("shards: %s", text) // null: of the sum and of two that are missing
	}
}
