package cuda

import (
	"errors"
	"fmt"
	"time"

	"glmbatch/kernels"
)

// Options configure the devices. The zero value is usable.
type Options struct {
	// RanksPerGPU lets several ranks share a GPU; 0: as many as it takes to
	// place all ranks on the GPUs there are.
	RanksPerGPU int
	// StepTimeout bounds a Run: a rank that hangs ends it with an error. 0: 60 s.
	StepTimeout time.Duration
	// NoGraphs launches every kernel by itself, for debugging.
	NoGraphs bool
	// Profiler times kernels once more while it is on; for one rank. nil: none.
	Profiler *Profiler

	like []kernels.Device // whose loaded kernels these share; tests open devices often
}

// Validate reports every fault at once.
func (o Options) Validate() error {
	var errs []error
	if o.RanksPerGPU < 0 {
		errs = append(errs, fmt.Errorf("ranks per GPU is %d: give 0 or more", o.RanksPerGPU))
	}
	if o.StepTimeout < 0 {
		errs = append(errs, fmt.Errorf("step timeout is %v: give a positive duration", o.StepTimeout))
	}
	return errors.Join(errs...)
}
