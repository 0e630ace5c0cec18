// Latent attention of many rows, for FP8 entries of 512 latents and 64 rotary
// values and rows of at most 2,048 positions, in the order of latent.cuh. A block (or a cluster of two, each half the positions) has a row's
// eight heads, then the next row's. Four warps copy entries into a ring; four pairs
// of warps make scores and weights of 32 positions each, 128 together; eight warps
// sum 64 latents each. All three work at once, on different positions.
#include "latent.cuh"

namespace rows {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define SETMAX(way, n) asm volatile("setmaxnreg." #way ".sync.aligned.u32 " #n ";")
#else
#define SETMAX(way, n)
#endif
constexpr int kTile = 32, kRing = 8, kSlots = 4;
constexpr int kScoreWarps = 8, kSumWarps = 8, kFetchWarps = 4, kThreads = 32 * (kScoreWarps + kSumWarps + kFetchWarps);
constexpr int kBytes = kTile * kEntry;

// weights_of makes scores (in powers of two) weights, top the leaf's highest one rounded up; their sum by steps of 16.
__device__ __forceinline__ float weights_of(float (&w)[4][2], float top) {
  float sum[2];
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int i = 0; i < 2; i++) w[n][i] = exp2_of(w[n][i] - top);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    sum[h] = (w[2 * h][0] + w[2 * h][1]) + (w[2 * h + 1][0] + w[2 * h + 1][1]);
    sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
    sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
  }
  return sum[0] + sum[1];
}
// scales_of reads the scales of 128 latents of the weights' positions, and returns their most.
__device__ __forceinline__ float scales_of(float (&sc)[4][2], const char* tile, int block, int lane) {
  int t = lane & 3;
  float most = 0;
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int i = 0; i < 2; i++) sc[n][i] = *reinterpret_cast<const float*>(tile + (place(2 * t + i) + group(n)) * kEntry + kLatent + block * 4), most = fmaxf(most, sc[n][i]);
  most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
  return fmaxf(most, __shfl_xor_sync(~0u, most, 2));
}
struct Weights {                // of 32 positions
  uint4 part[4][2][32];         // B fragments, by the latents' scales: high parts, then low ones
  float down[4], top[8], sum[8];
};
struct Shared {
  char tile[kRing][kBytes];
  uint4 q[2][kSteps * 32];      // A fragments of two rows; [1] of two blocks a row: what the second sends
  Weights weights[kSlots];
  float score[kSlots][2][4][64];
  float tops[2][kSlots][8], mosts[2][kSlots][4];
  float down[2][8], most[kFetchWarps][8];
  u64 full[kRing], empty[kRing], weighed[kSlots], summed[kSlots], staged[2], scored[2], received;
};
static_assert(sizeof(Shared) <= 230512);  // as its launcher has it
struct Half {
  float sum[16][32 * kSumWarps];
  float high[8], weight[8];
};
static_assert(sizeof(Half) <= sizeof(uint4) * kSteps * 32);

// Part is a block's leaves of a row.
struct Part {
  int m, h0, n, lo, tiles;  // row, first head, positions, first of the block, tiles of 32 from there
};
template <int C>
__device__ __forceinline__ Part part_of(const AttendP& p, int item, int groups) {
  int m = item / groups, n = positions(p, m), lo = C == 2 ? (blockIdx.x & 1) * (kLeaves / 2 * kLeaf) : 0, hi = min(n, lo + kLeaves / C * kLeaf);
  return {m, item % groups * 8, n, lo, max(0, hi - lo + kTile - 1) / kTile};
}

