// Latent attention of few rows to FP8 entries of 512 latents and 64 rotary values, in
// the order of mla_512_64.cuh. A cluster of blocks has a row and up to 8 heads; a team of 8
// warps has a leaf's positions, whose entries it copies to shared memory as they are.
// For the scores a warp has 32 positions and half the columns; then a head, whose
// weights it makes; then 64 columns, which it sums with them. FP8 values are converted
// where they are used; their scales multiply sums and weights. The sums go to the block
// that writes their columns.
#include "attention/mla_512_64.cuh"

constexpr int kTeamWarps = 8, kTeamThreads = kTeamWarps * 32, kColumns = kLatent / kTeamWarps;
constexpr int kQuarters = 4, kScores = kLeaf + 16;  // of a head, padded

struct Team {
  // of both halves of the columns, a head's in the order of weights' lanes; then its weights in the first
  float score[2][8][kScores];
  float scale[4][kLeaf];       // of the column blocks, in that order, times a power of two
  // the leaf's references, by head; what its sums are to be multiplied with, by column block
  float top[8], down[4];
  float of[8];                 // the leaf's references, of all its positions
  u64 full[kQuarters];         // mbarriers: the leaf's quarters are there
};
template <int T>
struct Received {
  float sum[kLeaves / T][8][kLatent * T / kLeaves];
  float2 of[kLeaves][8];  // reference, weight
};
template <int T>
constexpr int kRows = 16 / T;  // that a warp copies of a leaf
// The pages of a row that are kept in shared memory, if they are no more.
template <int T>
constexpr int kPages = T == 1 ? 2048 : 1024;
// T teams.
template <int T>
struct AttendShared {
  uint4 q[kSteps * 32];  // A fragments: eight heads, then what BF16 or float16 left of them
  Team team[T];
  Received<T> in;
  float most[T * kTeamWarps][8];  // the largest |q|, by warp
  int pages[kPages<T>];           // of the row
  u64 told, received;             // mbarriers: of the leaves' references and weights; of the blocks' sums
};
static_assert((sizeof(AttendShared<1>) + 127) / 128 * 128 + kLeaf * kEntry <= kMlaFp8Cluster16Shared);
static_assert((sizeof(AttendShared<2>) + 127) / 128 * 128 + 2 * kLeaf * kEntry <= kMlaFp8Cluster8Shared &&
    kTeamThreads == kMlaFp8ClusterThreads);

// A warp copies 16 rows of the teams' leaves, some of each quarter, the first leaf's
// first: what lane r is to copy is entry slot, zeros where that is negative.
template <int T>
__device__ __forceinline__ void copy(AttendShared<T>& s, char* tiles, const void* cache, int slot, int all, int lane) {
  bool mine = lane < 16 && slot >= 0;
  auto row = [&](int r) { return tiles + (r / kRows<T> * kLeaf + r % kRows<T> * T * kTeamWarps + all) * kEntry; };
  u64* full = &s.team[lane / kRows<T> % T].full[lane % kRows<T> / (kRows<T> / kQuarters)];
  uint32_t mines = __ballot_sync(~0u, mine);
#pragma unroll 1
  for (uint32_t absent = ~mines & 0xffff; absent; absent &= absent - 1)
    for (int i = lane; i < kEntry / 16; i += 32) reinterpret_cast<uint4*>(row(__ffs(absent) - 1))[i] =
        make_uint4(0, 0, 0, 0);
  __syncwarp();
  if (lane < 16 && lane % (kRows<T> / kQuarters) == 0) mbar_expect(shared_of(full),
      __popc(mines >> lane & ((1 << kRows<T> / kQuarters) - 1)) * kEntry);
  __syncwarp();
  if (mine) copy_bulk(shared_of(row(lane)), static_cast<const char*>(cache) + (size_t)slot * kEntry, kEntry,
      shared_of(full));
}

__device__ __forceinline__ void team_sync(int team) {
  asm volatile("barrier.sync %0, %1;" ::"r"(team + 1), "n"(kTeamThreads) : "memory");
}

