//go:build cuda

package cuda

import (
	"unsafe"

	"glmbatch/kernels"
)

// inboxHalf is the bytes of half an inbox. A message is sent in pieces that fit.
const inboxHalf = 32 << 20

// As in src/comm.cu.
const (
	rowParts                = 8 // of a row
	rowPairs                = rowParts / 2
	sendPhase, sumPhase     = 1, 2
	receivePhase, allPhases = 4, 7
)

// crossovers says up to how many bytes of message each way is the fastest, by
// the number of ranks: one-shot, then two-shot; NCCL beyond. Those of 2 and 4 ranks
// were measured with bench --collectives on H200s with NVLink 4, where NCCL moves
// the same bytes in more time at every size; those of 8 follow from their slopes.
// Four GPUs store 325 GB/s each to the others, and copy 313 in bulk from shared memory:
// two-shot by such copies took a tenth longer at most sizes.
var crossovers = []struct {
	ranks            int
	oneShot, twoShot int64
}{
	{2, 2 << 20, 1 << 62},
	{4, 340 << 10, 1 << 62},
	{8, 140 << 10, 1 << 62},
}

// way is how a message of so many bytes goes.
func (g *group) way(bytes int64) Collective {
	if c := g.options.Collective; c != "" && c != ViaHost {
		return c
	}
	for _, c := range crossovers {
		switch {
		case len(g.ranks) > c.ranks:
		case bytes <= c.oneShot:
			return OneShot
		case bytes <= c.twoShot:
			return TwoShot
		default:
			return ViaNCCL
		}
	}
	return TwoShot
}

// rowBlocks is how many rows a GPU's blocks exchange at a time by two-shot.
const rowBlocks = 128

// fewBlocks of the ranks on a GPU that they share may wait at a time: less than
// half of its multiprocessors.
const fewBlocks = 64

// piece is one or several launches that exchange some rows.
type piece struct {
	kernel  string
	threads uint32
	units   int // blocks that there is work for
	phases  []int
	clumps  int // blocks come in multiples of it
	waiting int // blocks that may wait on a GPU of their own: they all run at once
	long    int // units a waiting block, beyond which ranks that share a GPU send first
}

// exchange launches all phases of p in one, whose blocks run all at once. Where
// ranks share a GPU only few blocks may wait, as kernels that need a whole
// multiprocessor must still find one: there large messages have a launch for each
// phase, with barriers between them, and nothing else waits.
func (d *device) exchange(c *piece, p *commP) error {
	blocks := c.waiting
	if d.group.shared() {
		blocks = fewBlocks / d.group.perGPU
	}
	blocks = max(c.clumps, min(blocks, c.units)/c.clumps*c.clumps)
	launch := func(phases, blocks int) error {
		p.phases = int32(phases)
		return d.do(c.kernel, [3]uint32{uint32(blocks), 1, 1}, c.threads, 0, unsafe.Pointer(p))
	}
	switch {
	case !d.group.shared():
		p.early = 1
		return launch(allPhases, blocks)
	case c.units <= c.long*blocks:
		return launch(allPhases, blocks)
	}
	p.early = 1
	for i, ph := range c.phases {
		if i > 0 {
			if err := d.barrier(p.at); err != nil {
				return err
			}
		}
		if err := launch(ph, min(c.units, 4096/c.clumps*c.clumps)); err != nil {
			return err
		}
	}
	return nil
}

// comm fills in what all collectives have.
func (d *device) comm(at uintptr) commP {
	g := d.group
	return commP{inbox: g.inbox, half: inboxHalf / 4, epoch: d.epoch + 8, failed: g.failed(d.rank), stop: g.stop(), limit: g.limit(), at: at, rank: int32(d.rank), ranks: int32(len(g.ranks))}
}

// barrier waits until every rank has come as far.
func (d *device) barrier(at uintptr) error {
	g := d.group
	a := barrierP{arrived: g.arrived, epoch: d.epoch, failed: g.failed(d.rank), stop: g.stop(), at: at, limit: g.limit(), ranks: int32(len(g.ranks))}
	return d.do("barrier", [3]uint32{1, 1, 1}, 32, 0, unsafe.Pointer(&a))
}

// aligned reports whether every row of the buffers starts at a multiple of 16 bytes.
func (d *device) aligned(rows map[kernels.Buffer]int32) int32 {
	for b, ld := range rows {
		if d.ptr(b)%16 != 0 || ld%4 != 0 {
			return 0
		}
	}
	return 1
}
