package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// signalContext returns a context that the first signal to stop ends; the second
// ends the process at once. A hang-up that the process was started to ignore, as
// nohup does, stays ignored.
func signalContext(stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(got, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-got:
			cancel()
		case <-done:
			return
		}
		select {
		case s := <-got:
			fmt.Fprintf(stderr, "glmbatch: ended at once by a second signal (%v)\n", s)
			os.Exit(exitForced)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(got)
		close(done)
		cancel()
	}
}
