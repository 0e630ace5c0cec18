// The experts' products with FP4 weights where an expert has few rows: every block
// stays and walks over its part of the work, and each warp has its next weights on
// their way while it works, so that the memory is never idle.
//
// Rows that choose the same expert are a group, of up to 4 rows, so that
// weights are read once for all of them; each block makes the list of its groups
// from the chosen experts.
#include "moe.cuh"

__device__ __forceinline__ uint4 load16(const char* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
__device__ __forceinline__ uint2 load8(const char* p) {
  uint2 v;
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
  return v;
}

// Lane is where a lane's codes and scales are in a unit.
struct Lane {
  const char *codes, *scales;
  __device__ __forceinline__ void at(const char* unit) {
    int lane = threadIdx.x & 31;
    codes = unit + lane * 16, scales = unit + 512 + (lane >> 2) * 8;
  }
  __device__ __forceinline__ Fp4 load(int i) const { return {load16(codes + i * kFp4Unit), load8(scales + i * kFp4Unit)}; }
};

// scan returns the sum over the threads before this one, and all of them in total.
__device__ __forceinline__ int scan(int v, int* sums, int& total) {
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, n = blockDim.x >> 5, in = v;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    int u = __shfl_up_sync(~0u, in, o);
    if (lane >= o) in += u;
  }
  if (lane == 31) sums[warp] = in;
  __syncthreads();
  int s = lane < n ? sums[lane] : 0, w = s;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    int u = __shfl_up_sync(~0u, w, o);
    if (lane >= o) w += u;
  }
  total = __shfl_sync(~0u, w, 31);
  int before = __shfl_sync(~0u, w - s, warp);
  __syncthreads();
  return before + in - v;
}

// Groups are those of a block. work is for making them only.
struct Groups {
  int *sums;                          // [32]
  int *expert, *count, *pair;         // [n], [n], [n, tokens]
  int *ids, *rank, *rows, *first;     // work: [pairs], [pairs], [experts], [experts]
  uint16_t* before;                   // work: [chunks of 32 pairs][experts]
  int tokens;

  __device__ __forceinline__ Groups(const MoeP& p, int n, int* lists, char* work) : tokens(p.tokens) {
    int pairs = p.m * p.topk;
    sums = lists, expert = sums + 32, count = expert + n, pair = count + n;
    ids = reinterpret_cast<int*>(work), rank = ids + pairs, rows = rank + pairs, first = rows + p.groups;
    before = reinterpret_cast<uint16_t*>(first + p.groups);
  }

  // number numbers all groups, by expert, and returns how many there are.
  __device__ __forceinline__ int number(const MoeP& p) {
    int pairs = p.m * p.topk, lane = threadIdx.x & 31, chunks = (pairs + 31) / 32;
    if (p.m == 1) {
      if (p.at && blockIdx.x == 0 && threadIdx.x == 0) p.at[2] = pairs;
      return pairs;
    }
    for (int i = threadIdx.x; i < (chunks * p.groups + 1) / 2; i += blockDim.x) reinterpret_cast<int*>(before)[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < chunks * 32; i += blockDim.x) {
      int e = i < pairs ? __ldcg(p.experts + i) : -1;
      unsigned same = __match_any_sync(~0u, e);
      int r = __popc(same & ((1u << lane) - 1));
      if (i < pairs) {
        ids[i] = e, rank[i] = r;
        if (r == 0) before[(i >> 5) * p.groups + e] = __popc(same);
      }
    }
    __syncthreads();
    int per = (p.groups + blockDim.x - 1) / blockDim.x, mine = 0, touched = 0, total;
    int lo = min(p.groups, (int)threadIdx.x * per), hi = min(p.groups, lo + per);
    for (int e = lo; e < hi; e++) {
      int n = 0;
      for (int c = 0; c < chunks; c++) {
        int k = before[c * p.groups + e];
        before[c * p.groups + e] = n, n += k;
      }
      rows[e] = n, mine += (n + tokens - 1) / tokens, touched += n > 0;
    }
    if (p.at && blockIdx.x == 0) {
      int all;
      scan(touched, sums, all);
      if (threadIdx.x == 0) p.at[2] = all;
    }
    int at = scan(mine, sums, total);
    for (int e = lo; e < hi; e++) first[e] = at, at += (rows[e] + tokens - 1) / tokens;
    __syncthreads();
    return total;
  }

