package importer

// quantRules are for quantisation around matrix products: their names hold the
// products' types.
var quantRules = []Rule{
	{`cvt_fp16_to_fp4(_expert)?|silu_(and_)?mul_cvt_fp16_to_fp4|nvfp4_quant|NVFP4Quantize|scaled_fp4_quant|mxfp4_quant|dynamic_mxfp4|fp4_quantize|quantize_nvfp4|quant_mxfp4`, "quant.fp4",
		[]string{"vllm::cvt_fp16_to_fp4<__nv_bfloat16>", "silu_and_mul_cvt_fp16_to_fp4", "nvfp4_quantize_kernel",
			"_dynamic_mxfp4_quant_kernel"}},
	{`quantize_with_block_size<.*BlockScaleQuantizationType\)2`, "quant.fp8", // MXFP8
		[]string{"void tensorrt_llm::kernels::quantize_with_block_size<(tensorrt_llm::kernels::BlockScaleQuantizationType)2, __nv_bfloat16, 32>"}},
	{`quantize_with_block_size<`, "quant.fp4",
		[]string{"void tensorrt_llm::kernels::quantize_with_block_size<(tensorrt_llm::kernels::BlockScaleQuantizationType)0, __nv_bfloat16, 16>"}},
	{`int8_quant|quant_per_(block|warp|token|thread)_int8|QuantInt8|per_token_quant_int8|scaled_int8_quant|SubMeanKernel`, "quant.int8",
		[]string{"void vllm::dynamic_scaled_int8_quant_kernel<c10::BFloat16>", "void QuantInt8Kernel<128u, 64u>",
			"quant_per_block_int8_kernel", "_per_token_quant_int8"}},
	{`scaled_fp8_quant|per_token_group_quant|per_token_cast_to_fp8|dynamic_per_token_scaled|per_group_quant|scale_1x128_kernel|[Qq]uantize.*(FP8|fp8|e4m3)|FP8_?[Qq]uant|float_to_hfp8|get_FP8_qparam|per_token_quant_fp8|static_per_tensor_quant|dynamic_per_group_scaled_quant|TransposePadPermute|MeanScaleKernel`, "quant.fp8",
		[]string{"vllm::dynamic_per_token_scaled_fp8_quant_kernel", "per_token_group_quant_8bit_kernel",
			"void scale_1x128_kernel<__nv_bfloat16, __nv_fp8_e4m3>",
			"void fbgemm_gpu::(anonymous namespace)::_compute_FP8_quantize_cuda_kernel<float>",
			"void aiter::dynamic_per_group_scaled_quant_kernel<ck_tile::bf16_t>", "void MeanScaleKernel<64u>"}},
	{`hfp8_to_float|FP8rowwise_to_float|dequant|Dequant`, "dequant",
		[]string{"void fbgemm_gpu::(anonymous namespace)::_FP8rowwise_to_float_cuda_kernel<float>",
			"awq_dequantize_kernel", "void vllm::gptq::reconstruct_exllama_dequant"}},
	{`gptq_marlin_repack|awq_marlin_repack|permute_cols_kernel`, "weights",
		[]string{"void gptq_marlin_repack_kernel<256, 4, false>"}},
}

// convRules are for convolutions, many of which are named as matrix products.
var convRules = []Rule{
	{`nchwToNhwc|nhwcToNchw|nchwTo|nhwcTo|batched_transpose_\d`, "copy.layout",
		[]string{"void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>",
			"void cudnn::ops::nhwcToNchwKernel<float, float, float, true, false>"}},
	{`causal_conv1d|_fprop_|fprop_implicit|_dgrad_|dgrad_implicit|_wgrad_|wgrad_implicit|implicit_(convolve|gemm)|ImplicitGemm|convolve|[Cc]onv[123]d|conv_depthwise|DepthwiseConv|winograd|miopen.*[Cc]onv|igemm_(fwd|bwd|wrw)|naive_conv|im2col|col2im|fft2d_|grouped_conv|cudnn::cnn`, "conv",
		[]string{"sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32",
			"void cutlass_tensorop_bf16_s16816fprop_optimized_bf16_128x128_dgrad_implicit",
			"void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1>",
			"sm90_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32", "void at::native::(anonymous " +
				"namespace)::conv_depthwise2d_forward_kernel<3, float, int>",
			"miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1",
			"igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt256x256x32",
			"void ck::kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffle<...>", "void at::native::im2col_kernel<float>",
			"_causal_conv1d_fwd_kernel", "void cudnn::cnn::conv2d_grouped_direct_kernel<false>"}},
}

