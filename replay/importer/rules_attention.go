package importer

// cacheRules are for what goes into and out of the KV cache, and for what plans
// attention: names of attention libraries that are no attention.
var cacheRules = []Rule{
	{`reshape_and_cache(_flash)?_kernel|concat_and_cache_mla|store_kvcache|set_mla_kv_buffer|fused_fp8_set_kv_buffer|AppendPagedKVCache|FmhaFwdAppendKV|store_kv_cache|write_kv_cache`, "kv.write",
		[]string{"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char>", "vllm::concat_and_cache_mla_kernel", "set_mla_kv_buffer_kernel",
			"void flashinfer::AppendPagedKVCacheKernel<128u, 8u, __nv_bfloat16>", "ck_tile::kentry<256, 1, ck_tile::FmhaFwdAppendKVKernel<...>>"}},
	{`gather_and_maybe_dequant_cache|copy_all_layer_kv_cache`, "kv.cast",
		[]string{"vllm::gather_and_maybe_dequant_cache<__nv_bfloat16>", "copy_all_layer_kv_cache_tiled"}},
	{`flash::prepare_varlen|get_mla_metadata|_copy_page_indices_kernel|create_flashinfer_kv_indices|create_flashmla_kv_indices|get_num_kv_splits|write_req_to_token_pool|alloc_(extend|decode)_kernel`, "sched",
		[]string{"flash::prepare_varlen_num_blocks_kernel", "get_mla_metadata_kernel", "create_flashinfer_kv_indices_triton", "kn_get_mla_metadata_v1",
			"write_req_to_token_pool_triton", "get_num_kv_splits_triton"}},
}

