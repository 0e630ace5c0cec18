package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

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
}

func (d *deviceFlags) add(f *pflag.FlagSet) {
	f.StringVar(&d.kind, "device", "auto", "auto (cuda where there is a GPU, else cpu), cpu or cuda")
	f.IntVar(&d.threads, "threads", 0, "CPU threads, 0: all")
	f.IntVar(&d.ranksPerGPU, "ranks-per-gpu", 0, "ranks that share a GPU, 0: as few as place all of them")
	f.DurationVar(&d.stepTimeout, "step-timeout", time.Minute, "longest that a step may take on a GPU before it counts as failed")
}

func (d *deviceFlags) validate() error {
	return errors.Join(oneOf("device", d.kind, "auto", "cpu", "cuda"), inRange("threads", d.threads, 0, 1024),
		inRange("ranks-per-gpu", d.ranksPerGPU, 0, 8), inRange("step-timeout", d.stepTimeout, 0, 24*time.Hour))
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
		ds, err := cuda.Open(n, cuda.Options{RanksPerGPU: d.ranksPerGPU, StepTimeout: d.stepTimeout, Profiler: d.profiler})
		if err != nil {
			return nil, withCode(exitDevice, fmt.Errorf("--device cuda: %w", err))
		}
		return ranks.New(ds, ranks.Options{Lock: true})
	}
	ds, err := cpu.Open(n, cpu.Options{Threads: d.threads})
	if err != nil {
		return nil, withCode(exitDevice, err)
	}
	return ranks.New(ds, ranks.Options{})
}

// say tells on w why auto took the CPU where a GPU was to be expected.
func (d *deviceFlags) say(w io.Writer) {
	if d.kind == "auto" && cuda.Built {
		if err := cuda.Available(); err != nil {
			fmt.Fprintf(w, "running on the CPU: %v\n", err)
		}
	}
}
