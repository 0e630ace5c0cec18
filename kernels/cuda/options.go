package cuda

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/plan"
)

// Options configure the devices. The zero value is usable.
type Options struct {
	// RanksPerGPU lets several ranks share a GPU; 0: as many as it takes to
	// place all ranks on the GPUs there are.
	RanksPerGPU int
	// StepTimeout bounds a list: a rank that hangs ends it with an error. 0: 60 s.
	StepTimeout time.Duration
	// NoGraphs launches every kernel by itself, for debugging.
	NoGraphs bool
	// Collective is how ranks exchange messages; "": for each size the way that
	// was measured to be fastest.
	Collective Collective
	// NCCL is the library for ViaNCCL; "": libnccl.so.2 where the loader finds it.
	NCCL string
	// Fault makes a rank fail, for tests of what happens then.
	Fault Fault
	// Profiler times kernels once more while it is on; for one rank. nil: none.
	Profiler *Profiler

	//lint:ignore U1000 the tag cuda uses them
	images fs.FS // of the kernels; nil: those in the program
	//lint:ignore U1000 as above
	units4 plan.Units4 // as if the GPU had these, for tests
	//lint:ignore U1000 as above
	like []kernels.Device // whose loaded kernels these share; tests open devices often
}

// Collective is a way in which ranks exchange messages. The sums of all ways have
// the same bits.
type Collective = plan.Collective

// The ways.
const (
	OneShot = plan.OneShot
	TwoShot = plan.TwoShot
	ViaNCCL = plan.ViaNCCL
	ViaHost = plan.ViaHost
)

// Collectives lists the ways.
func Collectives() []Collective { return []Collective{OneShot, TwoShot, ViaNCCL, ViaHost} }

// Fault is a fault that is asked for. The zero Fault is none.
type Fault struct {
	Kind FaultKind
	Rank int // that has it
	List int // the rank's lists before it: 0: it has it in the first one
}

// FaultKind is what goes wrong.
type FaultKind string

// The kinds.
const (
	Hang    FaultKind = "hang"    // a kernel does not end within twice StepTimeout
	Address FaultKind = "address" // a kernel writes where no memory is
	Apart   FaultKind = "apart"   // the rank's GPU does not reach the others' memory
)

// Validate reports every fault at once.
func (o Options) Validate() error {
	var errs []error
	if o.RanksPerGPU < 0 {
		errs = append(errs, fmt.Errorf("ranks per GPU is %d: give 0 or more", o.RanksPerGPU))
	}
	if o.StepTimeout < 0 {
		errs = append(errs, fmt.Errorf("step timeout is %v: give a positive duration", o.StepTimeout))
	}
	if o.Collective != "" && !slices.Contains(Collectives(), o.Collective) {
		errs = append(errs, fmt.Errorf("collective %q: there are %v", o.Collective, Collectives()))
	}
	switch o.Fault.Kind {
	case "", Hang, Address, Apart:
	default:
		errs = append(errs, fmt.Errorf("fault %q: there are %s, %s and %s", o.Fault.Kind, Hang, Address, Apart))
	}
	return errors.Join(errs...)
}
