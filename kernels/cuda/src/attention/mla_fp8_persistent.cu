// Latent attention of many rows, for FP8 entries of 512 latents and 64 rotary values
// and rows of at most 2,048 positions, in the order of mla_512_64.cuh. A block has a row's
// eight heads, then the next row's; or a cluster of two, or four blocks that are
// anywhere, have one row, each its part of the positions. Four warps copy entries into
// a ring of two leaves; two teams of four warps make scores and weights of a leaf, 64
// positions each; eight warps sum 64 latents each. All three work at once, on different
// positions.
#include "attention/mla_512_64.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define SETMAX(way, n) asm volatile("setmaxnreg." #way ".sync.aligned.u32 " #n ";")
#else
#define SETMAX(way, n)
#endif

namespace rows {
constexpr int kTile = 32, kRing = 8, kSlots = 4;
constexpr int kScoreWarps = 8, kSumWarps = 8, kFetchWarps = 4, kThreads = 32 * (kScoreWarps + kSumWarps + kFetchWarps);
constexpr int kBytes = kTile * kEntry;

struct Weights {                // of 32 positions
  float4 w[2][32];              // by 16 positions, as B fragments have them
  float scaled[2][4][16];       // of the latents' scales, those positions in the same order, over the leaf's highest
  float down[4], top[8], sum[8][2];
};
struct Shared {
  char tile[kRing][kBytes];
  uint4 q[2][kSteps * 32];      // A fragments of two rows; [1] of two blocks a row: what the second sends
  Weights weights[kSlots];
  float4 parts[2][2][2][4][32];  // of scores, by team, its tiles, 16 positions each and 128 latents
  float tops[2][8][kScoreWarps], mosts[2][kScoreWarps][4];
  float down[2][8], most[kFetchWarps][8];
  u64 bars[kRing * 2 + kSlots * 2 + 5];
};
// Barriers, in bytes from the first: of tiles that are there or free, of weights that are there or free,
// of queries that are there or free, and of what the second of two blocks sends.
constexpr int kFullAt = 0, kEmpty = kRing * 8, kWeighed = kEmpty + kRing * 8, kSummed = kWeighed + kSlots * 8,
    kStaged = kSummed + kSlots * 8, kScored = kStaged + 16, kReceived = kScored + 16;
static_assert(sizeof(Shared) == kMlaPersistentShared && kThreads == kMlaPersistentThreads &&
    kLeaf * kLeaves == kMlaPersistentReach);
struct Half {
  float sum[16][32 * kSumWarps];
  float high[8], weight[8];
};
static_assert(sizeof(Half) <= sizeof(uint4) * kSteps * 32);
// What C blocks of a row leave for the one that writes some columns: four values of a
// lane for each of its warps; references and weights of the lanes' two heads.
template <int C>
struct Left {
  static constexpr int kWarps = 32 / C;
  float4 sum[kWarps][C][32], of[kWarps][C][4];
};
static_assert(sizeof(Left<4>) == kMlaPersistentLeft);

// Part is a block's leaves of a row.
struct Part {
  int m, h0, n, lo, leaves;  // row, first head, positions, first of the block, leaves from there
};
template <int C>
__device__ __forceinline__ Part part_of(const AttendP& p, int item, int groups) {
  int m = item / groups, n = positions(p, m), lo = blockIdx.x % C * (kLeaves / C * kLeaf),
      hi = min(n, lo + kLeaves / C * kLeaf);
  return {m, item % groups * 8, n, lo, max(0, hi - lo + kLeaf - 1) / kLeaf};
}

// stage_rows makes a row's queries A fragments.
__device__ __forceinline__ void stage_rows(const AttendP& p, Shared& s, const Part& r, int turn, int warp, int lane) {
  int g = lane >> 2, t = lane & 3, b = turn & 1;
  const uint32_t bars = shared_of(&s.bars);
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
  if (turn >= 2) mbar_wait(bars + kScored + b * 8, (turn / 2 - 1) & 1);
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
  if (lane == 0) mbar_arrive(bars + kStaged + b * 8);
  asm volatile("barrier.sync 8, 128;" ::: "memory");  // most is free again
}

// A lane looks one of a leaf's positions up, eight of each tile a warp: which it is, two
// leaves ahead, and its slot, one leaf ahead; also of the next row.
template <int C>
__device__ __forceinline__ void fetch_rows(const AttendP& p, Shared& s, int items, int groups) {
  int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0) - kScoreWarps - kSumWarps, lane = threadIdx.x & 31, k = 0, turn = 0;
  const uint32_t bars = shared_of(&s.bars);
  const int step = gridDim.x / C, own = (lane >> 3) * kTile + warp * 8 + (lane & 7);
  auto find = [&](const Part& r, int i) {
    int at = r.lo + i * kLeaf + own;
    return i < r.leaves && at < r.n ? p.sel ? p.sel[(size_t)r.m * p.topk + at] : at : -1;
  };
  auto slot_in = [&](const int* pages, int pos) { return pos < 0 ? -1 : pages[pos / kPage] * kPage + pos % kPage; };
  auto pages_of = [&](const Part& r) { return p.pages + (size_t)p.seq[r.m] * p.pages_ld; };
  Part r = {}, next = {};
  int slot = -1, ahead = -1;  // of the leaf that is copied; the position in the one after it
  const int* pages = nullptr;
  int item = blockIdx.x / C;
  if (item < items) {
    r = part_of<C>(p, item, groups), pages = pages_of(r);
    slot = find(r, 0), ahead = find(r, 1), slot = slot_in(pages, slot);
  }
  for (; item < items; item += step, turn++) {
    const bool more = item + step < items;
    const int* others = nullptr;  // the next row's pages
    if (more) next = part_of<C>(p, item + step, groups), others = pages_of(next);
    else next.leaves = 0;
    if (C > 1 && r.leaves == 0) stage_rows(p, s, r, 0, warp, lane);
#pragma unroll 1
    for (int i = 0; i < r.leaves; i++, k++) {
      bool last = i + 1 == r.leaves;
      if (last && i == 0) ahead = find(next, 0);
      int then = slot_in(last ? others : pages, ahead), left = i + 2 - r.leaves;
      ahead = left < 0 ? find(r, i + 2) : find(next, left);
#pragma unroll 1
      for (int j = 0; j < 4; j++) {
        int at = (k & 1) * 4 + j;
        if (k >= 2) mbar_wait<true>(bars + kEmpty + at * 8, (k / 2 - 1) & 1);
        bool mine = lane >> 3 == j;
        char* row = s.tile[at] + warp * 8 * kEntry;
        int count = __popc(__ballot_sync(~0u, mine && slot >= 0));
        if (count < 8) {
          if (mine && slot < 0)
            for (int c = 0; c < kEntry / 16; c++) *reinterpret_cast<uint4*>(row + (lane & 7) * kEntry + c * 16) =
                make_uint4(0, 0, 0, 0);
          asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
          __syncwarp();
        }
        expect_one(bars + kFullAt + at * 8, count * kEntry);
        int from[8];
#pragma unroll
        for (int x = 0; x < 8; x++) from[x] = __shfl_sync(~0u, slot, j * 8 + x);
#pragma unroll
        for (int x = 0; x < 8; x++)
          if (from[x] >= 0) copy_one(shared_of(row) + x * kEntry,
              static_cast<const char*>(p.cache) + (size_t)from[x] * kEntry, kEntry, bars + kFullAt + at * 8);
      }
      slot = then;
      // Queries: of the first row while its first leaf is on its way, of the next row
      // when those of the one before have been used.
      int some = turn == 0 && i == 0 ? 0 : 1, all = i == min(3, r.leaves - 1) && more ? 2 : 1;
#pragma unroll 1
      for (; some < all; some++) stage_rows(p, s, some ? next : r, turn + some, warp, lane);
    }
    r = next, pages = others;
  }
}

