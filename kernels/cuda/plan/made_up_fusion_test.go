package plan

import (
	"slices"
	"testing"

	"glmbatch/kernels"
)

type normAndGemm struct {
	norm rowwiseP
	gemm gemmP
}

// normGemm is a kernel that there is not, of a norm and the product behind it: all that
// adding one takes.
var normGemm = Fusion{Name: "rms_norm in gemm", Why: "nothing was measured",
	When: func(first, second *kernels.Call) bool {
		return first.Kernel == "rms_norm" && second.Kernel == "gemm_bf16" && first.Args[2] == second.Args[1] &&
			second.Dims.M <= 8 && second.Dims.K <= 2048
	},
	Build: func(b *builder, norm, c *call) error {
		p := &normAndGemm{gemm: c.gemm}
		p.norm = rowwiseP{x: b.ptr(norm.Args[0]), w: b.ptr(norm.Args[1]), y: b.ptr(norm.Args[2]), at: norm.at,
			m: norm.Dims.M, k: norm.Dims.K, eps: norm.Scalars[0]}
		return b.do("norm_gemm_bf16", grid1(ceil(c.gemm.n, 16)), 256, 0, p)
	},
}

// TestMadeUpFusion: a fused kernel has both calls where its pattern holds, whatever their
// variants would do; else nothing changes.
func TestMadeUpFusion(t *testing.T) {
	arch := sm90
	arch.Fusions = []Fusion{normGemm}
	plain := &Target{Architecture: &sm90, SMs: 132, Shared: 232448, Ranks: 1, PerGPU: 1}
	fusing := *plain
	fusing.Architecture = &arch
	for _, m := range []int32{1, 8, 9} {
		r := &Recorder{}
		const n, k = 512, 2048
		buffer := func(bytes int64) kernels.Buffer { b, _ := r.Alloc(bytes, kernels.Sharded); return b }
		w, err := r.Load(kernels.Weights{Format: kernels.BF16, Count: 1, Rows: n, Cols: k}, kernels.Sharded)
		if err != nil {
			t.Fatal(err)
		}
		x, scale, h, y := buffer(4*int64(m)*k), buffer(4*k), buffer(4*int64(m)*k), buffer(4*int64(m)*n)
		calls := []kernels.Call{
			{Kernel: "rms_norm", Dims: kernels.Dims{M: m, K: k}, Args: []kernels.Buffer{x, scale, h}},
			{Kernel: "gemm_bf16", Dims: kernels.Dims{M: m, N: n, K: k}, Args: []kernels.Buffer{w, h, y}},
		}
		want, err := Together(calls, plain, r.Memory())
		if err != nil {
			t.Fatal(err)
		}
		got, err := Together(calls, &fusing, r.Memory())
		if err != nil {
			t.Fatal(err)
		}
		entries := func(p *Plan) (all []string) {
			for i := range p.Launches {
				all = append(all, p.Launches[i].Entry)
			}
			return all
		}
		if m <= 8 {
			if l := got.Launches; len(l) != 1 || l[0].Entry != "norm_gemm_bf16" ||
				!slices.Equal(l[0].Calls, []int{0, 1}) ||
				l[0].By != normGemm.Name {
				t.Errorf("%d rows: %v", m, entries(got))
			}
		} else if !slices.Equal(entries(got), entries(want)) {
			t.Errorf("%d rows: %v, without the fusion %v", m, entries(got), entries(want))
		}
		if len(want.Launches) < 2 {
			t.Errorf("%d rows without the fusion: %v", m, entries(want))
		}
	}
}
