package plan

import (
	"fmt"

	"glmbatch/kernels"
)

// Products of more rows than clusters share, by Hopper's warpgroups: src/gemm/sm90_gemm_persistent.cu. They give
// the bits of src/gemm/gemv.cuh.

const (
	// pairedRows is up to how many rows two products share a launch: with more, each fills
	// the GPU.
	pairedRows = 2048
)

// blockShape is how many outputs and tokens a block has, and what 64 columns of a tile take
// it, ns: where blocks are few, and where there are three for each place.
type blockShape struct{ warpgroups, tokens, alone, busy int32 }

// blockShapes are as measured on an H200. Blocks of one warpgroup fit twice into a
// multiprocessor.
var blockShapes = []blockShape{{1, 64, 385, 500}, {2, 64, 455, 520}, {3, 64, 535, 640}, {2, 128, 650, 745},
	{3, 128, 1005, 1280}}

// roundedShapes are those of products whose rows have no lower terms: shared memory is what they
// wait for, at about 0.8 of the products' own rate.
var roundedShapes = []blockShape{{1, 64, 270, 350}, {2, 64, 345, 345}, {3, 64, 400, 410}, {2, 128, 445, 430},
	{3, 128, 625, 606}, {2, 192, 510, 530}}

// sumsWait is what the largest blocks take longer, ns for 64 columns, where the sums of blocks of
// slices go through memory.
const sumsWait = 90

func (s blockShape) outputs() int32 { return 64 * s.warpgroups }

// each is how many blocks a multiprocessor has.
func (s blockShape) each() int32 {
	if s.warpgroups == 1 {
		return 2
	}
	return 1
}

// isPersistentGemm reports whether a product is for src/gemm/sm90_gemm_persistent.cu: where clusters would take several
// rounds, or rows are too many for one.
func isPersistentGemm(b *builder, c *call) bool {
	a, p := &c.gemm, &c.persistent
	*p = persistentOneP{w: a.w, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, ldy: a.ldy, global: a.global}
	return a.m > fewRows && a.heads == 1 && a.rope == 0 && (a.x|a.y)%16 == 0 &&
		(a.n|a.ldx|a.ldy)%4 == 0 && a.k%64 == 0 &&
		c.sliceSteps()%2 == 0 &&
		(a.m > clusterRows || c.cluster.parts > 0 && c.cluster.clusters() > mostClusters(b.t.SMs, c.cluster.parts))
}

// sliceSteps is the steps of 16 columns in a slice of k.
func (c *call) sliceSteps() int32 {
	return int32(ceil(int32(c.w.Steps), 8*c.slices)) * columnsOf(c.w.Format) / 16
}

