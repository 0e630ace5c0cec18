package plan

import "glmbatch/kernels"

// Products of several fragments' rows and fewer than prefill has, by clusters of Hopper's
// blocks: src/team.cu. They give the bits of src/product.cuh. Ranks that share a GPU do
// without: a cluster that needs whole multiprocessors may find none while other ranks'
// collectives wait.

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

// isTeam reports whether a product is for src/team.cu.
func isTeam(b *builder, c *call) bool {
	a, p := &c.gemm, &c.team
	*p = teamP{w: a.w, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, ldy: a.ldy, global: a.global}
	return !b.t.crowded() && a.m > fewRows && a.m <= panelRows && a.heads == 1 && a.rope == 0 && a.x%16 == 0 && a.ldx%4 == 0 && a.k <= panelColumns &&
		p.share(c.slices, b.t.SMs) && (a.k >= splitColumns || b.panels.has(a.x, a.m, a.k, a.ldx))
}

// planTeam adds a product to the launch that is being made.
func planTeam(b *builder, c *call) error {
	a, p, by := &c.gemm, &c.team, b.by
	if at, ok := b.panels.find(a.x, a.m, a.k, a.ldx); ok {
		p.panels = b.slot(at)
	} else {
		s := &wideP{x: a.x, panels: b.leave(a.x, a.m, a.k, a.ldx), m: a.m, k: a.k, ldx: a.ldx, heads: 1}
		b.by = "split"
		if err := b.do("wide_split_bf16", grid1(uint32(1056)), 256, 0, s); err != nil {
			return err
		}
		p.panels = s.panels
	}
	b.by = by
	if len(b.teams) == teamCalls || len(b.teams) > 0 && (b.teamWeights != c.w.Format || b.teams[0].m != p.m || b.teams[0].parts != p.parts) {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.teams, b.teamWeights = append(b.teams, *p), c.w.Format
	return nil
}

// share shares k among the blocks of a team, so that its sums have the order of
// blocks of 8 slices. It reports whether that can be.
func (p *teamP) share(blocks, sms int32) bool {
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
		q.tiles = fewestTiles([]teamP{q}, mostTeams(sms, parts))
		rounds := int32(ceil(q.teams(), mostTeams(sms, parts)))
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

// mostTeams is how many teams of so many blocks run at once: their blocks have to be near
// each other, where there are not always as many multiprocessors left.
func mostTeams(sms, blocks int32) int32 {
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
func (b *builder) flushTeams() error {
	ps, all := b.teams, &[teamCalls]teamP{}
	b.teams = b.teams[:0]
	parts := ps[0].parts
	tiles, until := fewestTiles(ps, mostTeams(b.t.SMs, parts)), int32(0)
	for i := range ps {
		ps[i].tiles = tiles
		until += ps[i].teams()
		ps[i].until = until
		all[i] = ps[i]
	}
	bytes := tiles * 2048 // of weights in a panel
	if b.teamWeights == kernels.FP8 {
		bytes /= 2
	}
	shared := uint32(1040 + teamRing*(teamPanels*(64*256+bytes)+16))
	return b.add(Launch{Entry: "team_" + string(b.teamWeights), Grid: [3]uint32{uint32(until * parts), ceil(ps[0].m, 64), 1}, Threads: 384, Cluster: uint32(parts), Shared: shared, Params: all})
}

// teamed reports whether the calls are products of the same rows that may share a
// launch of src/team.cu.
func teamed(a, b *kernels.Call) bool {
	k := kernels.Lookup(a.Kernel)
	return k.Op == "gemm" && (k.Format == kernels.BF16 || k.Format == kernels.FP8) && b.Kernel == a.Kernel && a.Args[1] == b.Args[1] && a.Dims.M == b.Dims.M && a.Dims.K == b.Dims.K &&
		a.Dims.M > fewRows && a.Dims.M <= panelRows && a.Scalars[0] == 0 && b.Scalars[0] == 0
}
