//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"glmbatch/kernels"

	"gorgonia.org/cu"
)

const (
	upWarps    = 16
	downWarps  = 15 // of experts_down_fp4_all
	fewestRows = 2  // up to so many, making no list is faster
)

// chip is what the launchers ask of a GPU.
func (d *device) chip() (blocks, shared int32, err error) {
	n, err := cu.Device(d.gpu).Attribute(cu.MultiprocessorCount)
	if err != nil {
		return 0, 0, err
	}
	s, err := cu.Device(d.gpu).Attribute(maxSharedOptin)
	return int32(n), int32(s), err
}

// last is the launch in front on a stream. Kernels that let the next one start only
// after their own wait, as moe_route and moe_up do, leave all before them done.
type last struct {
	on       cu.Stream
	launches int
	experts  kernels.Buffer // what they chose or used
}

func (d *device) leads(experts kernels.Buffer) {
	if !d.dry { // which launches nothing
		d.last = last{d.stream, d.stats.Launches, experts}
	}
}

// follows reports whether such a launch with the same experts is in front of the
// next one, which then may read what was there before it at once.
func (d *device) follows(experts kernels.Buffer) int32 {
	if d.last == (last{d.stream, d.stats.Launches, experts}) {
		return 1
	}
	return 0
}

func align16(n int32) int32 { return (n + 15) / 16 * 16 }

// lists is the bytes of the lists of n groups, made is what making them takes,
// and staged a row of activations.
func (a *moeP) lists(n int32) int32 { return align16(128 + n*(2+a.tokens)*4) }
func (a *moeP) made() int32 {
	pairs := a.m * a.topk
	return 8*pairs + 8*a.groups + (pairs+31)/32*a.groups*2 + 16
}
func (a *moeP) staged(rows int32) int32 { return max(rows*2*(a.kt()*128+64), a.made()) }
func (a *moeP) kt() int32               { return (a.k + 63) / 64 }

// most is how many groups there can be.
func (a *moeP) most() int32 {
	pairs := a.m * a.topk
	return min(pairs, a.groups+pairs/a.tokens)
}

// downAll prepares a launch of experts_down_fp4_all with the shared memory that it
// says, or finds that the kernel does not take the call. The first expert of each warp
// needs a place in the ring: until all have one, none gives its own away.
func (a *moeP) downAll(limit int32) (shared int32, ok bool) {
	const slots, experts, most, rows, item, x, y = 18, 256, 96, 4, 3 * 4 * 576, 4*128 + 64, 3*16 + 4
	pairs, words := a.m*a.topk, (a.m+31)/32
	shared = downWarps*2*rows*x + slots*12 + 8 + most*4 + experts*20 + experts*9/8*words*4 + pairs*16 + a.m*y*4
	shared = (shared + 127) / 128 * 128
	a.slots = min(slots, pairs, (limit-shared)/item)
	return shared + a.slots*item, a.slots >= min(pairs, downWarps) && a.k == 256 && a.n%96 == 0 && a.groups <= experts && a.m <= most && pairs <= 2*32*downWarps &&
		(a.ldx|a.ldy)%4 == 0 && (a.x|a.y)%16 == 0
}

// chunks calls f with the call's rows, or with as many at a time as f can take.
func (a *moeP) chunks(f func(moeP) (bool, error)) error {
	for rows := a.m; rows > 0; rows /= 2 {
		for from := int32(0); ; from += rows {
			if from >= a.m {
				return nil
			}
			b, pairs := *a, uintptr(from*a.topk)
			b.m = min(rows, a.m-from)
			b.x, b.experts = a.x+pairs*uintptr(a.ldx)*4, a.experts+pairs*4
			if a.byPair == 0 {
				b.x = a.x + uintptr(from)*uintptr(a.ldx)*4
			}
			b.y = a.y + uintptr(from)*uintptr(a.ldy)*4
			b.weights = a.weights + uintptr(from)*uintptr(a.ldw)*4
			if fits, err := f(b); err != nil {
				return err
			} else if !fits {
				break
			}
		}
	}
	return fmt.Errorf("%w: experts of %dx%d on a GPU with little shared memory", kernels.ErrKernel, a.n, a.k)
}

const (
	ringK       = 6144
	ringThreads = 640    // and experts, at most
	ringBytes   = 190704 // of shared memory, besides its list and what making that takes
)

// inRing is the shared memory of experts_up_fp4_6144, see src/experts_ring.cu; 0: the
// call is not one for it.
func (a *moeP) inRing() int32 {
	chunks := int64(ceil(a.m*a.topk, 32))
	bytes := ringBytes + int64(a.slots)*(2+4)*4 + (chunks+1)*int64(a.groups)*4 + ringThreads/32*4
	if a.k != ringK || a.m == 1 || a.m >= 1<<15 || a.groups > ringThreads || bytes > math.MaxInt32 {
		return 0
	}
	return int32(bytes)
}

// spread is how many groups a block's part of all groups and tiles may have.
func (a *moeP) spread(blocks int32) int32 {
	tiles := a.n / 16
	return int32(ceil(int32(ceil(a.most()*tiles, blocks)), tiles)) + 1
}

// Of an opening, as in src/opening.cuh.
const (
	openingBytes = 28688
	openingRows  = 8
	openingTiles = 3 // of the shared expert's down product, of a block
	openingK     = 256
)

