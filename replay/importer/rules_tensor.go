package importer

// embedRules come before those of matrix products, whose word is in FBGEMM's name.
var embedRules = []Rule{
	{`embedding_(backward|dense_backward)|split_embedding.*(backward|grad)|krn_partial|compute_grad_weight|sum_and_scatter|EmbeddingBag.*backward`, "embed.bwd",
		[]string{"split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<c10::Half>",
			"void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float>",
			"split_embedding_codegen_grad_indice_weights_kernel"}},
	{`embedding|Embedding|permute_pooled_embs|bounds_check_indices|linearize_index|fbgemm_gpu::(permute|_offsets_range|_?block_bucketize|bucketize)`, "embed",
		[]string{"split_embedding_codegen_forward_unweighted_kernel<c10::Half>",
			"void vllm::vocab_parallel_embedding_kernel", "void permute_pooled_embs_kernel<float>",
			"void fbgemm_gpu::permute_2D_data_kernel<false, int>", "bounds_check_indices_kernel<long, false>"}},
}

// tensorRules are for norms, copies, reductions and the rest of what tensor
// libraries run, the general last.
var tensorRules = []Rule{
	{tritonFused, byOperations, []string{"triton_poi_fused__to_copy_1", "triton_red_fused_rms_norm_3",
		"triton_tem_fused_mm_0", "triton_poi_fused_0"}},

	{`doActivation|activationDeepSeek|act_and_mul|silu_and_mul|silu_mul|gelu_and_mul|swiglu|silu_kernel|silu_backward|gelu.*kernel|Gelu(Backward)?CUDAKernel|relu|sigmoid_(kernel|backward)|hardswish|mish_kernel|leaky|tanh_(kernel|backward)|SwiGLU`, "act",
		[]string{"doActivationKernel", "vllm::act_and_mul_kernel<c10::BFloat16>",
			"void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous " +
				"namespace)::silu_kernel(at::TensorIteratorBase&)>",
			"void at::native::vectorized_elementwise_kernel<4, " +
				"at::native::sigmoid_kernel_cuda(at::TensorIteratorBase&)>",
			"void at::native::vectorized_elementwise_kernel<4, " +
				"at::native::tanh_backward_kernel_cuda(at::TensorIteratorBase&)>", "_silu_and_mul_post_quant_kernel"}},

	// Copies: casts, layout changes, fills. Casts are promoted to kv.cast by size.
	{`elementwise_kernel.*(float8_copy_kernel_cuda|direct_copy_kernel_cuda.*(LoadWithCast|StoreWithCast))`, "copy.cast",
		[]string{"void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>, 4, at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >", "void at::native::vectorized_elementwise_kernel<4, at::native::float8_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >"}},
	{`bfloat16(tofloat32)?_copy_kernel_cuda|float16_copy_kernel_cuda|float16tofloat32_copy_kernel_cuda`, "copy.cast",
		[]string{"void at::native::vectorized_elementwise_kernel<8, " +
			"at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, " +
			"2ul> >"}},
	{`direct_copy_kernel_cuda`, "copy.layout", []string{"void at::native::elementwise_kernel<128, 4, " +
		"at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}>>"}},
	{`CatArrayBatchedCopy|transpose_kernel|_copy_kernel\b|copy_kernel$`, "copy.layout",
		[]string{"void at::native::(anonymous namespace)::CatArrayBatchedCopy_vectorized<...>",
			"void transpose_kernel_any_float<float>"}},
	{`FillFunctor|fill_kernel|zeros_kernel|arange_cuda|elementwise_kernel_with_index`, "fill",
		[]string{"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, " +
			"std::array<char*, 1ul> >", "void (anonymous namespace)::elementwise_kernel_with_index<int, " +
			"at::native::arange_cuda_out>"}},

	{`batch_norm.*backward|bn_bw_|bnbwd|BatchNormBackward|BwdBatchNorm|MIOpenBatchNormBwd`, "norm.batch.bwd",
		[]string{"void at::native::batch_norm_backward_reduce_cl_kernel<4, float>",
			"void cudnn::bn_bw_1C11_singleread<float, 512, true, 1, 2, 0>"}},
	{`batch_norm|bn_fw_|BatchNorm|bn_fwd`, "norm.batch",
		[]string{"void at::native::batch_norm_collect_statistics_kernel<at::native::InvStd, float>",
			"void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>", "MIOpenBatchNormFwdTrainSpatial"}},
	{`GammaBeta(Backward)?|layer_norm_grad|layer_?norm.*(backward|bwd)|rms_?norm.*(backward|bwd)|ln_bwd|GroupNorm.*[Bb]ackward|cuComputeGradInput|cuComputePartGradGammaBeta`, "norm.bwd",
		[]string{"void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float, float>",
			"void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<float, float>",
			"void transformer_engine::normalization::rmsnorm_bwd_general_kernel", "_layer_norm_bwd_kernel"}},
	{`rms_?norm|RMS_?Norm|RmsNorm|Rmsnorm|layer_?norm|LayerNorm|Layernorm2d|cuApplyLayerNorm|ln_fwd|RowwiseMoments|GroupNorm|group_norm|l2norm|instance_norm`, "norm",
		[]string{"vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>", "flashinfer::norm::FusedAddRMSNormKernel",
			"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, true>",
			"ck_tile::kentry<256, 1, ck_tile::Rmsnorm2dFwd<...>>", "void at::native::(anonymous " +
				"namespace)::RowwiseMomentsCUDAKernel<float>", "_layer_norm_fwd_1pass_kernel",
			"void aiter::add_rmsnorm_quant_kernel"}},

	{`multi_tensor_apply|[Aa]dam|FusedSgd|fused_sgd|LAMB|lamb_|amp_(non_finite|update_scale)|rowwise_adagrad_(?:dense)|adafactor|muon_`, "optimizer",
		[]string{"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous " +
			"namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous " +
			"namespace)::FusedAdamMathFunctor<float, 4>>",
			"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous " +
				"namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::BinaryOpScalarFunctor<float, " +
				"1, 1, 0>>",
			"void at::native::amp_update_scale_cuda_kernel"}},

	// What picks tokens by name; a softmax or a sort may be anybody's.
	{`TopKTopP|TopPSampling|TopKSampling|MinPSampling|sampling_from|SamplingFrom|Sampling.*Kernel|multinomial|RenormProb|MaskLogits|ArgMaxOps|apply_repetition_penalt|top_?k_?mask_logits|gumbel|_sample_kernel|exponential_kernel|distribution_elementwise`, "sample",
		[]string{"flashinfer::sampling::TopKTopPSamplingFromProbKernel",
			"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::BFloat16, " +
				"at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >", "void at::native::(anonymous " +
				"namespace)::sampleMultinomialOnce_multinomial<float>",
			"void vllm::apply_repetition_penalties_kernel<float>"}},
	{`[Ss]oft_?[Mm]ax`, "softmax", []string{"void (anonymous namespace)::softmax_warp_forward<float, float, float, " +
		"11, false, false>", "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>",
		"void (anonymous namespace)::softmax_warp_backward<float>"}},
	{`gatherTopK|sbtopk|mbtopk|[Rr]adix_?[Ss]ort|bitonicSort|[Mm]ergeSort|SegmentedSort|RadixTopK|FilteredTopK|topk|TopK|::sort|sort_kernel|DeviceCompact|DeviceSelect|DeviceUnique|RunLengthEncode|DeviceReduceByKey`, "sort",
		[]string{"void at::native::sbtopk::gatherTopK<float, unsigned int, 1, false>",
			"void at::native::bitonicSortKVInPlace<-2, -1, 16, 16, float, long>",
			"void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800>",
			"void at::native::mbtopk::radixFindKthValues<float>",
			"void cub::DeviceCompactInitKernel<cub::ReduceByKeyScanTileState<int>>",
			"flashinfer::sampling::RadixTopKKernel_Unified"}},

	{`index_put|scatter|indexing_backward|index_fill|index_copy|indexFunc`, "copy.scatter",
		[]string{"void at::native::index_elementwise_kernel<128, 4, " +
			"at::native::gpu_index_kernel<at::native::index_put_kernel_impl<at::native::OpaqueType<1> >>>",
			"void at::native::_scatter_gather_elementwise_kernel<128, 4, " +
				"at::native::_cuda_scatter_gather_internal_kernel<true, float>::operator()<at::native::ReduceAdd>>"}},
	{`vectorized_gather_kernel|indexSelect|index_elementwise_kernel|gather_kernel|index_kernel|takeKernel|gather_rows`,
		"copy.gather",
		[]string{"void at::native::vectorized_gather_kernel<16, long>",
			"void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<...>>",
			"void at::native::(anonymous namespace)::indexSelectLargeIndex<long, long, unsigned int, 1, 1, -2, true>"}},
	{`nll_loss|cross_entropy|CrossEntropy|MSELoss|binary_cross_entropy|loss_kernel`, "loss",
		[]string{"void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float>",
			"cross_entropy_fwd_kernel"}},
	{`[Dd]ropout|philox|random_kernel|normal_kernel`, "random",
		[]string{"void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, " +
			"4, bool>"}},
	{`max_pool|avg_pool|pooling|upsample|interpolate`, "pool",
		[]string{"void at::native::(anonymous namespace)::max_pool_forward_nchw<float, int>",
			"void cudnn::pooling_fw_4d_kernel<float>"}},
	{`reduce_kernel<|DeviceReduce|DeviceScan|tensor_kernel_scan|cumsum|segment_reduce|reduce_\w*kernel|compute_cuda_kernel`, "reduce",
		[]string{"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>",
			"void cub::DeviceScanKernel<cub::AgentScanPolicy<128, 15, int>>",
			"void at::native::tensor_kernel_scan_innermost_dim<float>",
			"void compute_cuda_kernel<long>(long*, long*, long*, long, long)"}},
	{`elementwise|CUDAFunctor|Pointwise|pointwise|_add_kernel|_mul_kernel`, "elementwise",
		[]string{"void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, " +
			"std::array<char*, 3ul> >", "void at::native::elementwise_kernel<128, 2, " +
			"at::native::BinaryFunctor<float, float, float>>"}},
}
