package plan

import (
	"fmt"

	"glmbatch/kernels"
)

// pageRow is the row stride of a page table.
func pageRow(b kernels.Buffer) int32 {
	if b.Pitch != 0 {
		return b.Pitch / 4
	}
	return int32(b.Len / 4)
}

// latentWay is a kernel for entries of 512 latents and 64 rotary values: blocks of eight
// heads of a row, threads and shared memory of a block, as its source has them.
type latentWay struct {
	entry                   string
	blocks, threads, shared uint32
	when                    func(rows uint32, reach int32, t *Target) bool // nil: always
}

// persistent is whether it is one of src/attention/mla_fp8_persistent.cu, whose blocks have rows one after
// the other.
func (w *latentWay) persistent() bool { return w.shared == mlaPersistentShared }

// latentBF16 and latentFP8 are the kernels by the format of entries, for so many rows (of
// eight heads) of at most reach positions: the first that holds is the fastest. Those of
// FP8 entries give the same bits. Where ranks share the GPU blocks of theirs may wait for
// this rank's, and clusters might not find enough multiprocessors beside them.
var (
	latentBF16 = []latentWay{{"mla_attend_bf16_cluster_16", mlaBf16ClusterBlocks, mlaBf16ClusterThreads,
		mlaBf16ClusterShared, nil}}
	latentFP8 = []latentWay{
		{"mla_attend_fp8_persistent_1", 1, mlaPersistentThreads, mlaPersistentShared,
			func(_ uint32, reach int32, t *Target) bool { return t.crowded() && reach <= mlaPersistentReach }},
		// An H200 has seven clusters of 16 multiprocessors.
		{"mla_attend_fp8_cluster_16", 16, mlaFp8ClusterThreads, mlaFp8Cluster16Shared,
			func(rows uint32, _ int32, _ *Target) bool { return rows <= 7 }},
		{"mla_attend_fp8_cluster_8", 8, 2 * mlaFp8ClusterThreads, mlaFp8Cluster8Shared,
			func(rows uint32, reach int32, _ *Target) bool { return rows <= 14 || reach > mlaPersistentReach }},
		{"mla_attend_fp8_cluster_16", 16, mlaFp8ClusterThreads, mlaFp8Cluster16Shared,
			func(rows uint32, _ int32, _ *Target) bool { return rows <= 21 }},
		// All of its blocks run at once.
		{"mla_attend_fp8_persistent_4", 4, mlaPersistentThreads, mlaPersistentShared,
			func(rows uint32, _ int32, t *Target) bool { return 4*rows <= uint32(t.SMs) }},
		// A cluster has one row only.
		{"mla_attend_fp8_persistent_2", 2, mlaPersistentThreads, mlaPersistentShared,
			func(rows uint32, _ int32, t *Target) bool { return 2*rows <= uint32(t.SMs) }},
		{"mla_attend_fp8_persistent_1", 1, mlaPersistentThreads, mlaPersistentShared, nil},
	}
)

// latentWayOf is the fastest of them.
func latentWayOf(f kernels.Format, rows uint32, reach int32, t *Target) *latentWay {
	ways := latentFP8
	if f == kernels.BF16 {
		ways = latentBF16
	}
	for i := range ways {
		if w := &ways[i]; w.when == nil || w.when(rows, reach, t) {
			return w
		}
	}
	return nil // never: the last one always holds
}

// isLatent reports whether a call is for those kernels: they need a multiprocessor's
// whole shared memory, and GPUs with less have no clusters of 16 blocks either.
func isLatent(b *builder, c *call) bool {
	return b.t.Shared >= mlaPersistentShared && c.kernel.Format != kernels.F32 && c.Dims.K == 512 && c.Dims.Rope == 64
}

func planLatent(b *builder, c *call) error {
	a, x := &c.attend, c.Dims
	a.q, a.y, a.seq, a.pos, a.m = b.ptr(c.Args[0]), b.ptr(c.Args[6]), b.ptr(c.Args[3]), b.ptr(c.Args[4]), x.M
	if x.TopK > 0 {
		a.sel = b.ptr(c.Args[5])
	}
	groups := ceil(a.heads, 8)
	rows := uint32(a.m) * groups
	w := latentWayOf(c.kernel.Format, rows, c.reach, b.t)
	grid := [3]uint32{w.blocks, uint32(a.m), groups}
	if w.persistent() { // one after the other
		grid = grid1(min(w.blocks*rows, uint32(b.t.SMs)))
	}
	if w.persistent() && w.blocks > 2 {
		// Ones: kAbsent of src/attention/mla_512_64.cuh, which kernels find and leave there.
		a.part = b.constant(Constant{"absent", int64(b.t.SMs) * mlaPersistentLeft, 0xff})
	}
	return b.do(w.entry, grid, w.threads, w.shared, a)
}

// attendRows bounds the rows whose splits are in scratch memory at once.
const attendRows = 256

