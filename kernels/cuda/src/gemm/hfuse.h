// What a horizontal fusion is given, see device/params.h.
#pragma once
#include "gemm/params.h"
#include "moe/params.h"
#include "norm/params.h"

// What a segment does.
enum {
  kOpGemvBf16,
  kOpGemvFp8,
  kOpNorm,
  kOpLatent,
  kOpKey,
  kOpRotary,
  kOpSilu,
  kOpRoute,
};
enum { kMaxSegments = 4 };

typedef struct HfuseP {
  int op[kMaxSegments];
  int until[kMaxSegments];  // the block behind the segment, which has whole clusters
  int blocks[kMaxSegments];
  union {
    GemvP gemv;
    RowwiseP rows;
    RouteP route;
  } params[kMaxSegments];
} HfuseP;
