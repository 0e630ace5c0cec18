//go:build cuda

package cuda

import "unsafe"

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
	p := faultP{}
	if f.Kind == Hang {
		p.hang = 2 * uint64(d.group.options.StepTimeout)
	}
	// The launch itself does not fail, or fails as the list's own will.
	_ = d.do("fault", [3]uint32{1, 1, 1}, 1, 0, unsafe.Pointer(&p))
}
