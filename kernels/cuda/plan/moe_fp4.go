package plan

import (
	"fmt"

	"glmbatch/kernels"
)

// Experts of FP4 weights, lists of their rows made by each block: src/moe/moe_up_fp4.cu,
// src/moe/moe_down_fp4.cu.

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

// spread is how many groups a block's part of all groups and tiles may have.
func (a *moeP) spread(blocks int32) int32 {
	tiles := a.n / 16
	return int32(ceil(int32(ceil(a.most()*tiles, blocks)), tiles)) + 1
}

// downAll prepares a launch of moe_down_fp4_all with the shared memory that it
// says, or finds that the kernel does not take the call. The first expert of each warp
// needs a place in the ring: until all have one, none gives its own away.
func (a *moeP) downAll(limit int32) (shared int32, ok bool) {
	pairs, words := a.m*a.topk, (a.m+31)/32
	shared = downAllThere + downAllExperts*9/8*words*4 + pairs*16 + a.m*downAllY*4
	shared = (shared + 127) / 128 * 128
	a.slots = min(downAllSlots, pairs, (limit-shared)/downAllItem)
	return shared + a.slots*downAllItem, a.slots >= min(pairs, downAllWarps) && a.k == 256 && a.n%96 == 0 &&
		a.groups <= downAllExperts && a.m <= downAllRows && pairs <= 2*32*downAllWarps &&
		(a.ldx|a.ldy)%4 == 0 && (a.x|a.y)%16 == 0
}

// chunks calls f with the call's rows, or with as many at a time as f can take.
func (a *moeP) chunks(f func(moeP) (bool, error)) error {
	for rows := a.m; rows > 0; rows /= 2 {
		for from := int32(0); ; from += rows {
			if from >= a.m {
				return nil
			}
			part, pairs := *a, uintptr(from*a.topk)
			part.m = min(rows, a.m-from)
			part.x, part.experts = a.x+pairs*uintptr(a.ldx)*4, a.experts+pairs*4
			if a.byPair == 0 {
				part.x = a.x + uintptr(from)*uintptr(a.ldx)*4
			}
			part.y = a.y + uintptr(from)*uintptr(a.ldy)*4
			part.weights = a.weights + uintptr(from)*uintptr(a.ldw)*4
			if fits, err := f(part); err != nil {
				return err
			} else if !fits {
				break
			}
		}
	}
	return fmt.Errorf("%w: experts of %dx%d on a GPU with little shared memory", kernels.ErrKernel, a.n, a.k)
}

// upShape is a launch of moe_up whose blocks make their lists.
type upShape struct {
	entry                 string
	grid, threads, shared int32
	prologue              bool // it can choose its experts itself
}

// upShapes are the launches that a call could be, the fastest first: of up to 4 rows of an
// expert at a time. a has a shape's rows and slots while it is looked at.
func (a *moeP) upShapes(blocks int32, look func(upShape) (bool, error)) (bool, error) {
	entry := "moe_up_fp4_1"
	if a.kt()%(2*upSlices) == 0 {
		entry = "moe_up_fp4_2"
	}
	for a.tokens = min(a.m, 4); a.tokens > 0; a.tokens-- {
		grid := min(blocks, a.most()*a.n/16)
		a.slots = a.spread(grid)
		if done, err := look(upShape{entry, grid, upSlices * 32, 2*upSlices*32*4*a.tokens + a.lists(a.slots) +
			a.staged(a.tokens), a.m == 1}); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

func planUpFP4(b *builder, c *call) error { return b.upExperts(c, nil) }

// upExperts plans moe_up with FP4 weights. first looks at another shape before; nil: there
// is none.
func (b *builder) upExperts(c *call, first func(a *moeP, blocks int32) (s upShape, ok bool)) error {
	a, experts := &c.moe, c.Args[2]
	early := b.follows(experts)
	a.ldy = a.topk * a.n
	return a.chunks(func(a moeP) (bool, error) {
		a.early, early = early, 0
		add := func(s upShape) (bool, error) {
			u := &moeUpP{moe: a}
			if s.prologue && s.shared+prologueBytes <= b.t.Shared && b.prologue(u, s.grid) {
				s.shared += prologueBytes
				if a.m == 1 {
					s.grid = min(b.t.SMs, s.grid+1) // another writes what was chosen
				}
			}
			if s.shared > b.t.Shared {
				return false, nil
			}
			err := b.do(s.entry, grid1(s.grid), uint32(s.threads), uint32(s.shared), u)
			b.lead(experts)
			return true, err
		}
		if first != nil {
			if s, ok := first(&a, b.t.SMs); ok {
				if done, err := add(s); done || err != nil {
					return done, err
				}
			}
		}
		return a.upShapes(b.t.SMs, add)
	})
}

// planDownFP4 plans moe_down with FP4 weights.
func planDownFP4(b *builder, c *call) error {
	a := &c.moe
	early, tiles := b.follows(c.Args[2]), int32(ceil(a.n, 16))
	entry, per := "moe_down_fp4_0_1", int32(ceil(tiles, b.t.SMs))
	switch {
	case a.kt() == 4:
		entry = "moe_down_fp4_256_2"
	case a.kt()%2 == 0:
		entry = "moe_down_fp4_0_2"
	}
	a.byPair = 1
	return a.chunks(func(a moeP) (bool, error) {
		a.early, early = early, 0
		pairs := a.m * a.topk
		if shared, ok := a.downAll(b.t.Shared); ok && a.m > fewestRows {
			return true, b.do("moe_down_fp4_all", grid1(tiles/3), downAllWarps*32, uint32(shared), &a)
		}
		for a.tokens = min(a.m, 4); a.tokens > 0; a.tokens-- {
			parts := align16(pairs * (per*64 + 4))
			shared := a.lists(a.most()) + a.staged(upSlices*a.tokens)
			a.scratch = 0
			if pairs > 512 || parts+shared > b.t.Shared {
				a.scratch, parts = b.work(ScratchWork, int64(pairs)*int64(a.n)*4), 0
			}
			if parts+shared > b.t.Shared {
				continue
			}
			err := b.do(entry, grid1(ceil(tiles, per)), upSlices*32, uint32(parts+shared), &a)
			if err == nil && a.scratch != 0 {
				err = b.combine(&a)
			}
			return true, err
		}
		return false, nil
	})
}
