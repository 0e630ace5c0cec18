package cpu

import (
	"fmt"

	"glmbatch/kernels"
)

// Fault is a fault of all ranks that is asked for, for tests of what happens then. The
// zero Fault is none.
type Fault struct {
	Kind FaultKind
	List int // of calls, from 0: the first that goes wrong
}

// FaultKind is what goes wrong.
type FaultKind string

const (
	Failing   FaultKind = "error" // the list is not run, and the device reports it
	Panicking FaultKind = "panic" // the program panics in place of running the list
)

// start is called before each list that a rank is given.
func (f *Fault) start(list int) error {
	switch {
	case f.Kind == "" || list < f.List:
		return nil
	case f.Kind == Panicking:
		panic("a fault that was asked for")
	}
	return fmt.Errorf("cpu: %w: a fault that was asked for", kernels.ErrDevice)
}
