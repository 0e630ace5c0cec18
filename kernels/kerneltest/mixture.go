package kerneltest

import (
	"fmt"
	"testing"

	"glmbatch/kernels"
)

// Mixture checks a layer's mixture of experts as a list: the last time that it comes
// again, its calls leave the bits that they leave one by one. Devices may launch such a
// list in other pieces. d has N columns of the model, K of a rank's part of an expert,
// Groups experts, TopK of a row.
func Mixture(t *testing.T, open Open, d kernels.Dims, routing [4]float32, rows ...int32) {
	b := opened(t, open(t, 1))
	weight := func(name kernels.Name, count int, rows, cols int32) kernels.Buffer {
		w := newWeights(uint64(rows), kernels.Lookup(name).Format, kernels.Multiply, count, int(rows), int(cols))
		buf, err := b.g.Load(kernels.Sharded, func(int) kernels.Weights { return w.Weights })
		if err != nil {
			t.Fatal(err)
		}
		return buf
	}
	values := func(place int, n int32) kernels.Buffer {
		buf := b.alloc(4 * int64(n))
		if err := b.g.Upload(buf, noiseFrom(place, buf.Len)); err != nil {
			t.Fatal(err)
		}
		return buf
	}
	router, gateUp, down := weight("gemm_bf16", 1, d.Groups, d.N), weight("gemm_bf16", 1, 2*d.K,
		d.N), weight("gemm_bf16", 1, d.N, d.K)
	ups, downs := weight("moe_up_fp4", int(d.Groups), 2*d.K, d.N), weight("moe_down_fp4", int(d.Groups), d.N, d.K)
	norm, bias := values(1, d.N), values(2, d.Groups)
	for _, m := range rows {
		t.Run(fmt.Sprintf("rows=%d", m), func(t *testing.T) {
			x, h, logits, two, act, part := values(3+int(m), m*d.N), values(4, m*d.N), values(4, m*d.Groups), values(4,
				2*m*d.K), values(4, m*d.K), values(4, m*d.N)
			experts, weights, chosen := values(4, m*d.TopK), values(4, m*d.TopK), values(4, m*d.TopK*d.K)
			product := func(n, k int32, w, in, out kernels.Buffer) kernels.Call {
				return kernels.Call{Kernel: "gemm_bf16", Dims: kernels.Dims{M: m, N: n, K: k},
					Args: []kernels.Buffer{w, in, out}}
			}
			calls := []kernels.Call{
				{Kernel: "rms_norm", Dims: kernels.Dims{M: m, K: d.N}, Args: []kernels.Buffer{x, norm, h},
					Scalars: [4]float32{1e-5}},
				product(d.Groups, d.N, router, h, logits),
				{Kernel: "moe_route", Dims: kernels.Dims{M: m, Groups: d.Groups, TopK: d.TopK},
					Args: []kernels.Buffer{logits, bias, experts, weights}, Scalars: routing},
				product(2*d.K, d.N, gateUp, h, two),
				{Kernel: "silu_mul", Dims: kernels.Dims{M: m, N: d.K}, Args: []kernels.Buffer{two, act}},
				product(d.N, d.K, down, act, part),
				{Kernel: "moe_up_fp4", Dims: kernels.Dims{M: m, N: d.K, K: d.N, Groups: d.Groups, TopK: d.TopK},
					Args: []kernels.Buffer{ups, h, experts, chosen}},
				{Kernel: "moe_down_fp4", Dims: kernels.Dims{M: m, N: d.N, K: d.K, Groups: d.Groups, TopK: d.TopK},
					Args: []kernels.Buffer{downs, chosen, experts, weights, part}},
			}
			outs := []kernels.Buffer{logits, experts, weights, act, chosen, part}
			b.again(t, calls, outs, "logits", "experts", "weights", "act", "chosen", "part")
		})
	}
}
