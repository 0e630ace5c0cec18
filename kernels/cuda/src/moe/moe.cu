// The experts' products with BF16, FP8 and float32 weights. Rows are grouped by expert,
// or, for few rows, each (token, choice) is a group of its own: the sums and so the
// bits are the same.
#include "mma/fp8_block.cuh"
#include "moe/moe.cuh"

// Groups pairs by expert. A cluster, whose blocks have a part of the pairs each; the
// order inside a group does not matter. grid (kGroupBlocks)
constexpr int kGroupBlocks = 8;
extern "C" __global__ void __cluster_dims__(kGroupBlocks, 1, 1) __launch_bounds__(1024)
    moe_group(const __grid_constant__ GroupP p) {
  extern __shared__ int count[];                     // of the block's pairs, by expert
  int *start = count + p.groups, *total = start + p.groups;  // where the block's next pair goes; of all pairs
  begin();
  ready(p.at);
  int rank = blockIdx.x, from = (int64_t)p.pairs * rank / kGroupBlocks,
      to = (int64_t)p.pairs * (rank + 1) / kGroupBlocks;
  for (int e = threadIdx.x; e < p.groups; e += blockDim.x) count[e] = 0;
  __syncthreads();
  // all calls f with each of the block's pairs and its expert.
  auto all = [&](auto f) {
    constexpr int kAhead = 4;  // loads on their way at once
    for (int i = from + threadIdx.x; i < to; i += kAhead * blockDim.x) {
      int e[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; j++) e[j] = i + j * (int)blockDim.x < to ? p.experts[i + j * blockDim.x] : -1;
#pragma unroll
      for (int j = 0; j < kAhead; j++)
        if (e[j] >= 0) f(i + j * blockDim.x, e[j]);
    }
  };
  all([&](int, int e) { atomicAdd(&count[e], 1); });
  cluster_sync();
  for (int e = threadIdx.x; e < p.groups; e += blockDim.x) {
    int before = 0, n = 0;
    for (int r = 0; r < kGroupBlocks; r++) {
      int v = __float_as_int(of_block(reinterpret_cast<const float*>(count + e), r));
      before += r < rank ? v : 0, n += v;
    }
    start[e] = before, total[e] = n;
  }
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  __syncthreads();
  if (threadIdx.x < 32) {  // a lane has a run of experts
    int each = (p.groups + 31) / 32, lo = min(p.groups, (int)threadIdx.x * each), hi = min(p.groups, lo + each), n = 0,
        touched = 0;
    for (int e = lo; e < hi; e++) n += total[e], touched += total[e] > 0;
    int upto = n;
#pragma unroll
    for (int o = 1; o < 32; o *= 2) {
      int v = __shfl_up_sync(~0u, upto, o);
      if (threadIdx.x >= o) upto += v;
    }
    touched = __reduce_add_sync(~0u, touched);
    for (int e = lo, s = upto - n; e < hi; s += total[e++]) {
      start[e] += s;
      if (rank == 0) p.offsets[e] = s;
    }
    if (threadIdx.x == 31 && rank == 0) p.offsets[p.groups] = upto;
    if (threadIdx.x == 0 && rank == 0 && p.at) p.at[2] = touched;
  }
  __syncthreads();
  all([&](int i, int e) { p.list[atomicAdd(&start[e], 1)] = i; });
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");  // the others are done with count
}

// A weight format: how many columns a step covers, and a step's fragment. FP8 with
// scales for blocks is Fp8Block.
struct BF16 {
  static constexpr int kStep = 16;
  uint4 q;
  __device__ __forceinline__ void load(const char* w, int tile, int kt, int i, int lane) {
    q = __ldcs(reinterpret_cast<const uint4*>(w) + ((size_t)tile * kt + i) * 32 + lane);
  }
  __device__ __forceinline__ void frag(uint32_t (&a)[4]) const { a[0] = q.x, a[1] = q.y, a[2] = q.z, a[3] = q.w; }
};

