package plan

// Hopper: wgmma, bulk copies into shared memory, clusters. Its kernels give the bits of
// the portable ones.
var sm90 = Architecture{Name: "sm90", Major: 9, Minor: 0, Panels: true, Variants: []Variant{
	{Name: "gemm cluster", Op: "gemm", Formats: bf16AndFP8, When: isTeam, Build: planTeam,
		Why: "17 to 256 rows: src/team.cu, whose clusters share a tile's k and the rows' panels"},
	{Name: "gemm per head", Op: "gemm", Formats: bf16, When: isHeads, Build: planHeads,
		Why: "17 to 256 rows of at most 512 columns: a block has its weights in shared memory"},
	{Name: "q_absorb per head", Op: "q_absorb", Formats: bf16, When: isHeads, Build: planHeads, Why: "likewise"},
	{Name: "v_up per head", Op: "v_up", Formats: bf16, When: isHeads, Build: planHeads, Why: "likewise"},
	{Name: "gemm split-k", Op: "gemm", Formats: bf16AndFP4, When: isFew, Build: planFew,
		Why: "where blocks that share k are estimated to be faster than those that have all of it"},
	{Name: "q_absorb split-k", Op: "q_absorb", Formats: bf16, When: isFew, Build: planFew, Why: "likewise"},
	{Name: "v_up split-k", Op: "v_up", Formats: bf16, When: isFew, Build: planFew, Why: "likewise"},
	{Name: "gemm wide", Op: "gemm", Formats: bf16AndFP4, When: isWide, Build: planWide,
		Why: "tiles of 64 or 128 rows, by the estimate of manyTiles"},
	{Name: "q_absorb wide", Op: "q_absorb", Formats: bf16, When: isWide, Build: planWide, Why: "likewise"},
	{Name: "v_up wide", Op: "v_up", Formats: bf16, When: isWide, Build: planWide, Why: "likewise"},

	{Name: "moe_up many rows", Op: "moe_up", Formats: fp4, When: isManyUp, Build: planManyUp,
		Why: "above 48 rows an expert, on average, src/wide_many.cu is faster"},
	{Name: "moe_up wide", Op: "moe_up", Formats: fp4, When: isWideUp, Build: planWideUp,
		Why: "it pays from 3 rows an expert on, on average"},
	{Name: "moe_up ring", Op: "moe_up", Formats: fp4, When: isRing, Build: planRing,
		Why: "6,144 columns: weights come by bulk copies"},
	{Name: "moe_down wide", Op: "moe_down", Formats: fp4, When: isWideDown, Build: planWideDown, Why: "as moe_up wide"},

	{Name: "index_logits pages", Op: "index_logits", Formats: bf16AndFP8, When: isIndexPages, Build: planIndexPages,
		Why: "few rows, or each of its own sequence: blocks have pages"},
	{Name: "index_logits rows", Op: "index_logits", Formats: bf16AndFP8, When: isIndexGLM, Build: planIndexRows,
		Why: "from 128 rows of few sequences on: blocks have keys that rows share"},
}}
