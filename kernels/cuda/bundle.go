//go:build cuda

package cuda

import (
	"slices"
	"strings"
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
)

// op is what the blocks of a segment do, as in src/bundle.cu.
type op int32

const (
	opProductBF16 op = iota
	opProductFP8
	opNorm
	opLatent
	opKey
	opRotary
	opSilu
	opRoute
)

const (
	maxSegments  = 4
	segmentWords = 15
	// bundleRows is how many rows products in bundles have at most.
	bundleRows = 8
	// gatedColumns are the most of rows whose silu_mul products can do: they keep them
	// in shared memory.
	gatedColumns = 512
)

// segment is a small call, or a part of one, that shares a launch with others.
type segment struct {
	op      op
	blocks  uint32
	cluster uint32 // blocks that work together: a power of two
	shared  uint32 // memory of a block, bytes
	many    bool   // a product of more than one row
	steps   int32  // that a warp has of the k of such a product, if that is one block's and x is there; else 0
	params  [segmentWords]uint64
}

type bundleP struct {
	op, until, blocks [maxSegments]int32
	params            [maxSegments][segmentWords]uint64
}

// segmentsOf is how many segments a call takes; 0: it has launches of its own.
func segmentsOf(c *kernels.Call) int {
	name := string(c.Kernel)
	switch {
	case name == "moe_route":
		if c.Dims.M > bundleRows || c.Dims.Groups > inRegisters {
			return 0
		}
		return 1
	case name == "rms_norm" || name == "silu_mul" || strings.HasPrefix(name, "latent_write") || strings.HasPrefix(name, "index_write"):
		return 1
	case name != "gemm_bf16" && name != "gemm_fp8" && name != "v_up_bf16" && name != "q_absorb_bf16",
		c.Dims.M > bundleRows, c.Scalars[0] != 0, // many rows; inputs that are not rounded
		(c.Args[1].Offset|int64(c.Args[1].Pitch))%16 != 0, c.Dims.K%4 != 0, c.Dims.Rope%4 != 0, // rows that do not start at 16 bytes
		isBroad(c):
		return 0
	case name == "q_absorb_bf16":
		return 2
	}
	return 1
}

// headed reports whether a product may be for src/heads.cu.
func headed(c *kernels.Call) bool {
	return c.Kernel == "gemm_bf16" && c.Scalars[0] == 0 && c.Dims.M > fewRows && c.Dims.M <= headsRows
}

// gates reports whether product c can do s, the silu_mul in front of it, itself; else
// s is launched before it.
func gates(s, c *kernels.Call) bool {
	return s.Kernel == "silu_mul" && (c.Kernel == "gemm_bf16" || c.Kernel == "gemm_fp8") && (segmentsOf(c) > 0 || headed(c)) && c.Dims.K <= gatedColumns &&
		s.Args[1] == c.Args[1] && s.Dims.M == c.Dims.M && s.Dims.N == c.Dims.K && (s.Args[0].Offset|int64(s.Args[0].Pitch))%16 == 0
}

// bundles lays the calls on a chain of launches, each of which waits for the one
// before it. A call that takes segments shares the first launch that has room behind
// those that it depends on, or with the silu_mul that it can do itself; what writes
// caches for one row takes longer than its norm, and shares one with a product. A call with
// launches of its own, and q_absorb, comes right before the first call that needs it, or
// with a product of the same rows; index_topk, with the q_absorb that attention needs too.
func bundles(calls []kernels.Call) [][]int {
	var chain [][]int
	var room []int                   // segments left in each launch
	at := make([]int, len(calls))    // launch of each call; -1: none yet
	first := make([]int, len(calls)) // launch that each call may share at the earliest
	open := func(i, segments int) {
		for n := first[i]; n < len(chain) && segments == 0; n++ {
			if len(chain[n]) < teamCalls && teamed(&calls[chain[n][0]], &calls[i]) || len(chain[n]) == 1 && beside(&calls[chain[n][0]], &calls[i]) {
				at[i], chain[n] = n, append(chain[n], i)
				return
			}
		}
		at[i] = len(chain)
		chain, room = append(chain, []int{i}), append(room, segments)
	}
	deps := dependencies{}
	for i := range calls {
		for _, j := range deps.add(i, &calls[i]) {
			if at[j] < 0 {
				open(j, 0)
			}
			if gates(&calls[j], &calls[i]) || opens(&calls[j], &calls[i]) {
				first[i] = max(first[i], at[j])
			} else {
				first[i] = max(first[i], at[j]+1)
			}
		}
		n := segmentsOf(&calls[i])
		if n == 0 || calls[i].Kernel == "q_absorb_bf16" {
			at[i] = -1
			if l := first[i]; l < len(chain) && slices.ContainsFunc(chain[l], func(j int) bool {
				return opens(&calls[j], &calls[i]) || j == chain[l][len(chain[l])-1] && gates(&calls[j], &calls[i])
			}) {
				at[i], chain[l], room[l] = l, append(chain[l], i), 0
			}
			continue
		}
		where := func(product bool) int {
			l := first[i]
			for l < len(chain) && (room[l] < n || product && !multiplies(calls, chain[l])) {
				l++
			}
			return l
		}
		l := where(calls[i].Dims.M == 1 && writesCache(&calls[i]))
		if l == len(chain) {
			l = where(false)
		}
		if l == len(chain) {
			open(i, maxSegments-n)
			continue
		}
		at[i], chain[l] = l, append(chain[l], i)
		room[l] -= n
	}
	for i := range calls {
		if at[i] < 0 {
			open(i, 0)
		}
	}
	return chain
}