// moeRules are for what is around the products of experts.
var moeRules = []Rule{
	{`_topk_forward|_combined_routing_(compute|memset)|_sum_bitmatrix_rows|_compute_writeback_idx|topk_?[Gg]ating|moe_fused_gate|grouped_topk|fused_topk|topk_(softmax|sigmoid)|moe_topk`, "moe.route",
		[]string{"_topk_forward", "_combined_routing_compute", "vllm::moe::topkGatingSoftmax<...>",
			"grouped_topk_fused_kernel", "void aiter::grouped_topk_opt_sort_kernel<ck_tile::bf16_t>",
			"void moe_fused_gate_kernel<cutlass::bfloat16_t>"}},
	{`moe::dev::routing::|routingMainKernel|routingIndices`, "moe.route",
		[]string{"void moe::dev::routing::routingRenormalize::routingIndicesClusterKernel<...>", "routingMainKernel"}},
	{`moe_align_block_size|count_and_sort_expert_tokens|expandInputRows|computeExpertOffsets|computeStrides|compute_(expert|problem|arg)_|fusedBuildExpertMaps|blockExpertPrefixSum|globalExpertPrefixSum|mergeExpertPrefixSum|moe_permute|shuffle_rows|permute_copy|permute_tokens|[Mm]oe_?[Ss]ort|ep_(scatter|gather)|moe_ep_|deepgemm_compute_src2dst`, "moe.permute",
		[]string{"vllm::moe::moe_align_block_size_kernel<int>", "count_and_sort_expert_tokens_kernel",
			"expandInputRowsKernel", "fusedBuildExpertMapsSortFirstTokenKernel", "ck_tile::kentry<512, 1, " +
				"ck_tile::MoeSortingMultiPhaseKernel_P0<...>>", "_fwd_kernel_ep_scatter_2"}},
	{`finalizeMoeRouting|finalizeKernel|moe_sum|_finalize_matmul_scatter|moe::dev::finalize|moe_unpermute|unpermute_|post_reorder`, "moe.finalize",
		[]string{"finalizeMoeRoutingKernel", "moe::dev::finalize::finalizeKernelVecLoad", "moe_sum_kernel",
			"void sgl::moe_sum_reduce_kernel", "post_reorder_triton_kernel"}},
}

