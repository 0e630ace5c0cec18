package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"glmbatch/kernels"
	"glmbatch/kernels/cpu"
	"glmbatch/kernels/cuda"
	"glmbatch/kernels/ranks"
)

// deviceFlags say which device runs the ranks: the one place that picks.
type deviceFlags struct {
	kind        string
	threads     int
	ranksPerGPU int
	stepTimeout time.Duration
	profiler    *cuda.Profiler // nil: none
	collective  string
	nccl        string
	fault       string // for tests: a fault of a rank
	memory      int64  // for tests: what the machine has free; 0: what it has
}

func (d *deviceFlags) add(f *pflag.FlagSet) {
	f.StringVar(&d.kind, "device", "auto", "auto (cuda where there is a GPU, else cpu), cpu or cuda")
	f.IntVar(&d.threads, "threads", 0, "CPU threads, 0: all")
	f.IntVar(&d.ranksPerGPU, "ranks-per-gpu", 0, "ranks that share a GPU, 0: as few as place all of them")
	f.DurationVar(&d.stepTimeout, "step-timeout", time.Minute,
		"longest that a step may take on a GPU before it counts as failed")
	f.StringVar(&d.nccl, "nccl", "", "NCCL's library, where the loader does not find libnccl.so.2")
	f.StringVar(&d.collective, "collective", "",
		"how ranks exchange: one-shot, two-shot, nccl, or host for GPUs that do not reach each other (default: the "+
			"fastest for each size)")
	f.StringVar(&d.fault, "inject-fault", "",
		"KIND:RANK:LIST, to try what happens: hang or address of a GPU, error or panic of the CPU, after so many "+
			"lists of calls")
	f.Int64Var(&d.memory, "inject-memory", 0, "bytes that the machine has free, to try what happens")
	_ = errors.Join(f.MarkHidden("inject-fault"), f.MarkHidden("inject-memory"))
}

func (d *deviceFlags) validate() error {
	return errors.Join(oneOf("device", d.kind, "auto", "cpu", "cuda"), inRange("threads", d.threads, 0, 1024),
		inRange("ranks-per-gpu", d.ranksPerGPU, 0, 8), inRange("step-timeout", d.stepTimeout, 0, 24*time.Hour),
		cuda.Options{Fault: d.options().Fault, Collective: cuda.Collective(d.collective)}.Validate(),
		d.onCPU().Validate())
}

// options are those of the GPUs.
func (d *deviceFlags) options() cuda.Options {
	o := cuda.Options{RanksPerGPU: d.ranksPerGPU, StepTimeout: d.stepTimeout, Profiler: d.profiler,
		Collective: cuda.Collective(d.collective), NCCL: d.nccl}
	if d.fault != "" && d.resolved() == "cuda" {
		kind, rank, list := d.faultOf()
		o.Fault = cuda.Fault{Kind: cuda.FaultKind(kind), Rank: rank, List: list}
	}
	return o
}

// onCPU are the options of the CPU's ranks.
func (d *deviceFlags) onCPU() cpu.Options {
	o := cpu.Options{Threads: d.threads}
	if d.fault != "" && d.resolved() == "cpu" {
		kind, _, list := d.faultOf()
		o.Fault = cpu.Fault{Kind: cpu.FaultKind(kind), List: list}
	}
	return o
}

// faultOf is what --inject-fault says; no device knows the kind of one that it cannot.
func (d *deviceFlags) faultOf() (kind string, rank, list int) {
	kind, at, _ := strings.Cut(d.fault, ":")
	if _, err := fmt.Sscanf(at, "%d:%d", &rank, &list); err != nil {
		kind += "?"
	}
	return kind, rank, list
}

// resolved is cpu or cuda.
func (d *deviceFlags) resolved() string {
	if d.kind != "auto" {
		return d.kind
	}
	if cuda.Available() == nil {
		return "cuda"
	}
	return "cpu"
}

// open opens n ranks.
func (d *deviceFlags) open(n int) (*ranks.Group, error) {
	if d.resolved() == "cuda" {
		ds, err := cuda.Open(n, d.options())
		if err != nil {
			return nil, withCode(exitDevice, fmt.Errorf("--device cuda: %w", err))
		}
		return ranks.New(ds, ranks.Options{Lock: true})
	}
	ds, err := cpu.Open(n, d.onCPU())
	if err != nil {
		return nil, withCode(exitDevice, err)
	}
	return ranks.New(ds, ranks.Options{})
}

// deviceError gives a device's error its exit code; less says what asks for less
// memory, where that was the matter.
func deviceError(err error, less string) error {
	if errors.Is(err, kernels.ErrMemory) {
		err = fmt.Errorf("%w: try %s, or on GPUs a larger --tp; glmbatch doctor says what fits", err, less)
	}
	return withCode(exitDevice, err)
}

// say tells on w why auto took the CPU where a GPU was to be expected.
func (d *deviceFlags) say(w io.Writer) {
	if d.kind == "auto" && cuda.Built {
		if err := cuda.Available(); err != nil {
			fmt.Fprintf(w, "running on the CPU: %v\n", err)
		}
	}
}
