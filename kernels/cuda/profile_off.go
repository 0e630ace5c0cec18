//go:build !cuda

package cuda

import "glmbatch/kernels/cuda/driver"

// Profiler is CUPTI; without CUDA there is none.
type Profiler struct{}

// ProfiledCall is a call as CUPTI saw it.
type ProfiledCall struct {
	Kernels           int
	Start, End, Ready int64
	Launch, After     int
}

// LoadProfiler fails: this binary has no CUDA device.
func LoadProfiler(string) (*Profiler, error) { return nil, driver.Status() }

func (p *Profiler) Version() uint32                { return 0 }
func (p *Profiler) Start() error                   { return driver.Status() }
func (p *Profiler) Stop() error                    { return driver.Status() }
func (p *Profiler) Calls() ([]ProfiledCall, error) { return nil, driver.Status() }
