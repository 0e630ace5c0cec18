// The topk best scores of a row: positions ascending, ties to the lower. Rows no
// longer than topk select everything. Blocks behind those of the rows do another call.
#pragma once
#include "gemm/q_absorb.cuh"
#include "mma/split_half.cuh"
#include "mma/sm90_wgmma.cuh"
#include "indexer/params.h"

// Rows are along the grid's second side. Scores are counted in kBins bins whose order
// is that of the scores; the bin at which the count from above reaches topk is narrowed
// further until no more than kRivals are left to be compared with each other.
constexpr int kBins = 2048, kRivals = 512;

// order maps a float to an unsigned that sorts alike (NaN last).
__device__ __forceinline__ uint32_t order(float f) {
  uint32_t u = __float_as_uint(f);
  if (f != f) return 0;
  if (f == 0) u = 0;  // -0 ties with 0
  return u & 0x80000000u ? ~u : u | 0x80000000u;
}

// wait and leave are ready and stamp, in the order that p.waits says.
__device__ __forceinline__ void wait(const TopP& p, bool first) {
  if (p.waits < 2) return ready(p.at, first);
  if (p.at && threadIdx.x == 0 && first) atomicMin(p.at, globaltimer());
}
__device__ __forceinline__ void leave(const TopP& p, int place) {
  stamp(p.at, place);
  if (p.waits == 2) ready(nullptr);
}