// A lane's part of row m's queries: four columns of head lane/4 for each of the
// warp's steps, whose last not all have.
template <int T>
constexpr int kEach = (kSteps + T * kTeamWarps - 1) / (T * kTeamWarps);
static_assert(kEach<2> == kLatent / 16 / 16 + 1);
template <int T>
__device__ __forceinline__ void queries(float4 (&v)[kEach<T>], const AttendP& p, int m, int h0, int warp, int lane) {
  int g = lane >> 2, t = lane & 3;
  const float* q = p.q + (size_t)m * p.ldq + (size_t)(h0 + g) * kWidth;
#pragma unroll
  for (int i = 0; i < kEach<T>; i++) {
    int j = i * T * kTeamWarps + warp, k = i < kEach<T> - 1 ? j / 2 * 32 + t * 8 + j % 2 * 4 : j * 16 + t * 4;
    v[i] = h0 + g < p.heads && j < kSteps ? *reinterpret_cast<const float4*>(q + k) : make_float4(0, 0, 0, 0);
  }
}

// stage writes them to shared memory as A fragments; latents scaled by a power of
// two a head, whose inverse is returned for head lane/4.
template <int T>
__device__ __forceinline__ float stage(const float4 (&v)[kEach<T>], uint4* q, float (*mosts)[8], int warp, int lane) {
  int g = lane >> 2, t = lane & 3;
  float most = 0;
#pragma unroll
  for (int i = 0; i < kEach<T> - 1; i++) most = fmaxf(most, fmaxf(fmaxf(fabsf(v[i].x), fabsf(v[i].y)),
      fmaxf(fabsf(v[i].z), fabsf(v[i].w))));
  most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
  most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
  if (t == 0) mosts[warp][g] = most;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < T * kTeamWarps; w++) most = fmaxf(most, mosts[w][g]);
  int e = exponent(most);
  float up = power(264 - e);  // at most 2^11
#pragma unroll
  for (int i = 0; i < kEach<T>; i++) {
    int j = i * T * kTeamWarps + warp;
    if (j >= kSteps) break;
    Split a, b;
    if (i < kEach<T> - 1) a = split_f16(v[i].x * up, v[i].y * up), b = split_f16(v[i].z * up, v[i].w * up);
    else a = split(v[i].x, v[i].y), b = split(v[i].z, v[i].w);
    q[j * 32 + lane] = make_uint4(a.hi, a.lo, b.hi, b.lo);
  }
  return power(e - 10);
}

__device__ __forceinline__ float warp_top(float v) {
  int i = __float_as_int(v);
  i = __reduce_max_sync(~0u, i ^ (i >> 31 & 0x7fffffff));
  return __int_as_float(i ^ (i >> 31 & 0x7fffffff));
}
// of v >= 0
__device__ __forceinline__ float warp_most(float v) {
  return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(v)));
}

// weights makes those of the warp's head: of rows positions of the tile; and a column
// block's scales. The sum of weights is known to all lanes.
__device__ __forceinline__ void weights(float (&w)[4], float& top, Team& s, const char* tile, int rows, float scale,
    int warp, int lane) {
  int t = lane & 3, row[4];
  float sc[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    row[i] = lane / 4 * 16 + place(2 * t + i % 2) + i / 2;
    sc[i] = reinterpret_cast<const float*>(tile + row[i] * kEntry + kLatent)[warp / 2];
  }
  float4 x = *reinterpret_cast<const float4*>(&s.score[0][warp][lane * 4]),
      y = *reinterpret_cast<const float4*>(&s.score[1][warp][lane * 4]);
  w[0] = (x.x + y.x) * scale, w[1] = (x.y + y.y) * scale, w[2] = (x.z + y.z) * scale, w[3] = (x.w + y.w) * scale;
#pragma unroll
  for (int i = 0; i < 4; i++) w[i] = row[i] < rows ? w[i] : -INFINITY;
  top = ceilf(warp_top(fmaxf(fmaxf(w[0], w[1]), fmaxf(w[2], w[3]))));
  int e = exponent(warp_most(fmaxf(fmaxf(sc[0], sc[1]), fmaxf(sc[2], sc[3]))));
#pragma unroll
  for (int i = 0; i < 4; i++) w[i] = w[i] == -INFINITY ? 0 : exp2_of(w[i] - top);
  *reinterpret_cast<float4*>(&s.score[0][warp][lane * 4]) = make_float4(w[0], w[1], w[2], w[3]);
  if (lane == 0) s.top[warp] = top;
  if (warp % 2) return;
  float up = power(267 - e);  // weights of at most 2^14
  *reinterpret_cast<float4*>(&s.scale[warp / 2][lane * 4]) =
      make_float4(sc[0] * up, sc[1] * up, sc[2] * up, sc[3] * up);
  if (lane == 0) s.down[warp / 2] = power(e - 13);
}

