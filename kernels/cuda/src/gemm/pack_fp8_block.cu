// FP8 weights with scales for blocks, see fp8_block.cuh: how they are packed, and how
// they become BF16 for the products of many rows.
#include "mma/fp8_block.cuh"
#include "gemm/params.h"

// Columns and rows past the matrix are 0.
extern "C" __global__ void pack_fp8b(const __grid_constant__ Fp8BlockP p) {
  int blocks = (p.kt + kBlockFrags - 1) / kBlockFrags;
  size_t n = (size_t)p.tiles * blocks * kBlockBytes;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    int byte = i % kBlockBytes, block = i / kBlockBytes % blocks;
    size_t tile = i / kBlockBytes / blocks;
    uint8_t v = 0;
    if (byte < kScaleBytes) {
      size_t r = tile * 16 + byte / 4;
      if (r < p.rows) v = p.scales[(r * blocks + block) * 4 + byte % 4];
    } else {
      int at = byte - kScaleBytes, j = at & 7, lane = (at >> 3) & 31;
      size_t r = tile * 16 + (lane >> 2) + ((j >> 1) & 1) * 8;
      size_t c = (size_t)(block * kBlockFrags + at / 256) * 16 + (lane & 3) * 2 + (j & 1) + (j >> 2) * 8;
      if (r < p.rows && c < p.cols) v = p.data[r * p.cols + c];
    }
    static_cast<uint8_t*>(p.out)[i] = v;
  }
}

// The next kernel starts when all is there: products ask for their weights early.
extern "C" __global__ void __launch_bounds__(256) unpack_fp8b(const __grid_constant__ Fp8BlockP p) {
  ready(p.at);
  size_t n = (size_t)p.tiles * p.kt * 32;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    Fp8Block b;
    uint32_t a[4];
    b.load(reinterpret_cast<const char*>(p.data), (i >> 5) / p.kt, p.kt, (i >> 5) % p.kt, i & 31);
    b.frag(a);
    static_cast<uint4*>(p.out)[i] = {a[0], a[1], a[2], a[3]};
  }
}