// add: the step's products of one or two tiles of the same columns.
template <int T, int NT, typename W>
__device__ __forceinline__ void add(float (&acc)[T][NT][4], const W (&f)[T], const float* const (&xr)[NT], int i, int t,
    int kmax, uint32_t low) {
  uint32_t frag[T][4];
#pragma unroll
  for (int a = 0; a < T; a++) f[a].frag(frag[a]);
#pragma unroll
  for (int nt = 0; nt < NT; nt++) {
    Frag x = load_x(xr[nt], i * 16 + t * 2, kmax, low);
#pragma unroll
    for (int a = 0; a < T; a++) mma_split(acc[a][nt], frag[a], x);
  }
}

// walk adds the steps [lo, hi) with D of them in flight.
template <typename W, int T, int NT, int D>
__device__ __forceinline__ void walk(float (&acc)[T][NT][4], const char* w, const int (&tile)[T], int kt, int lo,
    int hi, const float* const (&xr)[NT], int lane, int kmax, uint32_t low) {
  W buf[D][T];
#pragma unroll
  for (int d = 0; d < D; d++)
#pragma unroll
    for (int a = 0; a < T; a++)
      if (lo + d < hi) buf[d][a].load(w, tile[a], kt, lo + d, lane);
  for (int i = lo; i < hi; i += D)
#pragma unroll
    for (int d = 0; d < D; d++) {
      if (i + d >= hi) break;
      W cur[T];
#pragma unroll
      for (int a = 0; a < T; a++) {
        cur[a] = buf[d][a];
        if (i + d + D < hi) buf[d][a].load(w, tile[a], kt, i + d + D, lane);
      }
      add<T, NT>(acc, cur, xr, i + d, lane & 3, kmax, low);
    }
}

__device__ __forceinline__ void touched(const MoeP& p);

// y[pair, n] = silu(gate x) * (up x). A block 16 outputs; its warps share k.
// grid (n/16, groups or pairs)
template <typename W, int NT>
__device__ __forceinline__ void moe_up(const MoeP& p) {
  __shared__ float sums[kUpSlices][16][NT * 8 + 1];
  begin();
  ready(p.at);  // which experts follows from the kernels before
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, at = blockIdx.x;
  int first, count, e;
  if (p.list) {
    e = blockIdx.y, first = p.offsets[e], count = p.offsets[e + 1] - first;
  } else {
    first = blockIdx.y, count = 1, e = p.experts[first];
  }
  int kt = (p.k + W::kStep - 1) / W::kStep, per = (kt + kUpSlices - 1) / kUpSlices, lo = min(kt, warp * per),
      hi = min(kt, lo + per);
  const char* w = p.w + (size_t)e * p.wexpert;
  int tile[2] = {at, at + (p.n + 15) / 16};
  float2 global = p.global ? p.global[e] : make_float2(1, 1);
  for (int base = 0; base < count; base += 8 * NT) {
    const float* xr[NT];
#pragma unroll
    for (int nt = 0; nt < NT; nt++) {
      int i = base + nt * 8 + g;
      int pair = i < count ? (p.list ? p.list[first + i] : first) : -1;
      xr[nt] = pair < 0 ? nullptr : p.x + (size_t)(p.by_pair ? pair : pair / p.topk) * p.ldx;
    }
    float acc[2][NT][4] = {};
    walk<W, 2, NT, NT == 1 ? 2 : 1>(acc, w, tile, kt, lo, hi, xr, lane, p.k, low_of(p.rounded));
    float sum[2] = {};
    int row = threadIdx.x & 15, tok = threadIdx.x >> 4;
#pragma unroll
    for (int a = 0; a < 2; a++) {
#pragma unroll
      for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int i = 0; i < 4; i++) sums[warp][g + (i >> 1) * 8][nt * 8 + t * 2 + (i & 1)] = acc[a][nt][i];
      __syncthreads();
      if (tok < NT * 8) {
#pragma unroll
        for (int v = 0; v < kUpSlices; v++) sum[a] += sums[v][row][tok];
      }
      __syncthreads();
    }
    int r = at * 16 + row;
    if (tok < NT * 8 && r < p.n && base + tok < count) {
      int pair = p.list ? p.list[first + base + tok] : first;
      p.y[(size_t)pair * p.n + r] = silu(sum[0] * global.x) * (sum[1] * global.y);
    }
  }
  touched(p);
  finish(p.at);
}

