// The driver's header as gorgonia.org/cu expects it: CUDA 13 changed the
// arguments of five functions that cu wraps. cu gets the old ones: cuCtxCreate_v2
// is still exported; the other four, which glmbatch never calls, get names of
// their own. Put this folder before CUDA's on the include path (make cuda does).
#pragma once
#include_next <cuda.h>
#if CUDA_VERSION >= 13000
#undef cuCtxCreate
#undef cuMemAdvise
#undef cuMemPrefetchAsync
#undef cuGraphAddDependencies
#undef cuGraphGetEdges
#define cuCtxCreate cuCtxCreate_v2
#define cuMemAdvise glmbatch_cuMemAdvise
#define cuMemPrefetchAsync glmbatch_cuMemPrefetchAsync
#define cuGraphAddDependencies glmbatch_cuGraphAddDependencies
#define cuGraphGetEdges glmbatch_cuGraphGetEdges
CUresult cuCtxCreate_v2(CUcontext *, unsigned int, CUdevice);
CUresult glmbatch_cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUdevice);
CUresult glmbatch_cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream);
CUresult glmbatch_cuGraphAddDependencies(CUgraph, const CUgraphNode *, const CUgraphNode *, size_t);
CUresult glmbatch_cuGraphGetEdges(CUgraph, CUgraphNode *, CUgraphNode *, size_t *);
#endif
