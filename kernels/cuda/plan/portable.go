package plan

import "glmbatch/kernels"

var (
	f32        = []kernels.Format{kernels.F32}
	bf16       = []kernels.Format{kernels.BF16}
	fp4        = []kernels.Format{kernels.FP4}
	bf16AndFP8 = []kernels.Format{kernels.BF16, kernels.FP8}
	fp8b       = []kernels.Format{kernels.FP8B}
	unscaled   = []kernels.Format{kernels.BF16, kernels.FP8B} // of sums
	bf16AndFP4 = []kernels.Format{kernels.BF16, kernels.FP4}
)

// foremost come before those of an architecture.
var foremost = []Variant{
	{Name: "q_absorb merged", Op: "q_absorb", Formats: bf16, When: isMerged, Build: planMerged,
		Why: "up to 16 rows: blocks of index_topk's launch"},
	{Name: "gemm fp4 quantised", Op: "gemm", Formats: fp4, When: quantises, Build: planQuantised,
		Why: "4- and 8-bit inputs, exact in BF16, where no matrix units take them"},
}

func isGemv(_ *builder, c *call) bool      { return segmentsOf(c.Call) > 0 }
func isMultiTile(_ *builder, c *call) bool { return multiTile(c.Call) }
func quantises(_ *builder, c *call) bool   { return c.kernel.Inputs != "" && c.w.Units4 == No4 }

// portable are the kernels that every GPU has: mma.sync, cp.async, clusters of up to eight
// blocks. They come behind those of an architecture.
var portable = []Variant{
	{Name: "gemm exact", Op: "gemm", exact: exactly, Build: planExact, Why: "float32 throughout: for checks"},
	{Name: "q_absorb exact", Op: "q_absorb", exact: exactly, Build: planExact, Why: "likewise"},
	{Name: "v_up exact", Op: "v_up", exact: exactly, Build: planExact, Why: "likewise"},
	{Name: "gemm f32", Op: "gemm", Formats: f32, Build: planF32, Why: "weights that never round"},
	{Name: "q_absorb f32", Op: "q_absorb", Formats: f32, Build: planF32, Why: "likewise"},
	{Name: "v_up f32", Op: "v_up", Formats: f32, Build: planF32, Why: "likewise"},
	{Name: "gemm fp4", Op: "gemm", Formats: fp4, Build: planFP4, Why: "tiles of 8 or 64 tokens"},
	{Name: "gemm gemv", Op: "gemm", Formats: bf16AndFP8, When: isGemv, Build: planGemv,
		Why: "up to 8 rows read weights alone: a warp a slice of k, in a horizontal fusion"},
	{Name: "q_absorb gemv", Op: "q_absorb", Formats: bf16, When: isGemv, Build: planGemv, Why: "likewise"},
	{Name: "v_up gemv", Op: "v_up", Formats: bf16, When: isGemv, Build: planGemv, Why: "likewise"},
	{Name: "gemm gemv multi-tile", Op: "gemm", Formats: bf16AndFP8, When: isMultiTile, Build: planMultiTile,
		Why: "more than 400 blocks of a tile each do not run at once: blocks of 6 tiles"},
	{Name: "gemm fp8 block scales", Op: "gemm", Formats: fp8b, When: isFp8Block, Build: planFp8Block,
		Why: "up to 16 rows read FP8 weights with scales for blocks as they are"},
	{Name: "gemm unpacked", Op: "gemm", Formats: fp8b, Build: planUnpacked,
		Why: "for more they are made BF16 in scratch memory"},
	{Name: "gemm tiles", Op: "gemm", Formats: bf16AndFP8, Build: planTiles, Why: "all other rows, by mma.sync"},
	{Name: "q_absorb tiles", Op: "q_absorb", Formats: bf16, Build: planTiles, Why: "likewise"},
	{Name: "v_up tiles", Op: "v_up", Formats: bf16, Build: planTiles, Why: "likewise"},

	{Name: "moe_up exact", Op: "moe_up", exact: exactly, Build: planExactUp, Why: "float32 throughout: for checks"},
	{Name: "moe_up f32", Op: "moe_up", Formats: f32, Build: planUpF32, Why: "weights that never round"},
	{Name: "moe_up fp4", Op: "moe_up", Formats: fp4, Build: planUpFP4,
		Why: "blocks make their lists of rows: up to 4 of an expert at a time"},
	{Name: "moe_up direct", Op: "moe_up", Formats: unscaled, When: isDirect, Build: planUpDirect,
		Why: "up to 64 pairs, a group each: making lists takes longer"},
	{Name: "moe_up grouped", Op: "moe_up", Formats: unscaled, Build: planUpGrouped,
		Why: "rows grouped by expert, 8 or 32 at a time"},
	{Name: "moe_down exact", Op: "moe_down", exact: exactly, Build: planExactDown,
		Why: "float32 throughout: for checks"},
	{Name: "moe_down f32", Op: "moe_down", Formats: f32, Build: planDownF32, Why: "weights that never round"},
	{Name: "moe_down fp4", Op: "moe_down", Formats: fp4, Build: planDownFP4,
		Why: "of 3 to 96 rows one launch has all experts of its outputs; else blocks make their lists"},
	{Name: "moe_down direct", Op: "moe_down", Formats: unscaled, When: isDirect, Build: planDownDirect,
		Why: "up to 64 pairs: a block has all experts of its outputs"},
	{Name: "moe_down grouped", Op: "moe_down", Formats: unscaled, Build: planDownGrouped,
		Why: "rows grouped by expert, then added"},
	{Name: "moe_route", Op: "moe_route", Build: planRoute,
		Why: "a warp a row; of up to 8 rows and 256 experts in a horizontal fusion"},

	{Name: "mla_attend latent", Op: "mla_attend", When: isLatent, Build: planLatent,
		Why: "GLM-5's sizes: see latentFP8"},
	{Name: "mla_attend split-kv", Op: "mla_attend", Build: planSplits,
		Why: "all other sizes, and GPUs with little shared memory"},
	{Name: "kv_cast", Op: "kv_cast", Build: planCast, Why: "only replay's what-if"},
	{Name: "latent_write", Op: "latent_write", Build: planWrite, Why: "in a horizontal fusion"},
	{Name: "index_write", Op: "index_write", Build: planWrite, Why: "in a horizontal fusion"},
	{Name: "index_logits", Op: "index_logits", Build: planLogits, Why: "by mma.sync: see indexShapeOf"},
	{Name: "index_topk", Op: "index_topk", Build: planTopK,
		Why: "a block a row, of more than 16,384 scores eight: see topShapes"},

	{Name: "embed", Op: "embed", Build: planEmbed},
	{Name: "rms_norm", Op: "rms_norm", Build: planNorm, Why: "in a horizontal fusion"},
	{Name: "add_norm", Op: "add_norm", Build: planAddNorm},
	{Name: "silu_mul", Op: "silu_mul", Build: planSilu, Why: "in a horizontal fusion, or in the product behind it"},
	{Name: "all_reduce_norm", Op: "all_reduce_norm", Build: planReduceNorm, Why: "see crossovers"},
	{Name: "all_gather", Op: "all_gather", Build: planGather},
	{Name: "all_gather_rows", Op: "all_gather_rows", Build: planGatherOwn},
	{Name: "reduce_scatter_norm", Op: "reduce_scatter_norm", Build: planScatterNorm},
	{Name: "gather_rows", Op: "gather_rows", Build: planGatherRows},
	{Name: "feed", Op: "feed", Build: planFeed},
	{Name: "accept", Op: "accept", Build: planAccept},
	{Name: "sample", Op: "sample", Build: planSample},
}