// opens reports whether moe_up, call c, can choose its experts itself, as call r says.
func opens(r, c *kernels.Call) bool {
	return r.Kernel == "moe_route" && c.Kernel == "moe_up_fp4" && segmentsOf(r) > 0 && r.Args[2] == c.Args[2] && r.Dims.M == c.Dims.M && c.Dims.M <= openingRows &&
		(c.Dims.M == 1 || c.Dims.K == ringK)
}

// opening takes the calls that moe_up, in so many blocks, can open with out of the
// bundle, and reports whether it opens.
func (d *device) opening(u *upP, blocks int32) bool {
	taken := func(s segment) bool {
		switch s.op {
		case opRoute:
			r := (*routeP)(unsafe.Pointer(&s.params))
			if r.experts == u.moe.experts && r.m == u.moe.m {
				u.opening.route = *r
				return true
			}
		case opProductBF16:
			p := (*productP)(unsafe.Pointer(&s.params))
			if p.act != 0 && p.k == openingK && p.share == 1 && p.heads == 1 && p.m == u.moe.m && p.tiles <= openingTiles*blocks {
				u.opening.shared = *p
				return true
			}
		}
		return false
	}
	route := func(s segment) bool { return s.op == opRoute && taken(s) }
	if u.moe.m > openingRows || !slices.ContainsFunc(d.bundle, route) {
		return false
	}
	d.bundle = slices.DeleteFunc(d.bundle, taken)
	return true
}

// upExperts launches moe_up with FP4 weights.
func (d *device) upExperts(a moeP, experts kernels.Buffer) error {
	blocks, limit, err := d.chip()
	if err != nil {
		return err
	}
	early := d.follows(experts)
	a.ldy = a.topk * a.n
	return a.chunks(func(a moeP) (bool, error) {
		a.early, early = early, 0
		launch := func(name string, grid, threads, shared int32) (bool, error) {
			u := upP{moe: a}
			if (a.m == 1 || threads == ringThreads) && shared+openingBytes <= limit && d.opening(&u, grid) {
				shared += openingBytes
				if a.m == 1 {
					grid = min(blocks, grid+1) // another writes what was chosen
				}
			}
			if shared > limit {
				return false, nil
			}
			err := d.do(name, [3]uint32{uint32(grid), 1, 1}, uint32(threads), uint32(shared), unsafe.Pointer(&u))
			d.leads(experts)
			return true, err
		}
		a.tokens = 4
		grid := min(blocks, a.most()*a.n/16)
		a.slots = (a.spread(grid) + 1) / 2 * 2 // so that what is behind the list is at a multiple of 16 bytes
		if shared := a.inRing(); shared > 0 && d.warpgroups {
			if done, err := launch("experts_up_fp4_6144", grid, ringThreads, shared); done {
				return true, err
			}
		}
		name := "experts_up_fp4_1"
		if a.kt()%(2*upWarps) == 0 {
			name = "experts_up_fp4_2"
		}
		for a.tokens = min(a.m, 4); a.tokens > 0; a.tokens-- {
			grid := min(blocks, a.most()*a.n/16)
			a.slots = a.spread(grid)
			if done, err := launch(name, grid, upWarps*32, 2*upWarps*32*4*a.tokens+a.lists(a.slots)+a.staged(a.tokens)); done {
				return true, err
			}
		}
		return false, nil
	})
}

// downExperts launches moe_down with FP4 weights.
func (d *device) downExperts(a moeP, experts kernels.Buffer) error {
	blocks, limit, err := d.chip()
	if err != nil {
		return err
	}
	early, tiles := d.follows(experts), int32(ceil(a.n, 16))
	name, per := "experts_down_fp4_0_1", int32(ceil(tiles, blocks))
	switch {
	case a.kt() == 4:
		name = "experts_down_fp4_256_2"
	case a.kt()%2 == 0:
		name = "experts_down_fp4_0_2"
	}
	a.byPair = 1
	return a.chunks(func(a moeP) (bool, error) {
		a.early, early = early, 0
		pairs := a.m * a.topk
		if shared, ok := a.downAll(limit); ok && a.m > fewestRows {
			return true, d.do("experts_down_fp4_all", [3]uint32{uint32(tiles / 3), 1, 1}, downWarps*32, uint32(shared), unsafe.Pointer(&a))
		}
		for a.tokens = min(a.m, 4); a.tokens > 0; a.tokens-- {
			parts := align16(pairs * (per*64 + 4))
			shared := a.lists(a.most()) + a.staged(upWarps*a.tokens)
			a.scratch = 0
			if pairs > 512 || parts+shared > limit {
				a.scratch, parts = d.work(scratchWork, int64(pairs)*int64(a.n)*4), 0
			}
			if parts+shared > limit {
				continue
			}
			err := d.do(name, [3]uint32{ceil(tiles, per), 1, 1}, upWarps*32, uint32(parts+shared), unsafe.Pointer(&a))
			if err == nil && a.scratch != 0 {
				err = d.do("moe_combine", [3]uint32{ceil(a.n, 256), uint32(a.m), 1}, 256, 0, unsafe.Pointer(&a))
			}
			return true, err
		}
		return false, nil
	})
}
