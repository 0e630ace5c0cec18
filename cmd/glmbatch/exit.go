package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// The exit codes. Each means one thing; 2 is not among them, as Go ends a program that
// crashed with it.
const (
	exitOK          = 0
	exitFailed      = 1
	exitInput       = 3
	exitLocked      = 4
	exitDevice      = 5
	exitCheck       = 6
	exitOutput      = 7
	exitRowErrors   = 8
	exitMidway      = 9
	exitInterrupted = 75
)

// exitCodes say what each code means, as --help and docs/jobs.md have it.
var exitCodes = []struct {
	code  int
	means string
}{
	{exitOK, "all done"},
	{exitFailed, "failed in a way that no other code names"},
	{exitInput, "bad usage or input: nothing was run, nothing was changed"},
	{exitLocked, "another run has the output folder"},
	{exitDevice, "no usable device, or it failed; what was done is saved"},
	{exitCheck, "a check did not pass: outputs differ, or shards are missing"},
	{exitOutput, "the output cannot be written (disk, permission); what was done is saved"},
	{exitRowErrors, "finished, but more rows had errors than --max-errors"},
	{exitMidway, "the input failed or changed while rows ran; what was done is saved"},
	{exitInterrupted, "interrupted by a signal or --deadline; run the same command again to go on"},
}

// exitHelp lists them.
var exitHelp = func() string {
	var b strings.Builder
	b.WriteString("\nExit codes:\n")
	for _, c := range exitCodes {
		fmt.Fprintf(&b, "  %-3d %s\n", c.code, c.means)
	}
	return b.String()
}()

// coded is an error with the exit code it ends the program with.
type coded struct {
	error
	code int
}

func (c coded) Unwrap() error { return c.error }

// withCode gives err an exit code; nil stays nil.
func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return coded{err, code}
}

func codeOf(err error) int {
	var c coded
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &c):
		return c.code
	}
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if errors.Is(err, full) {
			return exitOutput
		}
	}
	return exitFailed
}
