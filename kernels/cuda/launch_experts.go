//go:build cuda

package cuda

import (
	"unsafe"

	"glmbatch/kernels"

	"gorgonia.org/cu"
)

const (
	fewPairs = 512 // (token, choice) pairs that src/experts.cu takes
	upWarps  = 16
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

func (d *device) leads(experts kernels.Buffer) { d.last = last{d.on, d.stats.Launches, experts} }

// follows reports whether such a launch with the same experts is in front of the
// next one, which then may read what was there before it at once.
func (d *device) follows(experts kernels.Buffer) int32 {
	if !d.late && d.last == (last{d.on, d.stats.Launches, experts}) {
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
	return 8*pairs + 8*a.groups + (pairs+31)/32*a.groups + 16
}
func (a *moeP) staged(rows int32) int32 { return max(rows*(a.kt()*256+64), a.made()) }
func (a *moeP) kt() int32               { return (a.k + 63) / 64 }

// most is how many groups there can be.
func (a *moeP) most() int32 {
	pairs := a.m * a.topk
	return min(pairs, a.groups+pairs/a.tokens)
}

// upFew launches moe_up for few rows an expert. It reports whether it could.
func (d *device) upFew(a moeP, experts kernels.Buffer) (bool, error) {
	blocks, limit, err := d.chip()
	if err != nil || a.m*a.topk > fewPairs {
		return false, err
	}
	a.early = d.follows(experts)
	name := "experts_up_fp4_1"
	if a.kt()%(2*upWarps) == 0 {
		name = "experts_up_fp4_2"
	}
	tiles := a.n / 16
	for a.tokens = min(a.m, 4); a.tokens > 0; a.tokens-- {
		grid := min(blocks, a.most()*tiles)
		a.slots = ((a.most()*tiles+grid-1)/grid+tiles-1)/tiles + 1 // groups of a block
		shared := 2*upWarps*32*4*a.tokens + a.lists(a.slots) + a.staged(a.tokens)
		if shared <= limit {
			err := d.do(name, [3]uint32{uint32(grid), 1, 1}, upWarps*32, uint32(shared), unsafe.Pointer(&a))
			d.leads(experts)
			return true, err
		}
	}
	return false, nil
}

// downFew launches moe_down for few rows an expert. It reports whether it could.
func (d *device) downFew(a moeP, experts kernels.Buffer) (bool, error) {
	blocks, limit, err := d.chip()
	pairs := a.m * a.topk
	if err != nil || pairs > fewPairs {
		return false, err
	}
	a.early = d.follows(experts)
	name := "experts_down_fp4_1"
	if a.kt()%2 == 0 {
		name = "experts_down_fp4_2"
	}
	tiles := int32(ceil(a.n, 16))
	per := int32(ceil(tiles, blocks))
	for a.tokens = min(a.m, 4); a.tokens > 0; a.tokens-- {
		shared := pairs*per*64 + a.lists(a.most()) + a.staged(16*a.tokens)
		if shared <= limit {
			return true, d.do(name, [3]uint32{ceil(tiles, per), 1, 1}, 512, uint32(shared), unsafe.Pointer(&a))
		}
	}
	return false, nil
}
