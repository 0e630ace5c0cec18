// q_absorb of few rows, y[m, head n] = x[m, head k] w[head, n, k]ᵀ and the rotary values
// behind them, by the blocks that a launch of another kernel has besides its own. Eight
// warps have a tile of 16 outputs of a head, each a slice of k, which it reads at once:
// what takes time is the way to the memory and back. The sums are gemv.cuh's in the
// same order.
#pragma once
#include "mma/fragments.cuh"
#include "gemm/params.h"

constexpr int kAbsorbPart = 16 * 9;  // values of a warp's sums

// stamp stamps a call's end when the block comes as far; place: see stamp_end.
__device__ __forceinline__ void stamp(u64* at, int place) {
  if (!at) return;
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(at + 1 + (place & (kStampEnds - 1)) * kStampPlane, globaltimer());
}

// A slice has at most two steps. T: threads of a block; parts: sums of its warps.
template <int T>
__device__ __forceinline__ void absorb(const AbsorbP& p, int block, int blocks, float (*parts)[kAbsorbPart]) {
  constexpr int kTiles = T / 256, kPitch = 9;
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3;
  int steps = (p.k + 15) / 16, per = (steps + 7) / 8, lo = (warp & 7) * per, hi = min(steps, lo + per);
  int item = block * kTiles + (warp >> 3), head = min(item / p.tiles, p.heads - 1), tile = item % p.tiles;
  const uint4* w = reinterpret_cast<const uint4*>(static_cast<const char*>(p.w) + head * p.whead) +
      ((size_t)tile * steps + lo) * 32 + lane;
  uint4 q[2] = {};
#pragma unroll
  for (int s = 0; s < 2; s++)
    if (lo + s < hi) q[s] = w[s * 32];
  if (!p.early) ready(p.at, block == 0);
  const float* x = p.x + (size_t)head * p.xhead + t * 2;
  const uint32_t low = low_of(p.rounded);
  // This thread's pair of rotary values, if there are not more of them than threads.
  int pairs = p.nrope / 2, all = p.m * p.heads * pairs, i = block * T + tid;
  auto rotary = [&](int i, float2& v, float2*& y) {
    int j = i % pairs, h = i / pairs % p.heads, m = i / pairs / p.heads;
    v = __ldcg(reinterpret_cast<const float2*>(p.x + (size_t)m * p.ldx + (size_t)h * p.xhead + p.k) + j);
    v = turn(v, __ldg(reinterpret_cast<const float2*>(p.rope) + (size_t)p.pos[m] * pairs + j));
    y = reinterpret_cast<float2*>(p.y + (size_t)m * p.ldy + (size_t)h * p.yhead + p.n) + j;
  };
  float2 turned;
  float2* to = nullptr;
  if (i < all) rotary(i, turned, to);
  for (int m0 = 0; m0 < p.m; m0 += 8) {
    const float* row = x + (size_t)min(m0 + g, p.m - 1) * p.ldx;  // columns of rows that are none are not used
    float2 u[2] = {}, v[2] = {};
#pragma unroll
    for (int s = 0; s < 2; s++) {
      int k = (lo + s) * 16;
      if (lo + s < hi && k + t * 2 < p.k) u[s] = __ldcg(reinterpret_cast<const float2*>(row + k));
      if (lo + s < hi && k + t * 2 + 8 < p.k) v[s] = __ldcg(reinterpret_cast<const float2*>(row + k + 8));
    }
    float acc[4] = {};
#pragma unroll
    for (int s = 0; s < 2; s++)
      if (lo + s < hi) {
        uint32_t a[1][4];
        Bf16Step::frags(a, q[s]);
        mma_split(acc, a[0], {split(u[s].x, u[s].y, low), split(v[s].x, v[s].y, low)});
      }
#pragma unroll
    for (int c = 0; c < 4; c++) parts[warp][(g + (c >> 1) * 8) * kPitch + t * 2 + (c & 1)] = acc[c];
    __syncthreads();
    if (m0 == 0 && p.early) ready(p.at, block == 0);
    // 128 threads of eight warps add a tile's sums, in the order of slices.
    int line = tid & 15, m = m0 + (tid >> 4 & 7), r = tile * 16 + line;
    if ((tid & 255) < 128 && m < p.m && r < p.n && item < p.heads * p.tiles) {
      float sum = 0;
#pragma unroll
      for (int s = 0; s < 8; s++) sum += parts[(warp & ~7) + s][line * kPitch + m - m0];
      p.y[(size_t)m * p.ldy + (size_t)head * p.yhead + r] = sum * p.global;
    }
    __syncthreads();
  }
  if (to) *to = turned;
  for (i += blocks * T; i < all; i += blocks * T) {
    rotary(i, turned, to);
    *to = turned;
  }
  stamp(p.at, block);
}
