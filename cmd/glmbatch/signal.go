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
// ends the process at once. Signals that the process was started to ignore stay
// ignored: nohup does that with SIGHUP, shells do it with SIGINT of jobs in the
// background.
func signalContext(stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(got, s)
		}
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