// resolveAttend fills in what all kernels of attention have.
func resolveAttend(b *builder, c *call) error {
	x := c.Dims
	if x.K%16 != 0 || x.Rope%16 != 0 {
		return fmt.Errorf("%w: latents of %d+%d values: multiples of 16", kernels.ErrKernel, x.K, x.Rope)
	}
	c.attend = attendP{cache: b.ptr(c.Args[1]), pages: b.ptr(c.Args[2]), at: c.at, k: x.K, nrope: x.Rope,
		heads:   x.Heads,
		pagesLd: pageRow(c.Args[2]),
		ldq:     ld(c.Args[0], x.Heads*(x.K+x.Rope)), ldy: ld(c.Args[6], x.Heads*x.K), scale: c.Scalars[0]}
	c.reach = c.attend.pagesLd * kernels.PageTokens
	if x.TopK > 0 {
		c.attend.topk, c.reach = x.TopK, x.TopK
	} else if x.N > 0 {
		c.reach = min(c.reach, x.N)
	}
	return nil
}

// planSplits is src/attention/mla_split_kv.cu: splits of all positions, then their sums.
func planSplits(b *builder, c *call) error {
	x, f := c.Dims, c.kernel.Format
	c.attend.splits = int32(ceil(c.reach, mlaTile))
	rows := min(x.M, attendRows)
	c.attend.part = b.work(ScratchWork, int64(rows)*int64(c.attend.splits)*int64(x.Heads)*int64(x.K+2)*4)
	blocks, width := (x.K+127)/128, x.K+x.Rope
	const t = mlaTile
	shared := uint32(t*(width+8)*2 + 4*t*8*4 + 8*(t+8)*4 + t*blocks*4 + t*4)
	if f == kernels.F32 {
		shared = uint32(t*(width+1)*4 + 8*t*4 + t*4)
	}
	for m := int32(0); m < x.M; m += rows {
		a, off := c.attend, uintptr(m)*4
		a.m = min(rows, x.M-m)
		a.q, a.y = b.ptr(c.Args[0])+off*uintptr(a.ldq), b.ptr(c.Args[6])+off*uintptr(a.ldy)
		a.seq, a.pos = b.ptr(c.Args[3])+off, b.ptr(c.Args[4])+off
		if x.TopK > 0 {
			a.sel = b.ptr(c.Args[5]) + off*uintptr(x.TopK)
		}
		if err := b.do("mla_attend_"+string(f), [3]uint32{uint32(a.splits), uint32(a.m), ceil(x.Heads, 8)}, 256, shared,
			&a); err != nil {
			return err
		}
		if err := b.do("mla_combine", [3]uint32{uint32(x.Heads), ceil(x.K, 64), uint32(a.m)}, 256, uint32(a.splits)*4,
			&a); err != nil {
			return err
		}
	}
	return nil
}

func planCast(b *builder, c *call) error {
	x := c.Dims
	entry, wide := int64(kernels.LatentEntry(kernels.FP8, int(x.K), int(x.Rope))), int64(x.K+x.Rope)
	if wide%8 != 0 || c.Args[0].Len/entry < x.Slots || c.Args[1].Len/(2*wide) < x.Slots {
		return fmt.Errorf("%w: %d entries of %d values do not fit %d and %d bytes", kernels.ErrKernel, x.Slots, wide,
			c.Args[0].Len, c.Args[1].Len)
	}
	blocks := min((x.Slots*wide/8+255)/256, 132*8) // as many as run at once: each stamps the call's end
	return b.do("kv_cast", grid1(uint32(blocks)), 256, 0,
		&castP{cache: b.ptr(c.Args[0]), out: b.ptr(c.Args[1]), at: c.at,
			slots: x.Slots, k: x.K, nrope: x.Rope})
}

// cacheFormat is a cache's number format as the kernels count them.
var cacheFormat = map[kernels.Format]int32{kernels.F32: 0, kernels.BF16: 1, kernels.FP8: 2}

// planWrite adds entries to a cache, of latents or of the indexer's keys.
func planWrite(b *builder, c *call) error {
	x := c.Dims
	a := &rowwiseP{x: b.ptr(c.Args[0]), w: b.ptr(c.Args[1]), at: c.at, m: x.M, k: x.K, nrope: x.Rope,
		format: cacheFormat[c.kernel.Format], eps: c.Scalars[0]}
	o, rest := op(opKey), c.Args[2:]
	a.ldx = ld(c.Args[0], x.K)
	if c.kernel.Op == "latent_write" {
		o = opLatent
		a.ldx = ld(c.Args[0], x.K+x.Rope)
	} else {
		a.b, rest = b.ptr(c.Args[2]), c.Args[3:]
	}
	if x.K%4 != 0 || x.Rope%4 != 0 || x.K > 512 || x.Rope > 512 {
		return fmt.Errorf("%w: cache entries of %d and %d rotary values: multiples of 4, at most 512",
			kernels.ErrKernel,
			x.K, x.Rope)
	}
	a.rope, a.pos, a.idx, a.cache = b.ptr(rest[0]), b.ptr(rest[1]), b.ptr(rest[2]), b.ptr(rest[3])
	return b.ofRows(o, uint32(x.M), a)
}
