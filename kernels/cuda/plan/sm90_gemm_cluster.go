package plan

import "glmbatch/kernels"

// Products of several fragments' rows and no more than a panel has, by clusters of Hopper's
// blocks: src/gemm/sm90_gemm_cluster.cu. They give the bits of src/gemm/gemv.cuh. Ranks that share a GPU do
// without: a cluster that needs whole multiprocessors may find none while other ranks'
// collectives wait.

const (
	clusterRows   = 64 // at most: what is read again for each 64 takes longer than sm90_gemm_persistent.cu
	clusterBlocks = 8  // at most
	// splitColumns is how many columns x has at least where it is worth a launch to
	// leave it as panels.
	splitColumns = 1024
)

// isClusterGemm reports whether a product is for src/gemm/sm90_gemm_cluster.cu.
func isClusterGemm(b *builder, c *call) bool {
	a, p := &c.gemm, &c.cluster
	*p = clusterGemmP{w: a.w, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, ldy: a.ldy, global: a.global}
	return !b.t.crowded() && a.m > fewRows && a.m <= clusterRows && a.heads == 1 && a.rope == 0 && a.x%16 == 0 &&
		a.ldx%4 == 0 && a.k <= panelColumns &&
		p.share(c.slices, b.t.SMs) && p.clusters() <= mostClusters(b.t.SMs, p.parts) &&
		(a.k >= splitColumns || b.panels.has(a.x, a.m, a.k, a.ldx))
}

// productFormat is what products of a launch have in common: the weights' format, and whether
// rows are rounded to BF16, so that they have no lower terms.
type productFormat struct {
	weights kernels.Format
	rounded uint32
}

func formatOf(c *call) productFormat { return productFormat{c.w.Format, c.rounded} }

// String is a part of entries' names.
func (f productFormat) String() string {
	if f.rounded != 0 {
		return "rounded_" + string(f.weights)
	}
	return string(f.weights)
}

// terms is how many BF16 values a value of x is.
func (f productFormat) terms() int32 { return 2 - int32(f.rounded) }

// planClusterGemm adds a product to the launch that is being made.
func planClusterGemm(b *builder, c *call) error {
	p, by := &c.cluster, b.by
	panels, err := b.asPanels(&c.gemm)
	if err != nil {
		return err
	}
	p.panels = panels
	b.by = by
	if len(b.clusters) == clusterCalls || len(b.clusters) > 0 &&
		(b.clusterWeights != formatOf(c) || b.clusters[0].m != p.m || b.clusters[0].parts != p.parts) {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.clusters, b.clusterWeights = append(b.clusters, *p), formatOf(c)
	return nil
}

// share shares k among the blocks of a cluster, so that its sums have the order of
// blocks of 8 slices. It reports whether that can be.
func (p *clusterGemmP) share(blocks, sms int32) bool {
	steps, best := p.k/16, int32(0)
	if p.k%(128*blocks) != 0 {
		return false
	}
	per := steps / (8 * blocks)
	for _, slices := range []int32{8, 4} {
		parts := 8 * blocks / slices
		if parts > clusterBlocks || per%2 != 0 || slices*per%(4*clusterPanels) != 0 || slices == 4 && per%4 != 0 {
			continue
		}
		q := *p
		q.parts = parts
		q.tiles = fewestTiles([]clusterGemmP{q}, mostClusters(sms, parts))
		rounds := int32(ceil(q.clusters(), mostClusters(sms, parts)))
		// bytes that a block takes in, of BF16
		if cost := rounds * slices * per * (8 + q.tiles); best == 0 || cost < best {
			best, p.per, p.slices, p.parts, p.tiles = cost, per, slices, parts, q.tiles
		}
	}
	return best > 0
}

// clusters is how many work on a call.
func (p *clusterGemmP) clusters() int32 {
	return int32(ceil(int32(ceil(p.n, 16)), p.tiles))
}

// mostClusters is how many clusters of so many blocks run at once: their blocks have to be near
// each other, where there are not always as many multiprocessors left.
func mostClusters(sms, blocks int32) int32 {
	switch blocks {
	case 4:
		return sms/4 - 3
	case 8:
		return sms/8 - 1
	}
	return sms / blocks
}

// fewestTiles is how few tiles a block may have for all blocks to run at once, if
// as many clusters do.
func fewestTiles(ps []clusterGemmP, most int32) int32 {
	for tiles := int32(1); tiles < clusterTiles; tiles++ {
		clusters := int32(0)
		for _, p := range ps {
			p.tiles = tiles
			clusters += p.clusters()
		}
		if clusters <= most {
			return tiles
		}
	}
	return clusterTiles
}

// flushClusters launches the products.
func (b *builder) flushClusters() error {
	ps, all := b.clusters, &clusterGemmsP{}
	b.clusters = b.clusters[:0]
	parts := ps[0].parts
	tiles, until := fewestTiles(ps, mostClusters(b.t.SMs, parts)), int32(0)
	for i := range ps {
		ps[i].tiles = tiles
		until += ps[i].clusters()
		ps[i].until = until
		all.p[i] = ps[i]
	}
	bytes := tiles * 2048 // of weights in a panel
	if b.clusterWeights.weights == kernels.FP8 {
		bytes /= 2
	}
	stages, rows := int32(clusterStages), int32(64*256)
	if b.clusterWeights.rounded != 0 {
		stages, rows = clusterRounded, 64*128
	}
	shared := uint32(1040 + stages*(clusterPanels*(rows+bytes)+16))
	return b.add(Launch{Entry: "gemm_cluster_" + b.clusterWeights.String(),
		Grid: [3]uint32{uint32(until * parts), ceil(ps[0].m, 64), 1}, Threads: 384, Cluster: uint32(parts),
		Shared: shared, Params: all})
}

// sharesCluster reports whether the calls are products of the same rows that may share a
// launch of src/gemm/sm90_gemm_cluster.cu or sm90_gemm_persistent.cu.
func sharesCluster(a, b *kernels.Call) bool {
	k := kernels.Lookup(a.Kernel)
	return k.Op == "gemm" && (k.Format == kernels.BF16 || k.Format == kernels.FP8) && b.Kernel == a.Kernel &&
		a.Args[1] == b.Args[1] && a.Dims.M == b.Dims.M && a.Dims.K == b.Dims.K &&
		a.Dims.M > fewRows && a.Dims.M <= pairedRows && a.Scalars[0] == b.Scalars[0] && !asksExact(a)
}
