#pragma once
#include <cuda.h>
#include <stddef.h>

// The driver's functions that gorgonia.org/cu lacks, found at start.
struct extra {
	CUresult (*init)(unsigned int);
	CUresult (*launch)(const CUlaunchConfig *, CUfunction, void **, void **);
	CUresult (*attribute)(CUfunction, CUfunction_attribute, int);
	CUresult (*begin_capture)(CUstream, CUstreamCaptureMode);
	CUresult (*end_capture)(CUstream, CUgraph *);
	CUresult (*instantiate)(CUgraphExec *, CUgraph, unsigned long long);
	CUresult (*upload)(CUgraphExec, CUstream);
	CUresult (*graph_launch)(CUgraphExec, CUstream);
	CUresult (*exec_destroy)(CUgraphExec);
	CUresult (*graph_destroy)(CUgraph);
	CUresult (*graph_nodes)(CUgraph, CUgraphNode *, size_t *);
	CUresult (*host_alloc)(void **, size_t, unsigned int);
	CUresult (*host_free)(void *);
	CUresult (*to_device)(CUdeviceptr, const void *, size_t, CUstream);
	CUresult (*to_host)(void *, CUdeviceptr, size_t, CUstream);
	CUresult (*set)(CUdeviceptr, unsigned char, size_t, CUstream);
	CUresult (*event_query)(CUevent);
	CUresult (*sync)(CUstream);
	CUresult (*error_name)(CUresult, const char **);
	CUresult (*error_string)(CUresult, const char **);
};

int glmbatch_status(void);
const struct extra *glmbatch_extra(void);

// dims: grid x, y, z and threads a block. cluster: blocks of one, 0 or 1 for none. params: the kernel's one struct.
CUresult glmbatch_launch(CUfunction f, const unsigned *dims, unsigned cluster, unsigned smem, CUstream s,
                         int early, void *params);
