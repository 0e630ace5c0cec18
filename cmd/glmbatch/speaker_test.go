package main

import (
	"bufio"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"glmbatch/datasets"
)

// dataColumns is an input with a column that looks like a parameter and is only data.
func dataColumns(t *testing.T) string {
	t.Helper()
	type row struct {
		Prompt string `parquet:"prompt"`
		N      int64  `parquet:"n"`
	}
	path := filepath.Join(t.TempDir(), "in.parquet")
	w, err := datasets.Create[row](path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write([]row{{"1 + 1 =", 1_000_000}, {"2 + 2 =", 2_000_000}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLogJSON: every line of a job's log is a record, its end and its error too.
func TestLogJSON(t *testing.T) {
	in := dataColumns(t)
	type record struct {
		Time     time.Time `json:"time"`
		Level    string    `json:"level"`
		Msg      string    `json:"msg"`
		Event    string    `json:"event"`
		Rows     int64     `json:"rows"`
		Tokens   int64     `json:"prompt_tokens"`
		ExitCode int       `json:"exit_code"`
	}
	read := func(text string) (list []record) {
		t.Helper()
		for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
			var r record
			if err := json.Unmarshal(s.Bytes(), &r); err != nil || r.Time.IsZero() || r.Msg == "" {
				t.Errorf("%v: %s", err, s.Text())
			}
			list = append(list, r)
		}
		return list
	}
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"run", in, "--model", "demo", "--max-tokens", "2", "--tp", "1", "--kv-tokens", "4096", "--out",
		out, "--log-format", "json"}
	code, _, errs := glmbatch(args...)
	found := false
	for _, r := range read(errs) {
		found = found || r.Event == "summary" && r.Rows == 2 && r.Tokens > 0 && r.Level == "INFO"
	}
	if code != exitOK || !found {
		t.Errorf("exit code %d: %s", code, errs)
	}
	code, _, errs = glmbatch(append(args, "--seed", "7")...)
	list := read(errs)
	if last := list[len(list)-1]; code != exitInput || last.Level != "ERROR" || last.ExitCode != exitInput ||
		!strings.Contains(last.Msg, "belongs to another job") {
		t.Errorf("exit code %d: %+v", code, last)
	}
}

// TestLogTimes: what is no terminal gets the time before each line, and with --quiet
// only what must not be missed.
func TestLogTimes(t *testing.T) {
	in := dataColumns(t)
	args := []string{"run", in, "--model", "demo", "--max-tokens", "2", "--tp", "1", "--kv-tokens", "4096", "--out"}
	for _, quiet := range []bool{false, true} {
		all := append(args[:len(args):len(args)], filepath.Join(t.TempDir(), "out"))
		if quiet {
			all = append(all, "-q")
		}
		code, _, errs := glmbatch(all...)
		lines := strings.Split(strings.TrimSuffix(errs, "\n"), "\n")
		if code != exitOK || quiet != (len(lines) == 1) || !strings.Contains(errs, "note: column n is only data") {
			t.Errorf("quiet %t: exit code %d: %s", quiet, code, errs)
		}
		for _, line := range lines {
			at, _, _ := strings.Cut(line, " ")
			if _, err := time.Parse(time.RFC3339, at); err != nil {
				t.Errorf("no time: %s", line)
			}
		}
	}
}