  // list lists the groups [lo, hi) with their pairs.
  __device__ __forceinline__ void list(const MoeP& p, int lo, int hi) {
    int pairs = p.m * p.topk;
    if (p.m == 1) {
      for (int q = threadIdx.x; q < hi - lo; q += blockDim.x) expert[q] = __ldcg(p.experts + lo + q), count[q] = 1, pair[q] = lo + q;
      __syncthreads();
      return;
    }
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
      int e = ids[i], r = rank[i] + before[(i >> 5) * p.groups + e], q = first[e] + r / tokens - lo, c = r % tokens;
      if (q < 0 || q >= hi - lo) continue;
      pair[q * tokens + c] = i;
      if (c == 0) expert[q] = e, count[q] = min(tokens, rows[e] - r);
    }
    __syncthreads();
  }
};

// Activations in shared memory: a row's upper BF16 terms, and `tokens` rows further
// its lower ones, as columns of one product. A row has, for each 32 columns and lane
// t, {b0, b1} of fragment 2P and of 2P + 1, and 64 bytes that spread rows over banks.
__host__ __device__ constexpr int staged_row(int kt) { return kt * 128 + 64; }

// stage_x writes the i'th part, of 8 columns, of row c.
__device__ __forceinline__ void stage_x(char* rows, int xrow, int tokens, int c, const float* x, int i, int kmax) {
  int pair = i >> 2, t = i & 3;
  Fp4X f = load_fp4x(x, pair * 32 + t * 4, kmax);
  char* to = rows + c * xrow + i * 16;
  *reinterpret_cast<uint4*>(to) = make_uint4(f.f[0].b0.hi, f.f[0].b1.hi, f.f[1].b0.hi, f.f[1].b1.hi);
  *reinterpret_cast<uint4*>(to + tokens * xrow) = make_uint4(f.f[0].b0.lo, f.f[0].b1.lo, f.f[1].b0.lo, f.f[1].b1.lo);
}
// staged_x is where a lane finds its column: of the upper terms of rows 0 to 3, then
// of the lower ones. Columns without a row are those of row 0.
__device__ __forceinline__ const uint4* staged_x(const char* rows, int xrow, int tokens, int count) {
  int lane = threadIdx.x & 31, g = lane >> 2, c = g & 3;
  return reinterpret_cast<const uint4*>(rows + ((c < count ? c : 0) + (g >> 2) * tokens) * xrow) + (lane & 3);
}

// add: one unit of T tiles times the unit's activations x of up to 4 rows. A row's
// upper and lower terms have sums of their own, which whole adds.
template <int T>
__device__ __forceinline__ void add(float (&acc)[T][4], const Fp4 (&u)[T], const uint4* x) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    uint4 v = x[half * 4];
#pragma unroll
    for (int a = 0; a < T; a++) {
      uint32_t g = half ? fp4_scale<1>(u[a].s.x) : fp4_scale<0>(u[a].s.x), h = half ? fp4_scale<1>(u[a].s.y) : fp4_scale<0>(u[a].s.y), frag[4];
      unpack_fp4(frag, half ? u[a].q.z : u[a].q.x, g, h);
      mma(acc[a], frag, v.x, v.y);
      unpack_fp4(frag, half ? u[a].q.w : u[a].q.y, g, h);
      mma(acc[a], frag, v.z, v.w);
    }
  }
}
template <int T>
__device__ __forceinline__ void whole(float (&acc)[T][4]) {
#pragma unroll
  for (int a = 0; a < T; a++)
#pragma unroll
    for (int j = 0; j < 4; j++) acc[a][j] += __shfl_xor_sync(~0u, acc[a][j], 2);
}

