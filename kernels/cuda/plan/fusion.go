package plan

import (
	"slices"

	"glmbatch/kernels"
)

// Fusion lets two calls share a launch that have none of segments, see chain.
type Fusion struct {
	Name string
	Why  string // what was measured, or what it is for

	// When is whether they may. Of calls that depend on each other, first comes first; of
	// others first is the launch's first call.
	When func(first, second *kernels.Call) bool

	depends bool // the second reads what the first writes
	last    bool // first must be the launch's last call, where second has no segments
	most    int  // calls of a launch, where they do not depend on each other

	// Build plans both, alone in their launch. nil: the variants that take each know of the
	// other, from what the launch has so far.
	Build func(b *builder, first, second *call) error
}

// fusions are those of all architectures; not all of them have variants that know.
var fusions = []Fusion{
	{Name: "silu_mul in product", depends: true, last: true, When: gates,
		Why: "a product of few columns gates its rows while it waits for weights: a launch less"},
	{Name: "moe_route in moe_up", depends: true, When: hasPrologue,
		Why: "blocks of moe_up choose the experts of few rows themselves, each for itself: src/moe/moe_prologue.cuh"},
	{Name: "products of the same rows", most: clusterCalls, When: sharesCluster,
		Why: "small ones leave multiprocessors idle: src/gemm/sm90_gemm_cluster.cu and sm90_gemm_persistent.cu have " +
			"the blocks of both"},
	{Name: "q_absorb beside index_topk", most: 2, When: absorbsBeside,
		Why: "both are short, need few blocks, and attention waits for both: src/gemm/q_absorb.cuh"},
}

// fusions of an architecture, its own before those of all.
func (a *Architecture) fusion(holds func(*Fusion) bool) *Fusion {
	for _, fs := range [][]Fusion{a.Fusions, fusions} {
		for i := range fs {
			if holds(&fs[i]) {
				return &fs[i]
			}
		}
	}
	return nil
}

// after is the fusion that lets second share the launch of first, which it depends on.
func (a *Architecture) after(first, second *kernels.Call) *Fusion {
	return a.fusion(func(f *Fusion) bool { return (f.depends || f.Build != nil) && f.When(first, second) })
}

// joins reports whether call i, which has launches of its own, may share that of calls
// which it depends on some of.
func (a *Architecture) joins(calls []kernels.Call, launch []int, i int) bool {
	return slices.ContainsFunc(launch, func(j int) bool {
		f := a.after(&calls[j], &calls[i])
		switch {
		case f == nil:
			return false
		case f.Build != nil:
			return len(launch) == 1
		}
		return !f.last || j == launch[len(launch)-1]
	})
}

// built is the fusion whose kernel has calls first and second alone; nil: there is none.
func (a *Architecture) built(first, second *kernels.Call) *Fusion {
	return a.fusion(func(f *Fusion) bool { return f.Build != nil && f.When(first, second) })
}

// beside reports whether call i may share the launch of calls that it does not depend on.
func (a *Architecture) beside(calls []kernels.Call, launch []int, i int) bool {
	return a.fusion(func(f *Fusion) bool {
		return f.most > len(launch) && f.When(&calls[launch[0]], &calls[i])
	}) != nil
}

// fusionOf is the fusion that plans the calls of a launch; nil: variants do.
func (b *builder) fusionOf(calls []kernels.Call, which []int) *Fusion {
	if len(which) != 2 {
		return nil
	}
	return b.t.built(&calls[which[0]], &calls[which[1]])
}

// fused plans the two calls of a launch by one fusion.
func (b *builder) fused(f *Fusion, calls []kernels.Call, which []int) error {
	first, err := b.resolve(which[0], &calls[which[0]])
	if err != nil {
		return err
	}
	second, err := b.resolve(which[1], &calls[which[1]])
	if err != nil {
		return err
	}
	b.by = f.Name
	if err := f.Build(b, first, second); err != nil {
		return err
	}
	return b.flush()
}

// gates reports whether product c can do s, the silu_mul in front of it, itself; else
// s is launched before it.
func gates(s, c *kernels.Call) bool {
	return s.Kernel == "silu_mul" && (c.Kernel == "gemm_bf16" || c.Kernel == "gemm_fp8") &&
		(segmentsOf(c) > 0 || mayBeBatched(c)) && c.Dims.K <= gatedColumns &&
		s.Args[1] == c.Args[1] && s.Dims.M == c.Dims.M && s.Dims.N == c.Dims.K &&
		(s.Args[0].Offset|int64(s.Args[0].Pitch))%16 == 0
}