// scaled_at is where the scale of position i of 16 goes.
__device__ __forceinline__ int scaled_at(int i) {
  int k = i >> 1 ^ i >> 3;  // place(k) is i, or one less
  return (k >> 1) * 4 + (i & 1) * 2 + (k & 1);
}

// score_part is 32 positions' scores by the latents of block m, for eight heads, without
// the latents' scales.
__device__ __forceinline__ void score_part(float4 (&parts)[2][4][32], const uint4* q, const char* tile, int m,
    int lane) {
  int g = lane >> 2, t = lane & 3;
  const char* row = tile + place(g) * kEntry + t * 8 + m * 128;
  q += m * 8 * 32;
  float c[4][2][4];
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int i = 0; i < 4; i++) c[n][0][i] = c[n][1][i] = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    uint32_t x[4], y[4];
    load_a(x, q, i * 2, lane), load_a(y, q, i * 2 + 1, lane);
    uint2 v[4];
#pragma unroll
    for (int n = 0; n < 4; n++) v[n] = *reinterpret_cast<const uint2*>(row + group(n) * kEntry + i * 32);
#pragma unroll
    for (int n = 0; n < 4; n++) mma_f16(c[n][0], x, half_of(v[n].x), half_high(v[n].x));
#pragma unroll
    for (int n = 0; n < 4; n++) mma_f16(c[n][1], y, half_of(v[n].y), half_high(v[n].y));
  }
  auto sum = [&](int n, int i) { return (c[n][0][i] + c[n][1][i]) + (c[n][0][i + 2] + c[n][1][i + 2]); };
