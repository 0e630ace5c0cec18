//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

const asStuck = "GLMBATCH_TEST_STUCK"

// TestStuck is a program whose orderly stop never ends; other tests start it.
func TestStuck(t *testing.T) {
	if os.Getenv(asStuck) == "" {
		t.Skip("only as a child of other tests")
	}
	ctx, stop := signalContext(os.Stderr)
	defer stop()
	fmt.Println("running")
	<-ctx.Done()
	fmt.Println("stopping")
	time.Sleep(time.Minute)
}

// TestSecondSignal: the first signal asks for an end, the second is the end.
func TestSecondSignal(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			c := exec.Command(os.Args[0], "-test.run=^TestStuck$")
			c.Env = append(os.Environ(), asStuck+"=1")
			var stderr bytes.Buffer
			c.Stderr = &stderr
			stdout, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stdout)
			for _, want := range []string{"running", "stopping"} {
				if !lines.Scan() || lines.Text() != want {
					t.Fatalf("it says %q, want %q", lines.Text(), want)
				}
				if err := c.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			c.Wait() // its error is the exit code
			if code := c.ProcessState.ExitCode(); code != exitForced {
				t.Errorf("exit code %d, want %d", code, exitForced)
			}
			if want := fmt.Sprintf("glmbatch: ended at once by a second signal (%v)\n", s); stderr.String() != want {
				t.Errorf("it said %q, want %q", stderr.String(), want)
			}
		})
	}
}
