// Written by gen.go from symbols.txt. DO NOT EDIT.
//go:build cuda

	.text
	.globl cuArray3DCreate_v2
	.hidden cuArray3DCreate_v2
	.type cuArray3DCreate_v2, @function
cuArray3DCreate_v2:
	jmp *glmbatch_slots+0(%rip)
	.globl cuArray3DGetDescriptor_v2
	.hidden cuArray3DGetDescriptor_v2
	.type cuArray3DGetDescriptor_v2, @function
cuArray3DGetDescriptor_v2:
	jmp *glmbatch_slots+8(%rip)
	.globl cuArrayCreate_v2
	.hidden cuArrayCreate_v2
	.type cuArrayCreate_v2, @function
cuArrayCreate_v2:
	jmp *glmbatch_slots+16(%rip)
	.globl cuArrayDestroy
	.hidden cuArrayDestroy
	.type cuArrayDestroy, @function
cuArrayDestroy:
	jmp *glmbatch_slots+24(%rip)
	.globl cuArrayGetDescriptor_v2
	.hidden cuArrayGetDescriptor_v2
	.type cuArrayGetDescriptor_v2, @function
cuArrayGetDescriptor_v2:
	jmp *glmbatch_slots+32(%rip)
	.globl cuCtxCreate_v2
	.hidden cuCtxCreate_v2
	.type cuCtxCreate_v2, @function
cuCtxCreate_v2:
	jmp *glmbatch_slots+40(%rip)
	.globl cuCtxDestroy_v2
	.hidden cuCtxDestroy_v2
	.type cuCtxDestroy_v2, @function
cuCtxDestroy_v2:
	jmp *glmbatch_slots+48(%rip)
	.globl cuCtxDisablePeerAccess
	.hidden cuCtxDisablePeerAccess
	.type cuCtxDisablePeerAccess, @function
cuCtxDisablePeerAccess:
	jmp *glmbatch_slots+56(%rip)
	.globl cuCtxEnablePeerAccess
	.hidden cuCtxEnablePeerAccess
	.type cuCtxEnablePeerAccess, @function
cuCtxEnablePeerAccess:
	jmp *glmbatch_slots+64(%rip)
	.globl cuCtxGetApiVersion
	.hidden cuCtxGetApiVersion
	.type cuCtxGetApiVersion, @function
cuCtxGetApiVersion:
	jmp *glmbatch_slots+72(%rip)
	.globl cuCtxGetCacheConfig
	.hidden cuCtxGetCacheConfig
	.type cuCtxGetCacheConfig, @function
cuCtxGetCacheConfig:
	jmp *glmbatch_slots+80(%rip)
	.globl cuCtxGetCurrent
	.hidden cuCtxGetCurrent
	.type cuCtxGetCurrent, @function
cuCtxGetCurrent:
	jmp *glmbatch_slots+88(%rip)
	.globl cuCtxGetDevice
	.hidden cuCtxGetDevice
	.type cuCtxGetDevice, @function
cuCtxGetDevice:
	jmp *glmbatch_slots+96(%rip)
	.globl cuCtxGetFlags
	.hidden cuCtxGetFlags
	.type cuCtxGetFlags, @function
cuCtxGetFlags:
	jmp *glmbatch_slots+104(%rip)
	.globl cuCtxGetLimit
	.hidden cuCtxGetLimit
	.type cuCtxGetLimit, @function
cuCtxGetLimit:
	jmp *glmbatch_slots+112(%rip)
	.globl cuCtxGetSharedMemConfig
	.hidden cuCtxGetSharedMemConfig
	.type cuCtxGetSharedMemConfig, @function
cuCtxGetSharedMemConfig:
	jmp *glmbatch_slots+120(%rip)
	.globl cuCtxGetStreamPriorityRange
	.hidden cuCtxGetStreamPriorityRange
	.type cuCtxGetStreamPriorityRange, @function
cuCtxGetStreamPriorityRange:
	jmp *glmbatch_slots+128(%rip)
	.globl cuCtxPopCurrent_v2
	.hidden cuCtxPopCurrent_v2
	.type cuCtxPopCurrent_v2, @function
cuCtxPopCurrent_v2:
	jmp *glmbatch_slots+136(%rip)
	.globl cuCtxPushCurrent_v2
	.hidden cuCtxPushCurrent_v2
	.type cuCtxPushCurrent_v2, @function
cuCtxPushCurrent_v2:
	jmp *glmbatch_slots+144(%rip)
	.globl cuCtxResetPersistingL2Cache
	.hidden cuCtxResetPersistingL2Cache
	.type cuCtxResetPersistingL2Cache, @function
cuCtxResetPersistingL2Cache:
	jmp *glmbatch_slots+152(%rip)
	.globl cuCtxSetCacheConfig
	.hidden cuCtxSetCacheConfig
	.type cuCtxSetCacheConfig, @function
