package plan

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"glmbatch/kernels"
)

// Whatever two calls share and one of them writes, the later one's launch comes
// after the earlier's; every call is in one launch, and no launch is too full.
func TestChainKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		buffer := rapid.Custom(func(t *rapid.T) kernels.Buffer {
			off := rapid.Int64Range(0, 3).Draw(t, "offset")
			return kernels.Buffer{Index: rapid.Uint32Range(1, 6).Draw(t, "index"), Offset: off * 64,
				Len: 64 * rapid.Int64Range(1, 4-off).Draw(t, "len")}
		})
		var calls []kernels.Call
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			k := kernels.Table[rapid.IntRange(0, len(kernels.Table)-1).Draw(t, "kernel")]
			if rapid.Bool().Draw(t, "product") {
				k = *kernels.Lookup("gemm_bf16")
			}
			c := kernels.Call{Kernel: k.Name, Dims: kernels.Dims{M: rapid.Int32Range(1, 24).Draw(t, "m")}}
			for range k.Args {
				c.Args = append(c.Args, buffer.Draw(t, "buffer"))
			}
			calls = append(calls, c)
		}
		at := make([]int, len(calls))
		for i := range at {
			at[i] = -1
		}
		for n, which := range chain(calls, &sm90) {
			full, opened := 0, false // opened: by a call that takes no segments
			for _, i := range which {
				opened = opened || slices.ContainsFunc(which, func(j int) bool {
					return hasPrologue(&calls[j], &calls[i])
				})
				if at[i] >= 0 {
					t.Fatalf("call %d is in launches %d and %d", i, at[i], n)
				}
				at[i] = n
				full += segmentsOf(&calls[i])
			}
			if full > maxSegments || len(which) > 1 && full < len(which) && !opened &&
				!absorbsBeside(&calls[which[0]], &calls[which[1]]) &&
				!sharesCluster(&calls[which[0]], &calls[which[1]]) &&
				!gates(&calls[which[len(which)-2]], &calls[which[len(which)-1]]) {
				t.Fatalf("calls %v have %d segments", which, full)
			}
		}
		for i := range calls {
			if at[i] < 0 {
				t.Fatalf("call %d is in no launch", i)
			}
			for j := range i {
				if conflict(&calls[j], &calls[i]) && at[j] >= at[i] &&
					!(at[j] == at[i] && (gates(&calls[j], &calls[i]) ||
						hasPrologue(&calls[j], &calls[i]))) {
					t.Fatalf("call %d (%s) does not come after call %d (%s)", i, calls[i].Kernel, j, calls[j].Kernel)
				}
			}
		}
	})
}

func conflict(a, b *kernels.Call) bool {
	for buf, as := range accesses(0, a) {
		for _, x := range as {
			for _, y := range accesses(1, b)[buf] {
				if (x.write || y.write) && x.lo < y.hi && y.lo < x.hi {
					return true
				}
			}
		}
	}
	return false
}

// What horizontal fusions do, segment by segment.
func TestChainSharesLaunches(t *testing.T) {
	buf := func(i uint32) kernels.Buffer { return kernels.Buffer{Index: i, Len: 64} }
	call := func(k kernels.Name, m int32, args ...kernels.Buffer) kernels.Call {
		return kernels.Call{Kernel: k, Dims: kernels.Dims{M: m}, Args: args}
	}
	calls := []kernels.Call{
		call("gemm_bf16", 8, buf(90), buf(1), buf(2)),
		call("rms_norm", 8, buf(2), buf(91), buf(3)),
		call("gemm_bf16", 8, buf(92), buf(3), buf(4)),
		call("index_write_fp8", 8, buf(2), buf(93), buf(94), buf(95), buf(96), buf(97), buf(5)), // with the norm
		// with the second product
		call("gemm_bf16", 8, buf(98), buf(3), buf(6)),
		call("gemm_bf16", 9, buf(98), buf(3), buf(7)), // too many rows
		call("gemm_bf16", 8, buf(99), buf(1), buf(8)), // with the first product
		call("silu_mul", 1, buf(8), buf(9)),
		call("gemm_bf16", 1, buf(99), buf(9), buf(10)), // with silu_mul, which it does itself
		call("moe_route", 1, buf(10), buf(89), buf(11), buf(12)),
		call("moe_up_fp4", 1, buf(88), buf(1), buf(11), buf(13)), // with moe_route, which it does itself
		call("moe_down_fp4", 1, buf(87), buf(13), buf(11), buf(12), buf(14)),
	}
	got := chain(calls, &sm90)
	want := [][]int{{0, 6}, {1, 3, 7, 8}, {2, 4, 9, 10}, {5}, {11}}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if len(got[i]) != len(want[i]) || got[i][0] != want[i][0] || got[i][len(got[i])-1] != want[i][len(want[i])-1] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}
