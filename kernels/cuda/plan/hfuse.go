package plan

import (
	"slices"
	"unsafe"

	"glmbatch/kernels"
)

// op is what the blocks of a segment do: see src/gemm/hfuse.h.
type op int32

var opNames = [...]string{"gemv_bf16", "gemv_fp8", "norm", "latent", "key", "rotary", "silu", "route"}

const (
	segmentWords = len(hfuseP{}.params[0])
	// gemvRows is how many rows products in horizontal fusions have at most.
	gemvRows = 8
	// gatedColumns are the most of rows whose silu_mul products can do: they keep them
	// in shared memory.
	gatedColumns = 512
)

// segment is a small call, or a part of one, that shares a launch with others: one of
// gemv, rows and route is set.
type segment struct {
	op      op
	blocks  uint32
	cluster uint32 // blocks that work together: a power of two
	shared  uint32 // memory of a block, bytes
	many    bool   // a product of more than one row
	steps   int32  // that a warp has of the k of such a product, if that is one block's and x is there; else 0

	gemv  *gemvP
	rows  *rowwiseP
	route *routeP
}

// apart reports whether both are products, one of one row and the other of more,
// which the kernel cannot do at once.
func (s *segment) apart(o segment) bool {
	return s.gemv != nil && o.gemv != nil && s.many != o.many
}

// words are the parameters as the kernel has them.
func (s *segment) words() (w [segmentWords]uint64) {
	switch {
	case s.gemv != nil:
		*(*gemvP)(unsafe.Pointer(&w)) = *s.gemv
	case s.rows != nil:
		*(*rowwiseP)(unsafe.Pointer(&w)) = *s.rows
	case s.route != nil:
		*(*routeP)(unsafe.Pointer(&w)) = *s.route
	}
	return w
}

// segmentsOf is how many segments a call takes; 0: it has launches of its own.
func segmentsOf(c *kernels.Call) int {
	k := kernels.Lookup(c.Kernel)
	switch k.Op {
	case "moe_route":
		if c.Dims.M > gemvRows || c.Dims.Groups > inRegisters {
			return 0
		}
		return 1
	case "rms_norm", "silu_mul", "latent_write", "index_write":
		return 1
	case "gemm":
		if k.Format != kernels.BF16 && k.Format != kernels.FP8 || multiTile(c) {
			return 0
		}
	case "v_up", "q_absorb":
		if k.Format != kernels.BF16 {
			return 0
		}
	default:
		return 0
	}
	if c.Dims.M > gemvRows || asksExact(c) || // many rows; inputs that are not rounded
		// rows that do not start at 16 bytes
		(c.Args[1].Offset|int64(c.Args[1].Pitch))%16 != 0 || c.Dims.K%4 != 0 || c.Dims.Rope%4 != 0 {
		return 0
	}
	if k.Op == "q_absorb" {
		return 2
	}
	return 1
}

// segment adds to the horizontal fusion that is being made.
func (b *builder) segment(s segment) error {
	if s.blocks == 0 {
		return nil
	}
	if len(b.segments) == maxSegments || slices.ContainsFunc(b.segments, s.apart) {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.segments = append(b.segments, s)
	return nil
}

// ofRows adds a segment that works on whole rows.
func (b *builder) ofRows(o op, blocks uint32, a *rowwiseP) error {
	return b.segment(segment{op: o, blocks: blocks, cluster: 1, rows: a})
}

// takeSilu takes the silu_mul that leaves its output at x out of the horizontal fusion, if it is there
// and also holds; nil: it is not.
func (b *builder) takeSilu(x uintptr, holds func(*rowwiseP) bool) *rowwiseP {
	for i := range b.segments {
		if s := b.segments[i].rows; b.segments[i].op == opSilu && s.y == x && (holds == nil || holds(s)) {
			b.segments = slices.Delete(b.segments, i, i+1)
			return s
		}
	}
	return nil
}

// flush launches what was put together.
func (b *builder) flush() error {
	if len(b.clusters) > 0 {
		if err := b.flushClusters(); err != nil {
			return err
		}
	}
	if len(b.persistent.of) > 0 {
		if err := b.flushPersistent(); err != nil {
			return err
		}
	}
	if len(b.segments) == 0 {
		return nil
	}
	by := b.by
	defer func() { b.by = by }()
	b.by = "horizontal fusion"
	l := Launch{Entry: "hfuse_1", Threads: 256, Cluster: 1}
	if slices.ContainsFunc(b.segments, func(s segment) bool { return s.many }) {
		l.Entry = "hfuse_8"
	}
	switch {
	case shortK(b.segments):
		l.Entry = "hfuse_short_k"
	case prefetched(b.segments, uint32(b.t.SMs), uint32(b.t.Shared)):
		l.Entry, l.Threads = "hfuse_prefetch", prefetchThreads
	}
	for _, s := range b.segments {
		l.Cluster, l.Shared = max(l.Cluster, s.cluster), max(l.Shared, s.shared)
	}
	p := &hfuseP{}
	for i := range p.until {
		p.until[i] = 1<<31 - 1
	}
	// products last: their blocks may be more than run at once
	slices.SortStableFunc(b.segments, func(a, b segment) int { return int(b.op) - int(a.op) })
	until := uint32(0)
	for i, s := range b.segments {
		until += (s.blocks + l.Cluster - 1) / l.Cluster * l.Cluster // whole clusters
		p.op[i], p.until[i], p.blocks[i], p.params[i] = int32(s.op), int32(until), int32(s.blocks), s.words()
	}
	b.segments = b.segments[:0]
	l.Grid, l.Params = grid1(until), p
	return b.add(l)
}
