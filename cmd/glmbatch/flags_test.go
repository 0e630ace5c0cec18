package main

import (
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets"
	"glmbatch/datasets/demo"
)

// TestGivenEmpty: a value that a script left empty is refused, not the default taken.
func TestGivenEmpty(t *testing.T) {
	dir := t.TempDir()
	prompts := filepath.Join(dir, "p.parquet")
	if err := datasets.WriteFile(prompts, demo.Prompts()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"run", prompts, "--out", filepath.Join(dir, "o"), "--model", ""}, "--model is empty"},
		{[]string{"run", prompts, "--out", "", "--dry-run"}, "--out is empty"},
		{[]string{"run", prompts, "--out", filepath.Join(dir, "o"), "--stop", ""}, "--stop is empty"},
		{[]string{"run", prompts, "--out", filepath.Join(dir, "o"), "--check="}, "--check is empty"},
		{[]string{"run", "", "--out", filepath.Join(dir, "o")}, "an argument is empty"},
		{[]string{"report", dir, "--html", ""}, "--html is empty"},
		{[]string{"run", prompts, "--out", "hdfs://name/job"},
			"--out hdfs://name/job: hdfs:// is not one of s3, gs, azblob, file"},
		{[]string{"run", prompts, "--out", filepath.Join(dir, "o"), "--model", "hf://zai/GLM-5"},
			"--model hf://zai/GLM-5"},
		{[]string{"run", "ftp://host/x.parquet", "--out", filepath.Join(dir, "o")}, "ftp://host/x.parquet"},
	} {
		code, _, errs := glmbatch(c.args...)
		if code != exitInput || !strings.Contains(errs, c.says) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit code %d, %q", c.args, code, errs)
		}
	}
	for _, made := range []string{"o", "hdfs:"} {
		if m, err := filepath.Glob(filepath.Join(dir, made)); err != nil || len(m) > 0 {
			t.Errorf("%v was made, %v", m, err)
		}
		if m, err := filepath.Glob(made); err != nil || len(m) > 0 {
			t.Errorf("%v was made, %v", m, err)
		}
	}
	if code, _, errs := glmbatch("run", prompts, "--dry-run", "--limit", "1", "--system", ""); code != exitOK {
		t.Errorf("--system may be empty: %d, %s", code, errs)
	}
}

// TestFlagSuggestions: a flag with a slip gets the one that was meant.
func TestFlagSuggestions(t *testing.T) {
	for given, want := range map[string]string{
		"--modle": "did you mean --model?", "--max-token": "did you mean --max-tokens?",
		"--temprature": "did you mean --temperature?",
		"--zzzzzz":     "unknown flag: --zzzzzz (see", "--overwite": "did you mean --overwrite?",
		"-Z": "unknown shorthand flag",
	} {
		code, _, errs := glmbatch("run", given, "x")
		if code != exitInput || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q", given, code, errs)
		}
	}
}

// TestVersion: what it is built from and by.
func TestVersion(t *testing.T) {
	code, out, _ := glmbatch("--version")
	if code != 0 || !strings.HasPrefix(out, "glmbatch ") || !strings.Contains(out, "go1.") ||
		strings.Count(out, "\n") != 1 {
		t.Errorf("exit code %d, %q", code, out)
	}
}
