// y[m, n] = x[m, k] w[n, k]ᵀ with more than eight rows, or weights that gemv.cuh
// does not read. A cluster of C blocks owns 16 outputs of 8*NT tokens; the blocks and
// their warps share k in the slices of gemv.cuh, so that a row's bits are the same.
#include "mma/nvfp4.cuh"
#include "mma/fragments.cuh"
#include "gemm/params.h"

// slice returns the share of kt that part of parts works on.
__device__ __forceinline__ void slice(int kt, int part, int parts, int& lo, int& hi) {
  int per = (kt + parts - 1) / parts;
  lo = min(kt, part * per), hi = min(kt, lo + per);
}

// reduce adds the warps' sums in warp order, then the blocks' in block order, and
// hands each (row, token) to f.
template <int NT, int C, typename F>
__device__ __forceinline__ void reduce(float (&acc)[NT][4], float* smem, F f) {
  constexpr int kPitch = NT * 8 + 1;
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int nt = 0; nt < NT; nt++)
#pragma unroll
    for (int i = 0; i < 4; i++) smem[(warp * 16 + g + (i >> 1) * 8) * kPitch + nt * 8 + t * 2 + (i & 1)] = acc[nt][i];
  __syncthreads();
  for (int i = threadIdx.x; i < 16 * NT * 8; i += blockDim.x) {
    int row = i & 15, tok = i >> 4;
    float v = 0;
#pragma unroll
    for (int w = 0; w < kWarps; w++) v += smem[(w * 16 + row) * kPitch + tok];
    if (C == 1) f(row, tok, v);
    else smem[row * kPitch + tok] = v;
  }
  if (C == 1) return;
  cluster_sync();
  if (blockIdx.x % C == 0)
    for (int i = threadIdx.x; i < 16 * NT * 8; i += blockDim.x) {
      int row = i & 15, tok = i >> 4;
      float v = 0;
#pragma unroll
      for (int c = 0; c < C; c++) v += of_block(smem + row * kPitch + tok, c);
      f(row, tok, v);
    }
  cluster_sync();
}

template <typename W, int NT, int C>
__device__ __forceinline__ void gemm(const GemmP& p) {
  __shared__ float smem[kWarps * 16 * (NT * 8 + 1)];
  constexpr int F = W::kFrags, U = W::kAhead;
  begin();
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  int tile = blockIdx.x / C, kt = (p.k + 16 * F - 1) / (16 * F), lo, hi, m0 = blockIdx.y * 8 * NT, head = blockIdx.z;
  slice(kt, blockIdx.x % C * kWarps + warp, C * kWarps, lo, hi);
  if (C == 1 && p.rope && tile == gridDim.x - 1) {
    ready(p.at);
    rotate(p, m0, 8 * NT);
    return finish(p.at);
  }
  const char* w = static_cast<const char*>(p.w) + head * p.whead;
  const float* x = p.x + (size_t)head * p.xhead;
  float acc[NT][4] = {};
  typename W::Part q[U];
  int n = hi - lo;
#pragma unroll
  for (int u = 0; u < U; u++)
    if (u < n) W::load(q[u], w, tile, kt, lo + u, lane);
  ready(p.at);
  const float* xr[NT];
#pragma unroll
  for (int nt = 0; nt < NT; nt++) xr[nt] = m0 + nt * 8 + g < p.m ? x + (size_t)(m0 + nt * 8 + g) * p.ldx : nullptr;
  for (int i = 0; i < n; i += U)
#pragma unroll
    for (int u = 0; u < U; u++) {
      if (i + u >= n) break;
      uint32_t a[F][4];
      W::frags(a, q[u]);
      if (i + U + u < n) W::load(q[u], w, tile, kt, lo + i + U + u, lane);
#pragma unroll
      for (int f = 0; f < F; f++)
#pragma unroll
        for (int nt = 0; nt < NT; nt++) mma_split(acc[nt], a[f],
            load_x(xr[nt], ((lo + i + u) * F + f) * 16 + t * 2, p.k, low_of(p.rounded)));
    }
  reduce<NT, C>(acc, smem, [&](int row, int tok, float v) {
    int r = tile * 16 + row, m = m0 + tok;
    if (r < p.n && m < p.m) p.y[(size_t)m * p.ldy + (size_t)head * p.yhead + r] = v * p.global;
  });
  finish_beside(p.at);
}

#define ENTRY(f, step, nt, c) \
  extern "C" __global__ void __cluster_dims__(c) __launch_bounds__(256) \
      gemm_##f##_##nt##_##c(const __grid_constant__ GemmP p) { \
    gemm<step, nt, c>(p); \
  }