cuCtxSetCacheConfig:
	jmp *glmbatch_slots+160(%rip)
	.globl cuCtxSetCurrent
	.hidden cuCtxSetCurrent
	.type cuCtxSetCurrent, @function
cuCtxSetCurrent:
	jmp *glmbatch_slots+168(%rip)
	.globl cuCtxSetLimit
	.hidden cuCtxSetLimit
	.type cuCtxSetLimit, @function
cuCtxSetLimit:
	jmp *glmbatch_slots+176(%rip)
	.globl cuCtxSetSharedMemConfig
	.hidden cuCtxSetSharedMemConfig
	.type cuCtxSetSharedMemConfig, @function
cuCtxSetSharedMemConfig:
	jmp *glmbatch_slots+184(%rip)
	.globl cuCtxSynchronize
	.hidden cuCtxSynchronize
	.type cuCtxSynchronize, @function
cuCtxSynchronize:
	jmp *glmbatch_slots+192(%rip)
	.globl cuDeviceCanAccessPeer
	.hidden cuDeviceCanAccessPeer
	.type cuDeviceCanAccessPeer, @function
cuDeviceCanAccessPeer:
	jmp *glmbatch_slots+200(%rip)
	.globl cuDeviceGet
	.hidden cuDeviceGet
	.type cuDeviceGet, @function
cuDeviceGet:
	jmp *glmbatch_slots+208(%rip)
	.globl cuDeviceGetAttribute
	.hidden cuDeviceGetAttribute
	.type cuDeviceGetAttribute, @function
cuDeviceGetAttribute:
	jmp *glmbatch_slots+216(%rip)
	.globl cuDeviceGetCount
	.hidden cuDeviceGetCount
	.type cuDeviceGetCount, @function
cuDeviceGetCount:
	jmp *glmbatch_slots+224(%rip)
	.globl cuDeviceGetName
	.hidden cuDeviceGetName
	.type cuDeviceGetName, @function
cuDeviceGetName:
	jmp *glmbatch_slots+232(%rip)
	.globl cuDeviceGetP2PAttribute
	.hidden cuDeviceGetP2PAttribute
	.type cuDeviceGetP2PAttribute, @function
cuDeviceGetP2PAttribute:
	jmp *glmbatch_slots+240(%rip)
	.globl cuDeviceGetUuid
	.hidden cuDeviceGetUuid
	.type cuDeviceGetUuid, @function
cuDeviceGetUuid:
	jmp *glmbatch_slots+248(%rip)
	.globl cuDeviceGetUuid_v2
	.hidden cuDeviceGetUuid_v2
	.type cuDeviceGetUuid_v2, @function
cuDeviceGetUuid_v2:
	jmp *glmbatch_slots+256(%rip)
	.globl cuDevicePrimaryCtxGetState
	.hidden cuDevicePrimaryCtxGetState
	.type cuDevicePrimaryCtxGetState, @function
cuDevicePrimaryCtxGetState:
	jmp *glmbatch_slots+264(%rip)
	.globl cuDevicePrimaryCtxRelease_v2
	.hidden cuDevicePrimaryCtxRelease_v2
	.type cuDevicePrimaryCtxRelease_v2, @function
cuDevicePrimaryCtxRelease_v2:
	jmp *glmbatch_slots+272(%rip)
	.globl cuDevicePrimaryCtxReset_v2
	.hidden cuDevicePrimaryCtxReset_v2
	.type cuDevicePrimaryCtxReset_v2, @function
cuDevicePrimaryCtxReset_v2:
	jmp *glmbatch_slots+280(%rip)
	.globl cuDevicePrimaryCtxRetain
	.hidden cuDevicePrimaryCtxRetain
	.type cuDevicePrimaryCtxRetain, @function
cuDevicePrimaryCtxRetain:
	jmp *glmbatch_slots+288(%rip)
	.globl cuDevicePrimaryCtxSetFlags_v2
	.hidden cuDevicePrimaryCtxSetFlags_v2
	.type cuDevicePrimaryCtxSetFlags_v2, @function
cuDevicePrimaryCtxSetFlags_v2:
	jmp *glmbatch_slots+296(%rip)
	.globl cuDeviceTotalMem_v2
	.hidden cuDeviceTotalMem_v2
	.type cuDeviceTotalMem_v2, @function
cuDeviceTotalMem_v2:
	jmp *glmbatch_slots+304(%rip)
	.globl cuDriverGetVersion
	.hidden cuDriverGetVersion
	.type cuDriverGetVersion, @function
cuDriverGetVersion:
	jmp *glmbatch_slots+312(%rip)
	.globl cuEventCreate
	.hidden cuEventCreate
	.type cuEventCreate, @function
