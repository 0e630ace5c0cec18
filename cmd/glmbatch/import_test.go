package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"glmbatch/datasets"
	"glmbatch/datasets/datasetstest"
)

// TestImport runs the command on a real trace and reads the timeline back.
func TestImport(t *testing.T) {
	out := filepath.Join(t.TempDir(), "t.parquet")
	trace := filepath.Join("..", "..", "replay", "importer", "testdata", "cast-graph.json.gz")
	var stdout, stderr bytes.Buffer
	if code := run(context.Background(), []string{"import", "torch", trace, "--out", out}, &stdout,
		&stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	for _, want := range []string{"1,196 rows, 3 steps, 1 rank", "19,776,782", "kv.cast",
		"556848 x 512 = 494976 slots x 576"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output does not say %q:\n%s", want, &stdout)
		}
	}
	for line := range strings.Lines(stdout.String()) {
		if len(strings.TrimSpace(line)) > 100 && !strings.HasPrefix(line, out) {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
	rows, err := datasetstest.ReadAll[datasets.Span](out)
	if err != nil || len(rows) != 1196 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	var names datasets.Names
	r, err := datasets.OpenSpans(out, &names, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	findings, err := r.Findings()
	if err != nil || len(findings) == 0 {
		t.Errorf("findings %v, %v", findings, err)
	}
}

// TestImportRefuses holds the exit code and that nothing is written.
func TestImportRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"torch"}, "no trace given"},
		{[]string{"torch", "none.json", "--out", filepath.Join(dir, "t.parquet")}, "none.json"},
		{[]string{"torch", "none.json"}, ".parquet"},
		{[]string{"torch", "none.json", "--out", filepath.Join(dir, "t.csv")}, ".parquet"},
		{[]string{"nsys", "import.go", "--out", filepath.Join(dir, "t.parquet")}, "nsys export --type sqlite"},
		{[]string{"torch", "import.go", "--kv-slots", "-1", "--out", filepath.Join(dir, "t.parquet")}, "KV slots"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), append([]string{"import"}, c.args...), &stdout, &stderr)
		if code != exitInput || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%v: exit code %d, %q; want %d and %q", c.args, code, stderr.String(), exitInput, c.want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("files were left: %v", left)
	}
}