// gemmRules are for matrix products. Their classes end in the format that the name
// tells, never in one that an architecture's prefix suggests.
var gemmRules = []Rule{
	{`splitKreduce_kernel|SplitK.*Reduce|splitk_reduce|Cijk_SplitK|PostGSU`, "gemm.splitk",
		[]string{"void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>",
			"void deep_gemm::splitk_reduce", "Cijk_D_PostGSU8_BBS_BH"}},
	{`^bmm_(\w+)_\w+_t\d+|^bmm_\w*(E2m1|E4m3|Bfloat16)`, "gemm.*.moe",
		[]string{"bmm_E2m1_E2m1E2m1_Fp32_t128x8x512", "bmm_Bfloat16_E2m1E2m1_Fp32_t128x8x512",
			"bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x64x256_swiGlu", "bmm_E4m3_E4m3E4m3_Fp32", "bmm_Bfloat16_E4m3E4m3_Fp32"}},
	{`(cutlass::device_kernel<|GemmUniversal|cutlass::Kernel).*(GroupProblemShape|PtrArray|MoeFC|GroupedGemm|GemmGrouped)`, "gemm.*.moe",
		[]string{"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<...>, cutlass::nv_float4_t<cutlass::float_e2m1_t>>>", "void cutlass::Kernel<cutlass::gemm::kernel::MoeFCGemm<cutlass::bfloat16_t>>"}},
	{`marlin_moe_wna16::Marlin|deep_gemm::.*\(?(deep_gemm::)?GemmType\)?[12]|m_grouped|_matmul_ogs_|fused_moe_kernel|[Ff]moe_|MoeFlatmm|kernel_moe_gemm|moe_gemm|moe_stage[12]|mfma_moe[12]|invoke_fused_moe|grouped_gemm|GroupedGemm|group_gemm|grouped_mm|Moe(Gemm|FC)|moe_mxgemm|b12x.*[Mm]oe`, "gemm.*.moe",
		[]string{"void marlin_moe_wna16::Marlin<__nv_bfloat16, 1125899906909960l, 562949953487106l, " +
			"1125899906909960l, 2814749767172868l, 256, 1, 8, 8>",
			"_matmul_ogs_NNT_bf16xbf16xmxfp4_64x256x128x1_swiglu", "fused_moe_kernel",
			"void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u, 7168u, 256u, 64u, (deep_gemm::GemmType)2>",
			"aiter::fmoe_fp8_blockscale_g1u1", "aiter::fmoe_bf16_pertokenMXfp4_g1u1_flat_novs_silu_16x256",
			"void ck::kernel_moe_gemm_2lds<ck::GridwiseMoeGemmBlockScale<ck::f8_t>>", "ck_tile::kentry<256, 1, " +
				"ck_tile::GroupedGemmKernel<bf16_t>>"}},
	{`[Mm]arlin`, "gemm.*", []string{"void marlin::Marlin<__nv_bfloat16, 1125899907892224l, 256, 1, 8, 8>",
		"void marlin::Marlin<__nv_bfloat16, 1125899906909960l, 562949953487106l, 1125899906909960l, " +
			"2814749767172868l, 256, 1, 8, 8>", "void marlin::Marlin<half, 256, 1, 8, 8>"}},
	{`_w8a8_(triton_)?block_(fp8|scaled)_(matmul|mm)`, "gemm.fp8", []string{"_w8a8_block_fp8_matmul",
		"_w8a8_triton_block_scaled_mm"}},
	{`fused_a_gemm_kernel|router_gemm_kernel`, "gemm.*",
		[]string{"void fused_a_gemm_kernel<1, 2112, 7168, __nv_bfloat16>",
			"void router_gemm_kernel_float_output<__nv_bfloat16, 128>"}},
	{`^nvjet_`, "gemm.*", []string{"nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT",
		"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT", "nvjet_qqtst_128x128_128x6_1x2_h_bz_TNT",
		"nvjet_sm100_ootst_128x64_UE4M3", "nvjet_sss_tf32_128x256_TNT"}},
	{`Cijk_`, "gemm.*", []string{"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x256",
		"Cijk_Alik_Bljk_F8BS_BH_Bias_HA_S_SAB_SAV_UserArgs_MT256", "Cijk_Ailk_Bljk_SB_MT128x128x16_MI32x32x2",
		"Cijk_Alik_Bljk_HHS_BH_MT64x64x32"}},
	{`deep_gemm::|DeviceGemmFp4|cutlass3x_|_xmma_gemm|tensorop.*gemm|s\d+gemm|wgmma.*gemm|cutlass::device_kernel<.*gemm::|cutlass::Kernel.*[Gg]emm|cutlass::Kernel2?<cutlass_`, "gemm.*",
		[]string{"void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 2112u, 7168u, (deep_gemm::GemmType)0>",
			"void deep_gemm::sm100_fp8_fp4_gemm_1d1d_impl<...>",
			"void cutlass::device_kernel<flashinfer::gemm::DeviceGemmFp4GemmSm100<...>>",
			"cutlass3x_sm100_bstensorop_s256x64x64gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32",
			"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", "sm90_xmma_gemm_e4m3e4m3_e4m3f32",
			"sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize32x32x8",
			"sm80_xmma_gemm_i8i8_i8i32_f32_tn_n", "ampere_bf16_s16816gemm_bf16_64x64_ldg8",
			"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_32x6_nn_align4>",
			"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn",
			"void cutlass::Kernel2<cutlass_80_tensorop_i16832gemm_s8_128x256_64x3_tn_align16>",
			"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>, " +
				"cutlass::nv_float4_t<cutlass::float_e2m1_t>>>"}},
	{`gemvx::kernel|gemv[A-Z0-9]\w*_kernel|gemvNSP_kernel|gemmk1_kernel|gemmSN_|dot_kernel|[sdchz]gemm|wvSplitK|LLMM1|LLGemm1|gemm|Gemm|GEMM|gemv|_mm_kernel|matmul|Matmul`, "gemm.*",
		[]string{"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float>",
			"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, __nv_bfloat16>",
			"void gemv2T_kernel_val<int, int, float>", "volta_sgemm_128x64_tn", "ampere_dgemm_64x64_nn",
			"void wvSplitK_hf_sml_<__hip_bfloat16, 64, 2, 16>", "aiter::bf16gemm_fp32bf16_tn_96x64",
			"aiter::f4gemm_bf16_per1x32Fp4_BpreShuffle_256x256",
			"void ck::kernel_gemm_xdl_cshuffle_v3_multi_d_b_preshuffle<ck::f8_t>", "_gemm_a8w8_blockscale_kernel",
			"my_gemm_kernel", "matmul_kernel"}},
	{`epilogue::impl::globalKernel`, "gemm.epilogue",
		[]string{"void epilogue::impl::globalKernel<float, float, float, true, true>"}},
	{`^(void )?scal_kernel`, "elementwise", []string{"void scal_kernel<float, float, 1, false, 6, 5, 5, 3>"}},
}
