// Products whose inputs are not rounded: float32 sums over packed weights, for
// checks against references. A warp has 16 outputs; a lane the columns of its
// fragments, step by step; the four lanes of a row are added in a tree.
#include "mma/nvfp4.cuh"
#include "mma/fragments.cuh"
#include "gemm/params.h"

constexpr int kTokens = 8;  // at a time

// A weight format: a step of kStep columns, of which a lane has kCols, in two rows.
struct Bf16Steps {
  static constexpr int kStep = 16, kCols = 4;
  const uint4* w;
  __device__ Bf16Steps(const char* w, int tile, int k, int lane) :
      w(reinterpret_cast<const uint4*>(w) + (size_t)tile * ((k + 15) / 16) * 32 + lane) {}
  __device__ __forceinline__ void weights(float (&v)[2][kCols], int step) const {
    uint4 q = w[(size_t)step * 32];
    v[0][0] = lowf(q.x), v[0][1] = highf(q.x), v[1][0] = lowf(q.y), v[1][1] = highf(q.y);
    v[0][2] = lowf(q.z), v[0][3] = highf(q.z), v[1][2] = lowf(q.w), v[1][3] = highf(q.w);
  }
  static __device__ __forceinline__ void inputs(float (&v)[kCols], const float* x, int c, int t, int k) {
    float2 a = {0, 0}, b = {0, 0};
    c += 2 * t;
    if (c < k) a = *reinterpret_cast<const float2*>(x + c);
    if (c + 8 < k) b = *reinterpret_cast<const float2*>(x + c + 8);
    v[0] = a.x, v[1] = a.y, v[2] = b.x, v[3] = b.y;
  }
};
struct BlockSteps : Bf16Steps {
  const char* codes;
  int tile, kt, lane;
  __device__ BlockSteps(const char* w, int tile, int k, int lane) : Bf16Steps(w, tile, k, lane), codes(w), tile(tile),
      kt((k + 15) / 16), lane(lane) {}
  __device__ __forceinline__ void weights(float (&v)[2][kCols], int step) const {
    Fp8Block b;
    uint32_t a[4];
    b.load(codes, tile, kt, step, lane);
    b.frag(a);
    v[0][0] = lowf(a[0]), v[0][1] = highf(a[0]), v[1][0] = lowf(a[1]), v[1][1] = highf(a[1]);
    v[0][2] = lowf(a[2]), v[0][3] = highf(a[2]), v[1][2] = lowf(a[3]), v[1][3] = highf(a[3]);
  }
};
struct Fp8Steps {
  static constexpr int kStep = 32, kCols = 8;
  const uint4* w;
  __device__ Fp8Steps(const char* w, int tile, int k, int lane) :
      w(reinterpret_cast<const uint4*>(w) + (size_t)tile * ((k + 31) / 32) * 32 + lane) {}
  __device__ __forceinline__ void weights(float (&v)[2][kCols], int step) const {
    uint32_t a[2][4];
    Fp8Step::frags(a, w[(size_t)step * 32]);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) v[j & 1][4 * i + (j & 2)] = lowf(a[i][j]),
          v[j & 1][4 * i + (j & 2) + 1] = highf(a[i][j]);
  }
  static __device__ __forceinline__ void inputs(float (&v)[kCols], const float* x, int c, int t, int k) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int at = c + 8 * i + 2 * t;
      float2 a = {0, 0};
      if (at < k) a = *reinterpret_cast<const float2*>(x + at);
      v[2 * i] = a.x, v[2 * i + 1] = a.y;
    }
  }
};
struct Fp4Steps {
  static constexpr int kStep = 32, kCols = 8;
  const char* w;
  int lane;
  __device__ Fp4Steps(const char* w, int tile, int k, int lane) : w(w + (size_t)tile * ((k + 63) / 64) * kFp4Unit),
      lane(lane) {}
  __device__ __forceinline__ void weights(float (&v)[2][kCols], int step) const {
    const char* unit = w + (size_t)(step >> 1) * kFp4Unit;
    uint4 q = *fp4_codes(unit, lane);
    uint2 s = *fp4_scales(unit, lane);
    uint32_t g = step & 1 ? fp4_scale<1>(s.x) : fp4_scale<0>(s.x), h = step & 1 ? fp4_scale<1>(s.y) : fp4_scale<0>(s.y);
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t a[4];
      unpack_fp4(a, step & 1 ? (i ? q.w : q.z) : (i ? q.y : q.x), g, h);
#pragma unroll
      for (int j = 0; j < 4; j++) v[j & 1][2 * i + (j >> 1)] = lowf(a[j]), v[j & 1][4 + 2 * i + (j >> 1)] = highf(a[j]);
    }
  }
  static __device__ __forceinline__ void inputs(float (&v)[kCols], const float* x, int c, int t, int k) {
    float4 a = {0, 0, 0, 0}, b = {0, 0, 0, 0};
    c += 4 * t;
    if (c < k) a = *reinterpret_cast<const float4*>(x + c);
    if (c + 16 < k) b = *reinterpret_cast<const float4*>(x + c + 16);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
  }
};