// stage makes a row's queries A fragments.
__device__ __forceinline__ void stage_rows(const AttendP& p, Shared& s, const Part& r, int turn, int warp, int lane) {
  int g = lane >> 2, t = lane & 3, b = turn & 1;
  constexpr int kEach = kSteps / kFetchWarps;
  const float* q = p.q + (size_t)r.m * p.ldq + (size_t)(r.h0 + g) * kWidth;
  bool on = r.h0 + g < p.heads;
  auto at = [&](int i) {
    int j = i * kFetchWarps + warp, k = i < kEach - 1 ? j / 2 * 32 + t * 8 + j % 2 * 4 : j * 16 + t * 4;
    return on ? *reinterpret_cast<const float4*>(q + k) : make_float4(0, 0, 0, 0);
  };
  float most = 0;
#pragma unroll
  for (int i = 0; i < kEach - 1; i++) {
    float4 v = at(i);
    most = fmaxf(most, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
  }
  most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
  most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
  if (t == 0) s.most[warp][g] = most;
  asm volatile("barrier.sync 8, 128;" ::: "memory");
#pragma unroll
  for (int w = 0; w < kFetchWarps; w++) most = fmaxf(most, s.most[w][g]);
  int e = exponent(most);
  float up = power(264 - e);
  if (turn >= 2) await(&s.scored[b], (turn / 2 - 1) & 1);
  if (warp == 0 && t == 0) s.down[b][g] = power(e - 10);
#pragma unroll 4
  for (int i = 0; i < kEach; i++) {
    float4 v = at(i);
    Split x, y;
    if (i < kEach - 1) x = split_f16(v.x * up, v.y * up), y = split_f16(v.z * up, v.w * up);
    else x = split(v.x, v.y), y = split(v.z, v.w);
    s.q[b][(i * kFetchWarps + warp) * 32 + lane] = make_uint4(x.hi, x.lo, y.hi, y.lo);
  }
  __syncwarp();
  if (lane == 0) arrive(&s.staged[b]);
  asm volatile("barrier.sync 8, 128;" ::: "memory");  // most is free again
}

template <int C>
__device__ __forceinline__ void fetch_rows(const AttendP& p, Shared& s, int items, int groups) {
  int warp = (threadIdx.x >> 5) - kScoreWarps - kSumWarps, lane = threadIdx.x & 31, in = lane & 7;
  int k = 0, turn = 0;
  for (int item = blockIdx.x / C; item < items; item += gridDim.x / C, turn++) {
    Part r = part_of<C>(p, item, groups);
    auto find = [&](int i) {  // of tiles i.. i+3, eight positions each
      int at = (i + (lane >> 3)) * kTile + warp * 8 + in;
      return at < r.tiles * kTile && r.lo + at < r.n ? slot_of(p, r.m, r.lo + at) : -1;
    };
    int slot = find(0);
    stage_rows(p, s, r, turn, warp, lane);
#pragma unroll 1
    for (int i = 0; i < r.tiles; i += 4) {
      int next = find(i + 4);
#pragma unroll 1
      for (int j = 0; j < 4 && i + j < r.tiles; j++, k++) {
        int at = k % kRing;
        if (k >= kRing) await(&s.empty[at], (k / kRing - 1) & 1);
        bool mine = lane >> 3 == j;
        char* row = s.tile[at] + (warp * 8 + in) * kEntry;
        int count = __popc(__ballot_sync(~0u, mine && slot >= 0));
        if (count < 8) {
          if (mine && slot < 0)
            for (int c = 0; c < kEntry / 16; c++) *reinterpret_cast<uint4*>(row + c * 16) = make_uint4(0, 0, 0, 0);
          asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
          __syncwarp();
        }
        if (lane == 0) expect(&s.full[at], count * kEntry);
        __syncwarp();
        if (mine && slot >= 0)
          asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared(row)),
                       "l"(static_cast<const char*>(p.cache) + (size_t)slot * kEntry), "n"(kEntry), "r"(shared(&s.full[at]))
                       : "memory");
      }
      slot = next;
    }
  }
}