cuEventCreate:
	jmp *glmbatch_slots+320(%rip)
	.globl cuEventDestroy_v2
	.hidden cuEventDestroy_v2
	.type cuEventDestroy_v2, @function
cuEventDestroy_v2:
	jmp *glmbatch_slots+328(%rip)
	.globl cuEventElapsedTime
	.hidden cuEventElapsedTime
	.type cuEventElapsedTime, @function
cuEventElapsedTime:
	jmp *glmbatch_slots+336(%rip)
	.globl cuEventElapsedTime_v2
	.hidden cuEventElapsedTime_v2
	.type cuEventElapsedTime_v2, @function
cuEventElapsedTime_v2:
	jmp *glmbatch_slots+344(%rip)
	.globl cuEventQuery
	.hidden cuEventQuery
	.type cuEventQuery, @function
cuEventQuery:
	jmp *glmbatch_slots+352(%rip)
	.globl cuEventRecord
	.hidden cuEventRecord
	.type cuEventRecord, @function
cuEventRecord:
	jmp *glmbatch_slots+360(%rip)
	.globl cuEventSynchronize
	.hidden cuEventSynchronize
	.type cuEventSynchronize, @function
cuEventSynchronize:
	jmp *glmbatch_slots+368(%rip)
	.globl cuFuncGetAttribute
	.hidden cuFuncGetAttribute
	.type cuFuncGetAttribute, @function
cuFuncGetAttribute:
	jmp *glmbatch_slots+376(%rip)
	.globl cuFuncSetCacheConfig
	.hidden cuFuncSetCacheConfig
	.type cuFuncSetCacheConfig, @function
cuFuncSetCacheConfig:
	jmp *glmbatch_slots+384(%rip)
	.globl cuFuncSetSharedMemConfig
	.hidden cuFuncSetSharedMemConfig
	.type cuFuncSetSharedMemConfig, @function
cuFuncSetSharedMemConfig:
	jmp *glmbatch_slots+392(%rip)
	.globl cuGraphAddChildGraphNode
	.hidden cuGraphAddChildGraphNode
	.type cuGraphAddChildGraphNode, @function
cuGraphAddChildGraphNode:
	jmp *glmbatch_slots+400(%rip)
	.globl cuGraphAddDependencies
	.hidden cuGraphAddDependencies
	.type cuGraphAddDependencies, @function
cuGraphAddDependencies:
	jmp *glmbatch_slots+408(%rip)
	.globl cuGraphAddEmptyNode
	.hidden cuGraphAddEmptyNode
	.type cuGraphAddEmptyNode, @function
cuGraphAddEmptyNode:
	jmp *glmbatch_slots+416(%rip)
	.globl cuGraphAddHostNode
	.hidden cuGraphAddHostNode
	.type cuGraphAddHostNode, @function
cuGraphAddHostNode:
	jmp *glmbatch_slots+424(%rip)
	.globl cuGraphAddKernelNode
	.hidden cuGraphAddKernelNode
	.type cuGraphAddKernelNode, @function
cuGraphAddKernelNode:
	jmp *glmbatch_slots+432(%rip)
	.globl cuGraphAddKernelNode_v2
	.hidden cuGraphAddKernelNode_v2
	.type cuGraphAddKernelNode_v2, @function
cuGraphAddKernelNode_v2:
	jmp *glmbatch_slots+440(%rip)
	.globl cuGraphAddMemcpyNode
	.hidden cuGraphAddMemcpyNode
	.type cuGraphAddMemcpyNode, @function
cuGraphAddMemcpyNode:
	jmp *glmbatch_slots+448(%rip)
	.globl cuGraphAddMemsetNode
	.hidden cuGraphAddMemsetNode
	.type cuGraphAddMemsetNode, @function
cuGraphAddMemsetNode:
	jmp *glmbatch_slots+456(%rip)
	.globl cuGraphClone
	.hidden cuGraphClone
	.type cuGraphClone, @function
cuGraphClone:
	jmp *glmbatch_slots+464(%rip)
	.globl cuGraphCreate
	.hidden cuGraphCreate
	.type cuGraphCreate, @function
cuGraphCreate:
	jmp *glmbatch_slots+472(%rip)
	.globl cuGraphDestroy
	.hidden cuGraphDestroy
	.type cuGraphDestroy, @function
cuGraphDestroy:
	jmp *glmbatch_slots+480(%rip)
	.globl cuGraphDestroyNode
	.hidden cuGraphDestroyNode
	.type cuGraphDestroyNode, @function
cuGraphDestroyNode:
	jmp *glmbatch_slots+488(%rip)
	.globl cuGraphExecDestroy
	.hidden cuGraphExecDestroy
	.type cuGraphExecDestroy, @function
cuGraphExecDestroy:
	jmp *glmbatch_slots+496(%rip)
	.globl cuGraphGetEdges
	.hidden cuGraphGetEdges
	.type cuGraphGetEdges, @function
