package plan

// Hopper: wgmma, bulk copies into shared memory, clusters. Its kernels give the bits of
// the portable ones.
var sm90 = Architecture{Name: "sm90", Major: 9, Minor: 0, Panels: true, Variants: []Variant{
	{Name: "gemm cluster", Op: "gemm", Formats: bf16AndFP8, When: isClusterGemm, Build: planClusterGemm,
		Why: "17 to 64 rows: src/gemm/sm90_gemm_cluster.cu, whose clusters share a tile's k and the rows' panels"},
	{Name: "gemm batched", Op: "gemm", Formats: bf16, When: isBatchedGemm, Build: planBatchedGemm,
		Why: "17 to 128 rows (heads: 256) of at most 512 columns: a block has its weights in shared memory"},
	{Name: "gemm persistent", Op: "gemm", Formats: bf16AndFP8, When: isPersistentGemm, Build: planPersistentGemm,
		Why: "more rows: src/gemm/sm90_gemm_persistent.cu, 1.2 to 2.3 times as fast at 128 to 1,024 rows, and more for " +
			"FP8 weights"},
	{Name: "q_absorb batched", Op: "q_absorb", Formats: bf16, When: isBatchedGemm, Build: planBatchedGemm,
		Why: "likewise"},
	{Name: "v_up batched", Op: "v_up", Formats: bf16, When: isBatchedGemm, Build: planBatchedGemm, Why: "likewise"},
	{Name: "gemm split-k", Op: "gemm", Formats: bf16AndFP4, When: isSplitK, Build: planSplitK,
		Why: "where blocks that share k are estimated to be faster than those that have all of it"},
	{Name: "q_absorb split-k", Op: "q_absorb", Formats: bf16, When: isSplitK, Build: planSplitK, Why: "likewise"},
	{Name: "v_up split-k", Op: "v_up", Formats: bf16, When: isSplitK, Build: planSplitK, Why: "likewise"},
	{Name: "gemm wgmma", Op: "gemm", Formats: bf16AndFP4, When: isWgmma, Build: planWgmma,
		Why: "tiles of 64 or 128 rows, by the estimate of wgmmaTiles"},
	{Name: "q_absorb wgmma", Op: "q_absorb", Formats: bf16, When: isWgmma, Build: planWgmma, Why: "likewise"},
	{Name: "v_up wgmma", Op: "v_up", Formats: bf16, When: isWgmma, Build: planWgmma, Why: "likewise"},

	{Name: "moe_up wgmma 128", Op: "moe_up", Formats: fp4, When: isMoeUpWgmma128, Build: planMoeUpWgmma128,
		Why: "above 48 rows an expert, on average, src/moe/sm90_moe_up_wgmma_128.cu is faster"},
	{Name: "moe_up wgmma", Op: "moe_up", Formats: fp4, When: isMoeUpWgmma, Build: planMoeUpWgmma,
		Why: "it pays from 3 rows an expert on, on average"},
	{Name: "moe_up warp-specialized", Op: "moe_up", Formats: fp4, When: isMoeUpWS, Build: planMoeUpWS,
		Why: "6,144 columns: weights come by bulk copies"},
	{Name: "moe_down wgmma", Op: "moe_down", Formats: fp4, When: isMoeDownWgmma, Build: planMoeDownWgmma,
		Why: "as moe_up wgmma"},

	{Name: "index_logits pages", Op: "index_logits", Formats: bf16AndFP8, When: isIndexPages, Build: planIndexPages,
		Why: "few rows, or each of its own sequence: blocks have pages"},
	{Name: "index_logits rows", Op: "index_logits", Formats: bf16AndFP8, When: isIndexGLM, Build: planIndexRows,
		Why: "from 128 rows of few sequences on: blocks have keys that rows share"},
}}
