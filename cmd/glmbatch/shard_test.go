package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
)

func TestChooseShard(t *testing.T) {
	slurm := func(id, count, least, most, step string) map[string]string {
		return map[string]string{"SLURM_ARRAY_TASK_ID": id, "SLURM_ARRAY_TASK_COUNT": count,
			"SLURM_ARRAY_TASK_MIN": least, "SLURM_ARRAY_TASK_MAX": most, "SLURM_ARRAY_TASK_STEP": step}
	}
	for _, c := range []struct {
		flag string
		env  map[string]string
		want string // the shard, or what the error says
	}{
		{"", nil, "0/1"},
		{"2/4", nil, "2/4"},
		{"2/4", slurm("0", "8", "0", "7", "1"), "2/4"},
		{"0/1", slurm("0", "8", "0", "7", "1"), "0/1"},
		{"", slurm("0", "8", "0", "7", "1"), "0/8"},
		{"", slurm("7", "8", "0", "7", ""), "7/8"},
		{"", slurm("8", "8", "1", "8", "1"), "7/8"},
		{"", slurm("14", "4", "2", "14", "4"), "3/4"},
		{"", slurm("0", "1", "0", "0", "1"), "0/1"},
		{"", slurm("3", "1", "3", "3", "1"), "the only one of its array"},
		{"", slurm("5", "3", "1", "7", "1"), "not evenly spaced"},
		{"", slurm("x", "3", "1", "7", "1"), `SLURM_ARRAY_TASK_ID is "x"`},
		{"", map[string]string{"SLURM_ARRAY_TASK_ID": "1"}, `SLURM_ARRAY_TASK_COUNT is ""`},
		{"", map[string]string{"JOB_COMPLETION_INDEX": "1", "JOB_COMPLETIONS": "3"}, "1/3"},
		{"", map[string]string{"JOB_COMPLETION_INDEX": "1"}, "set JOB_COMPLETIONS"},
		{"", map[string]string{"JOB_COMPLETION_INDEX": "3", "JOB_COMPLETIONS": "3"}, "set JOB_COMPLETIONS"},
		{"", map[string]string{"JOB_COMPLETION_INDEX": "0", "JOB_COMPLETIONS": "3", "SLURM_ARRAY_TASK_ID": "1"},
			"both set"},
		{"4/4", nil, "is not i/N"}, {"1/0", nil, "is not i/N"}, {"-1/2", nil, "is not i/N"},
		{"1/2x", nil, "is not i/N"}, {"01/2", nil, "is not i/N"},
	} {
		s, _, err := chooseShard(c.flag, func(name string) string { return c.env[name] })
		got := s.String()
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%q %v: %s, want %s", c.flag, c.env, got, c.want)
		}
	}
}

// mergedRow is all that an output row has, but for times.
type mergedRow struct {
	ID       *string `parquet:"id"`
	Response *string `parquet:"response"`
	Reason   string  `parquet:"finish_reason"`
	Prompt   int32   `parquet:"prompt_tokens"`
	Tokens   int32   `parquet:"completion_tokens"`
	Code     *string `parquet:"error_code"`
	Error    *string `parquet:"error"`
	Row      int64   `parquet:"row_index"`
	Sample   int32   `parquet:"sample_index"`
	Seed     int64   `parquet:"seed"`
	Run      string  `parquet:"run_id"`
}

// TestShards: shards beside each other in one folder, merged, are one run: row for row,
// and the manifest's counts. What is missing is said, and nothing changed.
func TestShards(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a model")
	}
	base := []string{"run", "--demo", "--limit", "30", "--n", "2", "--temperature", "0.7", "--max-tokens",
		"8", "--quiet"}
	whole, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	runs := func(want int, args ...string) string {
		t.Helper()
		code, text, errs := glmbatch(args...)
		if code != want {
			t.Fatalf("%v: exit code %d: %s", args, code, errs)
		}
		return text + errs
	}
	shard := func(s string) []string { return append(base, "--out", out, "--shard", s) }
	runs(0, append(base, "--out", whole)...)
	runs(0, shard("2/4")...)
	runs(0, shard("0/4")...)
	if says := runs(exitCheck, "merge", out); !strings.Contains(says,
		"2 have not begun: run them with --shard 1/4, 3/4") {
		t.Errorf("it says %q", says)
	}
	if says := runs(exitInput, append(base, "--out", out)...); !strings.Contains(says, "has shards of a job") {
		t.Errorf("it says %q", says)
	}
	runs(0, shard("3/4")...)
	runs(0, shard("1/4")...)
	lost := filepath.Join(out, datasets.Shard{Index: 2, Of: 4}.Dir())
	if err := os.RemoveAll(lost); err != nil {
		t.Fatal(err)
	}
	if says := runs(exitCheck, "merge", out); !strings.Contains(says, "--shard 2/4") {
		t.Errorf("it says %q", says)
	}
	runs(0, append(shard("2/4"), "--seed", "5")...)
	if says := runs(exitInput, "merge", out); !strings.Contains(says,
		`shard 2/4 is of another job than shard 0/4: --seed was "0" and is "5"`) {
		t.Errorf("it says %q", says)
	}
	runs(0, append(shard("2/4"), "--overwrite")...)
	if says := runs(0, "report", out); !strings.Contains(says, "decode") {
		t.Errorf("the report of shards says %q", says)
	}
	if says := runs(0, "merge", out); !strings.Contains(says,
		"4 shards merged: 30 input rows, 60 output rows, 0 with errors, in 4 files") {
		t.Errorf("it says %q", says)
	}
	want, err := datasetstest.ReadAll[mergedRow](filepath.Join(whole, "outputs"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := datasetstest.ReadAll[mergedRow](filepath.Join(out, "outputs"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("merged shards differ from one run:\n%s", d[:min(len(d), 2000)])
	}
	if left, err := filepath.Glob(filepath.Join(out, "shards", "*", "outputs")); err != nil || len(left) > 0 {
		t.Errorf("rows are there twice: %v, %v", left, err)
	}
	counts := func(dir string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, "_manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		i := bytes.Index(b, []byte(`"counts"`))
		return b[i:]
	}
	if d := cmp.Diff(string(counts(whole)), string(counts(out))); d != "" {
		t.Errorf("the counts differ:\n%s", d)
	}
	if says := runs(0, "merge", out); !strings.Contains(says, "had been merged already") {
		t.Errorf("it says %q", says)
	}
	runs(0, shard("1/4")...) // complete: nothing to do
}