cuGraphGetEdges:
	jmp *glmbatch_slots+504(%rip)
	.globl cuLaunchKernel
	.hidden cuLaunchKernel
	.type cuLaunchKernel, @function
cuLaunchKernel:
	jmp *glmbatch_slots+512(%rip)
	.globl cuLinkAddData_v2
	.hidden cuLinkAddData_v2
	.type cuLinkAddData_v2, @function
cuLinkAddData_v2:
	jmp *glmbatch_slots+520(%rip)
	.globl cuLinkAddFile_v2
	.hidden cuLinkAddFile_v2
	.type cuLinkAddFile_v2, @function
cuLinkAddFile_v2:
	jmp *glmbatch_slots+528(%rip)
	.globl cuLinkComplete
	.hidden cuLinkComplete
	.type cuLinkComplete, @function
cuLinkComplete:
	jmp *glmbatch_slots+536(%rip)
	.globl cuLinkCreate_v2
	.hidden cuLinkCreate_v2
	.type cuLinkCreate_v2, @function
cuLinkCreate_v2:
	jmp *glmbatch_slots+544(%rip)
	.globl cuLinkDestroy
	.hidden cuLinkDestroy
	.type cuLinkDestroy, @function
cuLinkDestroy:
	jmp *glmbatch_slots+552(%rip)
	.globl cuMemAdvise
	.hidden cuMemAdvise
	.type cuMemAdvise, @function
cuMemAdvise:
	jmp *glmbatch_slots+560(%rip)
	.globl cuMemAllocManaged
	.hidden cuMemAllocManaged
	.type cuMemAllocManaged, @function
cuMemAllocManaged:
	jmp *glmbatch_slots+568(%rip)
	.globl cuMemAllocPitch_v2
	.hidden cuMemAllocPitch_v2
	.type cuMemAllocPitch_v2, @function
cuMemAllocPitch_v2:
	jmp *glmbatch_slots+576(%rip)
	.globl cuMemAlloc_v2
	.hidden cuMemAlloc_v2
	.type cuMemAlloc_v2, @function
cuMemAlloc_v2:
	jmp *glmbatch_slots+584(%rip)
	.globl cuMemFreeHost
	.hidden cuMemFreeHost
	.type cuMemFreeHost, @function
cuMemFreeHost:
	jmp *glmbatch_slots+592(%rip)
	.globl cuMemFree_v2
	.hidden cuMemFree_v2
	.type cuMemFree_v2, @function
cuMemFree_v2:
	jmp *glmbatch_slots+600(%rip)
	.globl cuMemGetAddressRange_v2
	.hidden cuMemGetAddressRange_v2
	.type cuMemGetAddressRange_v2, @function
cuMemGetAddressRange_v2:
	jmp *glmbatch_slots+608(%rip)
	.globl cuMemGetInfo_v2
	.hidden cuMemGetInfo_v2
	.type cuMemGetInfo_v2, @function
cuMemGetInfo_v2:
	jmp *glmbatch_slots+616(%rip)
	.globl cuMemHostAlloc
	.hidden cuMemHostAlloc
	.type cuMemHostAlloc, @function
cuMemHostAlloc:
	jmp *glmbatch_slots+624(%rip)
	.globl cuMemPrefetchAsync
	.hidden cuMemPrefetchAsync
	.type cuMemPrefetchAsync, @function
cuMemPrefetchAsync:
	jmp *glmbatch_slots+632(%rip)
	.globl cuMemcpy
	.hidden cuMemcpy
	.type cuMemcpy, @function
cuMemcpy:
	jmp *glmbatch_slots+640(%rip)
	.globl cuMemcpy2DAsync_v2
	.hidden cuMemcpy2DAsync_v2
	.type cuMemcpy2DAsync_v2, @function
cuMemcpy2DAsync_v2:
	jmp *glmbatch_slots+648(%rip)
	.globl cuMemcpy2DUnaligned_v2
	.hidden cuMemcpy2DUnaligned_v2
	.type cuMemcpy2DUnaligned_v2, @function
cuMemcpy2DUnaligned_v2:
	jmp *glmbatch_slots+656(%rip)
	.globl cuMemcpy2D_v2
	.hidden cuMemcpy2D_v2
	.type cuMemcpy2D_v2, @function
cuMemcpy2D_v2:
	jmp *glmbatch_slots+664(%rip)
	.globl cuMemcpy3DAsync_v2
	.hidden cuMemcpy3DAsync_v2
	.type cuMemcpy3DAsync_v2, @function
cuMemcpy3DAsync_v2:
	jmp *glmbatch_slots+672(%rip)
	.globl cuMemcpy3DPeer
	.hidden cuMemcpy3DPeer
	.type cuMemcpy3DPeer, @function