template <int C>
__device__ __forceinline__ void score_rows(const AttendP& p, Shared& s, int items, int groups) {
  int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, pair = warp >> 1, half = warp & 1;
  int k0 = 0, turn = 0, parity = 0;
  float scale = p.scale * 1.44269504f;
  for (int item = blockIdx.x / C; item < items; item += gridDim.x / C, turn++) {
    Part r = part_of<C>(p, item, groups);
    int b = turn & 1;
    await(&s.staged[b], turn / 2 & 1);
    float down = s.down[b][g];
    const uint4* q = s.q[b];
    for (int i = (pair - k0) & 3; i < (r.tiles + 3) / 4 * 4; i += 4, parity ^= 1) {
      int k = k0 + i, at = k % kRing, first = r.lo + i * kTile;
      bool here = i < r.tiles;
      const char* tile = s.tile[at];
      float w[4][2], top = -INFINITY, sc[2][4][2], most[2] = {0, 0};
      if (here) {
        await(&s.full[at], k / kRing & 1);
        scores<1>(w, q, tile, half, down, lane);
        float(*own)[64] = s.score[pair][half], (*other)[64] = s.score[pair][half ^ 1];
#pragma unroll
        for (int j = 0; j < 4; j++) *reinterpret_cast<float2*>(&own[j][lane * 2]) = make_float2(w[j][0], w[j][1]);
        asm volatile("barrier.sync %0, 64;" ::"r"(pair + 1) : "memory");
#pragma unroll
        for (int j = 0; j < 4; j++) {
          float2 x = *reinterpret_cast<const float2*>(&other[j][lane * 2]);
          w[j][0] = first + group(j) + place(2 * t) < r.n ? (w[j][0] + x.x) * scale : -INFINITY;
          w[j][1] = first + group(j) + place(2 * t + 1) < r.n ? (w[j][1] + x.y) * scale : -INFINITY;
          top = fmaxf(top, fmaxf(w[j][0], w[j][1]));
        }
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
#pragma unroll
        for (int d = 0; d < 2; d++) most[d] = scales_of(sc[d], tile, half * 2 + d, lane);
      }
      if (half == 0 && t == 0) s.tops[parity][pair][g] = top;
      if (lane < 2) s.mosts[parity][pair][half * 2 + lane] = lane ? most[1] : most[0];
      asm volatile("barrier.sync 9, 256;" ::: "memory");
      if (!here) continue;
#pragma unroll
      for (int i = 0; i < kSlots; i++) top = fmaxf(top, s.tops[parity][i][g]), most[0] = fmaxf(most[0], s.mosts[parity][i][half * 2]), most[1] = fmaxf(most[1], s.mosts[parity][i][half * 2 + 1]);
      top = ceilf(top);
      float sum = weights_of(w, top);
      Weights& o = s.weights[pair];
      if (k >= kSlots) await(&s.summed[pair], (k / kSlots - 1) & 1);
#pragma unroll
      for (int d = 0; d < 2; d++) {
        int e = exponent(most[d]);
        float up = power(267 - e);
        Split x[4];
#pragma unroll
        for (int n = 0; n < 4; n++) x[n] = split_f16(w[n][0] * (sc[d][n][0] * up), w[n][1] * (sc[d][n][1] * up));
        o.part[half * 2 + d][0][lane] = make_uint4(x[0].hi, x[1].hi, x[2].hi, x[3].hi), o.part[half * 2 + d][1][lane] = make_uint4(x[0].lo, x[1].lo, x[2].lo, x[3].lo);
        if (lane == 0) o.down[half * 2 + d] = power(e - 13);
      }
      if (half == 0 && t == 0) o.top[g] = top, o.sum[g] = sum;
      __syncwarp();
      if (lane == 0) arrive(&s.weighed[pair]);
    }
    __syncwarp();
    if (lane == 0) arrive(&s.scored[b]);
    k0 += r.tiles;
  }
}

