package plan

import (
	"fmt"

	"glmbatch/kernels"
)

const allPhases = sendPhase | sumPhase | receivePhase

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

// Way is how a message of so many bytes goes.
func (t *Target) Way(bytes int64) Collective {
	if c := t.Collective; c != "" && c != ViaHost {
		return c
	}
	for _, c := range crossovers {
		switch {
		case t.Ranks > c.ranks:
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
	entry   string
	threads uint32
	units   int // blocks that there is work for
	phases  []int
	clumps  int // blocks come in multiples of it
	waiting int // blocks that may wait on a GPU of their own: they all run at once
	long    int // units a waiting block, beyond which ranks that share a GPU send first
}

// exchange plans all phases of a piece in one launch, whose blocks run all at once. Where
// ranks share a GPU only few blocks may wait, as kernels that need a whole
// multiprocessor must still find one: there large messages have a launch for each
// phase, with barriers between them, and nothing else waits.
func (b *builder) exchange(c *piece, p commP) error {
	blocks := c.waiting
	if b.t.crowded() {
		blocks = fewBlocks / b.t.PerGPU
	}
	blocks = max(c.clumps, min(blocks, c.units)/c.clumps*c.clumps)
	launch := func(phases, blocks int) error {
		q := p
		q.phases = int32(phases)
		return b.do(c.entry, grid1(uint32(blocks)), c.threads, 0, &q)
	}
	switch {
	case !b.t.crowded():
		p.early = 1
		return launch(allPhases, blocks)
	case c.units <= c.long*blocks:
		return launch(allPhases, blocks)
	}
	p.early = 1
	for i, ph := range c.phases {
		if i > 0 {
			if err := b.barrier(p.at); err != nil {
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
func (b *builder) comm(at uintptr) commP {
	g := &b.m.Group
	return commP{inbox: g.Inbox, half: InboxBytes / 4, epoch: g.Epoch + 8, failed: g.Failed, stop: g.Stop,
		limit: g.Limit,
		at:    at, rank: int32(b.t.Rank), ranks: int32(b.t.Ranks)}
}

// barrier waits until every rank has come as far.
func (b *builder) barrier(at uintptr) error {
	g := &b.m.Group
	return b.do("barrier", grid1(uint32(1)), 32, 0,
		&barrierP{arrived: g.Arrived, epoch: g.Epoch, failed: g.Failed, stop: g.Stop, at: at, limit: g.Limit,
			ranks: int32(b.t.Ranks)})
}

// aligned is 1 if every row of the buffers starts at a multiple of 16 bytes.
func (b *builder) aligned(rows map[kernels.Buffer]int32) int32 {
	for x, ld := range rows {
		if b.ptr(x)%16 != 0 || ld%4 != 0 {
			return 0
		}
	}
	return 1
}

// planReduceNorm is the sum over ranks with what follows it.
func planReduceNorm(b *builder, c *call) error {
	n, ranks := c.Dims.N, int64(b.t.Ranks)
	if int64(c.Dims.Ranks) != ranks {
		return fmt.Errorf("%w: a collective of %d ranks in a group of %d", kernels.ErrKernel, c.Dims.Ranks, ranks)
	}
	if ranks == 1 {
		q := *c
		q.kernel = kernels.Lookup("add_norm")
		v := b.pick(&q)
		b.by = v.Name
		return v.Build(b, &q)
	}
	p := b.comm(c.at)
	p.n, p.m, p.eps = n, c.Dims.M, c.Scalars[0]
	p.x, p.res, p.w, p.y = b.ptr(c.Args[0]), b.ptr(c.Args[1]), b.ptr(c.Args[2]), b.ptr(c.Args[3])
	p.ldx, p.ldr, p.ldy = ld(c.Args[0], n), ld(c.Args[1], n), ld(c.Args[3], n)
	p.wide = b.aligned(map[kernels.Buffer]int32{c.Args[0]: p.ldx, c.Args[1]: p.ldr, c.Args[2]: 0, c.Args[3]: p.ldy})
	p.panels = b.leave(p.y, p.m, n, p.ldy)
	p.cols = int32(round(int64(ceil(n, rowParts)), 4))
	threads := uint32(round(int64(p.cols/4), 32))
	if threads > 256 {
		return fmt.Errorf("%w: rows of %d values, at most %d", kernels.ErrKernel, n, 4*256*rowParts)
	}
	row := int64(rowParts*p.cols) * 4
	way := b.t.Way(int64(p.m) * int64(n) * 4)
	switch {
	case way == OneShot || rowPairs*threads > 768: // which reduce_rows has registers for
		rows := InboxBytes / (ranks * row)
		return p.pieces(rows, func(p commP) error {
			return b.exchange(&piece{entry: "reduce_norm", threads: threads, units: int(p.m) * rowParts,
				clumps: rowParts,
				phases: []int{sendPhase, receivePhase}, waiting: 32 * rowParts, long: 4}, p)
		})
	case way == ViaNCCL && b.t.NCCL && p.ldx == n && p.wide != 0 && n%4 == 0:
		return b.reduceByNCCL(&p, threads)
	}
	parts := int64(ceil(rowParts, int32(ranks))) * ranks * int64(p.cols) * 4
	return p.pieces(InboxBytes/(parts+row), func(p commP) error {
		return b.exchange(&piece{entry: "reduce_rows", threads: rowPairs * threads, units: int(p.m), clumps: 1,
			phases: []int{sendPhase, sumPhase, receivePhase}, waiting: rowBlocks, long: 4}, p)
	})
}

// pieces calls f with parts of the call's rows, as few as an inbox of so many rows
// takes and about the same of each, as all blocks of a launch should have as many.
func (p *commP) pieces(rows int64, f func(commP) error) error {
	if rows < 1 {
		return fmt.Errorf("%w: rows of %d values are too long for the ranks' inboxes", kernels.ErrKernel, p.n)
	}
	parts := max(1, (int64(p.m)+rows-1)/rows)
	rows = min(rows, round((int64(p.m)+parts-1)/parts, rowBlocks))
	for from := int32(0); from < p.m; from += int32(rows) {
		q := *p
		q.m, q.row0 = int32(min(rows, int64(p.m-from))), from
		at := uintptr(from) * 4
		q.x, q.y, q.res = p.x+at*uintptr(p.ldx), p.y+at*uintptr(p.ldy), p.res+at*uintptr(p.ldr)
		if err := f(q); err != nil {
			return err
		}
	}
	return nil
}

// reduceByNCCL lets NCCL move what each rank sums, and the sums: the ranks' own
// rows of p, whose rows must be dense. NCCL's own sums are in another order.
func (b *builder) reduceByNCCL(p *commP, threads uint32) error {
	ranks := int64(p.ranks)
	rows := (int64(p.m) + ranks - 1) / ranks // of each rank, fewer of the last
	of := func(r int64) int64 { return max(0, min(rows, int64(p.m)-r*rows)) * int64(p.n) }
	part := uintptr(rows*int64(p.n)) * 4
	parts := b.work(ScratchComm, 2*ranks*int64(part))
	sums := parts + uintptr(ranks)*part
	mine := of(int64(p.rank))
	var ms []Message
	for r := range ranks {
		if n := of(r); n > 0 {
			ms = append(ms, Message{Kind: Send, Peer: int(r), From: p.x + uintptr(r)*part, Values: n})
		}
		if mine > 0 {
			ms = append(ms, Message{Kind: Receive, Peer: int(r), To: parts + uintptr(r*mine)*4, Values: mine})
		}
	}
	if err := b.exchangeByNCCL(ms); err != nil {
		return err
	}
	if mine > 0 {
		s := &sumP{parts: parts, y: sums + uintptr(p.rank)*part, at: p.at, n: mine, ranks: p.ranks}
		if err := b.do("sum_parts", grid1(uint32(min(1024, (mine/4+255)/256))), 256, 0, s); err != nil {
			return err
		}
	}
	all := Message{Kind: Gather, From: sums + uintptr(p.rank)*part, To: sums, Values: int64(part) / 4}
	if err := b.exchangeByNCCL([]Message{all}); err != nil {
		return err
	}
	q := *p
	q.x, q.ldx, q.ranks, q.phases, q.early = sums, p.n, 1, receivePhase, 1
	return b.do("reduce_rows", grid1(p.m), rowPairs*threads, 0, &q)
}

// exchangeByNCCL adds what NCCL is to move at once.
func (b *builder) exchangeByNCCL(ms []Message) error {
	if err := b.flush(); err != nil {
		return err
	}
	b.Launches = append(b.Launches, Launch{By: b.by, Calls: b.of, Messages: ms})
	return nil
}

// gather fills in what a gather of columns has.
func (b *builder) gather(c *call, p *commP) {
	each := c.Dims.N / p.ranks
	p.m, p.n, p.cols = c.Dims.M, c.Dims.N, int32(round(int64(each), 4))
	p.x, p.y, p.ldx, p.ldy = b.ptr(c.Args[0]), b.ptr(c.Args[1]), ld(c.Args[0], each), ld(c.Args[1], c.Dims.N)
	p.wide = b.aligned(map[kernels.Buffer]int32{c.Args[0]: p.ldx, c.Args[1]: p.ldy | each})
}

// planGather puts the ranks' columns side by side.
func planGather(b *builder, c *call) error {
	ranks := int32(b.t.Ranks)
	if c.Dims.Ranks != ranks || c.Dims.N%ranks != 0 {
		return fmt.Errorf("%w: %d columns of %d ranks in a group of %d", kernels.ErrKernel, c.Dims.N,
			c.Dims.Ranks, ranks)
	}
	if ranks == 1 {
		p := &commP{at: c.at, ranks: 1, early: 1, epoch: b.m.Group.Epoch + 8}
		b.gather(c, p)
		return b.do("gather_columns", grid1(ceil(p.m*p.cols/4, 256)), 256, 0, p)
	}
	p := b.comm(c.at)
	b.gather(c, &p)
	rows := InboxBytes / (4 * int64(ranks*p.cols))
	return p.pieces(rows, func(p commP) error {
		return b.exchange(&piece{entry: "gather_columns", threads: 256, units: int(ceil(p.m*p.cols/4, 256)), clumps: 1,
			phases: []int{sendPhase, receivePhase}, waiting: 256, long: 8}, p)
	})
}