cuMemcpy3DPeer:
	jmp *glmbatch_slots+680(%rip)
	.globl cuMemcpy3DPeerAsync
	.hidden cuMemcpy3DPeerAsync
	.type cuMemcpy3DPeerAsync, @function
cuMemcpy3DPeerAsync:
	jmp *glmbatch_slots+688(%rip)
	.globl cuMemcpy3D_v2
	.hidden cuMemcpy3D_v2
	.type cuMemcpy3D_v2, @function
cuMemcpy3D_v2:
	jmp *glmbatch_slots+696(%rip)
	.globl cuMemcpyAsync
	.hidden cuMemcpyAsync
	.type cuMemcpyAsync, @function
cuMemcpyAsync:
	jmp *glmbatch_slots+704(%rip)
	.globl cuMemcpyAtoA_v2
	.hidden cuMemcpyAtoA_v2
	.type cuMemcpyAtoA_v2, @function
cuMemcpyAtoA_v2:
	jmp *glmbatch_slots+712(%rip)
	.globl cuMemcpyAtoD_v2
	.hidden cuMemcpyAtoD_v2
	.type cuMemcpyAtoD_v2, @function
cuMemcpyAtoD_v2:
	jmp *glmbatch_slots+720(%rip)
	.globl cuMemcpyAtoHAsync_v2
	.hidden cuMemcpyAtoHAsync_v2
	.type cuMemcpyAtoHAsync_v2, @function
cuMemcpyAtoHAsync_v2:
	jmp *glmbatch_slots+728(%rip)
	.globl cuMemcpyAtoH_v2
	.hidden cuMemcpyAtoH_v2
	.type cuMemcpyAtoH_v2, @function
cuMemcpyAtoH_v2:
	jmp *glmbatch_slots+736(%rip)
	.globl cuMemcpyDtoA_v2
	.hidden cuMemcpyDtoA_v2
	.type cuMemcpyDtoA_v2, @function
cuMemcpyDtoA_v2:
	jmp *glmbatch_slots+744(%rip)
	.globl cuMemcpyDtoDAsync_v2
	.hidden cuMemcpyDtoDAsync_v2
	.type cuMemcpyDtoDAsync_v2, @function
cuMemcpyDtoDAsync_v2:
	jmp *glmbatch_slots+752(%rip)
	.globl cuMemcpyDtoD_v2
	.hidden cuMemcpyDtoD_v2
	.type cuMemcpyDtoD_v2, @function
cuMemcpyDtoD_v2:
	jmp *glmbatch_slots+760(%rip)
	.globl cuMemcpyDtoHAsync_v2
	.hidden cuMemcpyDtoHAsync_v2
	.type cuMemcpyDtoHAsync_v2, @function
cuMemcpyDtoHAsync_v2:
	jmp *glmbatch_slots+768(%rip)
	.globl cuMemcpyDtoH_v2
	.hidden cuMemcpyDtoH_v2
	.type cuMemcpyDtoH_v2, @function
cuMemcpyDtoH_v2:
	jmp *glmbatch_slots+776(%rip)
	.globl cuMemcpyHtoAAsync_v2
	.hidden cuMemcpyHtoAAsync_v2
	.type cuMemcpyHtoAAsync_v2, @function
cuMemcpyHtoAAsync_v2:
	jmp *glmbatch_slots+784(%rip)
	.globl cuMemcpyHtoA_v2
	.hidden cuMemcpyHtoA_v2
	.type cuMemcpyHtoA_v2, @function
cuMemcpyHtoA_v2:
	jmp *glmbatch_slots+792(%rip)
	.globl cuMemcpyHtoDAsync_v2
	.hidden cuMemcpyHtoDAsync_v2
	.type cuMemcpyHtoDAsync_v2, @function
cuMemcpyHtoDAsync_v2:
	jmp *glmbatch_slots+800(%rip)
	.globl cuMemcpyHtoD_v2
	.hidden cuMemcpyHtoD_v2
	.type cuMemcpyHtoD_v2, @function
cuMemcpyHtoD_v2:
	jmp *glmbatch_slots+808(%rip)
	.globl cuMemcpyPeer
	.hidden cuMemcpyPeer
	.type cuMemcpyPeer, @function
cuMemcpyPeer:
	jmp *glmbatch_slots+816(%rip)
	.globl cuMemcpyPeerAsync
	.hidden cuMemcpyPeerAsync
	.type cuMemcpyPeerAsync, @function
cuMemcpyPeerAsync:
	jmp *glmbatch_slots+824(%rip)
	.globl cuMemsetD16Async
	.hidden cuMemsetD16Async
	.type cuMemsetD16Async, @function
cuMemsetD16Async:
	jmp *glmbatch_slots+832(%rip)
	.globl cuMemsetD16_v2
	.hidden cuMemsetD16_v2
	.type cuMemsetD16_v2, @function
