package plan

import (
	"fmt"

	"glmbatch/kernels"
)

// Products of more rows than one fragment holds, by Hopper's warpgroups: src/gemm/sm90_gemm_wgmma.cu. They
// give the bits of src/gemm/gemm.cu. Blocks have all of k, or share it so that all of
// the GPU reads weights (split-k).

// isWgmma reports whether a product is for src/gemm/sm90_gemm_wgmma.cu, and leaves the faster way of each
// kind in the call.
func isWgmma(b *builder, c *call) bool {
	a := &c.gemm
	if a.m <= 8 || a.heads > 1 && a.m <= 32 || a.k%64 != 0 || a.x%16 != 0 || a.ldx%4 != 0 || a.xhead%4 != 0 {
		return false
	}
	p := &c.wgmma
	*p = wgmmaP{w: a.w, x: a.x, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, ldx: a.ldx, ldy: a.ldy, blocks: c.slices,
		global: a.global, globalUp: a.globalUp,
		heads: a.heads, xhead: a.xhead, yhead: a.yhead, whead: a.whead, rope: a.rope, pos: a.pos, nrope: a.nrope,
		rounded: a.rounded}
	p.per = int32(ceil(int32(c.w.Steps), 8*c.slices))
	if c.w.Format == kernels.FP4 {
		p.per *= 4
	}
	c.splitK, c.tiled = p.bestSplitK(c.w.Format, b.t), p.bestTiled(c.w.Format, b.t)
	return p.per%2 == 0
}

// isSplitK reports whether blocks that share k are the faster way.
func isSplitK(b *builder, c *call) bool {
	return isWgmma(b, c) && c.splitK.shared > 0 && c.splitK.time <= c.tiled.time
}

func planWgmma(b *builder, c *call) error {
	p, by := &c.wgmma, b.by
	extra := uint32(0)
	if p.rope != 0 {
		extra = 1
	}
	p.stages = c.tiled.stages
	if at, ok := b.left(p, c.w.Format); ok && p.rounded == 0 { // which have lower terms
		p.panels = at
	} else if err := b.splitRows(p, c.w.Format); err != nil {
		return err
	}
	b.by = by
	grid := [3]uint32{ceil(p.n, 128) + extra, c.tiled.tiles, uint32(p.heads)}
	if extra == 0 { // a block has its tiles one after the other
		grid = grid1(min(grid[0]*grid[1]*grid[2], uint32(b.t.SMs)))
	}
	return b.do(fmt.Sprintf("gemm_wgmma_%s_%d", c.w.Format, c.tiled.tokens), grid, 384, uint32(c.tiled.shared), p)
}

// splitRows makes the panels of a product's rows, if the call before has not.
func (b *builder) splitRows(p *wgmmaP, f kernels.Format) error {
	p.panelHead = panelsOf(p.m, p.k)
	p.panels = b.work(ScratchPanels, p.panelHead*int64(p.heads))
	split := p.split(b.turn, "pack_panels_"+string(f))
	if !split.follows(b.split) {
		b.by = "pack panels"
		if err := b.do(split.entry, [3]uint32{1056, uint32(p.heads), 1}, 256, 0, p); err != nil {
			return err
		}
		b.split = split
	}
	b.split.turn, b.split.lost = b.turn, split.lost
	return nil
}

// left finds a product's rows among the panels that a norm has left.
func (b *builder) left(p *wgmmaP, f kernels.Format) (uintptr, bool) {
	row, ok := b.panels.within(p.x, p.m, p.k, p.ldx)
	if !ok || f != kernels.BF16 || p.heads > 1 {
		return 0, false
	}
	return b.manyPanels(b.panels.many.m, p.k) + uintptr(row)*uintptr(p.k)*4, true
}

// split is what panels a call makes, for the next call may want the same.
type split struct {
	turn             int // of the call that used them last
	entry            string
	x                uintptr
	m, k, ldx, xhead int32
	heads            int32
	rounded          uint32
	lost             bool // the call overwrites x
}

func (p *wgmmaP) split(turn int, entry string) split {
	x, y := p.x, p.y
	xEnd, yEnd := x+uintptr(p.m)*uintptr(p.ldx)*4, y+uintptr(p.m)*uintptr(p.ldy)*4
	return split{turn: turn, entry: entry, x: x, m: p.m, k: p.k, ldx: p.ldx, xhead: p.xhead, heads: p.heads,
		rounded: p.rounded,
		lost:    x < yEnd && y < xEnd}
}

// follows reports whether s are the panels that the call before left.
func (s split) follows(last split) bool {
	if last.lost || last.turn != s.turn-1 {
		return false
	}
	last.turn, last.lost, s.lost = s.turn, false, false
	return s == last
}

// tiledWay is a way to have all of k in a block.
type tiledWay struct {
	tokens, stages, shared int32
	tiles                  uint32
	time                   int64 // ns, roughly
}