// A lane's operands of a step of 16 positions: eight columns of four of them, and weights.
struct Operands {
  uint2 x[4];
  Split w[2];
};
__device__ __forceinline__ Operands load(const Team& s, const char* tile, int step, int warp, int lane) {
  int g = lane >> 2, t = lane & 3;
  Operands o;
  float4 w = *reinterpret_cast<const float4*>(&s.score[0][g][(4 * step + t) * 4]),
      sc = *reinterpret_cast<const float4*>(&s.scale[warp / 2][(4 * step + t) * 4]);
  o.w[0] = split_f16(w.x * sc.x, w.y * sc.y), o.w[1] = split_f16(w.z * sc.z, w.w * sc.w);
  const char* row[2];
#pragma unroll
  for (int i = 0; i < 2; i++) row[i] = tile + place(2 * t + i) * kEntry + warp * kColumns + g * 8;
#pragma unroll
  for (int i = 0; i < 4; i++) o.x[i] = *reinterpret_cast<const uint2*>(row[i % 2] + (16 * step + i / 2) * kEntry);
  return o;
}

// Sums of half a lane's columns: [high or low part of weights][two columns][i], where
// i/2 is the column, i%2 the head.
typedef float Products[2][2][4];
template <int kHalf>
__device__ __forceinline__ void multiply(Products& c, const Operands& o) {
  auto x = [&](int i) { return kHalf ? o.x[i].y : o.x[i].x; };
  uint32_t u[2][4];
  latents(u[0], u[1], x(0), x(1), x(2), x(3));
#pragma unroll
  for (int f = 0; f < 2; f++) {
    mma_f16(c[1][f], u[f], o.w[0].lo, o.w[1].lo);
    mma_f16(c[0][f], u[f], o.w[0].hi, o.w[1].hi);
  }
}