cuMemsetD16_v2:
	jmp *glmbatch_slots+840(%rip)
	.globl cuMemsetD2D16Async
	.hidden cuMemsetD2D16Async
	.type cuMemsetD2D16Async, @function
cuMemsetD2D16Async:
	jmp *glmbatch_slots+848(%rip)
	.globl cuMemsetD2D16_v2
	.hidden cuMemsetD2D16_v2
	.type cuMemsetD2D16_v2, @function
cuMemsetD2D16_v2:
	jmp *glmbatch_slots+856(%rip)
	.globl cuMemsetD2D32Async
	.hidden cuMemsetD2D32Async
	.type cuMemsetD2D32Async, @function
cuMemsetD2D32Async:
	jmp *glmbatch_slots+864(%rip)
	.globl cuMemsetD2D32_v2
	.hidden cuMemsetD2D32_v2
	.type cuMemsetD2D32_v2, @function
cuMemsetD2D32_v2:
	jmp *glmbatch_slots+872(%rip)
	.globl cuMemsetD2D8Async
	.hidden cuMemsetD2D8Async
	.type cuMemsetD2D8Async, @function
cuMemsetD2D8Async:
	jmp *glmbatch_slots+880(%rip)
	.globl cuMemsetD2D8_v2
	.hidden cuMemsetD2D8_v2
	.type cuMemsetD2D8_v2, @function
cuMemsetD2D8_v2:
	jmp *glmbatch_slots+888(%rip)
	.globl cuMemsetD32Async
	.hidden cuMemsetD32Async
	.type cuMemsetD32Async, @function
cuMemsetD32Async:
	jmp *glmbatch_slots+896(%rip)
	.globl cuMemsetD32_v2
	.hidden cuMemsetD32_v2
	.type cuMemsetD32_v2, @function
cuMemsetD32_v2:
	jmp *glmbatch_slots+904(%rip)
	.globl cuMemsetD8Async
	.hidden cuMemsetD8Async
	.type cuMemsetD8Async, @function
cuMemsetD8Async:
	jmp *glmbatch_slots+912(%rip)
	.globl cuMemsetD8_v2
	.hidden cuMemsetD8_v2
	.type cuMemsetD8_v2, @function
cuMemsetD8_v2:
	jmp *glmbatch_slots+920(%rip)
	.globl cuModuleGetFunction
	.hidden cuModuleGetFunction
	.type cuModuleGetFunction, @function
cuModuleGetFunction:
	jmp *glmbatch_slots+928(%rip)
	.globl cuModuleGetGlobal_v2
	.hidden cuModuleGetGlobal_v2
	.type cuModuleGetGlobal_v2, @function
cuModuleGetGlobal_v2:
	jmp *glmbatch_slots+936(%rip)
	.globl cuModuleGetSurfRef
	.hidden cuModuleGetSurfRef
	.type cuModuleGetSurfRef, @function
cuModuleGetSurfRef:
	jmp *glmbatch_slots+944(%rip)
	.globl cuModuleGetTexRef
	.hidden cuModuleGetTexRef
	.type cuModuleGetTexRef, @function
cuModuleGetTexRef:
	jmp *glmbatch_slots+952(%rip)
	.globl cuModuleLoad
	.hidden cuModuleLoad
	.type cuModuleLoad, @function
cuModuleLoad:
	jmp *glmbatch_slots+960(%rip)
	.globl cuModuleLoadData
	.hidden cuModuleLoadData
	.type cuModuleLoadData, @function
cuModuleLoadData:
	jmp *glmbatch_slots+968(%rip)
	.globl cuModuleLoadDataEx
	.hidden cuModuleLoadDataEx
	.type cuModuleLoadDataEx, @function
cuModuleLoadDataEx:
	jmp *glmbatch_slots+976(%rip)
	.globl cuModuleLoadFatBinary
	.hidden cuModuleLoadFatBinary
	.type cuModuleLoadFatBinary, @function
cuModuleLoadFatBinary:
	jmp *glmbatch_slots+984(%rip)
	.globl cuModuleUnload
	.hidden cuModuleUnload
	.type cuModuleUnload, @function
cuModuleUnload:
	jmp *glmbatch_slots+992(%rip)
	.globl cuOccupancyMaxActiveBlocksPerMultiprocessor
	.hidden cuOccupancyMaxActiveBlocksPerMultiprocessor
	.type cuOccupancyMaxActiveBlocksPerMultiprocessor, @function
cuOccupancyMaxActiveBlocksPerMultiprocessor:
	jmp *glmbatch_slots+1000(%rip)
	.globl cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
	.hidden cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
	.type cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, @function
cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags:
	jmp *glmbatch_slots+1008(%rip)
	.globl cuPointerGetAttribute
	.hidden cuPointerGetAttribute
	.type cuPointerGetAttribute, @function
