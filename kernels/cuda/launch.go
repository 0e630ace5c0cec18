//go:build cuda

package cuda

import (
	"strings"

	"glmbatch/kernels"
)

// launcher enqueues one call; at is where its stamps go, 0 for nowhere.
type launcher func(d *device, c *kernels.Call, at uintptr) error

// launchers has an entry for every row of the table; a test loops over it.
var launchers = map[kernels.Name]launcher{
	"embed_f32": embedRows, "embed_bf16": embedRows,
	"rms_norm": rmsNorm, "add_norm": addNorm, "all_reduce_norm": allReduceNorm, "all_gather": allGather,
	"gemm_f32": gemm, "gemm_bf16": gemm, "gemm_fp8": gemm, "gemm_fp4": gemm, "gemm_fp4a4": gemmQuant, "gemm_fp4a8": gemmQuant,
	"q_absorb_f32": gemm, "q_absorb_bf16": gemm, "v_up_f32": gemm, "v_up_bf16": gemm,
	"latent_write_f32": cacheWrite, "latent_write_bf16": cacheWrite, "latent_write_fp8": cacheWrite,
	"index_write_f32": cacheWrite, "index_write_bf16": cacheWrite, "index_write_fp8": cacheWrite,
	"index_logits_f32": indexLogits, "index_logits_bf16": indexLogits, "index_logits_fp8": indexLogits, "index_topk": indexTopK,
	"mla_attend_f32": attend, "mla_attend_bf16": attend, "mla_attend_fp8": attend,
	"kv_cast_fp8": kvCast,
	"silu_mul":    siluMul, "moe_route": route,
	"moe_up_f32": moeUp, "moe_up_bf16": moeUp, "moe_up_fp4": moeUp, "moe_up_fp4a4": moeUp, "moe_up_fp4a8": moeUp,
	"moe_down_f32": moeDown, "moe_down_bf16": moeDown, "moe_down_fp4": moeDown, "moe_down_fp4a4": moeDown, "moe_down_fp4a8": moeDown,
	"gather_rows": gatherRows, "feed": feed, "sample": sample,
}

func (d *device) ptr(b kernels.Buffer) uintptr {
	if b.Index == 0 {
		return 0
	}
	return d.bufs[b.Index-1].ptr + uintptr(b.Offset)
}

func (d *device) weight(b kernels.Buffer) (*weight, uintptr) {
	x := &d.bufs[b.Index-1]
	return x.w, x.ptr
}

// ld is the row stride of b in values: its pitch, or columns where it is dense.
func ld(b kernels.Buffer, columns int32) int32 {
	if b.Pitch != 0 {
		return b.Pitch / 4
	}
	return columns
}

func ceil(n, by int32) uint32 { return uint32((n + by - 1) / by) }

// format is a cache's number format as the kernels count them.
func format(n kernels.Name) (int32, string) {
	s := string(n)
	f := s[strings.LastIndexByte(s, '_')+1:]
	return map[string]int32{"f32": 0, "bf16": 1, "fp8": 2}[f], f
}
