package importer

import (
	"regexp"
	"strings"

	"glmbatch/kernels"
)

// Rule gives kernels whose name matches a class. The first rule that matches
// wins, so the order is part of the meaning.
type Rule struct {
	Pattern  string // RE2
	Class    string
	Examples []string // names, or pieces of names, that must come to this rule
}

const unclassified = "unclassified"

// Rules is the ordered table. Patterns come from names seen in traces of vLLM,
// SGLang, TensorRT-LLM, FlashInfer, PyTorch and NCCL.
var Rules = []Rule{
	// Kernels of copies to and from the cache carry names of attention libraries.
	{`reshape_and_cache(_flash)?_kernel|concat_and_cache_mla|store_kvcache|set_mla_kv_buffer|fused_fp8_set_kv_buffer`, "kv.write",
		[]string{"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char>", "vllm::concat_and_cache_mla_kernel", "set_mla_kv_buffer_kernel"}},
	{`gather_and_maybe_dequant_cache|copy_all_layer_kv_cache`, "kv.cast",
		[]string{"vllm::gather_and_maybe_dequant_cache<__nv_bfloat16>", "copy_all_layer_kv_cache_tiled"}},
	{`flash::prepare_varlen|get_mla_metadata|_copy_page_indices_kernel|create_flashinfer_kv_indices`, "sched",
		[]string{"flash::prepare_varlen_num_blocks_kernel", "get_mla_metadata_kernel", "create_flashinfer_kv_indices_triton"}},

	// Quantisation before matrix products: names hold the products' types.
	{`cvt_fp16_to_fp4(_expert)?|silu_(and_)?mul_cvt_fp16_to_fp4|nvfp4_quantize|scaled_fp4_quant`, "quant.fp4",
		[]string{"vllm::cvt_fp16_to_fp4<__nv_bfloat16>", "silu_and_mul_cvt_fp16_to_fp4", "nvfp4_quantize_kernel"}},
	{`quantize_with_block_size<.*BlockScaleQuantizationType`, "quant.fp4",
		[]string{"void tensorrt_llm::kernels::quantize_with_block_size<(tensorrt_llm::kernels::BlockScaleQuantizationType)2, __nv_bfloat16, 32>"}},
	{`scaled_fp8_quant_kernel|per_token_group_quant_(8bit|fp8)|per_token_cast_to_fp8|dynamic_per_token_scaled`, "quant.fp8",
		[]string{"vllm::dynamic_per_token_scaled_fp8_quant_kernel", "per_token_group_quant_8bit_kernel"}},

	{`^bmm_E2m1_E2m1E2m1_Fp32|^bmm_Bfloat16_E2m1E2m1_Fp32`, "gemm.fp4.moe",
		[]string{"bmm_E2m1_E2m1E2m1_Fp32_t128x8x512", "bmm_Bfloat16_E2m1E2m1_Fp32_t128x8x512"}},
	{`^bmm_MxE4m3_MxE2m1MxE4m3|^bmm_Bfloat16_MxE2m1MxE4m3`, "gemm.fp4.moe",
		[]string{"bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x64x256_swiGlu", "bmm_Bfloat16_MxE2m1MxE4m3_Fp32"}},
	{`^bmm_E4m3_E4m3E4m3|^bmm_Bfloat16_E4m3E4m3`, "gemm.fp8.moe",
		[]string{"bmm_E4m3_E4m3E4m3_Fp32", "bmm_Bfloat16_E4m3E4m3_Fp32"}},
	{`^gemm_Bfloat16_E4m3E4m3`, "gemm.fp8", []string{"gemm_Bfloat16_E4m3E4m3_Fp32_t128x8x128"}},
	{`DeviceGemmFp4GemmSm100|cutlass3x_sm100_bstensorop.*block_scaled_ue4m3xf4|nvjet_sm100_ootst.*UE4M3|nvjet_ootst_FP4`, "gemm.fp4",
		[]string{"void cutlass::device_kernel<flashinfer::gemm::DeviceGemmFp4GemmSm100<...>>", "cutlass3x_sm100_bstensorop_s256x64x64gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32", "nvjet_sm100_ootst_128x64_UE4M3"}},
	{`cutlass::device_kernel<.*(GroupProblemShape|PtrArray).*(float_e2m1_t|nv_float4_t|mx_float4_t|BlockScaled)|cutlass::device_kernel<.*(float_e2m1_t|nv_float4_t|mx_float4_t|BlockScaled).*(GroupProblemShape|PtrArray)`, "gemm.fp4.moe",
		[]string{"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<...>, cutlass::nv_float4_t<cutlass::float_e2m1_t>>>"}},
	{`cutlass::device_kernel<.*(float_e2m1_t|nv_float4_t|mx_float4_t|BlockScaled)`, "gemm.fp4",
		[]string{"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>, cutlass::nv_float4_t<cutlass::float_e2m1_t>>>"}},
	{`marlin_moe_wna16::Marlin`, "gemm.fp4.moe", []string{"void marlin_moe_wna16::Marlin<__nv_bfloat16, 1125899906909960l>"}},
	{`marlin::Marlin\b`, "gemm.fp4", []string{"void marlin::Marlin<__nv_bfloat16, 1125899906909960l>"}},
	{`_matmul_ogs_.*mxfp4`, "gemm.fp4.moe", []string{"_matmul_ogs_NNT_bf16xbf16xmxfp4_64x256x128x1_swiglu"}},
	{`deep_gemm::sm100_fp8_fp4_gemm`, "gemm.fp4", []string{"void deep_gemm::sm100_fp8_fp4_gemm_1d1d_impl<...>"}},
	{`deep_gemm::sm90_fp8_gemm_1d2d|deep_gemm::(sm\d+_)?fp8_gemm|_w8a8_(triton_)?block_(fp8|scaled)_(matmul|mm)|sm90_xmma_gemm_e4m3`, "gemm.fp8",
		[]string{"void deep_gemm::sm90_fp8_gemm_1d2d_impl<...>", "_w8a8_block_fp8_matmul", "_w8a8_triton_block_scaled_mm", "sm90_xmma_gemm_e4m3e4m3_e4m3f32"}},
	{`fused_moe_kernel`, "gemm.moe", []string{"fused_moe_kernel"}},
	{`splitKreduce_kernel|SplitK.*Reduce`, "gemm.splitk", []string{"void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>"}},
	{`^nvjet_(sm\d+_)?(tst|hsh|tss|qqtst)?_?\d+x\d+`, "gemm.bf16", []string{"nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", "nvjet_tst_128x8_64x12_4x1_v_bz_splitK_TNT"}},
	{`sm(80|90|100)_xmma_gemm|ampere_.*gemm|cutlass_.*tensorop.*gemm|^Cijk_|fused_a_gemm_kernel`, "gemm.bf16",
		[]string{"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", "ampere_bf16_s16816gemm_bf16_64x64", "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV", "fused_a_gemm_kernel"}},

	{`fmhaSm100[af]Kernel_Qkv.*(ForGen|Gen\b)`, "attn.decode", []string{"fmhaSm100aKernel_QkvE4m3OBfloat16HQk576HV512HVPerCta256PagedKvDenseStaticTokenSparseP1VarSeqQ16Kv128StaticSwapsAbForGen"}},
	{`fmhaSm100[af]Kernel_Qkv`, "attn.prefill", []string{"fmhaSm100aKernel_QkvBfloat16OBfloat16H128SeparateQkvCausalVarSeqQ128Kv128PersistentContext"}},
	{`fmhaReductionKernel|reduce_segments|flash_fwd_(splitkv_)?(mla_)?combine|FlashAttnFwdCombine|paged_attention.*reduce`, "attn.reduce",
		[]string{"fmhaReductionKernel", "reduce_segments", "void flash_fwd_mla_combine_kernel<...>", "paged_attention_ll4mi_reduce_kernel"}},
	{`flash_fwd_splitkv_mla(_fp8)?(_sparse)?_kernel|BatchDecodeWithPagedKVCache|BatchMLAPagedAttention`, "attn.decode",
		[]string{"sm90::flash_fwd_splitkv_mla_kernel<...>", "flash_fwd_splitkv_mla_fp8_sparse_kernel", "flashinfer::BatchDecodeWithPagedKVCacheKernel"}},
	{`FlashAttnFwdSm90`, "attn", []string{"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<...>>>"}},
	{`BatchPrefillWith|PrefillWithKVCacheKernel`, "attn.prefill", []string{"flashinfer::BatchPrefillWithPagedKVCacheKernel"}},
	{`kernel_unified_attention_[23]d|paged_attention_(ll4mi|v[12])`, "attn.decode",
		[]string{"kernel_unified_attention_2d", "kernel_unified_attention_3d", "paged_attention_ll4mi_QKV_mfma16_kernel", "vllm::paged_attention_v1_kernel"}},
	{`fp8_paged_mqa_logits|mqa_logits|indexer`, "attn.indexer", []string{"deep_gemm::sm90_fp8_paged_mqa_logits", "indexer_k_quant_and_cache_kernel"}},
	{`flash_fwd_(splitkv_)?kernel|pytorch_flash::|flash_attn|fmha_cutlass|flash_bwd_`, "attn", []string{"void pytorch_flash::flash_fwd_kernel<...>", "flash_fwd_splitkv_kernel", "fmha_cutlassF_bf16_aligned"}},

	{`RopeQuantizeKernel|rotary_embedding_kernel|BatchQKApplyRotary|applyMLARope|rotary_kernel`, "rope",
		[]string{"flashinfer::RopeQuantizeKernel", "vllm::rotary_embedding_kernel<c10::BFloat16>", "BatchQKApplyRotaryPosIdsCosSinCacheKernel"}},

	// Copies: casts, layout changes, fills. Casts are promoted to kv.cast by size.
	{`elementwise_kernel.*(float8_copy_kernel_cuda|direct_copy_kernel_cuda.*(LoadWithCast|StoreWithCast))`, "copy.cast",
		[]string{"void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>, 4, at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >", "void at::native::vectorized_elementwise_kernel<4, at::native::float8_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >"}},
	{`bfloat16(tofloat32)?_copy_kernel_cuda|float16_copy_kernel_cuda|float16tofloat32_copy_kernel_cuda`, "copy.cast",
		[]string{"void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul> >"}},
	{`direct_copy_kernel_cuda`, "copy.layout", []string{"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}>>"}},
	{`CatArrayBatchedCopy`, "copy.layout", []string{"void at::native::(anonymous namespace)::CatArrayBatchedCopy_vectorized<...>"}},
	{`FillFunctor`, "fill", []string{"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >"}},

	{`_topk_forward|_combined_routing_(compute|memset)|_sum_bitmatrix_rows|_compute_writeback_idx|topkGating(Softmax|SoftplusSqrt)?|moe_fused_gate|grouped_topk`, "moe.route",
		[]string{"_topk_forward", "_combined_routing_compute", "vllm::moe::topkGatingSoftmax<...>", "grouped_topk_fused_kernel"}},
	{`moe::dev::routing::|routingMainKernel|routingIndices(Histogram|Offsets|Cluster|Coop)`, "moe.route",
		[]string{"void moe::dev::routing::routingRenormalize::routingIndicesClusterKernel<...>", "routingMainKernel"}},
	{`moe_align_block_size|count_and_sort_expert_tokens|expandInputRowsKernel|computeExpertOffsets|computeStridesTmaWarpSpecialized|fusedBuildExpertMaps|moe_permute|shuffle_rows|permute_copy`, "moe.permute",
		[]string{"vllm::moe::moe_align_block_size_kernel<int>", "count_and_sort_expert_tokens_kernel", "expandInputRowsKernel", "fusedBuildExpertMapsSortFirstTokenKernel"}},
	{`finalizeMoeRoutingKernel|finalizeKernelVecLoad|moe_sum(_reduce)?|_finalize_matmul_scatter|moe::dev::finalize`, "moe.finalize",
		[]string{"finalizeMoeRoutingKernel", "moe::dev::finalize::finalizeKernelVecLoad", "moe_sum_kernel"}},
	{`doActivationKernel|activationDeepSeekKernel|act_and_mul_kernel|silu_and_mul|swiglu|silu_kernel|gelu.*kernel|GeluCUDAKernel`, "act",
		[]string{"doActivationKernel", "vllm::act_and_mul_kernel<c10::BFloat16>", "void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)>"}},

	// Collectives, before the rules for reductions and norms.
	{`ncclDevKernel_AllReduce|ncclKernel_AllReduce|multimem_all_reduce|one_shot_all_reduce|two_shot_all_reduce|cross_device_reduce_[12]stage`, "comm.ar",
		[]string{"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "multimem_all_reduce_kernel", "vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>"}},
	{`allreduce_fusion_kernel_(oneshot_lamport|twoshot_sync)|(oneshot|twoshot)Allreduce(Fusion)?Kernel|rmsNormLamport`, "comm.ar",
		[]string{"flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport", "oneshotAllreduceFusionKernel"}},
	{`nccl(Dev)?Kernel_(_)?AllGather|userbuffers_allgather`, "comm.ag", []string{"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclKernel_AllGather_RING_LL_Sum_int8_t"}},
	{`nccl(Dev)?Kernel_ReduceScatter`, "comm.rs", []string{"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"}},
	{`(deep_ep|dpsk::ep)::(inter|intra)node::(dispatch|combine|notify|cached_notify)|nccl(Dev)?Kernel_SendRecv`, "comm.a2a",
		[]string{"deep_ep::internode::dispatch<...>", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t"}},
	{`^nccl(Dev)?Kernel`, "comm", []string{"ncclDevKernel_Broadcast_RING_LL"}},

	{`fused_add_rms_norm|FusedAddRMSNorm|rms_norm_kernel|RMSNormKernel|Rmsnorm2d|add_rmsnorm_quant|rmsnorm|layer_norm_kernel|LayerNorm|cuApplyLayerNorm`, "norm",
		[]string{"vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>", "flashinfer::norm::FusedAddRMSNormKernel", "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, true>"}},
	{`TopKTopPSampling|TopPSampling|sampling_from_prob|gatherTopK|ArgMaxOps|DeviceRadixSort|SoftMaxForward|softmax_warp_forward|bitonicSort|radixSort|multinomial|DeviceSegmentedSort`, "sample",
		[]string{"flashinfer::sampling::TopKTopPSamplingFromProbKernel", "void at::native::sbtopk::gatherTopK<float, unsigned int, 1, false>", "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::BFloat16, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >", "void (anonymous namespace)::softmax_warp_forward<float, float, float, 11, false, false>"}},
	{`vectorized_gather_kernel|indexSelect|index_elementwise_kernel|embedding`, "embed",
		[]string{"void at::native::vectorized_gather_kernel<16, long>", "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<...>>"}},
	{tritonFused, "triton", []string{"triton_poi_fused__to_copy_1", "triton_red_fused_rms_norm_3"}},
	{`gemvx::kernel|gemv2T_kernel|gemvNSP_kernel|gemmk1_kernel|gemm_kernel|[sd]gemm|_gemm_|gemm`, "gemm",
		[]string{"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>", "void gemv2T_kernel_val<int, int, float>", "volta_sgemm_128x64_tn"}},
	{`reduce_kernel<|DeviceReduce|DeviceScan`, "reduce", []string{"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>"}},
	{`elementwise_kernel|elementwise`, "elementwise", []string{"void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >", "void at::native::elementwise_kernel<128, 2, at::native::BinaryFunctor<float, float, float>>"}},
}

// tritonFused is the rule of kernels that torch.compile wrote: their names list
// the operations, so tritonClass decides.
const tritonFused = `^triton_(poi|red|per|tem|for)_fused_`

// tritonClasses are tried in order on the list of operations: what costs most
// names the kernel.
var tritonClasses = []struct{ piece, class string }{
	{"norm", "norm"}, {"mean_mul_pow_rsqrt", "norm"}, {"rsqrt", "norm"}, {"silu", "act"}, {"gelu", "act"}, {"sigmoid", "act"},
	{"rotary", "rope"}, {"cos", "rope"}, {"sin", "rope"}, {"softmax", "sample"}, {"argmax", "sample"}, {"topk", "moe.route"},
	{"embedding", "embed"}, {"index", "embed"}, {"to_copy", "copy.cast"}, {"clone", "copy.layout"}, {"cat", "copy.layout"}, {"copy", "copy.layout"},
	{"sum", "reduce"}, {"mean", "reduce"}, {"amax", "reduce"}, {"zeros", "fill"}, {"full", "fill"},
	{"add", "elementwise"}, {"mul", "elementwise"}, {"sub", "elementwise"}, {"div", "elementwise"}, {"where", "elementwise"}, {"pow", "elementwise"},
}

func tritonClass(name string) string {
	name += "_"
	for _, c := range tritonClasses {
		if strings.Contains(name, "_"+c.piece+"_") {
			return c.class
		}
	}
	return unclassified
}

var compiledRules = func() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(Rules))
	for i, r := range Rules {
		out[i] = regexp.MustCompile(r.Pattern)
	}
	return out
}()

// ownRule stands for the kernel table: the name is one of glmbatch's own, as in a
// trace that it exported itself.
const ownRule = -1

// Classify returns the class of a kernel's name and the number of the rule that
// decided, from 1; -1 where the kernel table did, 0 and "unclassified" where
// nothing matches.
func Classify(kernel string) (class string, rule int) {
	if k := kernels.Lookup(kernels.Name(kernel)); k != nil {
		return string(k.Class), ownRule
	}
	for i, re := range compiledRules {
		if !re.MatchString(kernel) {
			continue
		}
		class := Rules[i].Class
		if class == "triton" {
			class = tritonClass(kernel)
		}
		return class, i + 1
	}
	return unclassified, 0
}
