// What moe_up_fp4.cu, sm90_moe_up_fp4_ws.cu and moe_down_fp4.cu share: the experts' products
// with FP4 weights where an expert has few rows. Every block stays and walks over its
// part of the work, and each warp has its next weights on their way while it works, so
// that the memory is never idle.
//
// Rows that choose the same expert are a group, of up to 4 rows, so that
// weights are read once for all of them; each block makes the list of its groups
// from the chosen experts.
#pragma once
#include "moe/moe.cuh"

__device__ __forceinline__ uint4 load16(const char* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(p));
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
  __device__ __forceinline__ Fp4 load(int i) const { return {load16(codes + i * kFp4Unit),
      load8(scales + i * kFp4Unit)}; }
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

  // take lists the groups [lo, hi) of one row, whose experts are in shared memory.
  __device__ __forceinline__ void take(const int* experts, int lo, int hi) {
    for (int q = threadIdx.x; q < hi - lo; q += blockDim.x) expert[q] = experts[lo + q], count[q] = 1, pair[q] = lo + q;
    __syncthreads();
  }

  // list lists the groups [lo, hi) with their pairs.
  __device__ __forceinline__ void list(const MoeP& p, int lo, int hi) {
    int pairs = p.m * p.topk;
    if (p.m == 1) {
      for (int q = threadIdx.x; q < hi - lo; q += blockDim.x) expert[q] = __ldcg(p.experts + lo + q), count[q] = 1,
          pair[q] = lo + q;
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
__device__ __forceinline__ void stage_x(char* rows, int xrow, int tokens, int c, const float* x, int i, int kmax,
    uint32_t low) {
  int pair = i >> 2, t = i & 3;
  Fp4X f = load_fp4x(x, pair * 32 + t * 4, kmax, low);
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
__device__ __forceinline__ void add(float (&acc)[T][4], const Fp4 (&u)[T], const uint32_t (&x)[8]) {
#pragma unroll
  for (int half = 0; half < 2; half++)
#pragma unroll
    for (int a = 0; a < T; a++) {
      const uint32_t* v = x + half * 4;
      uint32_t g = half ? fp4_scale<1>(u[a].s.x) : fp4_scale<0>(u[a].s.x),
          h = half ? fp4_scale<1>(u[a].s.y) : fp4_scale<0>(u[a].s.y), frag[4];
      unpack_fp4(frag, half ? u[a].q.z : u[a].q.x, g, h);
      mma(acc[a], frag, v[0], v[1]);
      unpack_fp4(frag, half ? u[a].q.w : u[a].q.y, g, h);
      mma(acc[a], frag, v[2], v[3]);
    }
}
template <int T>
__device__ __forceinline__ void add(float (&acc)[T][4], const Fp4 (&u)[T], const uint4* x) {
  uint4 v = x[0], w = x[4];
  add(acc, u, {v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w});
}
template <int T>
__device__ __forceinline__ void whole(float (&acc)[T][4]) {
#pragma unroll
  for (int a = 0; a < T; a++)
#pragma unroll
    for (int j = 0; j < 4; j++) acc[a][j] += __shfl_xor_sync(~0u, acc[a][j], 2);
}
