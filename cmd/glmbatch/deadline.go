package main

import (
	"context"
	"fmt"
	"time"
)

// deadline returns when a job has to stop; the zero time: never. text is a time of day,
// which is the next of its kind, or how long from now.
func deadline(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		t, err := time.ParseInLocation(layout, text, now.Location())
		if err != nil {
			continue
		}
		at := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		if !at.After(now) {
			at = time.Date(now.Year(), now.Month(), now.Day()+1, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		}
		return at, nil
	}
	return time.Time{}, fmt.Errorf("--deadline %q: give a time of day, 06:00 say, or how long, 4h say", text)
}

// until is ctx with the job's deadline, if it has one.
func (r *runFlags) until(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.stopAt.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, r.stopAt)
}
