package main

import "errors"

// The exit codes, as --help lists them.
const (
	exitOK          = 0
	exitFailed      = 1   // anything else, and checks that failed
	exitRowErrors   = 2   // finished, but more rows had errors than --max-errors
	exitInput       = 3   // usage, files, columns, options: nothing was run
	exitLocked      = 4   // another run has the output folder
	exitDevice      = 5   // no usable device, or it failed; the job can be resumed
	exitMismatch    = 6   // a replay's outputs differ from the recorded ones
	exitInterrupted = 75  // stopped by a signal; the job can be resumed
	exitForced      = 130 // ended at once by a second signal
)

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
	return exitFailed
}
