// What the experts' products for many rows have in common, on Hopper: NVFP4 weights,
// and rows gathered by expert. The same sums in the same order as moe_few_rows.cuh's, see
// moe.cuh.
#pragma once
#include "mma/sm90_wgmma.cuh"
#include "moe/params.h"

// unpack_half is a fragment with rows g (H 0) or g + 8 (H 1) of a gate tile, and the
// same rows of an up tile 8 rows below: so both meet in one thread's sums.
template <int H>
__device__ __forceinline__ void unpack_half(uint32_t (&a)[4], uint32_t gate, uint32_t s, uint32_t up, uint32_t t) {
  const uint32_t m = 0x81C081C0u;
  if (H == 0) {
    a[0] = times(gate & m, s), a[1] = times(up & m, t);
    a[2] = times((gate << 6) & m, s), a[3] = times((up << 6) & m, t);
  } else {
    a[0] = times((gate << 3) & m, s), a[1] = times((up << 3) & m, t);
    a[2] = times((((gate >> 7) & 0x00D800D8u) * (1 + (1 << 5) + (1 << 11))) & m, s);
    a[3] = times((((up >> 7) & 0x00D800D8u) * (1 + (1 << 5) + (1 << 11))) & m, t);
  }
}