// scale_of is the per-tensor scale of row r of a down projection.
__device__ __forceinline__ float scale_of(const MoeP& p, int e, int r) {
  if (!p.global) return 1;
  float2 g = p.global[e];
  return r < p.n / 2 ? g.x : g.y;
}

// touched counts the experts of a few pairs: all threads of the first block do.
__device__ __forceinline__ void touched(const MoeP& p) {
  if (!p.at || p.list || blockIdx.x || blockIdx.y) return;
  int n = 0;
  for (int at = 0; at < p.m * p.topk; at += blockDim.x) {
    int i = at + threadIdx.x;
    bool first = i < p.m * p.topk;
    for (int j = 0; j < i && first; j++) first = p.experts[j] != p.experts[i];
    n += __syncthreads_count(first);
  }
  if (threadIdx.x == 0) p.at[2] = n;
}

// y[m, n] += Σ weight (down x), few rows: a block 16 outputs of one token; a
// warp an expert, whole k. grid (n/16, m)
template <typename W>
__device__ __forceinline__ void moe_down(const MoeP& p) {
  extern __shared__ float part[];  // [topk][16]
  begin();
  ready(p.at);
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, m = blockIdx.y;
  int kt = (p.k + W::kStep - 1) / W::kStep, tile[1] = {(int)blockIdx.x};
  for (int j = warp; j < p.topk; j += kWarps) {
    int pair = m * p.topk + j, e = p.experts[pair];
    const float* xr[1] = {lane < 4 ? p.x + (size_t)pair * p.ldx : nullptr};
    float acc[1][1][4] = {};
    walk<W, 1, 1, 4>(acc, p.w + (size_t)e * p.wexpert, tile, kt, 0, kt, xr, lane, p.k, low_of(p.rounded));
    if ((lane & 3) == 0) {
      int r = blockIdx.x * 16 + (lane >> 2);
      part[j * 16 + (lane >> 2)] = acc[0][0][0] * scale_of(p, e, r);
      part[j * 16 + (lane >> 2) + 8] = acc[0][0][2] * scale_of(p, e, r + 8);
    }
  }
  __syncthreads();
  int r = blockIdx.x * 16 + threadIdx.x;
  if (threadIdx.x < 16 && r < p.n) {
    float* y = p.y + (size_t)m * p.ldy + r;
    float v = *y;
    for (int j = 0; j < p.topk; j++) v = fmaf(p.weights[(size_t)m * p.ldw + j], part[j * 16 + threadIdx.x], v);
    *y = v;
  }
  touched(p);
  finish(p.at);
}

// Grouped: a warp 16 outputs of 8*NT rows of one expert, whole k, into scratch.
// grid (n/128, groups, chunks)
template <typename W, int NT>
__device__ __forceinline__ void moe_down_grouped(const MoeP& p) {
  begin();
  ready(p.at);
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, e = blockIdx.y;
  int first = p.offsets[e], count = p.offsets[e + 1] - first;
  int kt = (p.k + W::kStep - 1) / W::kStep, tile[1] = {(int)blockIdx.x * kWarps + warp};
  if (tile[0] * 16 < p.n)
    for (int base = blockIdx.z * 8 * NT; base < count; base += gridDim.z * 8 * NT) {
      const float* xr[NT];
#pragma unroll
      for (int nt = 0; nt < NT; nt++) xr[nt] = base + nt * 8 + g < count ?
          p.x + (size_t)p.list[first + base + nt * 8 + g] * p.ldx : nullptr;
      float acc[1][NT][4] = {};
      walk<W, 1, NT, NT == 1 ? 4 : 2>(acc, p.w + (size_t)e * p.wexpert, tile, kt, 0, kt, xr, lane, p.k,
                                      low_of(p.rounded));
#pragma unroll
      for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
          int tok = base + nt * 8 + t * 2 + (i & 1), r = tile[0] * 16 + g + (i >> 1) * 8;
          if (tok < count && r < p.n) p.scratch[(size_t)p.list[first + tok] * p.n + r] =
              acc[0][nt][i] * scale_of(p, e, r);
        }
    }
  finish(p.at);
}
extern "C" __global__ void __launch_bounds__(256) moe_combine(const __grid_constant__ MoeP p) {
  begin();
  ready(p.at);
  int r = blockIdx.x * blockDim.x + threadIdx.x, m = blockIdx.y;
  if (r < p.n) {
    float* y = p.y + (size_t)m * p.ldy + r;
    float v = *y;
    for (int j = 0; j < p.topk; j++) v = fmaf(p.weights[(size_t)m * p.ldw + j], p.scratch[(size_t)(m * p.topk +
        j) * p.n + r], v);
    *y = v;
  }
  finish(p.at);
}

