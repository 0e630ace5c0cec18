//go:build cuda

package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/cupti"
	"glmbatch/kernels/cuda/plan"
)

// Profiler is CUPTI, as the check of stamps: between Start and Stop it times the
// kernels of each recorded Run once more. It is for one rank.
type Profiler struct {
	lib     *cupti.Profiler
	on      bool
	toggled int // times that it was turned on; graphs are made anew each time
	calls   []ProfiledCall
	err     error
}

// ProfiledCall is a call as CUPTI saw it, in ns of [kernels.Now].
type ProfiledCall struct {
	Kernels    int   // launched for it; 0: it had no rows
	Start, End int64 // of the first, of the last
	Launch     int   // which launch of the step: calls may share one, and have its times
	Ready      int64 // Start, or the end of the last launch that it waits for if that came later
	After      int   // that launch; -1: it was launched when all of them had ended
}

// LoadProfiler loads CUPTI from path; "": from where it usually is.
func LoadProfiler(path string) (*Profiler, error) {
	lib, err := cupti.Load(path)
	if err != nil {
		return nil, err
	}
	return &Profiler{lib: lib}, nil
}

// Version is CUPTI's, as in its headers.
func (p *Profiler) Version() uint32 { return p.lib.Version }

func (p *Profiler) Start() error {
	if err := p.lib.Start(); err != nil {
		return err
	}
	p.on = true
	p.toggled++
	return nil
}

func (p *Profiler) Stop() error {
	p.on = false
	return p.lib.Stop()
}

// Calls returns what CUPTI saw of the last recorded Run, an entry a call.
func (p *Profiler) Calls() ([]ProfiledCall, error) {
	if p.calls == nil && p.err == nil {
		return nil, errors.New("CUPTI: nothing was recorded")
	}
	return p.calls, p.err
}

// profiler is nil unless kernels are to be timed by it now.
func (d *device) profiler() *Profiler {
	if p := d.group.options.Profiler; p != nil && p.on {
		return p
	}
	return nil
}

// mode tells apart graphs of one list: without and with stamps, and those made
// since a profiler was turned on.
func (d *device) mode(stamped bool) int {
	switch p := d.profiler(); {
	case !stamped:
		return 0
	case p == nil:
		return 1
	default:
		return 1 + p.toggled
	}
}

// profiled is a list on its way that the profiler looks at.
type profiled struct {
	calls []kernels.Call
	plan  *plan.Plan
}

// profile notes what was launched for a list.
func (d *device) profile(x *flight, calls []kernels.Call, p *plan.Plan) {
	x.profiled = nil
	if d.profiler() != nil {
		x.profiled = &profiled{slices.Clone(calls), p}
	}
}

// collect gives the kernels that ran to the calls that launched them. A graph's
// come in the order in which its nodes were made, which is that of the launches.
func (p *Profiler) collect(x *profiled) {
	p.calls, p.err = nil, nil
	seen, dropped, err := p.lib.Take()
	if err == nil && dropped > 0 {
		err = fmt.Errorf("CUPTI: %d records were lost", dropped)
	}
	if err != nil {
		p.err = err
		return
	}
	p.calls, p.err = attribute(x.plan.Launches, seen, x.plan.Chain)
}

// attribute gives each call its kernels; list has the launches in their order. Calls
// wait for those of chain's entry before theirs.
func attribute(list []plan.Launch, seen []cupti.Kernel, chain [][]int) ([]ProfiledCall, error) {
	seen = slices.DeleteFunc(slices.Clone(seen), func(k cupti.Kernel) bool { return plan.OfDevice(k.Name) })
	list = slices.DeleteFunc(slices.Clone(list), func(l plan.Launch) bool { return l.Messages != nil })
	slices.SortFunc(seen, func(a, b cupti.Kernel) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node),
			cmp.Compare(a.Start, b.Start))
	})
	if len(seen) != len(list) {
		return nil, fmt.Errorf("CUPTI saw %d kernels, %d were launched", len(seen), len(list))
	}
	out := make([]ProfiledCall, 0)
	for _, which := range chain {
		out = append(out, make([]ProfiledCall, len(which))...)
	}
	for i, l := range list {
		k := seen[i]
		if k.Name != l.Entry {
			return nil, fmt.Errorf("kernel %d of the step is %s for CUPTI, %s was launched", i, k.Name, l.Entry)
		}
		if k.Start == 0 || k.End == 0 {
			return nil, fmt.Errorf("CUPTI has no time for kernel %d, %s", i, k.Name)
		}
		for _, call := range l.Calls {
			c := &out[call]
			if c.Kernels == 0 || k.Start < c.Start {
				c.Start = k.Start
			}
			c.Kernels++
			c.End = max(c.End, k.End)
		}
	}
	last, ended := -1, int64(0) // the launch that ended last, so far
	for l, which := range chain {
		first, next, ends := -1, last, ended
		for _, i := range which {
			if out[i].Kernels > 0 && (first < 0 || out[i].Start < out[first].Start) {
				first = i
			}
		}
		for _, i := range which {
			c := &out[i]
			c.Launch, c.After = l, -1
			if first >= 0 {
				c.Ready = out[first].Start
			}
			if last >= 0 && ended > c.Ready {
				c.Ready, c.After = ended, last
			}
			if c.Kernels == 0 {
				c.End = c.Ready
			} else if next < 0 || c.End > ends {
				next, ends = l, c.End
			}
		}
		last, ended = next, ends
	}
	return out, nil
}