#pragma unroll
  for (int h = 0; h < 2; h++) parts[h][m][lane] = make_float4(sum(2 * h, 0), sum(2 * h, 1), sum(2 * h + 1, 0),
      sum(2 * h + 1, 1));
}

// A team has two tiles of a leaf, one after the other, a warp of it a block of latents.
// Then each warp makes the weights of 16 positions.
template <int C>
__device__ __forceinline__ void score_rows(const AttendP& p, Shared& s, int items, int groups) {
  int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3,
      team = warp >> 2, m = warp & 3, half = m & 1, k = 0, turn = 0;
  const int mine = m / 2 * 2 + team, first = half * 16 + place(2 * t), next = place(2 * t + 1) - place(2 * t);
  const float scale = p.scale * 1.44269504f;
  const int scaled0 = scaled_at(g), scaled1 = scaled_at(g + 8);
  const uint32_t bars = shared_of(&s.bars);
  for (int item = blockIdx.x / C; item < items; item += gridDim.x / C, turn++) {
    Part r = part_of<C>(p, item, groups);
    int b = turn & 1, left = r.n - r.lo - mine * kTile - first;  // positions from the lane's on
    mbar_wait(bars + kStaged + b * 8, turn / 2 & 1);
    float down = s.down[b][g];
    const uint4* q = s.q[b];
#pragma unroll 1
    for (int i = 0; i < r.leaves; i++, k++, left -= kLeaf) {
      int ring = (k & 1) * 4, parity = k & 1;
#pragma unroll 1
      for (int j = 0; j < 2; j++) {
        int at = ring + j * 2 + team;
        mbar_wait(bars + kFullAt + at * 8, k / 2 & 1);
        score_part(s.parts[team][j], q, s.tile[at], m, lane);
      }
      const char* tile = s.tile[ring + mine];
      // A lane has two positions' scales of block t.
      const float* own = reinterpret_cast<const float*>(tile + (half * 16 + g) * kEntry + kLatent) + t;
      float sc[2] = {own[0], own[8 * kEntry / 4]}, c[2][2][4], w[2][2];
      float most = fmaxf(sc[0], sc[1]);
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 4));
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 8));
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 16));
      if (g == 0) s.mosts[parity][warp][t] = most;
#pragma unroll
      for (int u = 0; u < 2; u++)
#pragma unroll
        for (int i = 0; i < 4; i++) c[u][0][i] = c[u][1][i] = 0;
#pragma unroll
      for (int j = 0; j < kRope / 16; j++) {
        uint32_t a[4];
        load_a(a, q, kLatent / 16 + j, lane);
#pragma unroll
        for (int u = 0; u < 2; u++) {
          uint2 v = *reinterpret_cast<const uint2*>(tile + (half * 16 + place(g) + u) * kEntry + kLatent + 16 + j * 32 +
              t * 8);
          mma(c[u][j & 1], a, v.x, v.y);
        }
      }
      asm volatile("barrier.sync %0, 128;" ::"r"(team + 1) : "memory");
      float4 x[4];
#pragma unroll
      for (int j = 0; j < 4; j++) x[j] = s.parts[team][m >> 1][half][j][lane];
#pragma unroll
      for (int u = 0; u < 2; u++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
          float4 f = *reinterpret_cast<const float4*>(tile + (first + i * next + u) * kEntry + kLatent);
          auto of = [&](int j) { return u ? i ? x[j].w : x[j].z : i ? x[j].y : x[j].x; };
          float lower = fmaf(f.y * down, of(1), fmaf(f.x * down, of(0), 0)),
              upper = fmaf(f.w * down, of(3), fmaf(f.z * down, of(2), 0));
          upper += (c[u][0][i] + c[u][1][i]) + (c[u][0][i + 2] + c[u][1][i + 2]);
          w[u][i] = (lower + upper) * scale;
        }
      if (left < 4)  // a few positions are not there
#pragma unroll
        for (int u = 0; u < 2; u++)