// grid (16/T, m, heads/8)
template <int T>
__device__ __forceinline__ void mla_fp8_cluster(const AttendP& p) {
  extern __shared__ __align__(128) char smem[];
  begin();
  constexpr int C = kLeaves / T, kSlice = kLatent / C, kStride = kLeaves * kLeaf;
  AttendShared<T>& s = *reinterpret_cast<AttendShared<T>*>(smem);
  int tid = threadIdx.x, all = __shfl_sync(~0u, tid >> 5, 0), warp = all % kTeamWarps, team = all / kTeamWarps,
      lane = tid & 31, g = lane >> 2, t = lane & 3;
  int block = blockIdx.x, m = blockIdx.y, h0 = blockIdx.z * 8, leaf = block * T + team, from = block * T * kLeaf;
  // the position from there on that the lane copies
  int mine = lane % 16 / kRows<T> * kLeaf + lane % kRows<T> * T * kTeamWarps + all;
  Team& own = s.team[team];
  char *tiles = smem + (sizeof(AttendShared<T>) + 127) / 128 * 128, *tile = tiles + team * kLeaf * kEntry;
  if (tid < T * kQuarters) mbar_init(shared_of(&s.team[tid / kQuarters].full[tid % kQuarters]), T * kTeamWarps);
  if (tid == 0) {
    mbar_init(shared_of(&s.told), 1), mbar_expect(shared_of(&s.told), sizeof s.in.of);
    mbar_init(shared_of(&s.received), 1), mbar_expect(shared_of(&s.received), sizeof s.in.sum);
  }
  mbar_ready();
  if (tid == 0) warm(p.pos + m);
  if (p.sel && lane == 0 && from + all * 16 < p.topk) warm(p.sel + (size_t)m * p.topk + from + all * 16);
  if (tid * 16 < min(8, p.heads - h0) * kWidth) warm(p.q + (size_t)m * p.ldq + (size_t)h0 * kWidth + tid * 16);
  // The page table is written by no kernel before this one.
  const int* pages = p.pages + (size_t)p.seq[m] * p.pages_ld;
  if (p.pages_ld <= kPages<T>) {
#pragma unroll 1
    for (int i = tid; i < p.pages_ld; i += T * kTeamThreads) s.pages[i] = pages[i];
    pages = s.pages;
  }
  __syncthreads();
  const float scale = p.scale * 1.44269504f;
  // A loop of one turn: what does not change in it is worked out before it, while the
  // kernels in front still run, which saves 0.3 to 0.6 us.
#pragma unroll 1
  for (int turn = 1; turn < 2; turn++) {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    ready(p.at);
    // What does not wait for another load comes first.
    float4 v[kEach<T>];
    int pos = from + mine;
    if (p.sel) pos = pos < p.topk ? p.sel[(size_t)m * p.topk + pos] : -1;
    int n = positions(p, m);
    queries<T>(v, p, m, h0, all, lane);
    if (from + mine >= n) pos = -1;
    int slot = pos < 0 ? -1 : pages[pos / kPage] * kPage + pos % kPage;
    if (from < n) copy(s, tiles, p.cache, slot, all, lane);
    float down = stage<T>(v, s.q, s.most, all, lane);
    __syncthreads();
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");  // the others' mbarriers are there
    float out[2][2][4], top[2] = {-INFINITY, -INFINITY};  // halves of Products; of heads 2t, 2t+1
#pragma unroll
    for (int i = 0; i < 16; i++) out[i / 8][i / 4 % 2][i % 4] = 0;
    float high = -INFINITY, weight = 0;  // of the warp's head
    int column = warp * kColumns + g * 8;
    // of head 2t+i
    auto sums = [&](int half, int i) { return make_float4(out[half][0][i], out[half][0][i + 2], out[half][1][i],
        out[half][1][i + 2]); };
    // to who writes them
    auto give = [&](int half, int i, float4 v) { push(&s.in.sum[block][2 * t + i][column % kSlice + half * 4],
        &s.received, column / kSlice, v); };
    auto tell = [&]() {
      if (lane < C) push(&s.in.of[leaf][warp], &s.told, lane, make_float2(high, weight));
    };
#pragma unroll 1
    // once, but for more positions than 16 leaves have
    for (int at = from, phase = 0; at < n; at += kStride, phase ^= 1) {
      if (at > from) {
        __syncthreads();
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        copy(s, tiles, p.cache, at + mine < n ? slot_of(p, m, at + mine) : -1, all, lane);
      }
      int quarter = warp & 3, half = warp >> 2;
      mbar_wait(shared_of(&own.full[quarter]), phase);
      float w[4][2];
      scores<T == 1 ? 2 : 1>(w, s.q, tile + quarter * (kLeaf / kQuarters) * kEntry, half, down, lane);
#pragma unroll
      for (int j = 0; j < 2; j++) *reinterpret_cast<float4*>(&own.score[half][g][(quarter * 2 + j) * 16 + t * 4]) =
          make_float4(w[2 * j][0], w[2 * j][1], w[2 * j + 1][0], w[2 * j + 1][1]);
      team_sync(team);
      float k[4], now;
      weights(k, now, own, tile, n - at - team * kLeaf, scale, warp, lane);
      team_sync(team);
      float l = (k[0] + k[1]) + (k[2] + k[3]), both = fmaxf(high, now);
#pragma unroll
      for (int o = 1; o < 32; o *= 2) l += __shfl_xor_sync(~0u, l, o);
      weight = fmaf(weight, share(high, both), l * share(now, both)), high = both;
      bool last = at + kStride >= n;
      float keep[2], add[2], d = own.down[warp / 2];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float of = own.top[2 * t + i], both = fmaxf(top[i], of);
        keep[i] = share(top[i], both), add[i] = share(of, both) * d, top[i] = both;
      }
      Products c[2] = {};
      auto join = [&](int half) {
#pragma unroll
        for (int f = 0; f < 2; f++)
#pragma unroll
          for (int i = 0; i < 4; i++) out[half][f][i] =
              fmaf(out[half][f][i], keep[i % 2], (c[half][0][f][i] + c[half][1][f][i]) * add[i % 2]);
      };
      if (T == 1) {  // half of them are on their way while the others are summed
        Operands o[kLeaf / 16];
#pragma unroll
        for (int j = 0; j < kLeaf / 16; j++) o[j] = load(own, tile, j, warp, lane);
#pragma unroll
        for (int j = 0; j < kLeaf / 16; j++) multiply<0>(c[0], o[j]);
        join(0);
        if (last) tell(), give(0, 0, sums(0, 0)), give(0, 1, sums(0, 1));
#pragma unroll
        for (int j = 0; j < kLeaf / 16; j++) multiply<1>(c[1], o[j]);
        join(1);
      } else {
        if (last) tell();
#pragma unroll 4
        for (int j = 0; j < kLeaf / 16; j++) {
          Operands o = load(own, tile, j, warp, lane);
          multiply<0>(c[0], o), multiply<1>(c[1], o);
        }
        join(0), join(1);
      }
    }
    if (from >= n) {
      tell();
      if (T == 1) give(0, 0, sums(0, 0)), give(0, 1, sums(0, 1));
    }
    if (T == 1) {
      give(1, 0, sums(1, 0)), give(1, 1, sums(1, 1));
    } else {  // each joins half the columns of both
      if (lane == 0) own.of[warp] = high;
      team_sync(team);  // the leaf's place is free
      float4(*theirs)[kTeamThreads] = reinterpret_cast<float4(*)[kTeamThreads]>(tile);
#pragma unroll
      for (int i = 0; i < 2; i++) theirs[i][tid % kTeamThreads] = team ? sums(0, i) : sums(1, i);
      __syncthreads();
      const float4(*take)[kTeamThreads] = reinterpret_cast<const float4(*)[kTeamThreads]>(tile +
          (1 - 2 * team) * kLeaf * kEntry);
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float4 x = take[i][tid % kTeamThreads], own = team ? sums(1, i) : sums(0, i), a = team ? x : own,
            b = team ? own : x;
        float ta = s.team[0].of[2 * t + i], tb = s.team[1].of[2 * t + i], top = fmaxf(ta, tb), fa = share(ta, top),
            fb = share(tb, top);
        give(team, i, make_float4(fmaf(a.x, fa, b.x * fb), fmaf(a.y, fa, b.y * fb), fmaf(a.z, fa, b.z * fb),
            fmaf(a.w, fa, b.w * fb)));
      }
    }
    int h = all / T, c = all % T * 32 + lane;  // a thread has one value
    mbar_wait(shared_of(&s.told), 0);
    float2 of = s.in.of[lane % kLeaves][h];
    float most = warp_top(of.x), l = share(of.x, most) * of.y, x[C];
#pragma unroll
    for (int o = 1; o < kLeaves; o *= 2) l += __shfl_xor_sync(~0u, l, o);
    if (T == 2) of.x = fmaxf(of.x, __shfl_xor_sync(~0u, of.x, 1));
    float f = share(of.x, most);
    mbar_wait(shared_of(&s.received), 0);
#pragma unroll
    for (int b = 0; b < C; b++) x[b] = __shfl_sync(~0u, f, b * T) * s.in.sum[b][h][c];
    float y = tree<C>(x) / l;
    if (h0 + h < p.heads) p.y[(size_t)m * p.ldy + (size_t)(h0 + h) * kLatent + block * kSlice + c] = y;
  }
  finish(p.at);
}

extern "C" __global__ void __cluster_dims__(16, 1, 1) __launch_bounds__(kTeamThreads, 1)
    mla_attend_fp8_cluster_16(const __grid_constant__ AttendP p) {
  LATENT(mla_fp8_cluster<1>(p));
}
extern "C" __global__ void __cluster_dims__(8, 1, 1) __launch_bounds__(2 * kTeamThreads, 1)
    mla_attend_fp8_cluster_8(const __grid_constant__ AttendP p) {
  LATENT(mla_fp8_cluster<2>(p));
}
