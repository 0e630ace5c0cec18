package main

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"glmbatch/pipeline"
)

func TestProgressFigures(t *testing.T) {
	var c pipeline.Counts
	var done atomic.Int64
	p := &progress{count: &c, done: &done, rows: 1100, first: 100, began: time.Now().Add(-10 * time.Second)}
	c.Rows.Store(100)
	done.Store(5000)
	if s := p.figures(); !strings.HasSuffix(s, " tok/s") || strings.HasPrefix(s, "0 ") {
		t.Errorf("with tokens and no rows it says %q", s)
	}

	// 100 rows of 50 tokens, and as many tokens of rows that run.
	c.Rows.Store(200)
	c.PromptTokens.Store(4000)
	c.CompletionTokens.Store(1000)
	c.Errors.Store(3)
	done.Store(10000)
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
	done.Add(2000)
	if s := p.figures(); !strings.Contains(s, " left, 3 errors") {
		t.Errorf("figures %q", s)
	}

	c.Rows.Store(1100)
	if got := p.left(); got != 0 {
		t.Errorf("left %s with all rows done", got)
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
}
