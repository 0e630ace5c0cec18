// Products of 2 to 8 rows whose blocks, with a tile each, would not all run at once: a
// block has up to kPrefetchTiles tiles, for which it reads x once, and room for all their
// weights. A warp more has them copied while the kernels before still work. See
// gemv.cuh, whose bits these are; a tile's k is one block's.
#pragma once
#include "gemm/gemv.cuh"

static_assert(kPrefetchThreads == (kWarps + 1) * 32);
constexpr int kPrefetchFrags = kPrefetchColumns / 16;  // fragments of x that a lane has, and its slice of k at most
constexpr int kPrefetchTurn = 4;      // that it works on at a time
// quarters of k on their way at a time: the kernels in front still need the memory system
constexpr int kPrefetchAhead = 1;

// A lane has four values of each 16 of its row of x, from 4 place_of(t) on. fragment
// makes them the pairs t and t + 4, of which lane^1 has one.
__device__ __forceinline__ int place_of(int t) { return (t & 1) * 2 + (t >> 1); }
__device__ __forceinline__ Frag fragment(float4 v, uint32_t low) {
  bool odd = threadIdx.x & 1;
  float a = __shfl_xor_sync(~0u, odd ? v.x : v.z, 1), b = __shfl_xor_sync(~0u, odd ? v.y : v.w, 1);
  float first = odd ? a : v.x, second = odd ? b : v.y, third = odd ? v.z : a, fourth = odd ? v.w : b;
  return {split(first, second, low), split(third, fourth, low)};
}

// load_columns loads those of N times 16 columns of which left, from x on, are there.
template <int N>
__device__ __forceinline__ void load_columns(float4 (&v)[N], const float* x, int left) {
#pragma unroll
  for (int i = 0; i < N; i++) {
    v[i] = {0, 0, 0, 0};
    if (i * 16 < left) v[i] = __ldcg(reinterpret_cast<const float4*>(x + i * 16));
  }
}

// A warp's sums of a tile, where its weights were: [row of x][16 outputs].
constexpr int kSumPitch = 20, kSumBytes = 8 * kSumPitch * 4;
static_assert((kSumBytes + 511) / 512 == kPrefetchSteps);
__device__ __forceinline__ void keep_sums(char* sums, const float (&acc)[4]) {
  int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int i = 0; i < 4; i++) reinterpret_cast<float*>(sums)[(t * 2 + (i & 1)) * kSumPitch + g + (i >> 1) * 8] = acc[i];
}

template <typename W>
__device__ __forceinline__ void gemv_prefetch(const GemvP& p, int block, char* smem) {
  constexpr int F = W::kFrags, kSteps = kPrefetchTurn / F;
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  int blocks = (p.tiles + kPrefetchTiles - 1) / kPrefetchTiles, tile = block % blocks * kPrefetchTiles,
      head = block / blocks, tiles = head < p.heads ? min(kPrefetchTiles, p.tiles - tile) : 0;
  // from tile to tile
  int steps = (p.k + 16 * F - 1) / (16 * F), per = (steps + kWarps - 1) / kWarps, hop = kWarps * per * 512;
  uint32_t bars = shared_of(smem);  // of quarters of k, which two warps have
  char* weights = smem + kPrefetchBars;
  if (threadIdx.x < kWarps / 2) mbar_init(bars + threadIdx.x * 8, 1), mbar_ready();
  __syncthreads();
  if (warp == kWarps) {
    const char* w = static_cast<const char*>(p.w) + head * p.whead + (size_t)tile * steps * 512;
#pragma unroll 1
    for (int q = 0; q < kWarps / 2 && lane == 0; q++) {
      int first = min(steps, q * 2 * per), bytes = (min(steps, (q + 1) * 2 * per) - first) * 512;
      if (bytes * tiles == 0) break;
      if (q >= kPrefetchAhead) mbar_wait(bars + (q - kPrefetchAhead) * 8, 0);
      mbar_expect(bars + q * 8, tiles * bytes);
#pragma unroll 1
      for (int j = 0; j < tiles; j++) copy_once(shared_of(weights) + j * hop + first * 512,
          w + ((size_t)j * steps + first) * 512, bytes, bars + q * 8);
    }
    return;
  }
  int lo = min(steps, warp * per), n = min(per, steps - lo);
  char* mine = weights + warp * per * 512;  // of the first tile
  int k = lo * F * 16 + place_of(t) * 4, left = min(p.k, (lo + n) * F * 16) - k;
  // columns of fragments without a row are not used
  const float* x = p.x + (size_t)head * p.xhead + (size_t)min(g, p.m - 1) * p.ldx + k;
  // The first turn is for the instructions to come while the kernels before end.
#pragma unroll 1
  for (int turn = 0; turn < 2; turn++) {
    if (turn) ready(p.at, block == 0);
    float4 v[kPrefetchFrags];
    load_columns(v, x, turn ? left : 0);
    if (turn && n && tiles) mbar_wait(bars + warp / 2 * 8, 0);
    float acc[kPrefetchTiles][4] = {};
    int most = turn ? n : 1;
#pragma unroll 1
    for (int i = 0; i < most; i += kSteps) {
      Frag b[kPrefetchTurn];
#pragma unroll
      for (int f = 0; f < kPrefetchTurn; f++) b[f] = fragment(v[f], low_of(p.rounded));
#pragma unroll
      for (int f = 0; f + kPrefetchTurn < kPrefetchFrags; f++) v[f] = v[f + kPrefetchTurn];
      const char* a = mine + i * 512 + lane * 16;
#pragma unroll
      for (int u = 0; u < kSteps; u++) {
        if (i + u >= most) break;
        // tiles that the block lacks have what was there before: such sums are not used
        uint32_t q[kPrefetchTiles][F][4];
#pragma unroll
        for (int j = 0; j < kPrefetchTiles; j++) W::frags(q[j], *reinterpret_cast<const uint4*>(a + j * hop + u * 512));
#pragma unroll
        for (int f = 0; f < F; f++) {  // mma_split, in turns: the next of a tile waits for the one before
          const Frag& x = b[u * F + f];
#pragma unroll
          for (int j = 0; j < kPrefetchTiles; j++) mma(acc[j], q[j][f], x.b0.lo, x.b1.lo);
#pragma unroll
          for (int j = 0; j < kPrefetchTiles; j++) mma(acc[j], q[j][f], x.b0.hi, x.b1.hi);
        }
      }
    }
    // The warps' sums, each where its weights were, in warp order.
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kPrefetchTiles; j++)
      if (turn) keep_sums(mine + j * hop, acc[j]);
    meet(1, kWarps * 32);
    int line = threadIdx.x & 15, m = threadIdx.x >> 4 & 7;
#pragma unroll 1
    for (int j = threadIdx.x >> 7; j < kPrefetchTiles; j += 2) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < kWarps; i++) sum += reinterpret_cast<const float*>(weights + (turn ? i : warp) * per * 512 +
          j * hop)[m * kSumPitch + line];
      int r = (tile + j) * 16 + line;
      if (turn && m < p.m && j < tiles && r < p.n) p.y[(size_t)m * p.ldy + (size_t)head * p.yhead + r] = sum * p.global;
    }
  }
  if (p.at && threadIdx.x == 0) stamp_end(p.at);
}
