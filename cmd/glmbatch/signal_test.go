//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

const asStuck = "GLMBATCH_TEST_STUCK"

// TestStuck is a program whose orderly stop never ends; other tests start it. It allows
// itself as long as it is told.
func TestStuck(t *testing.T) {
	allowed := os.Getenv(asStuck)
	if allowed == "" {
		t.Skip("only as a child of other tests")
	}
	ctx, stop := signalContext(os.Stderr)
	defer stop()
	if d, err := time.ParseDuration(allowed); err == nil && d > 0 {
		endingOf(ctx).allow(d)
	}
	fmt.Println("running")
	<-ctx.Done()
	fmt.Println("stopping")
	<-endingOf(ctx).hurry
	fmt.Println("hurrying")
	time.Sleep(time.Minute)
}

// TestSignals: a command that does not end by itself ends soon after the first signal,
// or where it takes its time, after the second. Two at once are one.
func TestSignals(t *testing.T) {
	for _, c := range []struct {
		signal  syscall.Signal
		allowed string
	}{{syscall.SIGINT, "0s"}, {syscall.SIGTERM, "0s"}, {syscall.SIGHUP, "0s"}, {syscall.SIGUSR1, "0s"},
		{syscall.SIGTERM, "1m"}} {
		t.Run(fmt.Sprint(c.signal, " ", c.allowed), func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(c.signal) {
				t.Skip("the tests were started to ignore it, and so is the child")
			}
			child := exec.Command(os.Args[0], "-test.run=^TestStuck$")
			child.Env = append(os.Environ(), asStuck+"="+c.allowed)
			var stderr bytes.Buffer
			child.Stderr = &stderr
			stdout, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stdout)
			says := func(want string) {
				t.Helper()
				if !lines.Scan() || lines.Text() != want {
					t.Fatalf("it says %q, want %q", lines.Text(), want)
				}
			}
			send := func() {
				t.Helper()
				if err := child.Process.Signal(c.signal); err != nil {
					t.Fatal(err)
				}
			}
			says("running")
			send()
			send()
			says("stopping")
			if c.allowed == "1m" {
				time.Sleep(sameRequest + 100*time.Millisecond)
				send()
				says("hurrying")
			}
			for lines.Scan() {
				t.Errorf("it says %q", lines.Text())
			}
			child.Wait() // its error is the exit code
			if code := child.ProcessState.ExitCode(); code != exitInterrupted {
				t.Errorf("exit code %d, want %d", code, exitInterrupted)
			}
			if want := fmt.Sprintf("glmbatch: interrupted (%v)\n", c.signal); stderr.String() != want {
				t.Errorf("it said %q, want %q", stderr.String(), want)
			}
		})
	}
}

// TestOverSaysNothing: a command that fails because its files are removed, as its time to
// end is over, does not speak of it.
func TestOverSaysNothing(t *testing.T) {
	for _, over := range []bool{false, true} {
		e := &ending{}
		e.over.Store(over)
		var out, errs strings.Builder
		code := run(context.WithValue(context.Background(), endingKey{}, e),
			[]string{"status", t.TempDir()}, &out, &errs)
		if code != exitInput || (errs.String() == "") != over {
			t.Errorf("over %v: exit code %d, %q", over, code, errs.String())
		}
	}
}