#define UP(name, ...) extern "C" __global__ void __launch_bounds__(32 * kUpSlices, \
    1) name(const __grid_constant__ MoeP p) { \
  __VA_ARGS__(p); \
}
UP(moe_up_bf16_8, moe_up<BF16, 1>)
UP(moe_up_bf16_32, moe_up<BF16, 4>)
UP(moe_up_fp8b_8, moe_up<Fp8Block, 1>)
UP(moe_up_fp8b_32, moe_up<Fp8Block, 4>)

#define ENTRY(name, ...) extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ MoeP p) { \
  __VA_ARGS__(p); \
}
ENTRY(moe_down_bf16, moe_down<BF16>)
ENTRY(moe_down_bf16_8, moe_down_grouped<BF16, 1>)
ENTRY(moe_down_bf16_32, moe_down_grouped<BF16, 4>)
ENTRY(moe_down_fp8b, moe_down<Fp8Block>)
ENTRY(moe_down_fp8b_8, moe_down_grouped<Fp8Block, 1>)
ENTRY(moe_down_fp8b_32, moe_down_grouped<Fp8Block, 4>)

// float32 experts, as small reference checkpoints have them: a warp an output.
extern "C" __global__ void __launch_bounds__(256) moe_up_f32(const __grid_constant__ MoeP p) {
  begin();
  ready(p.at);
  int r = blockIdx.x * 8 + (threadIdx.x >> 5), lane = threadIdx.x & 31, pair = blockIdx.y;
  if (r < p.n) {
    const float* w = reinterpret_cast<const float*>(p.w + (size_t)p.experts[pair] * p.wexpert);
    const float* x = p.x + (size_t)(pair / p.topk) * p.ldx;
    float gate = 0, up = 0;
    for (int k = lane; k < p.k; k += 32) {
      gate = fmaf(w[(size_t)r * p.k + k], x[k], gate);
      up = fmaf(w[(size_t)(r + p.n) * p.k + k], x[k], up);
    }
    gate = warp_sum(gate), up = warp_sum(up);
    if (lane == 0) p.y[(size_t)pair * p.n + r] = silu(gate) * up;
  }
  touched(p);
  finish(p.at);
}
extern "C" __global__ void __launch_bounds__(256) moe_down_f32(const __grid_constant__ MoeP p) {
  begin();
  ready(p.at);
  int r = blockIdx.x * 8 + (threadIdx.x >> 5), lane = threadIdx.x & 31, m = blockIdx.y;
  if (r < p.n) {
    float* y = p.y + (size_t)m * p.ldy + r;
    float v = *y;
    for (int j = 0; j < p.topk; j++) {
      int pair = m * p.topk + j;
      const float* w = reinterpret_cast<const float*>(p.w + (size_t)p.experts[pair] * p.wexpert) + (size_t)r * p.k;
      const float* x = p.x + (size_t)pair * p.ldx;
      float s = 0;
      for (int k = lane; k < p.k; k += 32) s = fmaf(w[k], x[k], s);
      v = fmaf(p.weights[(size_t)m * p.ldw + j], warp_sum(s), v);
    }
    if (lane == 0) *y = v;
  }
  touched(p);
  finish(p.at);
}
