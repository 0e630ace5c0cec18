// Horizontal fusion: small calls that do not wait for each other, in one launch. Each has a
// segment of the blocks, and its own stamps.
#include "gemm/gemv_short_k.cuh"
#include "gemm/hfuse.h"
#include "moe/moe_route.cuh"
#include "norm/rowwise.cuh"

template <int R>
__device__ __forceinline__ void hfuse(const HfuseP& b) {
  extern __shared__ __align__(128) char smem[];
  begin();
  int s = 0, block = blockIdx.x;
  while (blockIdx.x >= b.until[s]) block = blockIdx.x - b.until[s++];
  if (block >= b.blocks[s] && b.op[s] > kOpGemvFp8) return;
  switch (b.op[s]) {
    case kOpGemvBf16: return gemv<Bf16Step, R>(b.params[s].gemv, block, smem);
    case kOpGemvFp8: return gemv<Fp8Step, R>(b.params[s].gemv, block, smem);
    case kOpNorm: return norm(b.params[s].rows, block);
    case kOpLatent: return latent(b.params[s].rows, block);
    case kOpKey: return key(b.params[s].rows, block);
    case kOpRotary: return rotary(b.params[s].rows, block);
    case kOpSilu: return gate(b.params[s].rows, block);
    case kOpRoute: return route(b.params[s].route, block, smem);
  }
}

extern "C" __global__ void __launch_bounds__(256, 4) hfuse_1(const __grid_constant__ HfuseP b) { hfuse<1>(b); }
extern "C" __global__ void __launch_bounds__(256, 3) hfuse_8(const __grid_constant__ HfuseP b) { hfuse<8>(b); }

// Products alone, a few tiles a block.
extern "C" __global__ void __maxnreg__(128) hfuse_prefetch(const __grid_constant__ HfuseP b) {
  extern __shared__ __align__(128) char memory[];
  begin();
  int s = 0, block = blockIdx.x;
  while (blockIdx.x >= b.until[s]) block = blockIdx.x - b.until[s++];
  if (b.op[s] == kOpGemvBf16) gemv_prefetch<Bf16Step>(b.params[s].gemv, block, memory);
  else gemv_prefetch<Fp8Step>(b.params[s].gemv, block, memory);
}

// Products alone, with short slices of k.
extern "C" __global__ void __launch_bounds__(256, 3) hfuse_short_k(const __grid_constant__ HfuseP b) {
  extern __shared__ __align__(128) char memory[];
  begin();
  int s = 0, block = blockIdx.x;
  while (blockIdx.x >= b.until[s]) block = blockIdx.x - b.until[s++];
  if (b.op[s] == kOpGemvBf16) gemv_short_k<Bf16Step>(b.params[s].gemv, block, memory);
  else gemv_short_k<Fp8Step>(b.params[s].gemv, block, memory);
}