func writesCache(c *kernels.Call) bool {
	return strings.HasPrefix(string(c.Kernel), "latent_write") || strings.HasPrefix(string(c.Kernel), "index_write")
}

// multiplies reports whether a launch has a product.
func multiplies(calls []kernels.Call, launch []int) bool {
	return slices.ContainsFunc(launch, func(i int) bool { return strings.HasPrefix(string(calls[i].Kernel), "gemm") })
}

// apart reports whether both are products, one of one row and the other of more,
// which the kernel cannot do at once.
func (s *segment) apart(o segment) bool {
	return s.op <= opProductFP8 && o.op <= opProductFP8 && s.many != o.many
}

// segment adds to the bundle that is being made. p points to the parameters.
func (d *device) segment(s segment, p unsafe.Pointer, bytes uintptr) error {
	if d.dry || s.blocks == 0 {
		return nil
	}
	if len(d.bundle) == maxSegments || slices.ContainsFunc(d.bundle, s.apart) {
		if err := d.flush(); err != nil {
			return err
		}
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&s.params)), unsafe.Sizeof(s.params)), unsafe.Slice((*byte)(p), bytes))
	d.bundle = append(d.bundle, s)
	return nil
}

// gate gives a product the silu_mul whose output it multiplies, if that is in its
// bundle.
func (d *device) gate(p *productP) {
	for i := range d.bundle {
		s := (*rowsP)(unsafe.Pointer(&d.bundle[i].params))
		if d.bundle[i].op == opSilu && s.y == p.x {
			p.x, p.ldx, p.act, p.ldact, p.actAt = s.x, s.ldx, s.y, s.ldy, s.at
			d.bundle = slices.Delete(d.bundle, i, i+1)
			return
		}
	}
}

// flush launches the bundle.
func (d *device) flush() error {
	if len(d.teams) > 0 {
		if err := d.flushTeams(); err != nil {
			return err
		}
	}
	if len(d.bundle) == 0 {
		return nil
	}
	sms, limit, err := d.chip()
	if err != nil {
		return err
	}
	var p bundleP
	cluster, shared, until, name, threads := uint32(1), uint32(0), uint32(0), "bundle_1", uint32(256)
	if slices.ContainsFunc(d.bundle, func(s segment) bool { return s.many }) {
		name = "bundle_8"
	}
	switch {
	case brief(d.bundle):
		name = "bundle_brief"
	case held(d.bundle, uint32(sms), uint32(limit)):
		name, threads = "bundle_held", heldThreads
	}
	for _, s := range d.bundle {
		cluster, shared = max(cluster, s.cluster), max(shared, s.shared)
	}
	for i := range p.until {
		p.until[i] = 1<<31 - 1
	}
	slices.SortStableFunc(d.bundle, func(a, b segment) int { return int(b.op) - int(a.op) }) // products last: their blocks may be more than run at once
	for i, s := range d.bundle {
		until += (s.blocks + cluster - 1) / cluster * cluster // whole clusters
		p.op[i], p.until[i], p.blocks[i], p.params[i] = int32(s.op), int32(until), int32(s.blocks), s.params
	}
	d.bundle = d.bundle[:0]
	return d.enqueue(name, &driver.Launch{Grid: [3]uint32{until, 1, 1}, Threads: threads, Cluster: cluster, Shared: shared, Params: unsafe.Pointer(&p)})
}
