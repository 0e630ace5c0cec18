package plan

import (
	"fmt"
	"reflect"
	"unsafe"

	"glmbatch/kernels"
)

// Launch is one kernel launch. Each waits for the one in front of it, and says itself what
// it may read before.
type Launch struct {
	Entry   string // of the images
	By      string // the variant or fusion that made it
	Grid    [3]uint32
	Threads uint32
	Cluster uint32 // blocks of a cluster, where the kernel does not say; 0: 1
	Shared  uint32 // dynamic shared memory, bytes
	Late    bool   // it starts when the launch in front has ended, and reads early what that wrote
	Params  any    // points to the kernel's one struct
	Calls   []int  // that it is for: places in the list

	// Messages go through NCCL instead, at once; Entry is empty.
	Messages []Message
}

// Pointer is the address of the parameters.
func (l *Launch) Pointer() unsafe.Pointer {
	if l.Params == nil {
		return nil
	}
	return reflect.ValueOf(l.Params).UnsafePointer()
}

// Message is what NCCL moves: float32 values to or from a rank, or of all ranks to all.
type Message struct {
	Kind     MessageKind
	Peer     int
	From, To uintptr
	Values   int64
}

// MessageKind is a call of NCCL.
type MessageKind uint8

const (
	Send MessageKind = iota
	Receive
	Gather // from each rank its own values, to all
)

// Plan is a list of calls as launches, and the memory that they take.
type Plan struct {
	Launches []Launch
	Chain    [][]int        // the calls, by what they may share a launch with; each waits for those before
	Lanes    []int8         // of the calls, where some share a launch; nil: one after the other
	Scratch  [Regions]int64 // bytes
	Missing  []Constant     // what Memory has not
}

// Fits reports whether the plan's addresses are memory that is there, have bytes of each
// region. Else it is made again, with that memory.
func (p *Plan) Fits(have [Regions]int64) bool {
	for r, need := range p.Scratch {
		if need > have[r] {
			return false
		}
	}
	return len(p.Missing) == 0
}

// maxGrid is how many blocks a grid may have other than along its first side.
const maxGrid = 65535

// empty reports whether a launch has no blocks: there is nothing to do.
func (l *Launch) empty() bool { return l.Grid[0] == 0 || l.Grid[1] == 0 || l.Grid[2] == 0 }

// check reports a grid that no GPU takes.
func (l *Launch) check() error {
	if max(l.Grid[1], l.Grid[2]) > maxGrid {
		return fmt.Errorf("%w: %s of more than %d rows in a step: a lower --max-batch-tokens",
			kernels.ErrKernel, l.Entry,
			maxGrid)
	}
	return nil
}

func grid1[T int32 | uint32](x T) [3]uint32 { return [3]uint32{uint32(x), 1, 1} }

func ceil(n, by int32) uint32 { return uint32((n + by - 1) / by) }

func round(n, to int64) int64 { return (n + to - 1) / to * to }