// planPersistentGemm adds a product to the launch that is being made.
func planPersistentGemm(b *builder, c *call) error {
	by := b.by
	panels, err := b.asPanels(&c.gemm)
	if err != nil {
		return err
	}
	b.by = by
	p := persistentGemmP{panels: panels, per: c.sliceSteps(), blocks: c.slices}
	if d := &b.persistent; len(d.of) == persistentCalls || len(d.of) > 0 &&
		(d.format != formatOf(c) || d.p != p || d.of[0].m != c.gemm.m) {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.persistent.p, b.persistent.format, b.persistent.of = p, formatOf(c), append(b.persistent.of, c.persistent)
	return nil
}

// persistent are products of the same rows that a launch is put together for.
type persistent struct {
	of     []persistentOneP
	p      persistentGemmP // what they share
	format productFormat
}

// asPanels finds a product's rows as panels, or makes them.
func (b *builder) asPanels(a *gemmP) (uintptr, error) {
	p := &wgmmaP{x: a.x, y: a.y, m: a.m, k: a.k, ldx: a.ldx, ldy: a.ldy, heads: 1}
	if a.m > panelRows {
		if at, ok := b.left(p, kernels.BF16); ok {
			return at, nil
		}
		err := b.splitRows(p, kernels.BF16)
		return p.panels, err
	}
	if at, ok := b.panels.find(a.x, a.m, a.k, a.ldx); ok {
		return b.slot(at), nil
	}
	s := &wgmmaP{x: a.x, panels: b.leave(a.x, a.m, a.k, a.ldx), m: a.m, k: a.k, ldx: a.ldx, heads: 1}
	b.by = "pack panels"
	return s.panels, b.do("pack_panels_bf16", grid1(uint32(1056)), 256, 0, s)
}

// persistentWay is a way to launch products.
type persistentWay struct {
	blockShape
	share  int32 // blocks that share a tile's k
	grid   int32
	stages [2]int32 // of panels and of weights
	shared int32
	time   int64 // ns, roughly
}

// best is the fastest way for products of GPU t.
func (d *persistent) best(t *Target) (best persistentWay) {
	shapes := blockShapes
	if d.format.rounded != 0 {
		shapes = roundedShapes
	}
	for _, s := range shapes {
		for _, share := range []int32{1, d.p.blocks} {
			if w, ok := d.way(s, share, t); ok && (best.time == 0 || w.time < best.time) {
				best = w
			}
		}
	}
	return best
}

// way estimates one, and reports whether it can be.
func (d *persistent) way(s blockShape, share int32, t *Target) (w persistentWay, ok bool) {
	units, tiles := d.of[0].k/64, int32(0)
	for i := range d.of {
		tiles += int32(ceil(d.of[i].n, s.outputs()) * ceil(d.of[i].m, s.tokens))
	}
	w = persistentWay{blockShape: s, share: share, grid: tiles * share, time: 3000}
	places := t.SMs * s.each()
	if share > 1 {
		if t.crowded() || units != 2*d.p.per*share || s.warpgroups == 2 && s.tokens != 128 { // which never pay
			return w, false
		}
		places, units, w.time = mostClusters(t.SMs, share)*s.each(), units/share, 7000
	} else {
		w.grid = min(tiles, places)
	}
	load := min(max(tiles, places), 3*places) - places // beyond one tile for each place
	unit := int64(s.alone) + int64(s.busy-s.alone)*int64(load)/int64(2*places)
	tile := int64(s.outputs()) * int64(s.tokens) / 7
	if s.warpgroups == 1 {
		tile += 1500
		if unit = int64(s.alone); 2*tiles > places {
			unit = int64(s.busy)
		}
	}
	if d.format.rounded != 0 && share == 1 && d.waits(&w) {
		unit += sumsWait
	}
	w.time += int64(ceil(tiles, places)) * (int64(units)*unit + tile)
	return w, d.fit(&w, t)
}

// waits reports whether a block keeps the sums of blocks of slices in memory.
func (d *persistent) waits(w *persistentWay) bool {
	return d.p.blocks > 1 && w.outputs()*w.tokens > 128*128
}

// fit shares a block's memory among its rings, alike in stages as far as that goes.
func (d *persistent) fit(w *persistentWay, t *Target) bool {
	limit := (t.Shared+1024)/w.each() - 1024
	panels, units := w.tokens*128*d.format.terms()+16, w.warpgroups*4*2048+16
	if d.format.weights == kernels.FP8 {
		units = w.warpgroups*4*1024 + 16
	}
	rest := 1024 + w.warpgroups*persistentTokens*persistentPitch*4
	n := (limit - rest) / (panels + units)
	w.stages = [2]int32{n, (limit - rest - n*panels) / units}
	w.shared = rest + w.stages[0]*panels + w.stages[1]*units
	return n >= 2
}

// flushPersistent launches the products.
func (b *builder) flushPersistent() error {
	d := b.persistent
	b.persistent.of = d.of[:0]
	w := d.best(b.t)
	if w.time == 0 {
		return fmt.Errorf("%w: a product of %dx%d on a GPU with little shared memory", kernels.ErrKernel, d.of[0].n,
			d.of[0].k)
	}
	p, columns := &d.p, int32(0)
	for i := range d.of {
		columns += int32(ceil(d.of[i].n, w.outputs()))
		d.of[i].until = columns
	}
	p.one = d.of[0]
	if len(d.of) > 1 {
		p.two = d.of[1]
	}
	p.panelStages, p.unitStages = w.stages[0], w.stages[1]
	entry := fmt.Sprintf("gemm_persistent_%s_%dx%d", d.format, w.outputs(), w.tokens)
	cluster := uint32(0)
	switch {
	case w.share > 1:
		entry, cluster = entry+"_k", uint32(w.share)
	case d.waits(&w):
		p.waiting = b.work(ScratchWork, int64(w.grid)*int64(w.outputs())*int64(w.tokens)*4)
	}
	return b.add(Launch{Entry: entry, Grid: grid1(w.grid), Threads: uint32(w.warpgroups*128 + 128), Cluster: cluster,
		Shared: uint32(w.shared), Params: p})
}
