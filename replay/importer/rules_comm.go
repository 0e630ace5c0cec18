package importer

// commRules are for collectives and what moves data between devices. NCCL names
// its kernels by function, type and algorithm (ncclKernel_, from 2.19 ncclDevKernel_);
// its symmetric kernels are ncclSymDevKernel_ in 2.27 and ncclSymkDevKernel_ since.
var commRules = []Rule{
	{`nccl(Sym|Symk)?(Dev)?Kernel_+AllReduce|ncclAllReduce|multimem_(all_reduce|one_shot)|(one|two)_shot_(multimem_)?all_reduce|cross_device_reduce_[12]stage|allreduce_(one|two)_shot|quickreduce::|QuickReduce`, "comm.ar",
		[]string{"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
			"ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)", "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(ncclSymkDevWorkArgs4K)",
			"ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f8e5m2(ncclSymkDevWorkArgs4K)", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
			"multimem_all_reduce_kernel", "one_shot_all_reduce_kernel", "two_shot_all_reduce_kernel", "vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>",
			"void aiter::cross_device_reduce_1stage_naive<__hip_bfloat16, 8>", "quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<__hip_bfloat16, CodecQ4>>"}},
	{`allreduce_fusion_kernel|(oneshot|twoshot)_?[Aa]ll[Rr]educe|rmsNormLamport|lamport_allreduce|moe_?reduction_allreduce|allreduce_prototype|reduce_scatter_cross_device_store|allreduce_rms|AllReduceRMSNorm`, "comm.ar",
		[]string{"flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport",
			"oneshotAllreduceFusionKernel", "void aiter::allreduce_fusion_kernel_1stage<__hip_bfloat16, 8>",
			"void flashinfer::trtllm_mnnvl_allreduce::twoshot_allreduce_kernel<8u, __nv_bfloat16>", "void sglang::lamport_allreduce", "flashinfer::trtllm_moe_allreduce_fusion::moereduction_allreduce_fusion_kernel_oneshot_lamport"}},
	{`nccl(Sym|Symk)?(Dev)?Kernel_+AllGather|ncclAllGather|userbuffers_allgather|multimem_all_gather|all_gather_(base_)?(intra|inter)_node|allgather_gemm`, "comm.ag",
		[]string{"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
			"ncclSymkDevKernel_AllGather_STMC(ncclSymkDevWorkArgs4K)", "ncclKernel_AllGather_RING_LL_Sum_int8_t",
			"all_gather_base_intra_node_kernel", "triton_dist_allgather_gemm"}},
	{`nccl(Sym|Symk)?(Dev)?Kernel_+ReduceScatter|ncclReduceScatter|userbuffers_reducescatter|reduce_scatter_(base_)?(intra|inter)_node|multimem_reduce_scatter`, "comm.rs",
		[]string{"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
			"ncclSymkDevKernel_ReduceScatter_LL_sum_f32(ncclSymkDevWorkArgs4K)", "ncclSymkDevKernel_ReduceScatter_RailA2A_LsaLD_sum_bf16", "ncclReduceScatterRingLLKernel_sum_f32(ncclColl)"}},
	{`(deep_ep|dpsk::ep)::|pplx::|a2a_(dispatch|combine)|a2a_kernels|nccl(Sym|Symk)?(Dev)?Kernel_+(Sym_)?AllToAll|ncclDevKernel_AlltoAll|all_to_all_vdev|moeA2A|moeAllToAll|mori::|EpDispatch|EpCombine`, "comm.a2a",
		[]string{"deep_ep::internode::dispatch<...>", "void deep_ep::intranode::dispatch<8, 768, 8192>",
			"void deep_ep::internode_ll::combine<3, 10, 7168, 9>", "void deep_ep::layout::get_dispatch_layout<256, " +
				"32, 8>",
			"void pplx::a2a_kernels::a2a_dispatch_send_kernel", "ncclDevKernel_AlltoAll_RING(ncclDevKernelArgsStorage<4096ul>)", "void tensorrt_llm::kernels::mnnvl_throughput::moeA2ADispatchKernel<8>", "mori::moe::EpDispatchIntraNodeKernel<hip_bfloat16>"}},
	{`nccl(Dev)?Kernel_SendRecv|ncclSendRecv`, "comm.p2p",
		[]string{"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
			"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t"}},
	{`nccl(Dev)?Kernel_Broadcast|ncclBroadcast`, "comm.bc",
		[]string{"ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"}},
	{`^(void )?nccl|^rccl|^mscclKernel|mscclpp|nvshmem|roc_?shmem|userbuffers|pytorch_custom_ar|all_reduce|all_gather|reduce_scatter|all_?to_?all|^(void )?[\w:]*allreduce|^(void )?[\w:]*(allgather|reducescatter)`, "comm",
		[]string{"ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_Reduce_Sum_bf16_RING_LL",
			"mscclKernel_Sum_half_LL_false(ncclDevComm*, mscclAlgo*, mscclWork*)",
			"void mscclpp::collective::allreducePacket<__half>", "nvshmemi_proxy_quiet", "void nvshmemi_transfer_rma_p<int>", "void pytorch_custom_ar::all_reduce"}},
}