#define ENTRIES(f, step, nt) ENTRY(f, step, nt, 1) ENTRY(f, step, nt, 2) ENTRY(f, step, nt, 4) ENTRY(f, step, nt, 8)
ENTRIES(bf16, Bf16Step, 2)
ENTRIES(bf16, Bf16Step, 4)
ENTRIES(bf16, Bf16Step, 8)
ENTRIES(fp8, Fp8Step, 2)
ENTRIES(fp8, Fp8Step, 8)
ENTRIES(fp8b, BlockStep, 1)
ENTRIES(fp8b, BlockStep, 2)

template <int NT>
__device__ __forceinline__ void gemm_fp4(const GemmP& p) {
  __shared__ float smem[kWarps * 16 * (NT * 8 + 1)];
  begin();
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  int kt = (p.k + 63) / 64, lo, hi, m0 = blockIdx.y * 8 * NT;
  slice(kt, warp, kWarps, lo, hi);
  const char* w = static_cast<const char*>(p.w) + (size_t)blockIdx.x * kt * kFp4Unit;
  float acc[NT][4] = {};
  ready(p.at);
  const float* xr[NT];
#pragma unroll
  for (int nt = 0; nt < NT; nt++) xr[nt] = m0 + nt * 8 + g < p.m ? p.x + (size_t)(m0 + nt * 8 + g) * p.ldx : nullptr;
  for (int i = lo; i < hi; i++) {
    Fp4 u = load_fp4(w + (size_t)i * kFp4Unit, lane);
    uint32_t q[4] = {u.q.x, u.q.y, u.q.z, u.q.w};
#pragma unroll
    for (int half = 0; half < 2; half++) {
      uint32_t s = half ? fp4_scale<1>(u.s.x) : fp4_scale<0>(u.s.x),
          sh = half ? fp4_scale<1>(u.s.y) : fp4_scale<0>(u.s.y), a[2][4];
      unpack_fp4(a[0], q[2 * half], s, sh);
      unpack_fp4(a[1], q[2 * half + 1], s, sh);
#pragma unroll
      for (int nt = 0; nt < NT; nt++) {
        Fp4X f = load_fp4x(xr[nt], i * 64 + half * 32 + t * 4, p.k, low_of(p.rounded));
        mma_split(acc[nt], a[0], f.f[0]);
        mma_split(acc[nt], a[1], f.f[1]);
      }
    }
  }
  reduce<NT, 1>(acc, smem, [&](int row, int tok, float v) {
    int r = blockIdx.x * 16 + row, m = m0 + tok;
    if (r < p.n && m < p.m) p.y[(size_t)m * p.ldy + r] =
        v * (p.global_up != 0 && r >= p.n / 2 ? p.global_up : p.global);
  });
  finish_beside(p.at);
}

extern "C" __global__ void __launch_bounds__(256) gemm_fp4_8(const __grid_constant__ GemmP p) { gemm_fp4<1>(p); }
extern "C" __global__ void __launch_bounds__(256) gemm_fp4_64(const __grid_constant__ GemmP p) { gemm_fp4<8>(p); }

// float32 weights, row-major: a warp a row of w, eight tokens at a time. Lanes
// stride k; the lanes' sums are added in a fixed tree.
extern "C" __global__ void __launch_bounds__(256) gemm_f32(const __grid_constant__ GemmP p) {
  begin();
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, r = blockIdx.x * 8 + warp, m0 = blockIdx.y * 8,
      head = blockIdx.z;
  ready(p.at);
  if (p.rope && blockIdx.x == gridDim.x - 1) {
    rotate(p, m0, 8);
    return finish(p.at);
  }
  if (r < p.n) {
    const float* w = reinterpret_cast<const float*>(static_cast<const char*>(p.w) + head * p.whead) + (size_t)r * p.k;
    const float* x = p.x + (size_t)head * p.xhead;
    float acc[8] = {};
    for (int k = lane; k < p.k; k += 32) {
      float a = w[k];
#pragma unroll
      for (int i = 0; i < 8; i++)
        if (m0 + i < p.m) acc[i] = fmaf(a, x[(size_t)(m0 + i) * p.ldx + k], acc[i]);
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
      float v = warp_sum(acc[i]);
      if (lane == 0 && m0 + i < p.m) p.y[(size_t)(m0 + i) * p.ldy + (size_t)head * p.yhead + r] = v;
    }
  }
  finish(p.at);
}