template <int C>
__device__ __forceinline__ void sum_rows(const AttendP& p, Shared& s, int items, int groups) {
  int warp = __shfl_sync(~0u, (threadIdx.x >> 5) - kScoreWarps, 0), lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, k = 0;
  for (int item = blockIdx.x / C; item < items; item += gridDim.x / C) {
    Part r = part_of<C>(p, item, groups);
    float kept[4][18], v[18], high[2] = {-INFINITY, -INFINITY};  // sums of 1, 2, 4, 8 leaves: 16 latents of two heads each, then their weights
#pragma unroll
    for (int i = 0; i < 18; i++) v[i] = kept[0][i] = kept[1][i] = kept[2][i] = kept[3][i] = 0;
    int leaf = 0;
#pragma unroll 1
    for (int i = 0; i < r.tiles; leaf++) {
      float c[16], l[16], weight[2][2] = {}, down = 0;
      float2 top = {0, 0};
#pragma unroll
      for (int j = 0; j < 16; j++) c[j] = l[j] = 0;
#pragma unroll 1
      for (int j = 0; j < 4 && i < r.tiles; j++, i++, k++) {
        int slot = k % kSlots, at = k % kRing;
        await(&s.weighed[slot], k / kSlots & 1);
        await(&s.full[at], k / kRing & 1);
        const Weights& o = s.weights[slot];
        uint4 hi = o.part[warp >> 1][0][lane], lo = o.part[warp >> 1][1][lane];
        down = o.down[warp >> 1], top = *reinterpret_cast<const float2*>(&o.top[2 * t]);
        float2 sum = *reinterpret_cast<const float2*>(&o.sum[2 * t]);
        if (j == 0) weight[0][0] = sum.x, weight[0][1] = sum.y;
        else if (j == 1) weight[0][0] += sum.x, weight[0][1] += sum.y;
        else if (j == 2) weight[1][0] = sum.x, weight[1][1] = sum.y;
        else weight[1][0] += sum.x, weight[1][1] += sum.y;
        const char* row = s.tile[at] + place(2 * t) * kEntry + warp * 64 + g * 8;
        const int next = (place(2 * t + 1) - place(2 * t)) * kEntry;
#pragma unroll
        for (int h = 0; h < 2; h++) {
          uint2 x[4];
#pragma unroll
          for (int i = 0; i < 4; i++) x[i] = *reinterpret_cast<const uint2*>(row + i % 2 * next + group(2 * h + i / 2) * kEntry);
          uint32_t lo0 = h ? lo.z : lo.x, lo1 = h ? lo.w : lo.y, hi0 = h ? hi.z : hi.x, hi1 = h ? hi.w : hi.y;
#pragma unroll
          for (int d = 0; d < 2; d++) {
            uint32_t a[4], b[4];
            latents(a, b, d ? x[0].y : x[0].x, d ? x[1].y : x[1].x, d ? x[2].y : x[2].x, d ? x[3].y : x[3].x);
            mma_f16(reinterpret_cast<float(&)[4]>(l[d * 8]), a, lo0, lo1);
            mma_f16(reinterpret_cast<float(&)[4]>(l[d * 8 + 4]), b, lo0, lo1);
            mma_f16(reinterpret_cast<float(&)[4]>(c[d * 8]), a, hi0, hi1);
            mma_f16(reinterpret_cast<float(&)[4]>(c[d * 8 + 4]), b, hi0, hi1);
          }
        }
        __syncwarp();
        if (lane == 0) arrive(&s.summed[slot]), arrive(&s.empty[at]);
      }
      if (__any_sync(~0u, top.x > high[0] || top.y > high[1])) {
        float a[2] = {share(high[0], fmaxf(high[0], top.x)), share(high[1], fmaxf(high[1], top.y))};
#pragma unroll
        for (int j = 0; j < 18; j++) kept[0][j] *= a[j & 1], kept[1][j] *= a[j & 1], kept[2][j] *= a[j & 1], kept[3][j] *= a[j & 1];
        high[0] = fmaxf(high[0], top.x), high[1] = fmaxf(high[1], top.y);
      }
      float f[2] = {share(top.x, high[0]), share(top.y, high[1])};
      v[16] = (weight[0][0] + weight[1][0]) * f[0], v[17] = (weight[0][1] + weight[1][1]) * f[1];
      f[0] *= down, f[1] *= down;
#pragma unroll
      for (int j = 0; j < 16; j++) v[j] = (c[j] + l[j]) * f[j & 1];
      // A balanced tree of the leaves.
      auto up = [&](int level) {
#pragma unroll
        for (int j = 0; j < 18; j++) {
          v[j] += kept[level][j], kept[level][j] = 0;
        }
      };
      auto keep = [&](int level) {
#pragma unroll
        for (int j = 0; j < 18; j++) kept[level][j] = v[j];
      };
      if (!(leaf & 1)) { keep(0); continue; }
      up(0);
      if (!(leaf & 2)) { keep(1); continue; }
      up(1);
      if (!(leaf & 4)) { keep(2); continue; }
      up(2);
      if (!(leaf & 8)) { keep(3); continue; }
      up(3);
    }
    if (leaf < kLeaves)  // what is kept, from the last leaves on
#pragma unroll
      for (int j = 0; j < 18; j++) v[j] = kept[3][j] + (kept[2][j] + (kept[1][j] + kept[0][j]));
    if (C == 2) {
      Half* o = reinterpret_cast<Half*>(s.q[1]);
      int tid = threadIdx.x - 32 * kScoreWarps;
      if (blockIdx.x & 1) {
#pragma unroll
        for (int j = 0; j < 16; j++) push(&o->sum[j][tid], &s.received, 0, v[j]);
        if (warp == 0 && g < 2) push(&o->high[2 * t + g], &s.received, 0, g ? high[1] : high[0]), push(&o->weight[2 * t + g], &s.received, 0, g ? v[17] : v[16]);
        continue;
      }
      await(&s.received, 0);
      float a[2], b[2];
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float other = o->high[2 * t + h], top = fmaxf(high[h], other);
        a[h] = share(high[h], top), b[h] = share(other, top);
        v[16 + h] = fmaf(v[16 + h], a[h], o->weight[2 * t + h] * b[h]);
      }
#pragma unroll
      for (int j = 0; j < 16; j++) v[j] = fmaf(v[j], a[j & 1], o->sum[j][tid] * b[j & 1]);
    }
#pragma unroll
    for (int h = 0; h < 2; h++)
      if (r.h0 + 2 * t + h < p.heads) {
        float4* y = reinterpret_cast<float4*>(p.y + (size_t)r.m * p.ldy + (size_t)(r.h0 + 2 * t + h) * kLatent + warp * 64 + g * 8);
#pragma unroll
        for (int d = 0; d < 2; d++) y[d] = make_float4(v[d * 8 + h] / v[16 + h], v[d * 8 + 2 + h] / v[16 + h], v[d * 8 + 4 + h] / v[16 + h], v[d * 8 + 6 + h] / v[16 + h]);
      }
  }
}

