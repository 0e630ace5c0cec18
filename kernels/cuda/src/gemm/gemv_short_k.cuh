// Products of 2 to 8 rows whose slices of k are short, as v_up's are: x goes straight into
// registers, and shared memory is left to the weights of what comes next. See
// gemv.cuh, whose bits these are; a tile's k is one block's.
#pragma once
#include "gemm/gemv_prefetch.cuh"

constexpr int kShortKFrags = kShortKColumns / 16;  // fragments of x that a lane has, and its slice of k at most

template <typename W>
__device__ __forceinline__ void gemv_short_k(const GemvP& p, int block, char* smem) {
  constexpr int F = W::kFrags;
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  int tile = block % p.tiles, head = block / p.tiles;
  int steps = (p.k + 16 * F - 1) / (16 * F), per = (steps + kWarps - 1) / kWarps, lo = min(steps, warp * per),
      n = min(per, steps - lo);
  char *mine = smem + warp * p.ring, *own = mine + lane * 16;
  const char* w = static_cast<const char*>(p.w) + head * p.whead + ((size_t)tile * steps + lo) * 512 + lane * 16;
#pragma unroll 1
  for (int i = 0; i < n; i++) copy16(own + i * 512, w + i * 512, 16);
  commit();
  landed<0>();
  int k = lo * F * 16 + place_of(t) * 4, left = min(p.k, (lo + n) * F * 16) - k;
  // columns of fragments without a row are not used
  const float* x = p.x + (size_t)head * p.xhead + (size_t)min(g, p.m - 1) * p.ldx + k;
  // The first turn is for the instructions to come while the kernels before end.
#pragma unroll 1
  for (int turn = 0; turn < 2; turn++) {
    if (turn) ready(p.at, block == 0);
    float4 v[kShortKFrags];
    load_columns(v, x, turn ? left : 0);
    float acc[4] = {};
#pragma unroll
    for (int i = 0; i < kShortKFrags / F; i++) {
      Frag b[F];
#pragma unroll
      for (int f = 0; f < F; f++) b[f] = fragment(v[i * F + f], low_of(p.rounded));
      if (i >= n) break;
      uint32_t a[F][4];
      W::frags(a, *reinterpret_cast<const uint4*>(own + i * 512));
#pragma unroll
      for (int f = 0; f < F; f++) mma_split(acc, a[f], b[f]);
    }
    // The warps' sums, each where its weights were, in warp order.
    __syncwarp();
    if (turn) keep_sums(mine, acc);
    __syncthreads();
    int line = threadIdx.x & 15, m = threadIdx.x >> 4;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kWarps; i++) sum += reinterpret_cast<const float*>(smem +
        (turn ? i : warp) * p.ring)[(m & 7) * kSumPitch + line];
    int r = tile * 16 + line;
    if (turn && m < p.m && r < p.n && head < p.heads) p.y[(size_t)m * p.ldy + (size_t)head * p.yhead + r] =
        sum * p.global;
  }
  finish_beside(p.at);
}
