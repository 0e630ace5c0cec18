//go:build cuda

#define _GNU_SOURCE
#include "shim.h"
#include "symbols.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static CUresult not_initialised(void) { return CUDA_ERROR_NOT_INITIALIZED; }

__attribute__((visibility("hidden"))) void *glmbatch_slots[GLMBATCH_SYMBOLS];
static const char *names[] = {GLMBATCH_NAMES};
static int status = -1; // of cuInit; -1: no library
static struct extra x;

// Runs before any Go: gorgonia.org/cu calls cuInit while its package initialises
// and ends the process unless it succeeds.
__attribute__((constructor)) static void load(void) {
	for (int i = 0; i < GLMBATCH_SYMBOLS; i++) glmbatch_slots[i] = (void *)not_initialised;
	// One queue a stream, so that ranks that share a GPU cannot block each other.
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	// A kernel that is loaded when it is first launched may wait for kernels that
	// wait for it.
	setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (!lib) return;
	for (int i = 0; i < GLMBATCH_SYMBOLS; i++) {
		const char *n = names[i];
		if (!strncmp(n, "glmbatch_", 9)) n += 9;
		void *f = dlsym(lib, n);
		if (f) glmbatch_slots[i] = f; // else cu is told that it is not initialised
	}
#define FIND(f, n) *(void **)&x.f = dlsym(lib, n)
	FIND(init, "cuInit");
	FIND(launch, "cuLaunchKernelEx");
	FIND(attribute, "cuFuncSetAttribute");
	FIND(begin_capture, "cuStreamBeginCapture_v2");
	FIND(end_capture, "cuStreamEndCapture");
	FIND(instantiate, "cuGraphInstantiateWithFlags");
	FIND(upload, "cuGraphUpload");
	FIND(graph_launch, "cuGraphLaunch");
	FIND(exec_destroy, "cuGraphExecDestroy");
	FIND(graph_destroy, "cuGraphDestroy");
	FIND(graph_nodes, "cuGraphGetNodes");
	FIND(host_alloc, "cuMemHostAlloc");
	FIND(host_free, "cuMemFreeHost");
	FIND(to_device, "cuMemcpyHtoDAsync_v2");
	FIND(to_host, "cuMemcpyDtoHAsync_v2");
	FIND(set, "cuMemsetD8Async");
	FIND(event_query, "cuEventQuery");
	FIND(sync, "cuStreamSynchronize");
	FIND(error_name, "cuGetErrorName");
	FIND(error_string, "cuGetErrorString");
	status = x.init ? x.init(0) : CUDA_ERROR_NOT_FOUND;
}

// What cu sees: always success. The truth is in glmbatch_status.
CUresult cuInit(unsigned int flags) { return CUDA_SUCCESS; }

int glmbatch_status(void) { return status; }
const struct extra *glmbatch_extra(void) { return &x; }

CUresult glmbatch_launch(CUfunction f, const unsigned *dims, unsigned cluster, unsigned smem, CUstream s, int early, void *params) {
	CUlaunchAttribute a[2];
	CUlaunchConfig c = {dims[0], dims[1], dims[2], dims[3], 1, 1, smem, s, a, 0};
	if (early) {
		a[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
		a[0].value.programmaticStreamSerializationAllowed = 1;
		c.numAttrs = 1;
	}
	if (cluster > 1) {
		CUlaunchAttribute *b = &a[c.numAttrs++];
		b->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
		b->value.clusterDim.x = cluster;
		b->value.clusterDim.y = b->value.clusterDim.z = 1;
	}
	void *args[1] = {params};
	return x.launch(&c, f, args, 0);
}