// attentionRules come before those of matrix products: CUTLASS' attention has both in
// its template arguments.
var attentionRules = []Rule{
	{`flash_bwd_|FlashAttnBwd|FlashAttentionBackward|fmha_cutlassB|AttentionBackwardKernel|fmha_bwd|FmhaBwd|sdpa_.*bprop|flash_attn_bwd|_attn_bwd|_bwd_(kernel_)?(dq|dk|dkdv|preprocess)`, "attn.bwd",
		[]string{"void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<...>", "fmha_cutlassB_bf16_aligned_64x64_k64_sm80", "flash::FlashAttnBwdSm90<...>",
			"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_31_64x128x128", "aiter::fmha_bwd_hd128_bf16_causal_a32_rtna", "ck_tile::kentry<256, 1, ck_tile::FmhaBwdDQDKDVKernel<...>>"}},
	{`fmhaSm\d+[af]?Kernel_Qkv.*(ForGen|Gen\b)`, "attn.decode", []string{"fmhaSm100aKernel_QkvE4m3OBfloat16HQk576HV512HVPerCta256PagedKvDenseStaticTokenSparseP1VarSeqQ16Kv128StaticSwapsAbForGen"}},
	{`fmhaSm\d+[af]?Kernel_Qkv|fmha_v2_flash_attention`, "attn.prefill",
		[]string{"fmhaSm100aKernel_QkvBfloat16OBfloat16H128SeparateQkvCausalVarSeqQ128Kv128PersistentContext", "fmha_v2_flash_attention_bf16_64_128_S_q_k_v_192x128_output_bf16_causal_tma_ws_sm90_kernel"}},
	{`fmhaReductionKernel|reduce_segments|flash_fwd_(splitkv_)?(mla_)?combine|FlashAttnFwdCombine|FlashAttentionForwardCombine|paged_attention.*reduce|SplitKVCombine|MergeStates?Kernel|merge_attn_states|kn_mla_reduce|_fwd_kernel_stage2|MlaReduction|decode_.*reduce`, "attn.reduce",
		[]string{"fmhaReductionKernel", "reduce_segments", "void flash_fwd_mla_combine_kernel<...>", "paged_attention_ll4mi_reduce_kernel", "flash::FlashAttnFwdCombine<...>",
			"ck_tile::kentry<64, 8, ck_tile::FmhaFwdSplitKVCombineKernel<...>>", "void flashinfer::PersistentVariableLengthMergeStatesKernel<8u, 16u, 8u>", "void vllm::merge_attn_states_kernel<unsigned short>",
			"kn_mla_reduce_v1", "_fwd_kernel_stage2"}},
	{`mqa_logits|indexer|fp8_index|topk_transform_decode`, "attn.indexer",
		[]string{"deep_gemm::sm90_fp8_paged_mqa_logits", "void deep_gemm::sm100_fp8_mqa_logits<64u, 128u>", "indexer_k_quant_and_cache_kernel", "fp8_index_kernel"}},
	{`flash_fwd_splitkv_mla|BatchDecodeWithPagedKVCache|SingleDecodeWithKVCache|BatchMLAPaged|FmhaMlaKernel|mla_decode|mla_dec_stage|aiter::mla_a|FmhaFwdSplitKVKernel|masked_multihead_attention|\bxqa|kernel_mha\b|_fwd_(grouped_)?kernel_stage1`, "attn.decode",
		[]string{"sm90::flash_fwd_splitkv_mla_kernel<...>", "flash_fwd_splitkv_mla_fp8_sparse_kernel", "flashinfer::BatchDecodeWithPagedKVCacheKernel", "void flashinfer::mla::hopper::BatchMLAPageAttentionHopperKernel_BatchMLAPagedAttentionKernel<...>",
			"void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaMlaKernelTmaWarpspecialized<...>>", "aiter::mla_dec_stage1_bf16_a16w16_subQ16_mqa16", "aiter::mla_a8w8_qh16_qseqlen1_gqaratio16_ps",
			"ck_tile::kentry<256, 2, ck_tile::FmhaFwdSplitKVKernel<...>>", "void mmha::masked_multihead_attention_kernel<unsigned short>", "xqa_kernel_dt_bf16_d_128_beam_1", "_fwd_grouped_kernel_stage1"}},
	{`kernel_unified_attention_[23]d|paged_attention_(ll4mi|v[12])|aiter::pa_|_pa_(fwd|bf16|decode)|paged_attention_kernel`, "attn.decode",
		[]string{"kernel_unified_attention_2d", "kernel_unified_attention_3d", "paged_attention_ll4mi_QKV_mfma16_kernel", "vllm::paged_attention_v1_kernel", "aiter::pa_bf16_pertokenFp8_gqa8_1tg_4w"}},
	{`BatchPrefillWith|SinglePrefillWith|PrefillWithKVCacheKernel|sparse_attn_fwd|FmhaBatchPrefill|FmhaFwdPagedKV|_fwd_kernel_unified|mla_pfl|extend_attention`, "attn.prefill",
		[]string{"flashinfer::BatchPrefillWithPagedKVCacheKernel", "void flashinfer::SinglePrefillWithKVCacheKernel<...>", "void sm90::fwd::sparse_attn_fwd_kernel<512>", "ck_tile::kentry<256, 2, ck_tile::FmhaBatchPrefillWithPagedKVCacheKernel<...>>"}},
	{`qk_int\d*_sv_f(8|16)|sageattn|sage_attn`, "attn", []string{"void qk_int_sv_f8_attn_kernel<64u, 64u, 32u>", "qk_int8_sv_f16_accum_f32_attn_kernel", "sageattn_qk_int8_pv_fp8_cuda_sm90"}},
	{`FlashAttnFwd|FlashAttentionForward|flash_attncute|FmhaFwd|fmha_fwd|sdpa_sm\d+_flash_fprop|native_sdpa`, "attn",
		[]string{"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<...>>>", "kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at__tensor0",
			"ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<...>>", "aiter::fmha_fwd_hd128_bf16_causal", "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0",
			"void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaFwdKernelTmaWarpspecialized<...>>"}},
	{`flash_fwd_(splitkv_)?kernel|pytorch_flash::|flash_attn|fmha_cutlassF|PyTorchMemEffAttention|attention_kernel_batched|^_attn_fwd|^_fwd_kernel$|attn_fwd`, "attn",
		[]string{"void pytorch_flash::flash_fwd_kernel<...>", "flash_fwd_splitkv_kernel", "fmha_cutlassF_bf16_aligned_64x128_rf_sm80", "void attention_kernel_batched_impl<AttentionKernel<cutlass::half_t>>", "_attn_fwd", "_fwd_kernel"}},
	{`gated_delta_rule|chunk_(fwd|scaled_dot|local_cumsum|gla|kda)|recurrent_(gated|fwd)|lightning_attn|linear_attn`, "attn.linear",
		[]string{"chunk_gated_delta_rule_fwd_kernel_h_blockdim64", "fused_recurrent_gated_delta_rule_fwd_kernel", "chunk_fwd_kernel_o"}},
	{`selective_(scan|state)|_chunk_(scan|state|cumsum)_fwd|_state_passing_fwd|mamba`, "ssm", []string{"void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<32, 16>>", "_chunk_scan_fwd_kernel", "_selective_scan_update_kernel"}},
	{`RopeQuantize|[Rr]otary|BatchQKApplyRotary|applyMLARope|rope_kernel|_rope|Rope`, "rope",
		[]string{"flashinfer::RopeQuantizeKernel", "vllm::rotary_embedding_kernel<c10::BFloat16>", "BatchQKApplyRotaryPosIdsCosSinCacheKernel", "void aiter::fused_qk_rope_cat_and_cache_mla_kernel", "rotary_fwd_kv_kernel"}},
}