// product: sums[r][i] of rows g and g+8 for rows i < n of x.
template <typename W, int N>
__device__ __forceinline__ void product(float (&sums)[2][N], const ExactP& p, int matrix, int tile, const float* x,
    int n, int lane) {
  int steps = (p.k + W::kStep - 1) / W::kStep;
  W w(p.w + matrix * p.wnext, tile, p.k, lane);
#pragma unroll
  for (int i = 0; i < N; i++) sums[0][i] = sums[1][i] = 0;
  for (int step = 0; step < steps; step++) {
    float v[2][W::kCols];
    w.weights(v, step);
#pragma unroll
    for (int i = 0; i < N; i++) {
      if (i >= n) break;
      float u[W::kCols];
      W::inputs(u, x + (size_t)i * p.ldx, step * W::kStep, lane & 3, p.k);
#pragma unroll
      for (int c = 0; c < W::kCols; c++) sums[0][i] = fmaf(v[0][c], u[c], sums[0][i]),
          sums[1][i] = fmaf(v[1][c], u[c], sums[1][i]);
    }
  }
#pragma unroll
  for (int r = 0; r < 2; r++)
#pragma unroll
    for (int i = 0; i < N; i++) {
      sums[r][i] += __shfl_xor_sync(~0u, sums[r][i], 1);
      sums[r][i] += __shfl_xor_sync(~0u, sums[r][i], 2);
    }
}

// scale_of is the per-tensor scale of row r of a matrix of rows.
__device__ __forceinline__ float scale_of(const ExactP& p, int matrix, int r, int rows) {
  if (!p.globals) return p.global;
  float2 g = p.globals[matrix];
  return r < rows / 2 ? g.x : g.y;
}

// y[m, n] = x wᵀ. grid (tiles/8, m/8, heads); q_absorb: one more column of blocks
// for the rotary part.
template <typename W>
__device__ __forceinline__ void exact_gemm(const ExactP& p) {
  begin();
  ready(p.at);
  int lane = threadIdx.x & 31, tile = blockIdx.x * kWarps + (threadIdx.x >> 5), m0 = blockIdx.y * kTokens,
      head = blockIdx.z, n = min(kTokens, p.m - m0);
  const float* x = p.x + (size_t)m0 * p.ldx + (size_t)head * p.xhead;
  float* y = p.y + (size_t)m0 * p.ldy + (size_t)head * p.yhead;
  if (p.rope && blockIdx.x == gridDim.x - 1) {
    int half = p.nrope / 2;
    for (int i = threadIdx.x; i < n * half; i += blockDim.x) {
      int m = i / half, j = i % half;
      float2 cs = reinterpret_cast<const float2*>(p.rope)[(size_t)p.pos[m0 + m] * half + j];
      const float* v = x + (size_t)m * p.ldx + p.k + 2 * j;
      float* o = y + (size_t)m * p.ldy + p.n + 2 * j;
      o[0] = v[0] * cs.x - v[1] * cs.y;
      o[1] = v[1] * cs.x + v[0] * cs.y;
    }
  } else if (tile * 16 < p.n) {
    float sums[2][kTokens];
    product<W, kTokens>(sums, p, head, tile, x, n, lane);
#pragma unroll
    for (int r = 0; r < 2; r++) {
      int o = tile * 16 + (lane >> 2) + 8 * r;
#pragma unroll
      for (int i = 0; i < kTokens; i++)
        if ((lane & 3) == i % 4 && i < n && o < p.n) y[(size_t)i * p.ldy + o] = sums[r][i] * scale_of(p, head, o, p.n);
    }
  }
  finish(p.at);
}

