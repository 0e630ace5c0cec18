package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"glmbatch/datasets"
)

const (
	// sameRequest is how close a second signal counts as the first: timeout(1) sends
	// one to the program and one to its group.
	sameRequest = time.Second
	// usualEnd is how long a command may take to end after a signal, unless it says
	// otherwise by [ending.allow].
	usualEnd = 700 * time.Millisecond
)

// ending is how this process ends when it is told to. The first signal ends the
// command's context; when the command has not returned in the time it is allowed, the
// process ends without it. A second signal, later than a second, ends that time.
type ending struct {
	allowed atomic.Int64  // ns
	hurry   chan struct{} // closed by the second signal
	say     atomic.Pointer[speaker]
	over    atomic.Bool // the time is: the process ends without the command
}

type endingKey struct{}

// endingOf is the process's, of a command's context; without one, as in tests, nothing
// ends the process.
func endingOf(ctx context.Context) *ending {
	if e, ok := ctx.Value(endingKey{}).(*ending); ok {
		return e
	}
	return &ending{}
}

// withEnding returns a context that has an ending.
func withEnding(ctx context.Context) (context.Context, *ending) {
	e := endingOf(ctx)
	return context.WithValue(ctx, endingKey{}, e), e
}

// speaks says with what the command speaks: the process's last words go the same way.
func (e *ending) speaks(say *speaker) { e.say.Store(say) }

// speaker is that, or one that has no log.
func (e *ending) speaker(stderr io.Writer) *speaker {
	if say := e.say.Load(); say != nil {
		return say
	}
	return newSpeaker(stderr)
}

// allow says how long the command may take to end from now on.
func (e *ending) allow(d time.Duration) { e.allowed.Store(int64(d)) }

// signalContext returns a context that the first signal to stop ends. A hang-up that
// the process was started to ignore, as nohup does, stays ignored.
func signalContext(stderr io.Writer) (context.Context, func()) {
	e := &ending{hurry: make(chan struct{})}
	e.allow(usualEnd)
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), endingKey{}, e))
	got := make(chan os.Signal, 4)
	for _, s := range stopSignals {
		if !signal.Ignored(s) {
			signal.Notify(got, s)
		}
	}
	done := make(chan struct{})
	go func() {
		select {
		case s := <-got:
			cancel()
			if !e.wait(got, done) {
				return
			}
			e.over.Store(true) // what the command says from here on comes of what is done next
			datasets.RemoveUnfinished()
			e.speaker(stderr).fail(fmt.Sprintf("interrupted (%v)", s), exitInterrupted)
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(got)
		close(done)
		cancel()
	}
}

// wait waits for the command to end, and reports whether its time for that is over.
func (e *ending) wait(got <-chan os.Signal, done <-chan struct{}) (over bool) {
	began, hurried := time.Now(), time.Time{}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done: // the command has ended, and main ends the process
			return false
		case <-got:
			if hurried.IsZero() && time.Since(began) > sameRequest {
				hurried = time.Now()
				close(e.hurry)
			}
		case now := <-tick.C:
			if now.Sub(began) > time.Duration(e.allowed.Load()) || !hurried.IsZero() && now.Sub(hurried) > usualEnd {
				return true
			}
		}
	}
}
