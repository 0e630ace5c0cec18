package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"glmbatch/pipeline"
)

func TestProgressFigures(t *testing.T) {
	var c pipeline.Counts
	var done work
	p := &progress{count: &c, done: &done, rows: 1100, first: 100, began: time.Now().Add(-10 * time.Second)}
	c.Rows.Store(100)
	done.computed.Store(5000)
	if s := p.figures(); !strings.HasSuffix(s, " tok/s") || strings.HasPrefix(s, "0 ") {
		t.Errorf("with tokens and no rows it says %q", s)
	}

	// 100 rows of 50 tokens, and as many tokens of rows that run.
	c.Rows.Store(200)
	c.RunRows.Store(100)
	c.RunPrompt.Store(4000)
	c.RunCompletion.Store(1000)
	c.Errors.Store(3)
	done.computed.Store(10000)
	p.marks = nil
	p.rate(p.began.Add(10 * time.Second))
	if got, want := p.last, 1000.0; got != want {
		t.Errorf("rate %g, want %g", got, want)
	}
	if got, want := p.left(), 41*time.Second; got != want {
		t.Errorf("left %s, want %s", got, want)
	}
	if got, want := p.counted(), "200 of 1,100 rows"; got != want {
		t.Errorf("counted %q, want %q", got, want)
	}
	done.computed.Add(2000)
	if s := p.figures(); !strings.Contains(s, " left, 3 errors") {
		t.Errorf("figures %q", s)
	}

	c.Rows.Store(1100)
	if got := p.left(); got != 0 {
		t.Errorf("left %s with all rows done", got)
	}
}

// A job that is interrupted before its model is there says so, and so does a check.
func TestInterruptedWhileLoading(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := t.TempDir()
	for _, args := range [][]string{
		{"run", "--demo", "--device", "cpu", "--out", out},
		{"model", "verify", "demo", filepath.Join("..", "..", "engine", "verify", "testdata", "demo.safetensors"),
			"--device", "cpu"},
	} {
		var errs strings.Builder
		if code := run(ctx, args, io.Discard, &errs); code != exitInterrupted ||
			!strings.Contains(errs.String(), "interrupted") {
			t.Errorf("%v: exit code %d, %s", args, code, errs.String())
		}
	}
	manifest, err := os.ReadFile(filepath.Join(out, "_manifest.json"))
	if err != nil || !strings.Contains(string(manifest), `"status": "interrupted"`) {
		t.Errorf("%s, %v", manifest, err)
	}
}

// An interrupted job says how it goes on, which --overwrite does not.
func TestInterruptedHint(t *testing.T) {
	var c pipeline.Counts
	for overwrite, want := range map[bool]string{false: "run the same command again", true: "without --overwrite"} {
		err := (&runFlags{overwrite: overwrite}).outcome(&c, pipeline.ErrInterrupted)
		if codeOf(err) != exitInterrupted || !strings.Contains(err.Error(), want) {
			t.Errorf("overwrite %v: %v", overwrite, err)
		}
	}
	err := (&runFlags{stdout: "jsonl", passing: true}).outcome(&c, pipeline.ErrInterrupted)
	if codeOf(err) != exitInterrupted || strings.Contains(err.Error(), "go on") ||
		!strings.Contains(err.Error(), "without --out") {
		t.Errorf("without --out: %v", err)
	}
}