// touched counts the experts of all pairs: the first block does.
__device__ __forceinline__ void touched(const ExactP& p) {
  if (!p.at || blockIdx.x || blockIdx.y) return;
  int n = 0;
  for (int base = 0; base < p.groups; base += blockDim.x) {
    bool seen = false;
    for (int i = 0; i < p.m * p.topk && !seen; i++) seen = p.experts[i] == base + (int)threadIdx.x;
    n += __syncthreads_count(seen);
  }
  if (threadIdx.x == 0) p.at[2] = n;
}

// y[pair, n] = silu(gate x) * (up x). grid (n/128, pairs)
template <typename W>
__device__ __forceinline__ void exact_up(const ExactP& p) {
  begin();
  ready(p.at);
  int lane = threadIdx.x & 31, tile = blockIdx.x * kWarps + (threadIdx.x >> 5), pair = blockIdx.y, e = p.experts[pair];
  if (tile * 16 < p.n) {
    const float* x = p.x + (size_t)(p.by_pair ? pair : pair / p.topk) * p.ldx;
    float gate[2][1], up[2][1];
    product<W, 1>(gate, p, e, tile, x, 1, lane);
    product<W, 1>(up, p, e, tile + p.n / 16, x, 1, lane);
    int r = lane & 3, o = tile * 16 + (lane >> 2) + 8 * r;
    if (r < 2 && o < p.n) p.y[(size_t)pair * p.n + o] =
        silu(gate[r & 1][0] * scale_of(p, e, o, 2 * p.n)) * (up[r & 1][0] * scale_of(p, e, o + p.n, 2 * p.n));
  }
  touched(p);
  finish(p.at);
}

// y[m, n] += Σ weight (down x), in the order of a row's experts. grid (n/128, m)
template <typename W>
__device__ __forceinline__ void exact_down(const ExactP& p) {
  begin();
  ready(p.at);
  int lane = threadIdx.x & 31, tile = blockIdx.x * kWarps + (threadIdx.x >> 5), m = blockIdx.y;
  int r = lane & 3, o = tile * 16 + (lane >> 2) + 8 * r;
  bool mine = r < 2 && o < p.n;
  if (tile * 16 < p.n) {
    float v = mine ? p.y[(size_t)m * p.ldy + o] : 0;
    for (int j = 0; j < p.topk; j++) {
      int pair = m * p.topk + j, e = p.experts[pair];
      float sums[2][1];
      product<W, 1>(sums, p, e, tile, p.x + (size_t)pair * p.ldx, 1, lane);
      v = fmaf(p.weights[(size_t)m * p.ldw + j], sums[r & 1][0] * scale_of(p, e, o, p.n), v);
    }
    if (mine) p.y[(size_t)m * p.ldy + o] = v;
  }
  touched(p);
  finish(p.at);
}

#define ENTRY(name, call) extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ ExactP p) { \
  call(p); \
}
ENTRY(exact_gemm_bf16, exact_gemm<Bf16Steps>)
ENTRY(exact_gemm_fp8, exact_gemm<Fp8Steps>)
ENTRY(exact_gemm_fp8b, exact_gemm<BlockSteps>)
ENTRY(exact_gemm_fp4, exact_gemm<Fp4Steps>)
ENTRY(exact_up_bf16, exact_up<Bf16Steps>)
ENTRY(exact_up_fp8b, exact_up<BlockSteps>)
ENTRY(exact_up_fp4, exact_up<Fp4Steps>)
ENTRY(exact_down_bf16, exact_down<Bf16Steps>)
ENTRY(exact_down_fp8b, exact_down<BlockSteps>)
ENTRY(exact_down_fp4, exact_down<Fp4Steps>)
