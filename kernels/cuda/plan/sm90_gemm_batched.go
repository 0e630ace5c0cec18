package plan

import "glmbatch/kernels"

// Products of few columns for each head, whose block has its weights in shared memory:
// src/gemm/sm90_gemm_batched.cu.

// batchedRows is the most rows that src/gemm/sm90_gemm_batched.cu is the fastest for, and aloneRows
// where there is one head: its blocks have 16 rows, and read the weights for each 16 again. At 256
// rows the shared expert's down product took it 24 us, silu_mul and src/gemm/sm90_gemm_persistent.cu
// take 8.
const (
	batchedRows = 256
	aloneRows   = 128
)

func batchedShared(k int32) int32 { return 1024 + k*64 + k*128 + 4*8*128*4 + 16*68*4 + 16 }

func isBatchedGemm(b *builder, c *call) bool {
	a := &c.gemm
	most := int32(batchedRows)
	if a.heads == 1 {
		most = aloneRows
	}
	return a.k <= gatedColumns && c.slices == 1 && a.m > fewRows && a.m <= most && a.k%64 == 0 && a.n%64 == 0 &&
		(a.x|a.y)%16 == 0 && (a.ldx|a.ldy|a.xhead|a.yhead)%4 == 0 && ceil(a.k/16, 8)%2 == 0 &&
		batchedShared(a.k) <= b.t.Shared
}

func planBatchedGemm(b *builder, c *call) error {
	a := &c.gemm
	p := &batchedGemmP{w: a.w, x: a.x, y: a.y, at: a.at, m: a.m, n: a.n, k: a.k, ldx: a.ldx, ldy: a.ldy,
		per: int32(ceil(a.k/16, 8)), xhead: a.xhead, yhead: a.yhead,
		global: a.global, whead: a.whead, rope: a.rope, pos: a.pos, nrope: a.nrope, rounded: a.rounded}
	grid := [3]uint32{uint32(a.n / 64), ceil(a.m, 16), uint32(a.heads)}
	if a.rope != 0 {
		grid[0]++
	} else if a.heads > 1 && a.yhead == a.n {
		p.panels = b.leave(a.y, a.m, a.heads*a.n, a.ldy)
	}
	if b.beside && a.rope != 0 {
		p.late, b.behind = 1, true
	}
	entry := "gemm_batched_bf16"
	if a.heads == 1 {
		if s := b.takeSilu(a.x, func(s *rowwiseP) bool { return s.m == a.m && s.x%16 == 0 && s.ldx%4 == 0 }); s != nil {
			entry, p.x, p.ldx, p.act, p.actAt, p.ldact = "gemm_batched_silu_bf16", s.x, s.ldx, s.y, s.at, s.ldy
		}
	}
	return b.do(entry, grid, 256, uint32(batchedShared(a.k)), p)
}

// mayBeBatched reports whether a product may be for src/gemm/sm90_gemm_batched.cu.
func mayBeBatched(c *kernels.Call) bool {
	return c.Kernel == "gemm_bf16" && !asksExact(c) && c.Dims.M > fewRows && c.Dims.M <= aloneRows
}