#pragma unroll
          for (int i = 0; i < 2; i++)
            if (u + i * next >= left) w[u][i] = -INFINITY;
      float top = fmaxf(fmaxf(w[0][0], w[0][1]), fmaxf(w[1][0], w[1][1]));
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
      if (t == 0) s.tops[parity][g][warp] = top;
      asm volatile("barrier.sync 9, 256;" ::: "memory");
      float2 both = *reinterpret_cast<const float2*>(&s.tops[parity][g][2 * t]);
      top = fmaxf(both.x, both.y), most = s.mosts[parity][g][t];
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 1)), most = fmaxf(most, __shfl_xor_sync(~0u, most, 4));
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 2)), most = fmaxf(most, __shfl_xor_sync(~0u, most, 8));
      top = ceilf(top), most = fmaxf(most, __shfl_xor_sync(~0u, most, 16));
      int e = exponent(most);
      float up = power(267 - e);
#pragma unroll
      for (int u = 0; u < 2; u++)
#pragma unroll
        for (int i = 0; i < 2; i++) w[u][i] = exp2_of(w[u][i] - top);
      float sum = (w[0][0] + w[0][1]) + (w[1][0] + w[1][1]);
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      Weights& o = s.weights[mine];
      if (k >= 1) mbar_wait(bars + kSummed + mine * 8, (k - 1) & 1);
      o.w[half][lane] = make_float4(w[0][0], w[0][1], w[1][0], w[1][1]);
      o.scaled[half][t][scaled0] = sc[0] * up, o.scaled[half][t][scaled1] = sc[1] * up;
      if (t == 0) o.sum[g][half] = sum;
      if (half == 0 && t == 0) o.top[g] = top;
      if (half == 0 && g == 0) o.down[t] = power(e - 13);
      __syncwarp();
      if (lane == 0) mbar_arrive(bars + kWeighed + mine * 8);
    }
    __syncwarp();
    if (lane == 0) mbar_arrive(bars + kScored + b * 8);
  }
}

// join leaves a block's sums for the others of a row, v as below, and writes the
// columns that are this block's.
template <int C>
__device__ __forceinline__ void join(const AttendP& p, const Part& r, int item, int warp, int lane,
    const float (&high)[2], const float (&v)[18]) {
  constexpr int kSumsOf = kSumWarps / C;  // warps whose columns a block writes
  int g = lane >> 2, t = lane & 3, block = blockIdx.x % C;
  Left<C>* left = reinterpret_cast<Left<C>*>(p.part) + item * C;
  Left<C>&to = left[warp / kSumsOf], &in = left[block];
#pragma unroll
  for (int d = 0; d < 2; d++)
#pragma unroll
    for (int h = 0; h < 2; h++) leave(&to.sum[warp % kSumsOf * 4 + d * 2 + h][block][lane],
        make_float4(v[d * 8 + h], v[d * 8 + 2 + h], v[d * 8 + 4 + h], v[d * 8 + 6 + h]));
  if (g < 4) leave(&to.of[warp % kSumsOf * 4 + g][block][t], make_float4(high[0], v[16], high[1], v[17]));
  if (warp >= Left<C>::kWarps) return;
  float4 x[C], of[C];
  await(of, &in.of[warp][0][t], 4);
  await(x, &in.sum[warp][0][lane], 32);
  int h = warp & 1, d = warp >> 1 & 1;
  float top = -INFINITY, l[C], y[4][C];
#pragma unroll
  for (int b = 0; b < C; b++) top = fmaxf(top, h ? of[b].z : of[b].x);
#pragma unroll
  for (int b = 0; b < C; b++) {
    float f = share(h ? of[b].z : of[b].x, top);
    l[b] = f * (h ? of[b].w : of[b].y);
    y[0][b] = f * x[b].x, y[1][b] = f * x[b].y, y[2][b] = f * x[b].z, y[3][b] = f * x[b].w;
  }
  float all = tree<C>(l);
  if (r.h0 + 2 * t + h < p.heads)
    *reinterpret_cast<float4*>(p.y + (size_t)r.m * p.ldy + (size_t)(r.h0 + 2 * t + h) * kLatent +
        (block * kSumsOf + warp / 4) * 64 + g * 8 + d * 4) =
        make_float4(tree<C>(y[0]) / all, tree<C>(y[1]) / all, tree<C>(y[2]) / all, tree<C>(y[3]) / all);
#pragma unroll
  for (int b = 0; b < C; b++) {
    clear(&in.sum[warp][b][lane]);
    if (g == 0) clear(&in.of[warp][b][t]);
  }
}

