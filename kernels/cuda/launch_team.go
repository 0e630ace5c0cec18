//go:build cuda

package cuda

import (
	"unsafe"

	"glmbatch/kernels"
	"glmbatch/kernels/cuda/driver"
)

// Products of several fragments' rows and fewer than prefill has, on Hopper:
// src/team.cu. They give the bits of src/product.cuh. Ranks that share a GPU do
// without: a cluster that needs whole multiprocessors may find none while other ranks'
// collectives wait.

type teamP struct {
	w, panels, y, at                               uintptr
	m, n, k, ldy, per, slices, parts, tiles, until int32
	global                                         float32
}

const (
	teamBlocks = 8 // at most
	teamCalls  = 2
	teamTiles  = 8 // of 16 outputs in a block, at most
	teamPanels = 2 // of 64 columns in a stage: copies of less than 4 KiB take long
	teamRing   = 3 // stages
	// splitColumns is how many columns x has at least where it is worth a launch to
	// leave it as panels.
	splitColumns = 1024
)

// team adds a product to the launch that is being made, if it is one for src/team.cu.
// blocks: of 8 slices each that k has.
func (d *device) team(a *gemmP, w *weight, blocks int32) (bool, error) {
	sms, _, err := d.chip()
	if err != nil {
		return false, err
	}
	p := teamP{w: a.w, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, ldy: a.ldy, global: a.global}
	if !d.warpgroups || d.group.shared() || w.format != kernels.BF16 && w.format != kernels.FP8 || a.m <= fewRows || a.m > panelRows || a.heads > 1 || a.rope != 0 ||
		a.x%16 != 0 || a.ldx%4 != 0 || a.k > panelColumns || !p.split(blocks, sms) {
		return false, nil
	}
	at, ok := d.panels.find(a.x, a.m, a.k, a.ldx)
	if !ok && a.k < splitColumns {
		return false, nil
	}
	p.panels = d.slot(at)
	if !ok {
		s := wideP{x: a.x, panels: d.leave(a.x, a.m, a.k, a.ldx), m: a.m, k: a.k, ldx: a.ldx, heads: 1}
		if err := d.do("wide_split_bf16", [3]uint32{1056, 1, 1}, 256, 0, unsafe.Pointer(&s)); err != nil {
			return true, err
		}
		p.panels = s.panels
	}
	if len(d.teams) == teamCalls || len(d.teams) > 0 && (d.teamWeights != w.format || d.teams[0].m != p.m || d.teams[0].parts != p.parts) {
		if err := d.flush(); err != nil {
			return true, err
		}
	}
	d.teams, d.teamWeights = append(d.teams, p), w.format
	return true, nil
}

// split shares k among the blocks of a team, so that its sums have the order of
// blocks of 8 slices. It reports whether that can be.
func (p *teamP) split(blocks, sms int32) bool {
	steps, best := p.k/16, int32(0)
	if p.k%(128*blocks) != 0 {
		return false
	}
	per := steps / (8 * blocks)
	for _, slices := range []int32{8, 4} {
		parts := 8 * blocks / slices
		if parts > teamBlocks || per%2 != 0 || slices*per%(4*teamPanels) != 0 || slices == 4 && per%4 != 0 {
			continue
		}
		q := *p
		q.parts = parts
		q.tiles = fewestTiles([]teamP{q}, most(sms, parts))
		rounds := int32(ceil(q.teams(), most(sms, parts)))
		if cost := rounds * slices * per * (8 + q.tiles); best == 0 || cost < best { // bytes that a block takes in, of BF16
			best, p.per, p.slices, p.parts = cost, per, slices, parts
		}
	}
	return best > 0
}

// teams is how many work on a call.
func (p *teamP) teams() int32 {
	return int32(ceil(int32(ceil(p.n, 16)), p.tiles))
}

// most is how many teams of so many blocks run at once: their blocks have to be near
// each other, where there are not always as many multiprocessors left.
func most(sms, blocks int32) int32 {
	switch blocks {
	case 4:
		return sms/4 - 3
	case 8:
		return sms/8 - 1
	}
	return sms / blocks
}

// fewestTiles is how few tiles a block may have for all blocks to run at once, if
// as many teams do.
func fewestTiles(ps []teamP, most int32) int32 {
	for tiles := int32(1); tiles < teamTiles; tiles++ {
		teams := int32(0)
		for _, p := range ps {
			p.tiles = tiles
			teams += p.teams()
		}
		if teams <= most {
			return tiles
		}
	}
	return teamTiles
}

// flushTeams launches the products.
func (d *device) flushTeams() error {
	ps := d.teams
	d.teams = d.teams[:0]
	sms, _, err := d.chip()
	if err != nil {
		return err
	}
	var all [teamCalls]teamP
	parts := ps[0].parts
	tiles, until := fewestTiles(ps, most(sms, parts)), int32(0)
	for i := range ps {
		ps[i].tiles = tiles
		until += ps[i].teams()
		ps[i].until = until
		all[i] = ps[i]
	}
	bytes := tiles * 2048 // of weights in a panel
	if d.teamWeights == kernels.FP8 {
		bytes /= 2
	}
	shared := uint32(1040 + teamRing*(teamPanels*(64*256+bytes)+16))
	return d.enqueue("team_"+string(d.teamWeights), &driver.Launch{Grid: [3]uint32{uint32(until * parts), ceil(ps[0].m, 64), 1}, Threads: 384, Cluster: uint32(parts), Shared: shared, Params: unsafe.Pointer(&all)})
}

// teamed reports whether the calls are products of the same rows that may share a
// launch of src/team.cu.
func teamed(a, b *kernels.Call) bool {
	return (a.Kernel == "gemm_bf16" || a.Kernel == "gemm_fp8") && b.Kernel == a.Kernel && a.Args[1] == b.Args[1] && a.Dims.M == b.Dims.M && a.Dims.K == b.Dims.K &&
		a.Dims.M > fewRows && a.Dims.M <= panelRows && a.Scalars[0] == 0 && b.Scalars[0] == 0
}