// wgmmaTiles are the tokens of a block and what a unit of 64 columns takes, ns.
var wgmmaTiles = []struct{ tokens, ns int32 }{{64, 620}, {128, 720}}

// bestTiled estimates the ways to have all of k in a block and returns the faster one.
func (p *wgmmaP) bestTiled(f kernels.Format, t *Target) (best tiledWay) {
	weights := int32(16384) // of 64 columns
	if f == kernels.FP4 {
		weights = 8 * fp4Unit
	}
	for _, w := range wgmmaTiles {
		stage := (w.tokens*256 + weights + 1023) / 1024 * 1024
		m := tiledWay{tokens: w.tokens, tiles: ceil(p.m, w.tokens), stages: min(8, (t.Shared-1024)/(stage+16))}
		m.shared = 1024 + m.stages*(stage+16)
		rounds := int64(ceil(int32(ceil(p.n, 128)*m.tiles)*p.heads, t.SMs))
		m.time = 3000 + int64(p.m)*int64(p.k)*int64(p.heads)/450 + rounds*int64(p.k/64)*int64(w.ns)
		if best.tokens == 0 || m.time < best.time {
			best = m
		}
	}
	return best
}

// planSplitK lets blocks share k.
func planSplitK(b *builder, c *call) error {
	p, best := &c.wgmma, &c.splitK
	p.parts, p.groups = best.parts, best.groups
	all := p.blocks * p.parts
	if all > 1 {
		p.sums = b.work(ScratchPanels, best.sums)
	}
	grid := [3]uint32{uint32(best.blocks), ceil(p.m, best.tokens), uint32(p.heads)}
	if p.rope != 0 {
		grid[0] += uint32(all)
	}
	warpgroups := uint32(splitKGroups(p.parts))
	if err := b.do(fmt.Sprintf("gemm_split_k_%s_%d_%d", c.w.Format, best.tokens, warpgroups), grid, warpgroups*128,
		uint32(best.shared), p); err != nil || all == 1 {
		return err
	}
	return b.do("gemm_split_k_sum", grid1(min(8*uint32(b.t.SMs), ceil(p.heads*p.m*p.n/4, 256))), 256, 0, p)
}

// splitKGroups is the most groups of 64 outputs of a block: it has as many warpgroups.
func splitKGroups(parts int32) int32 {
	if parts == 8 { // no slices to add
		return 6
	}
	return 4
}

// mostSums bounds the bytes that parts leave.
const mostSums = 64 << 20

// splitKWay is a way to share a product among blocks.
type splitKWay struct {
	tokens, parts, groups, shared, blocks int32
	sums                                  int64 // bytes of what the parts leave
	time                                  int64 // ns, roughly
}

// bestSplitK is the fastest way that fits into the shared memory of a block, the zero one
// if none does.
func (p *wgmmaP) bestSplitK(f kernels.Format, t *Target) (best splitKWay) {
	if p.n%4 != 0 {
		return best
	}
	stage := int32(1024) // bytes of a stage of a warp's ring
	if f == kernels.FP4 {
		stage = fp4Unit
	}
	for tokens := int32(16); tokens == 16 || tokens <= 64 && tokens < 2*p.m; tokens *= 2 {
		for parts := int32(1); parts <= 8; parts *= 2 {
			for groups := int32(1); groups <= splitKGroups(parts); groups++ {
				if w := p.way(parts, groups, tokens, stage, t.SMs); w.shared <= t.Shared && w.sums <= mostSums &&
					(best.shared == 0 || w.time < best.time) {
					best = w
				}
			}
		}
	}
	return best
}

// way estimates one.
func (p *wgmmaP) way(parts, groups, tokens, stage, sms int32) (w splitKWay) {
	steps := 8 / parts * p.per // of a block
	panels := int32(ceil(steps, 4)) * tokens * 256
	stages := int32(6) // as few_stages
	if parts == 8 {
		stages = 5
	}
	w = splitKWay{tokens: tokens, parts: parts, groups: groups, shared: 1024 + panels + stages*groups*4*stage}
	w.blocks = int32(ceil(int32(ceil(p.n, 64)), groups)) * p.blocks * parts
	rounds := int64(ceil(w.blocks*p.heads*int32(ceil(p.m, tokens)), sms))
	weights := int64(groups) * int64(steps) * 2048 / 33
	products := int64(steps) * max(75, int64(groups)*int64(tokens)*10/16)
	w.time = rounds * (2500 + int64(panels)/40 + max(weights, products))
	if p.blocks*parts > 1 {
		w.sums = int64(p.blocks) * int64(1+(parts-1)*(8/parts)) * int64(p.heads) * int64(p.m) * int64(p.n) * 4
		w.time += 1200 + w.sums/3500
	}
	return w
}