template <int C>
__device__ __forceinline__ void sum_rows(const AttendP& p, Shared& s, int items, int groups) {
  int warp = __shfl_sync(~0u, (threadIdx.x >> 5) - kScoreWarps, 0), lane = threadIdx.x & 31, g = lane >> 2,
      t = lane & 3, k = 0;
  const int next = (place(2 * t + 1) - place(2 * t)) * kEntry;
  const char *rows = s.tile[0] + place(2 * t) * kEntry + warp * 64 + g * 8,
      *parts = reinterpret_cast<const char*>(s.weights[0].w[0] + lane),
      *scaled = reinterpret_cast<const char*>(s.weights[0].scaled[0][warp >> 1] + t * 4);
  const uint32_t bars = shared_of(&s.bars);
  for (int item = blockIdx.x / C; item < items; item += gridDim.x / C) {
    Part r = part_of<C>(p, item, groups);
    // Sums of 1, 2, 4, 8, 16 leaves: of two heads 8 latents each and the weights; relative to 2^high.
    float a[18], b[18], c[18], d[18], high[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int j = 0; j < 18; j++) a[j] = b[j] = c[j] = d[j] = 0;
#pragma unroll 1
    for (int i = 0; i < r.leaves; i++, k++) {
      float x[18], l[16], weight[2][4], f[18];
#pragma unroll
      for (int j = 0; j < 16; j++) x[j] = l[j] = 0;
      const char* leaf = rows + (k & 1) * (4 * kBytes);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        mbar_wait(bars + kWeighed + j * 8, k & 1);
#pragma unroll
        for (int h = 0; h < 2; h++) {
          float4 w = *reinterpret_cast<const float4*>(parts + j * sizeof(Weights) + h * 512),
              f = *reinterpret_cast<const float4*>(scaled + j * sizeof(Weights) + h * 256);
          Split u = split_f16(w.x * f.x, w.y * f.y), v = split_f16(w.z * f.z, w.w * f.w);
          uint2 y[4];
#pragma unroll
          for (int i = 0; i < 4; i++) y[i] = *reinterpret_cast<const uint2*>(leaf + j * kBytes + i % 2 * next +
              group(2 * h + i / 2) * kEntry);
#pragma unroll
          for (int e = 0; e < 2; e++) {
            uint32_t m[4], n[4];
            latents(m, n, e ? y[0].y : y[0].x, e ? y[1].y : y[1].x, e ? y[2].y : y[2].x, e ? y[3].y : y[3].x);
            mma_f16(reinterpret_cast<float(&)[4]>(l[e * 8]), m, u.lo, v.lo);
            mma_f16(reinterpret_cast<float(&)[4]>(l[e * 8 + 4]), n, u.lo, v.lo);
            mma_f16(reinterpret_cast<float(&)[4]>(x[e * 8]), m, u.hi, v.hi);
            mma_f16(reinterpret_cast<float(&)[4]>(x[e * 8 + 4]), n, u.hi, v.hi);
          }
        }
        const Weights& o = s.weights[j];
        float4 sum = *reinterpret_cast<const float4*>(o.sum[2 * t]);  // of two heads
        weight[0][j] = sum.x + sum.y, weight[1][j] = sum.z + sum.w;
        if (j == 3) {
          float2 top = *reinterpret_cast<const float2*>(&o.top[2 * t]);
          float down = o.down[warp >> 1];
          if (__any_sync(~0u, top.x > high[0] || top.y > high[1])) {
            float g[2] = {share(high[0], fmaxf(high[0], top.x)), share(high[1], fmaxf(high[1], top.y))};
#pragma unroll
            for (int j = 0; j < 18; j++) a[j] *= g[j & 1], b[j] *= g[j & 1], c[j] *= g[j & 1], d[j] *= g[j & 1];
            high[0] = fmaxf(high[0], top.x), high[1] = fmaxf(high[1], top.y);
          }
          f[16] = share(top.x, high[0]), f[17] = share(top.y, high[1]);
          f[0] = f[16] * down, f[1] = f[17] * down;
        }
        __syncwarp();
        if (lane == 0) mbar_arrive(bars + kSummed + j * 8), mbar_arrive(bars + kEmpty + ((k & 1) * 4 + j) * 8);
      }
#pragma unroll
      for (int j = 0; j < 16; j++) x[j] += l[j], f[j] = f[j & 1];
#pragma unroll
      for (int h = 0; h < 2; h++) x[16 + h] = (weight[h][0] + weight[h][1]) + (weight[h][2] + weight[h][3]);
      // A balanced tree of the leaves.
      if (!(i & 1)) {
#pragma unroll
        for (int j = 0; j < 18; j++) a[j] = x[j] * f[j];
      } else if (!(i & 2)) {
#pragma unroll
        for (int j = 0; j < 18; j++) b[j] = fmaf(x[j], f[j], a[j]);
      } else if (!(i & 4)) {
#pragma unroll
        for (int j = 0; j < 18; j++) c[j] = fmaf(x[j], f[j], a[j]) + b[j];
      } else if (!(i & 8)) {
#pragma unroll
        for (int j = 0; j < 18; j++) d[j] = (fmaf(x[j], f[j], a[j]) + b[j]) + c[j];
      } else {
#pragma unroll
        for (int j = 0; j < 18; j++) a[j] = ((fmaf(x[j], f[j], a[j]) + b[j]) + c[j]) + d[j];  // the last one
      }
    }
    float v[18];  // what is kept, from the last leaves on
#pragma unroll
    for (int j = 0; j < 18; j++) {
      v[j] = r.leaves & 1 || r.leaves == kLeaves ? a[j] : 0;
      if (r.leaves & 2) v[j] += b[j];
      if (r.leaves & 4) v[j] += c[j];
      if (r.leaves & 8) v[j] += d[j];
    }
    if constexpr (C > 2) return join<C>(p, r, item, warp, lane, high, v);
    if (C == 2) {
      Half* o = reinterpret_cast<Half*>(s.q[1]);
      u64* received = s.bars + kReceived / 8;
      int tid = threadIdx.x - 32 * kScoreWarps;
      if (blockIdx.x & 1) {
#pragma unroll
        for (int j = 0; j < 16; j++) push(&o->sum[j][tid], received, 0, v[j]);
        if (warp == 0 && g < 2) push(&o->high[2 * t + g], received, 0, g ? high[1] : high[0]),
            push(&o->weight[2 * t + g], received, 0, g ? v[17] : v[16]);
        continue;
      }
      mbar_wait(bars + kReceived, 0);
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
        float4* y = reinterpret_cast<float4*>(p.y + (size_t)r.m * p.ldy + (size_t)(r.h0 + 2 * t + h) * kLatent +
            warp * 64 + g * 8);
#pragma unroll
        for (int d = 0; d < 2; d++) y[d] = make_float4(v[d * 8 + h] / v[16 + h], v[d * 8 + 2 + h] / v[16 + h],
            v[d * 8 + 4 + h] / v[16 + h], v[d * 8 + 6 + h] / v[16 + h]);
      }
  }
}

