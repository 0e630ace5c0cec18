// A bundle: small calls that do not wait for each other, in one launch. Each has a
// segment of the blocks, and its own stamps.
#include "brief.cuh"
#include "route.cuh"
#include "rows.cuh"

enum Op { kProductBf16, kProductFp8, kNorm, kLatent, kKey, kRotary, kSilu, kRoute };  // as in bundle.go

constexpr int kSegments = 4;

struct BundleP {
  int op[kSegments];
  int until[kSegments];  // the block behind the segment, which has whole clusters
  int blocks[kSegments];
  union {
    ProductP product;
    RowsP rows;
    RouteP route;
  } p[kSegments];
};

template <int R>
__device__ __forceinline__ void bundle(const BundleP& b) {
  extern __shared__ __align__(128) char smem[];
  begin();
  int s = 0, block = blockIdx.x;
  while (blockIdx.x >= b.until[s]) block = blockIdx.x - b.until[s++];
  if (block >= b.blocks[s] && b.op[s] > kProductFp8) return;
  switch (b.op[s]) {
    case kProductBf16: return product<Bf16Step, R>(b.p[s].product, block, smem);
    case kProductFp8: return product<Fp8Step, R>(b.p[s].product, block, smem);
    case kNorm: return norm(b.p[s].rows, block);
    case kLatent: return latent(b.p[s].rows, block);
    case kKey: return key(b.p[s].rows, block);
    case kRotary: return rotary(b.p[s].rows, block);
    case kSilu: return gate(b.p[s].rows, block);
    case kRoute: return route(b.p[s].route, block, smem);
  }
}

extern "C" __global__ void __launch_bounds__(256, 4) bundle_1(const __grid_constant__ BundleP b) { bundle<1>(b); }
extern "C" __global__ void __launch_bounds__(256, 3) bundle_8(const __grid_constant__ BundleP b) { bundle<8>(b); }

// Products alone, a few tiles a block.
extern "C" __global__ void __maxnreg__(128) bundle_held(const __grid_constant__ BundleP b) {
  extern __shared__ __align__(128) char memory[];
  begin();
  int s = 0, block = blockIdx.x;
  while (blockIdx.x >= b.until[s]) block = blockIdx.x - b.until[s++];
  if (b.op[s] == kProductBf16) held<Bf16Step>(b.p[s].product, block, memory);
  else held<Fp8Step>(b.p[s].product, block, memory);
}

// Products alone, with short slices of k.
extern "C" __global__ void __launch_bounds__(256, 3) bundle_brief(const __grid_constant__ BundleP b) {
  extern __shared__ __align__(128) char memory[];
  begin();
  int s = 0, block = blockIdx.x;
  while (blockIdx.x >= b.until[s]) block = blockIdx.x - b.until[s++];
  if (b.op[s] == kProductBf16) brief<Bf16Step>(b.p[s].product, block, memory);
  else brief<Fp8Step>(b.p[s].product, block, memory);
}