cuPointerGetAttribute:
	jmp *glmbatch_slots+1016(%rip)
	.globl cuPointerSetAttribute
	.hidden cuPointerSetAttribute
	.type cuPointerSetAttribute, @function
cuPointerSetAttribute:
	jmp *glmbatch_slots+1024(%rip)
	.globl cuStreamAttachMemAsync
	.hidden cuStreamAttachMemAsync
	.type cuStreamAttachMemAsync, @function
cuStreamAttachMemAsync:
	jmp *glmbatch_slots+1032(%rip)
	.globl cuStreamCreate
	.hidden cuStreamCreate
	.type cuStreamCreate, @function
cuStreamCreate:
	jmp *glmbatch_slots+1040(%rip)
	.globl cuStreamCreateWithPriority
	.hidden cuStreamCreateWithPriority
	.type cuStreamCreateWithPriority, @function
cuStreamCreateWithPriority:
	jmp *glmbatch_slots+1048(%rip)
	.globl cuStreamDestroy_v2
	.hidden cuStreamDestroy_v2
	.type cuStreamDestroy_v2, @function
cuStreamDestroy_v2:
	jmp *glmbatch_slots+1056(%rip)
	.globl cuStreamGetFlags
	.hidden cuStreamGetFlags
	.type cuStreamGetFlags, @function
cuStreamGetFlags:
	jmp *glmbatch_slots+1064(%rip)
	.globl cuStreamGetPriority
	.hidden cuStreamGetPriority
	.type cuStreamGetPriority, @function
cuStreamGetPriority:
	jmp *glmbatch_slots+1072(%rip)
	.globl cuStreamQuery
	.hidden cuStreamQuery
	.type cuStreamQuery, @function
cuStreamQuery:
	jmp *glmbatch_slots+1080(%rip)
	.globl cuStreamSynchronize
	.hidden cuStreamSynchronize
	.type cuStreamSynchronize, @function
cuStreamSynchronize:
	jmp *glmbatch_slots+1088(%rip)
	.globl cuStreamWaitEvent
	.hidden cuStreamWaitEvent
	.type cuStreamWaitEvent, @function
cuStreamWaitEvent:
	jmp *glmbatch_slots+1096(%rip)
	.globl cuStreamWaitValue32
	.hidden cuStreamWaitValue32
	.type cuStreamWaitValue32, @function
cuStreamWaitValue32:
	jmp *glmbatch_slots+1104(%rip)
	.globl cuStreamWaitValue32_v2
	.hidden cuStreamWaitValue32_v2
	.type cuStreamWaitValue32_v2, @function
cuStreamWaitValue32_v2:
	jmp *glmbatch_slots+1112(%rip)
	.globl cuStreamWriteValue32
	.hidden cuStreamWriteValue32
	.type cuStreamWriteValue32, @function
cuStreamWriteValue32:
	jmp *glmbatch_slots+1120(%rip)
	.globl cuStreamWriteValue32_v2
	.hidden cuStreamWriteValue32_v2
	.type cuStreamWriteValue32_v2, @function
cuStreamWriteValue32_v2:
	jmp *glmbatch_slots+1128(%rip)
	.globl cuSurfRefGetArray
	.hidden cuSurfRefGetArray
	.type cuSurfRefGetArray, @function
cuSurfRefGetArray:
	jmp *glmbatch_slots+1136(%rip)
	.globl cuSurfRefSetArray
	.hidden cuSurfRefSetArray
	.type cuSurfRefSetArray, @function
cuSurfRefSetArray:
	jmp *glmbatch_slots+1144(%rip)
	.globl cuTexRefGetAddressMode
	.hidden cuTexRefGetAddressMode
	.type cuTexRefGetAddressMode, @function
cuTexRefGetAddressMode:
	jmp *glmbatch_slots+1152(%rip)
	.globl cuTexRefGetAddress_v2
	.hidden cuTexRefGetAddress_v2
	.type cuTexRefGetAddress_v2, @function
cuTexRefGetAddress_v2:
	jmp *glmbatch_slots+1160(%rip)
	.globl cuTexRefGetArray
	.hidden cuTexRefGetArray
	.type cuTexRefGetArray, @function
cuTexRefGetArray:
	jmp *glmbatch_slots+1168(%rip)
	.globl cuTexRefGetBorderColor
	.hidden cuTexRefGetBorderColor
	.type cuTexRefGetBorderColor, @function
cuTexRefGetBorderColor:
	jmp *glmbatch_slots+1176(%rip)
	.globl cuTexRefGetFilterMode
	.hidden cuTexRefGetFilterMode
	.type cuTexRefGetFilterMode, @function
