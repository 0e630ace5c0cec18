package plan

// Launches that belong to no call: src/device/host.cu.

// CopyBytes is how many bytes kernels copy faster than copies do.
const CopyBytes = 64 << 10

// Stamps as in src/device/params.h.
const (
	StampBytes = stampBytes // what a call's take: start, end and experts touched
	StampEnds  = stampEnds  // places where the end is kept
	MaxStamps  = maxStamps  // calls of a list
)

// Copies reports whether a kernel is to copy so many bytes to or from an address.
func Copies(bytes int, ptr uintptr) bool { return bytes <= CopyBytes && bytes%4 == 0 && ptr%4 == 0 }

// Copy is words between the host's memory and the GPU's, and stamps that go to the host.
// What comes from the host is read before the kernels in front have ended.
type Copy struct {
	From, To uintptr
	Words    int32
	In       bool // to the GPU

	Stamps uintptr // of the first of so many calls; their places are ready for the next list then
	Out    uintptr // where they go; 0: nowhere
	Calls  int32
}

// Launch is one kernel for all of it.
func (c Copy) Launch() Launch {
	p := &hostCopyP{from: c.From, to: c.To, at: c.Stamps, out: c.Out, words: c.Words, calls: c.Calls}
	if c.In {
		p.in = 1
	}
	return Launch{Entry: "host_copy", Grid: grid1(max(ceil(p.words, 256*copyWords), ceil(3*p.calls, 256))),
		Threads: 256,
		Params:  p}
}

// ReadClock answers so many rounds of the host with the GPU's time, the rounds after
// before; limit: ns to wait for one.
func ReadClock(ask, answer, time uintptr, limit uint64, before, rounds uint32) Launch {
	return Launch{Entry: "clock_read", Grid: grid1(uint32(1)), Threads: 1,
		Params: &clockP{ask: ask, answer: answer, time: time, limit: limit, before: before, rounds: rounds}}
}

// Fault hangs for so many ns; 0: it writes where no memory is.
func Fault(hang uint64) Launch {
	return Launch{Entry: "fault", Grid: grid1(uint32(1)), Threads: 1, Params: &faultP{hang: hang}}
}

// OfDevice reports whether an entry is launched for the device itself, not for a call.
func OfDevice(entry string) bool { return entry == "host_copy" || entry == "clock_read" }
