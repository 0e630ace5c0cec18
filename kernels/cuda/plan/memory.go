package plan

import (
	"slices"

	"glmbatch/kernels"
)

// MaxRanks is how many ranks a group may have.
const MaxRanks = maxRanks

// InboxBytes is half an inbox. A message is sent in pieces that fit.
const InboxBytes = 32 << 20

// Memory is where a rank has what launches read and write. Plans hold addresses: they
// are made anew when any of it moves.
type Memory struct {
	Buffers   []Buffer // index is kernels.Buffer.Index-1
	Scratch   [Regions]uintptr
	Constants map[Constant]uintptr
	Stamps    uintptr // of call 0; 0: calls leave none
	Group     Group
}

// Buffer is one allocation, or one loaded weight.
type Buffer struct {
	Ptr    uintptr
	Bytes  int64
	Weight *Weight // nil: plain memory
}

// Region is scratch memory that calls use one after the other.
type Region int

const (
	ScratchLists  Region = iota // rows grouped by expert: kept from moe_up to moe_down
	ScratchWork                 // what one call's launches leave each other
	ScratchPanels               // activations as warpgroups read them
	ScratchComm                 // NCCL's messages
	ScratchRows                 // panels, see panels.go
	ScratchMany                 // those of more rows
	ScratchBlocks               // a weight of FP8 with scales for blocks as BF16
	Regions
)

// Constant is memory whose bytes are all the same when it is made. Its kernels leave it
// as it was.
type Constant struct {
	Name  string
	Bytes int64
	Fill  byte
}

// Group is what a rank and its kernels share with the other ranks.
type Group struct {
	Inbox   [MaxRanks]uintptr // of each rank: two halves of InboxBytes
	Arrived uintptr           // the barrier's counter, one for all
	Epoch   uintptr           // the rank's counts of barriers and collectives
	Failed  uintptr           // why the rank gave up
	Stop    uintptr           // whether to stop waiting
	Limit   uint64            // ns that a wait may take
}

// placeholder is an address of scratch memory or of a constant that is not there yet: a
// plan with it says what is missing, and is not launched.
func placeholder(n int) uintptr { return uintptr(n+1) << 56 }

// work returns scratch memory.
func (b *builder) work(r Region, bytes int64) uintptr {
	b.Scratch[r] = max(b.Scratch[r], bytes)
	if at := b.m.Scratch[r]; at != 0 {
		return at
	}
	return placeholder(int(r))
}

// constant returns memory of that name.
func (b *builder) constant(c Constant) uintptr {
	if at, ok := b.m.Constants[c]; ok {
		return at
	}
	if !slices.Contains(b.Missing, c) {
		b.Missing = append(b.Missing, c)
	}
	return placeholder(int(Regions))
}

// ptr is the address of a buffer; 0: it is none.
func (b *builder) ptr(x kernels.Buffer) uintptr {
	if x.Index == 0 {
		return 0
	}
	return b.m.Buffers[x.Index-1].Ptr + uintptr(x.Offset)
}

// stamp is where call i leaves its stamps.
func (b *builder) stamp(i int) uintptr {
	if b.m.Stamps == 0 {
		return 0
	}
	return b.m.Stamps + uintptr(i*StampBytes)
}

// ld is the row stride of b in values: its pitch, or columns where it is dense.
func ld(b kernels.Buffer, columns int32) int32 {
	if b.Pitch != 0 {
		return b.Pitch / 4
	}
	return columns
}