template <int C>
__device__ __forceinline__ void attend_rows(const AttendP& p) {
  extern __shared__ __align__(128) char smem[];
  begin();
  Shared& s = *reinterpret_cast<Shared*>(smem);
  int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0), groups = (p.heads + 7) / 8, items = p.m * groups;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kRing; i++) init(&s.full[i], kFetchWarps), init(&s.empty[i], kSumWarps);
    for (int i = 0; i < kSlots; i++) init(&s.weighed[i], 2), init(&s.summed[i], kSumWarps);
    for (int i = 0; i < 2; i++) init(&s.staged[i], kFetchWarps), init(&s.scored[i], kScoreWarps);
    init(&s.received, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    if (C == 2) expect(&s.received, sizeof(Half));
  }
  if (C == 2) cluster_sync();
  else __syncthreads();
  ready(p.at);
  if (warp >= kScoreWarps + kSumWarps) {
    SETMAX(dec, 48);
    fetch_rows<C>(p, s, items, groups);
  } else if (warp >= kScoreWarps) {
    SETMAX(inc, 136);
    sum_rows<C>(p, s, items, groups);
  } else {
    SETMAX(dec, 80);
    score_rows<C>(p, s, items, groups);
  }
  finish(p.at);
}
}  // namespace rows

// grid (any): a block a row; (2 m): a cluster of two a row
extern "C" __global__ void __launch_bounds__(rows::kThreads, 1) mla_attend_rows_fp8(const __grid_constant__ AttendP p) { rows::attend_rows<1>(p); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(rows::kThreads, 1) mla_attend_rows2_fp8(const __grid_constant__ AttendP p) { rows::attend_rows<2>(p); }