cuTexRefGetFilterMode:
	jmp *glmbatch_slots+1184(%rip)
	.globl cuTexRefGetFlags
	.hidden cuTexRefGetFlags
	.type cuTexRefGetFlags, @function
cuTexRefGetFlags:
	jmp *glmbatch_slots+1192(%rip)
	.globl cuTexRefGetFormat
	.hidden cuTexRefGetFormat
	.type cuTexRefGetFormat, @function
cuTexRefGetFormat:
	jmp *glmbatch_slots+1200(%rip)
	.globl cuTexRefGetMaxAnisotropy
	.hidden cuTexRefGetMaxAnisotropy
	.type cuTexRefGetMaxAnisotropy, @function
cuTexRefGetMaxAnisotropy:
	jmp *glmbatch_slots+1208(%rip)
	.globl cuTexRefSetAddress2D_v3
	.hidden cuTexRefSetAddress2D_v3
	.type cuTexRefSetAddress2D_v3, @function
cuTexRefSetAddress2D_v3:
	jmp *glmbatch_slots+1216(%rip)
	.globl cuTexRefSetAddressMode
	.hidden cuTexRefSetAddressMode
	.type cuTexRefSetAddressMode, @function
cuTexRefSetAddressMode:
	jmp *glmbatch_slots+1224(%rip)
	.globl cuTexRefSetAddress_v2
	.hidden cuTexRefSetAddress_v2
	.type cuTexRefSetAddress_v2, @function
cuTexRefSetAddress_v2:
	jmp *glmbatch_slots+1232(%rip)
	.globl cuTexRefSetArray
	.hidden cuTexRefSetArray
	.type cuTexRefSetArray, @function
cuTexRefSetArray:
	jmp *glmbatch_slots+1240(%rip)
	.globl cuTexRefSetBorderColor
	.hidden cuTexRefSetBorderColor
	.type cuTexRefSetBorderColor, @function
cuTexRefSetBorderColor:
	jmp *glmbatch_slots+1248(%rip)
	.globl cuTexRefSetFilterMode
	.hidden cuTexRefSetFilterMode
	.type cuTexRefSetFilterMode, @function
cuTexRefSetFilterMode:
	jmp *glmbatch_slots+1256(%rip)
	.globl cuTexRefSetFlags
	.hidden cuTexRefSetFlags
	.type cuTexRefSetFlags, @function
cuTexRefSetFlags:
	jmp *glmbatch_slots+1264(%rip)
	.globl cuTexRefSetFormat
	.hidden cuTexRefSetFormat
	.type cuTexRefSetFormat, @function
cuTexRefSetFormat:
	jmp *glmbatch_slots+1272(%rip)
	.globl cuTexRefSetMaxAnisotropy
	.hidden cuTexRefSetMaxAnisotropy
	.type cuTexRefSetMaxAnisotropy, @function
cuTexRefSetMaxAnisotropy:
	jmp *glmbatch_slots+1280(%rip)
	.globl cuTexRefSetMipmapFilterMode
	.hidden cuTexRefSetMipmapFilterMode
	.type cuTexRefSetMipmapFilterMode, @function
cuTexRefSetMipmapFilterMode:
	jmp *glmbatch_slots+1288(%rip)
	.globl cuTexRefSetMipmapLevelBias
	.hidden cuTexRefSetMipmapLevelBias
	.type cuTexRefSetMipmapLevelBias, @function
cuTexRefSetMipmapLevelBias:
	jmp *glmbatch_slots+1296(%rip)
	.globl cuTexRefSetMipmapLevelClamp
	.hidden cuTexRefSetMipmapLevelClamp
	.type cuTexRefSetMipmapLevelClamp, @function
cuTexRefSetMipmapLevelClamp:
	jmp *glmbatch_slots+1304(%rip)
	.globl glmbatch_cuGraphAddDependencies
	.hidden glmbatch_cuGraphAddDependencies
	.type glmbatch_cuGraphAddDependencies, @function
glmbatch_cuGraphAddDependencies:
	jmp *glmbatch_slots+1312(%rip)
	.globl glmbatch_cuGraphGetEdges
	.hidden glmbatch_cuGraphGetEdges
	.type glmbatch_cuGraphGetEdges, @function
glmbatch_cuGraphGetEdges:
	jmp *glmbatch_slots+1320(%rip)
	.globl glmbatch_cuMemAdvise
	.hidden glmbatch_cuMemAdvise
	.type glmbatch_cuMemAdvise, @function
glmbatch_cuMemAdvise:
	jmp *glmbatch_slots+1328(%rip)
	.globl glmbatch_cuMemPrefetchAsync
	.hidden glmbatch_cuMemPrefetchAsync
	.type glmbatch_cuMemPrefetchAsync, @function
glmbatch_cuMemPrefetchAsync:
	jmp *glmbatch_slots+1336(%rip)
	.section .note.GNU-stack,"",@progbits
