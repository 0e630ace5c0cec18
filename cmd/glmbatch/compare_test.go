package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/pipeline"
)

// TestCompareJobs: two jobs are compared by their folders, and reported on and compared
// by their steps where they recorded no timeline.
func TestCompareJobs(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	for out, heat := range map[string]string{a: "0", b: "3"} {
		if code, _, errs := glmbatch("run", "--demo", "--limit", "6", "--max-tokens", "4", "--temperature", heat,
			"--out", out, "--timeline", "off", "--quiet"); code != 0 {
			t.Fatal(errs)
		}
	}
	code, text, errs := glmbatch("compare", a, b, "--check", "expected")
	if code != 0 || !strings.Contains(text, "task ") || !strings.Contains(text, "right in B") ||
		!strings.Contains(text, "the first difference is in row ") {
		t.Errorf("exit code %d, %s%s", code, text, errs)
	}
	if code, _, _ := glmbatch("compare", a, b, "--equal"); code != exitCheck {
		t.Errorf("exit code %d of outputs that differ", code)
	}
	if code, _, errs := glmbatch("compare", a, filepath.Join(a, "outputs"), "--equal"); code != 0 {
		t.Errorf("a folder and its outputs: exit code %d, %s", code, errs)
	}
	other := filepath.Join(t.TempDir(), "other")
	if code, _, errs := glmbatch("run", filepath.Join(a, "outputs"), "--out", other, "--limit", "1", "--max-tokens",
		"1", "--timeline", "off", "--quiet"); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := glmbatch("compare", a, other); code != 0 ||
		!strings.Contains(errs, "note: the jobs had other inputs") {
		t.Errorf("other inputs: exit code %d, %s", code, errs)
	}
	var c pipeline.Comparison
	if code, text, errs := glmbatch("compare", a, b, "--format", "json"); code != 0 ||
		json.Unmarshal([]byte(text), &c) != nil || c.All.Rows != 6 || c.First == nil {
		t.Errorf("exit code %d, %s%s", code, text, errs)
	}
	for _, args := range [][]string{{"report", a}, {"report", a, "--format", "csv"},
		{"report", a, "--format", "json", "--kind", "decode"}, {"diff", a, b}, {"diff", a, b, "--format", "json"}} {
		code, text, errs := glmbatch(args...)
		if code != 0 || !strings.Contains(text, "decode") ||
			!strings.Contains(strings.ReplaceAll(text, "_per_", "/"), "tokens/s") {
			t.Errorf("%v: exit code %d, %s%s", args, code, text, errs)
		}
	}
	if code, _, errs := glmbatch("report", a, "--format", "bench"); code != exitInput ||
		!strings.Contains(errs, "without a timeline") {
		t.Errorf("bench lines: exit code %d, %s", code, errs)
	}
}

// TestThroughputBesideTimelines: the JSON of reports and differences has tokens per second
// where the jobs recorded timelines too.
func TestThroughputBesideTimelines(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	out := filepath.Join(t.TempDir(), "out")
	if code, _, errs := glmbatch("run", "--demo", "--limit", "3", "--max-tokens", "2", "--tp", "1", "--out", out,
		"--timeline", "all", "--quiet"); code != 0 {
		t.Fatal(errs)
	}
	var r struct {
		Throughput []struct {
			Kind string
			PerS float64 `json:"tokens_per_s"`
		}
	}
	if code, text, errs := glmbatch("report", out, "--format", "json"); code != 0 ||
		json.Unmarshal([]byte(text), &r) != nil || len(r.Throughput) == 0 || r.Throughput[0].PerS <= 0 {
		t.Errorf("report: exit code %d, %v, %s", code, r, errs)
	}
	var d struct {
		Throughput []struct {
			A, B *struct {
				PerS float64 `json:"tokens_per_s"`
			}
		}
	}
	if code, text, errs := glmbatch("diff", out, out, "--format", "json"); code != 0 || json.Unmarshal([]byte(text),
		&d) != nil || len(d.Throughput) == 0 || d.Throughput[0].A == nil || d.Throughput[0].A.PerS <= 0 {
		t.Errorf("diff: exit code %d, %v, %s", code, d, errs)
	}
}
