#pragma once
#include <stddef.h>
#include <stdint.h>

// A kernel that ran; times are ns of CLOCK_MONOTONIC.
struct glmbatch_kernel {
	uint64_t start, end;
	uint64_t node; // of the graph, in order of creation; 0: no graph
	uint32_t device, stream;
	char name[64];
};

const char *glmbatch_cupti_load(const char *path); // null: loaded; else why not
uint32_t glmbatch_cupti_version(void);
const char *glmbatch_cupti_start(void);
const char *glmbatch_cupti_stop(void);
// Waits for all records. *kernels belongs to the caller, who frees it.
const char *glmbatch_cupti_take(struct glmbatch_kernel **kernels, size_t *n, size_t *dropped);
uint64_t glmbatch_cupti_now(void);