template <int C>
__device__ __forceinline__ void mla_fp8_persistent(const AttendP& p) {
  extern __shared__ __align__(128) char smem[];
  begin();
  Shared& s = *reinterpret_cast<Shared*>(smem);
  int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0), groups = (p.heads + 7) / 8, items = p.m * groups;
  const uint32_t bars = shared_of(&s.bars);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kRing; i++) mbar_init(bars + kFullAt + i * 8, kFetchWarps),
        mbar_init(bars + kEmpty + i * 8, kSumWarps);
    for (int i = 0; i < kSlots; i++) mbar_init(bars + kWeighed + i * 8, 2),
        mbar_init(bars + kSummed + i * 8, kSumWarps);
    for (int i = 0; i < 2; i++) mbar_init(bars + kStaged + i * 8, kFetchWarps),
        mbar_init(bars + kScored + i * 8, kScoreWarps);
    mbar_init(bars + kReceived, 1);
    mbar_ready();
    if (C == 2) mbar_expect(bars + kReceived, sizeof(Half));
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

// grid (any): a block a row; (2 m): a cluster of two; (4 m): four, which all run at once
extern "C" __global__ void __launch_bounds__(rows::kThreads, 1)
    mla_attend_fp8_persistent_1(const __grid_constant__ AttendP p) {
  LATENT(rows::mla_fp8_persistent<1>(p));
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(rows::kThreads, 1)
    mla_attend_fp8_persistent_2(const __grid_constant__ AttendP p) {
  LATENT(rows::mla_fp8_persistent<2>(p));
}
extern "C" __global__ void __launch_bounds__(rows::kThreads, 1)
    mla_attend_fp8_persistent_4(const __grid_constant__ AttendP p) {
  LATENT(rows::mla_fp8_persistent<4>(p));
}
