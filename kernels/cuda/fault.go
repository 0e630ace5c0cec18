//go:build cuda

package cuda

import "glmbatch/kernels/cuda/plan"

// inject launches the fault that is asked for when its list comes. What it does
// shows when the list is waited for.
func (d *device) inject() {
	f := &d.group.options.Fault
	if f.Rank != d.rank || f.Kind != Hang && f.Kind != Address {
		return
	}
	if d.lists++; d.lists != f.List+1 {
		return
	}
	hang := uint64(0)
	if f.Kind == Hang {
		hang = 2 * uint64(d.group.options.StepTimeout)
	}
	l := plan.Fault(hang)
	// The launch itself does not fail, or fails as the list's own will.
	_ = d.launch(&l)
}
