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
const LatentShared = rowsShared

// BundleShared is what bundles of products may have of a GPU's shared memory besides what
// they have at rest.
func BundleShared(limit int) int { return min(128<<10, limit-1024) }

// Images are what the program embeds; a test compares them with the files.
var Images = []Image{
	{Name: "pack", Small: "pack_bf16 pack_fp8 pack_fp4"},
	{Name: "blocks", Small: "pack_fp8b unpack_fp8b"},
	{Name: "gemm", Small: "gemm_bf16_2_1 gemm_bf16_2_2 gemm_bf16_2_4 gemm_bf16_2_8 gemm_bf16_4_1 gemm_bf16_4_2 " +
		"gemm_bf16_4_4 gemm_bf16_4_8 gemm_bf16_8_1 gemm_bf16_8_2 gemm_bf16_8_4 gemm_bf16_8_8 " +
		"gemm_fp8_2_1 gemm_fp8_2_2 gemm_fp8_2_4 gemm_fp8_2_8 gemm_fp8_8_1 gemm_fp8_8_2 gemm_fp8_8_4 " +
		"gemm_fp8_8_8 gemm_fp8b_1_1 gemm_fp8b_1_2 gemm_fp8b_1_4 gemm_fp8b_1_8 gemm_fp8b_2_1 " +
		"gemm_fp8b_2_2 gemm_fp8b_2_4 gemm_fp8b_2_8 gemm_fp4_8 gemm_fp4_64 gemm_f32"},
	{Name: "bundle", Small: "bundle_1 bundle_8 bundle_brief", Large: "bundle_held"},
	{Name: "broad", Large: "broad_bf16 broad_fp8"},
	{Name: "moe", Small: "moe_group moe_up_bf16_8 moe_up_bf16_32 moe_up_fp8b_8 moe_up_fp8b_32 moe_up_f32 moe_down_fp8b " +
		"moe_down_fp8b_8 moe_down_fp8b_32 moe_down_bf16 moe_down_f32 moe_down_bf16_8 moe_down_bf16_32 " +
		"moe_combine"},
	{Name: "experts_up", Large: "experts_up_fp4_1 experts_up_fp4_2"},
	{Name: "experts_ring", Large: "experts_up_fp4_6144"},
	{Name: "experts_down", Large: "experts_down_fp4_0_1 experts_down_fp4_0_2 experts_down_fp4_256_2 experts_down_fp4_all"},
	{Name: "fp4mma", Small: "pack_fp4a4 quant_fp4 gemm_fp4a4_8 gemm_fp4a4_32 moe_up_fp4a4_8 moe_up_fp4a4_32 moe_down_fp4a4_8 " +
		"moe_down_fp4a4_32 combine_fp4a4"},
	{Name: "fp4tensor", Small: "pack_fp4t fp4_tensor_16 fp4_tensor_32"},
	{Name: "wide", Small: "wide_split_bf16 wide_split_fp4 few_sum", Large: "wide_bf16_64 wide_bf16_128 wide_fp4_64 wide_fp4_128 few_bf16_16_4 few_bf16_32_4 few_bf16_64_4 " +
		"few_fp4_16_4 few_fp4_32_4 few_fp4_64_4 few_bf16_16_6 few_bf16_32_6 few_bf16_64_6 few_fp4_16_6 " +
		"few_fp4_32_6 few_fp4_64_6"},
	{Name: "team", Large: "team_bf16 team_fp8"},
	{Name: "heads", Large: "heads_bf16 heads_gate_bf16"},
	{Name: "wide_moe", Small: "moe_split_fp4", Large: "wide_up_fp4 wide_down_fp4"},
	{Name: "wide_many", Large: "wide_many_fp4"},
	{Name: "exact", Small: "exact_gemm_bf16 exact_gemm_fp8 exact_gemm_fp8b exact_gemm_fp4 exact_up_bf16 exact_up_fp8b " +
		"exact_up_fp4 exact_down_bf16 exact_down_fp8b exact_down_fp4"},
	{Name: "rows", Small: "add_norm gather_rows embed quant_pairs"},
	{Name: "route", Small: "moe_route moe_route_many"},
	{Name: "attend", Small: "mla_combine kv_cast", Large: "mla_attend_f32 mla_attend_bf16 mla_attend_fp8"},
	{Name: "attend_glm", Large: "mla_attend_glm_bf16", Wide: true, Latent: true},
	{Name: "attend_few", Large: "mla_attend_few_16 mla_attend_few_8", Wide: true, Latent: true},
	{Name: "attend_rows", Large: "mla_attend_rows_fp8 mla_attend_rows2_fp8 mla_attend_rows4_fp8", Latent: true},
	{Name: "indexer", Small: "index_logits_f32_1_4_0 index_logits_bf16_2_4_0 index_logits_bf16_4_4_1 index_logits_fp8_2_4_0 " +
		"index_logits_fp8_4_4_1"},
	{Name: "indexer_glm", Small: "index_split_bf16 index_split_fp8", Large: "index_pages_bf16 index_pages_fp8 index_rows_bf16 index_rows_fp8"},
	{Name: "topk", Small: "index_topk_1_1024_8 index_topk_1_512_16 index_topk_1_1024_16"},
	{Name: "topk_cluster", Small: "index_topk_8_1024_32", Large: "index_topk_8_512_32"},
	{Name: "sample", Small: "feed sample"},
	{Name: "comm", Small: "reduce_norm reduce_rows gather_columns sum_parts barrier"},
	{Name: "host", Small: "fault carry clock_read"},
}