// y[pair, n] = silu(gate x) (up x). The blocks share the list of (group, 16 outputs);
// the warps of a block share k, each a slice, of which D units are in flight. D
// divides a slice.
template <int D>
__device__ __forceinline__ void experts_up(const MoeP& p) {
  constexpr int W = kUpSlices;
  extern __shared__ __align__(128) char smem[];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, tokens = p.tokens;
  int kt = (p.k + 63) / 64, xrow = staged_row(kt), tp = (p.n + 15) / 16;
  // Shared memory: sums of two items, lists, x.
  float* sums = reinterpret_cast<float*>(smem);
  int* lists = reinterpret_cast<int*>(sums + 2 * W * 32 * tokens);
  char* xs = reinterpret_cast<char*>(lists) + (128 + p.slots * (2 + tokens) * 4 + 15) / 16 * 16;
  Groups groups(p, p.slots, lists, xs);
  bool one = p.m == 1 && !p.by_pair, staged = one && p.early;  // all groups have the same row
  if (staged)
    for (int j = threadIdx.x; j < kt * 8; j += W * 32) stage_x(xs, xrow, tokens, 0, p.x, j, p.k);
  ready(p.at);
  begin();  // moe_down may start: the experts are known
  int items = groups.number(p) * tp, i0 = (int)((int64_t)items * blockIdx.x / gridDim.x), i1 = (int)((int64_t)items * (blockIdx.x + 1) / gridDim.x);
  int q = i0 / tp, at = i0 - q * tp, g0 = q;
  groups.list(p, g0, i1 > i0 ? (i1 - 1) / tp + 1 : g0);
  q = 0;
  int per = (kt + W - 1) / W, lo = min(kt, warp * per), blocks = min(kt - lo, per) / D;
  // What is fetched next: from item fi, which is output tile fat of group fq, its fb-th
  // D units.
  size_t half = (size_t)tp * kt * kFp4Unit;  // from gate to up
  int fi = i0, fq = 0, fat = at, fb = 0;
  Lane l, l2;
  auto aim = [&]() {
    l.at(p.w + (size_t)groups.expert[fq] * p.wexpert + ((size_t)fat * kt + lo) * kFp4Unit);
    l2.codes = l.codes + half, l2.scales = l.scales + half;
  };
  auto advance = [&]() {
    int step = D * kFp4Unit;
    if (++fb == blocks) {
      fb = 0, fi++, step = (kt - (blocks - 1) * D) * kFp4Unit;
      if (++fat == tp) {
        fat = 0, fq++;
        if (fi < i1) aim();
        return;
      }
    }
    l.codes += step, l.scales += step, l2.codes += step, l2.scales += step;
  };
  Fp4 u[D][2];
  if (i0 < i1 && blocks > 0) {
    aim();
#pragma unroll
    for (int d = 0; d < D; d++) u[d][0] = l.load(d), u[d][1] = l2.load(d);
    advance();
  }
  int have = -1, count = 0;  // the group whose x is here
  for (int i = i0; i < i1; i++) {
    if (q != have) {
      have = q, count = groups.count[q];
      for (int c = 0; c < count && !staged; c++) {
        int pair = groups.pair[q * tokens + c];
        const float* x = p.x + (size_t)(p.by_pair ? pair : pair / p.topk) * p.ldx;
#pragma unroll 2
        for (int j = threadIdx.x; j < kt * 8; j += W * 32) stage_x(xs, xrow, tokens, c, x, j, p.k);
      }
      staged = one;
      __syncthreads();
    }
    int nat = at + 1 == tp ? 0 : at + 1, nq = nat ? q : q + 1;
    float acc[2][4] = {};
    const uint4* x = staged_x(xs, xrow, tokens, count) + lo * 8;
    for (int b = 0; b < blocks; b++, x += D * 8) {
      bool more = fi < i1;
#pragma unroll
      for (int d = 0; d < D; d++) {
        add<2>(acc, u[d], x + d * 8);
        if (more) u[d][0] = l.load(d), u[d][1] = l2.load(d);
      }
      advance();
    }
    whole(acc);
    float* mine = sums + ((i & 1) * W + warp) * 32 * tokens;
#pragma unroll
    for (int a = 0; a < 2; a++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int c = t * 2 + (j & 1);
        if (c < count) mine[(a * 16 + g + (j >> 1) * 8) * tokens + c] = acc[a][j];
      }
    __syncthreads();
    int c = (warp - i) & (W - 1);  // this warp adds up one row's 16 gates and 16 ups
    if (c < count) {
      const float* from = sums + (i & 1) * W * 32 * tokens + lane * tokens + c;
      float v = 0;
#pragma unroll
      for (int w = 0; w < W; w++) v += from[w * 32 * tokens];
      float2 global = p.global[groups.expert[q]];
      v *= lane < 16 ? global.x : global.y;
      float up = __shfl_xor_sync(~0u, v, 16);
      if (lane < 16 && at * 16 + lane < p.n) p.y[(size_t)groups.pair[q * tokens + c] * p.n + at * 16 + lane] = silu(v) * up;
    }
    q = nq, at = nat;
  }
  finish(p.at);
}

