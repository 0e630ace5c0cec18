package plan

import (
	"slices"

	"glmbatch/kernels"
)

// fresh is what the launches of a list have written that a kernel may not read before
// its wait. Kernels that let the next one start only after their own wait, as
// index_logits_pages does, leave all that was written before them settled.
type fresh struct {
	writes []write
	own    int  // of writes, those of launches in front of the one that is being made
	known  bool // there was such a kernel: what lists before this one wrote is settled too
}

type write struct{ lo, hi uintptr }

// launch is called before the calls of a launch, settle behind one of those kernels.
func (f *fresh) launch() { f.own = len(f.writes) }
func (f *fresh) settle() {
	f.writes, f.known = append(f.writes[:0], f.writes[f.own:]...), true
	f.own = 0
}

// settled is 1 if a buffer may be read before the wait of the next kernel.
func (b *builder) settled(x kernels.Buffer) int32 {
	lo := b.ptr(x)
	within := func(w write) bool { return w.lo < lo+uintptr(x.Len) && lo < w.hi }
	if !b.fresh.known || slices.ContainsFunc(b.fresh.writes, within) {
		return 0
	}
	return 1
}
