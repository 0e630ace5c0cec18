package plan

import "strings"

// Image is a compiled source file and its kernels, names with spaces between.
type Image struct {
	Name   string
	Small  string
	Large  string // those that may have as much shared memory as a block can
	Wide   bool   // they may have clusters of more than eight blocks
	Latent bool   // they need a multiprocessor's whole shared memory; GPUs with less go without
}

// Entries are the names of its kernels.
func (i *Image) Entries() []string { return strings.Fields(i.Small + " " + i.Large) }

// LatentShared is the shared memory that a block of a Latent image needs.
const LatentShared = mlaPersistentShared

// HFuseShared is what fused products may have of a GPU's shared memory besides what
// they have at rest.
func HFuseShared(limit int) int { return min(128<<10, limit-1024) }

// Images are what the program embeds; a test compares them with the files.
var Images = []Image{
	{Name: "pack_weights", Small: "pack_bf16 pack_fp8 pack_fp4"},
	{Name: "pack_fp8_block", Small: "pack_fp8b unpack_fp8b"},
	{Name: "gemm",
		Small: "gemm_bf16_2_1 gemm_bf16_2_2 gemm_bf16_2_4 gemm_bf16_2_8 gemm_bf16_4_1 gemm_bf16_4_2 " +
			"gemm_bf16_4_4 gemm_bf16_4_8 gemm_bf16_8_1 gemm_bf16_8_2 gemm_bf16_8_4 gemm_bf16_8_8 gemm_fp8_2_1 " +
			"gemm_fp8_2_2 gemm_fp8_2_4 gemm_fp8_2_8 gemm_fp8_8_1 gemm_fp8_8_2 gemm_fp8_8_4 gemm_fp8_8_8 " +
			"gemm_fp8b_1_1 gemm_fp8b_1_2 gemm_fp8b_1_4 gemm_fp8b_1_8 gemm_fp8b_2_1 gemm_fp8b_2_2 " +
			"gemm_fp8b_2_4 gemm_fp8b_2_8 gemm_fp4_8 gemm_fp4_64 gemm_f32"},
	{Name: "hfuse", Small: "hfuse_1 hfuse_8 hfuse_short_k", Large: "hfuse_prefetch"},
	{Name: "gemv_multi_tile", Large: "gemv_multi_tile_bf16 gemv_multi_tile_fp8"},
	{Name: "moe",
		Small: "moe_group moe_up_bf16_8 moe_up_bf16_32 moe_up_fp8b_8 moe_up_fp8b_32 moe_up_f32 moe_down_fp8b " +
			"moe_down_fp8b_8 moe_down_fp8b_32 moe_down_bf16 moe_down_f32 moe_down_bf16_8 moe_down_bf16_32 " +
			"moe_combine"},
	{Name: "moe_up_fp4", Large: "moe_up_fp4_1 moe_up_fp4_2"},
	{Name: "sm90_moe_up_fp4_ws", Large: "moe_up_fp4_ws_6144"},
	{Name: "moe_down_fp4", Large: "moe_down_fp4_0_1 moe_down_fp4_0_2 moe_down_fp4_256_2 moe_down_fp4_all"},
	{Name: "sm120_w4a4",
		Small: "pack_fp4a4_mma quant_fp4 gemm_fp4a4_8 gemm_fp4a4_32 moe_up_fp4a4_8 moe_up_fp4a4_32 " +
			"moe_down_fp4a4_8 moe_down_fp4a4_32 combine_fp4a4"},
	{Name: "sm100_w4a4", Small: "pack_fp4a4_tcgen05 fp4a4_tcgen05_16 fp4a4_tcgen05_32"},
	{Name: "sm90_gemm_wgmma",
		Small: "pack_panels_bf16 pack_panels_fp4 gemm_split_k_sum",
		Large: "gemm_wgmma_bf16_64 gemm_wgmma_bf16_128 gemm_wgmma_fp4_64 gemm_wgmma_fp4_128 " +
			"gemm_split_k_bf16_16_4 gemm_split_k_bf16_32_4 gemm_split_k_bf16_64_4 gemm_split_k_fp4_16_4 " +
			"gemm_split_k_fp4_32_4 gemm_split_k_fp4_64_4 gemm_split_k_bf16_16_6 gemm_split_k_bf16_32_6 " +
			"gemm_split_k_bf16_64_6 gemm_split_k_fp4_16_6 gemm_split_k_fp4_32_6 gemm_split_k_fp4_64_6"},
	{Name: "sm90_gemm_cluster", Large: "gemm_cluster_bf16 gemm_cluster_fp8 gemm_cluster_rounded_bf16 gemm_cluster_rounded_fp8"},
	{Name: "sm90_gemm_persistent",
		Large: "gemm_persistent_bf16_64x64 gemm_persistent_bf16_128x64 gemm_persistent_bf16_128x128 " +
			"gemm_persistent_bf16_192x64 gemm_persistent_bf16_192x128 gemm_persistent_bf16_64x64_k " +
			"gemm_persistent_bf16_128x128_k gemm_persistent_bf16_192x64_k " +
			"gemm_persistent_bf16_192x128_k gemm_persistent_fp8_64x64 gemm_persistent_fp8_128x64 " +
			"gemm_persistent_fp8_128x128 gemm_persistent_fp8_192x64 gemm_persistent_fp8_192x128 " +
			"gemm_persistent_fp8_64x64_k gemm_persistent_fp8_128x128_k gemm_persistent_fp8_192x64_k " +
			"gemm_persistent_fp8_192x128_k gemm_persistent_rounded_bf16_64x64 " +
			"gemm_persistent_rounded_bf16_128x64 gemm_persistent_rounded_bf16_128x128 " +
			"gemm_persistent_rounded_bf16_192x64 gemm_persistent_rounded_bf16_192x128 " +
			"gemm_persistent_rounded_bf16_64x64_k gemm_persistent_rounded_bf16_128x128_k " +
			"gemm_persistent_rounded_bf16_192x64_k gemm_persistent_rounded_bf16_192x128_k " +
			"gemm_persistent_rounded_fp8_64x64 gemm_persistent_rounded_fp8_128x64 " +
			"gemm_persistent_rounded_fp8_128x128 gemm_persistent_rounded_fp8_192x64 " +
			"gemm_persistent_rounded_fp8_192x128 gemm_persistent_rounded_fp8_64x64_k " +
			"gemm_persistent_rounded_fp8_128x128_k gemm_persistent_rounded_fp8_192x64_k " +
			"gemm_persistent_rounded_fp8_192x128_k " +
			"gemm_persistent_rounded_bf16_128x192 gemm_persistent_rounded_fp8_128x192"},
	{Name: "sm90_gemm_batched", Large: "gemm_batched_bf16 gemm_batched_silu_bf16"},
	{Name: "sm90_moe_wgmma", Small: "moe_pack_panels_fp4",
		Large: "moe_up_wgmma_fp4 moe_up_wgmma_rounded_fp4 moe_down_wgmma_fp4 moe_down_wgmma_rounded_fp4"},
	{Name: "sm90_moe_up_wgmma_128", Large: "moe_up_wgmma_128_fp4 moe_up_wgmma_128_rounded_fp4"},
	{Name: "gemm_exact",
		Small: "exact_gemm_bf16 exact_gemm_fp8 exact_gemm_fp8b exact_gemm_fp4 exact_up_bf16 exact_up_fp8b " +
			"exact_up_fp4 exact_down_bf16 exact_down_fp8b exact_down_fp4"},
	{Name: "rowwise", Small: "add_norm gather_rows embed quant_pairs"},
	{Name: "moe_route", Small: "moe_route moe_route_many"},
	{Name: "mla_split_kv", Small: "mla_combine kv_cast", Large: "mla_attend_f32 mla_attend_bf16 mla_attend_fp8"},
	{Name: "mla_bf16_cluster", Large: "mla_attend_bf16_cluster_16", Wide: true, Latent: true},
	{Name: "mla_fp8_cluster", Large: "mla_attend_fp8_cluster_16 mla_attend_fp8_cluster_8", Wide: true, Latent: true},
	{Name: "mla_fp8_persistent",
		Large:  "mla_attend_fp8_persistent_1 mla_attend_fp8_persistent_2 mla_attend_fp8_persistent_4",
		Latent: true},
	{Name: "index_logits",
		Small: "index_logits_f32_1_4_0 index_logits_bf16_2_4_0 index_logits_bf16_4_4_1 index_logits_fp8_2_4_0 " +
			"index_logits_fp8_4_4_1"},
	{Name: "sm90_index_logits",
		Small: "index_pack_bf16 index_pack_fp8",
		Large: "index_logits_pages_bf16 index_logits_pages_fp8 index_logits_rows_bf16 index_logits_rows_fp8 " +
			"index_logits_rows_rounded_bf16 index_logits_rows_rounded_fp8"},
	{Name: "index_topk", Small: "index_topk_1_1024_8 index_topk_1_512_16 index_topk_1_1024_16"},
	{Name: "index_topk_cluster", Small: "index_topk_8_1024_32", Large: "index_topk_8_512_32"},
	{Name: "sample", Small: "feed sample accept"},
	{Name: "collectives", Small: "reduce_norm reduce_rows gather_columns sum_parts barrier"},
	{Name: "row_collectives", Small: "all_gather_rows reduce_scatter_norm"},
	{Name: "host", Small: "fault host_copy clock_read"},
}
