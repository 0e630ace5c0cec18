//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// stopSignals ask the program to end: a terminal's, a supervisor's, a closed terminal's,
// and the one that Slurm sends before a job's time is over.
var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1}

// outlivePipes keeps the process alive when what reads its messages has ended: writing
// to it is an error then, and no end.
func outlivePipes() { signal.Ignore(syscall.SIGPIPE) }
