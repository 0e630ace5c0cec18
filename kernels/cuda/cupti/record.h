#pragma once
#include <stdint.h>

// The start of CUPTI's kernel record, which is the same from CUPTI 12.0
// (CUpti_ActivityKernel8) to 13.5 (CUpti_ActivityKernel13): newer versions only
// append. The names are those of cupti_activity.h.
struct record {
	uint32_t kind;
	uint8_t skipped_a[12];
	uint64_t start, end;
	uint8_t skipped_b[8];
	uint32_t deviceId, contextId, streamId;
	uint8_t skipped_c[52];
	const char *name;
	uint8_t skipped_d[32];
	uint64_t graphNodeId;
} __attribute__((packed, aligned(8)));

enum { concurrent_kernel = 10 }; // CUpti_ActivityKind