// y[m, n] += Σ weight (down x). A block owns rows of n, in bundles of T tiles, and a
// warp takes groups in turn: their products wait in shared memory until each row
// adds its experts in order. F units of each tile are in flight; F divides kt, which
// is KT unless that is 0.
template <int W, int T, int F, int KT>
__device__ __forceinline__ void experts_down(const MoeP& p) {
  extern __shared__ __align__(128) char smem[];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, tokens = p.tokens, pairs = p.m * p.topk;
  int kt = KT ? KT : (p.k + 63) / 64, xrow = staged_row(kt), tiles = (p.n + 15) / 16;
  int per = (tiles + gridDim.x - 1) / gridDim.x, tile0 = blockIdx.x * per, nt = max(0, min(per, tiles - tile0)), rows = per * 16;
  int most = min(pairs, p.groups + pairs / tokens);  // groups
  // Shared memory: products and weights, unless scratch memory has them; lists, each
  // warp's x.
  bool here = !p.scratch;
  float* parts = here ? reinterpret_cast<float*>(smem) : p.scratch + tile0 * 16;
  int ldp = here ? rows : p.n;
  float* weights = reinterpret_cast<float*>(smem) + pairs * rows;
  int* lists = reinterpret_cast<int*>(smem + (here ? (pairs * (rows + 1) * 4 + 15) / 16 * 16 : 0));
  char* work = reinterpret_cast<char*>(lists) + (128 + most * (2 + tokens) * 4 + 15) / 16 * 16;
  char* xs = work + warp * 2 * tokens * xrow;
  Groups groups(p, most, lists, work);
  begin();
  if (!p.early) ready(p.at);
  int n = groups.number(p), blocks = kt / F;
  groups.list(p, 0, n);
  struct At {
    int q, tile, b;
  };
  auto next = [&](At& a) {
    if (++a.b < blocks) return false;
    a.b = 0;
    if ((a.tile += T) >= nt) a.tile = 0, a.q += W;
    return true;
  };
  Fp4 u[F][T];
  At cur = {nt ? warp : n, 0, 0}, ahead = cur;  // what is worked on, what is fetched next
  Lane l;
  int live = 0;  // tiles there
  auto aim = [&]() {
    if (ahead.q >= n) return;
    live = nt - ahead.tile;
    l.at(p.w + (size_t)groups.expert[ahead.q] * p.wexpert + (size_t)(tile0 + ahead.tile) * kt * kFp4Unit);
  };
  auto advance = [&]() {
    if (next(ahead)) aim();
    else l.codes += F * kFp4Unit, l.scales += F * kFp4Unit;
  };
  auto load = [&](int d) {
#pragma unroll
    for (int i = 0; i < T; i++)
      if (i < live) u[d][i] = l.load(i * kt + d);
  };
  aim();
  if (ahead.q < n) {
#pragma unroll
    for (int d = 0; d < F; d++) load(d);
  }
  advance();
  if (p.early) ready(p.at);
  // What the end needs is on its way meanwhile: the weights, a thread's first output.
  auto output = [&](int j) { return p.y + (size_t)(j / (nt * 16)) * p.ldy + tile0 * 16 + j % (nt * 16); };
  int outputs = here && nt ? p.m * nt * 16 : 0;
  for (int i = threadIdx.x; here && i < pairs; i += W * 32) weights[i] = p.weights[(size_t)(i / p.topk) * p.ldw + i % p.topk];
  float y0 = threadIdx.x < outputs && tile0 * 16 + threadIdx.x % (nt * 16) < p.n ? *output(threadIdx.x) : 0;
  float acc[T][4] = {};
  int count = 0;
  while (cur.q < n) {
    if (cur.b == 0 && cur.tile == 0) {
      count = groups.count[cur.q];
      __syncwarp();
      for (int j = lane; j < count * kt * 8; j += 32) {
        int c = j / (kt * 8);
        stage_x(xs, xrow, tokens, c, p.x + (size_t)groups.pair[cur.q * tokens + c] * p.ldx, j - c * kt * 8, p.k);
      }
      __syncwarp();
    }
    bool more = ahead.q < n;
    const uint4* x = staged_x(xs, xrow, tokens, count) + cur.b * F * 8;
#pragma unroll
    for (int d = 0; d < F; d++) {
      add<T>(acc, u[d], x + d * 8);
      if (more) load(d);
    }
    advance();
    if (cur.b + 1 == blocks) {
      whole(acc);
      float2 global = p.global[groups.expert[cur.q]];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int c = t * 2 + (j & 1);
        int pair = c < count ? groups.pair[cur.q * tokens + c] : 0;
#pragma unroll
        for (int i = 0; i < T; i++) {
          int r = (cur.tile + i) * 16 + g + (j >> 1) * 8;
          if (c < count && cur.tile + i < nt && tile0 * 16 + r < p.n) parts[(size_t)pair * ldp + r] = acc[i][j] * (tile0 * 16 + r < p.n / 2 ? global.x : global.y);
          acc[i][j] = 0;
        }
      }
    }
    next(cur);
  }
  __syncthreads();
  for (int j = threadIdx.x; j < outputs; j += W * 32) {
    int m = j / (nt * 16), r = j % (nt * 16);
    if (tile0 * 16 + r >= p.n) continue;
    float v = j < W * 32 ? y0 : *output(j);
    for (int c = 0; c < p.topk; c++) v = fmaf(weights[m * p.topk + c], parts[(m * p.topk + c) * rows + r], v);
    *output(j) = v;
  }
  finish(p.at);
}

// Entries: up's D; down's F, with a K of 256 or any (0). More in flight pays where
// experts have several rows.
#define ENTRY(name, ...) \
  extern "C" __global__ void __launch_bounds__(512, 1) name(const __grid_constant__ MoeP p) { __VA_ARGS__(p); }
ENTRY(experts_up_fp4_1, experts_up<1>)
ENTRY(experts_up_fp4_2, experts_up<2>)
ENTRY(experts_up_fp4_6, experts_up<6>)
ENTRY(experts_down_fp4_0_1, experts_down<16, 3, 1, 0>)
ENTRY(experts_down_fp4_0_2, experts_down<16, 3, 2, 0>)
ENTRY(experts_down_fp4_256_2, experts_down<16, 3, 2, 4>)
ENTRY(experts_down_fp4_256_4, experts_down<16, 3, 4, 4>)
