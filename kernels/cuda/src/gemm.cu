// y[m, n] = x[m, k] w[n, k]ᵀ. A block owns 16 outputs of 8*NT tokens; its warps
// share k. The weights are read once, straight into fragments; a token's
// columns of the fragment that no token fills cost nothing.
#include "device.cuh"

struct GemmP {
  const void* w;
  const uint8_t* scales;  // FP4
  const float* x;
  float* y;
  u64* at;
  int m, n, k, ldx, ldy;
  float global, global_up;  // scale of the sums; FP4: of rows below and from half of n on (global_up 0: one for all)
  int heads;                // products side by side: one of heads weights, and its columns of x and y
  int xhead, yhead;         // columns of x and y from one head to the next
  int64_t whead;            // bytes of one head's weight
  // q_absorb: the last column of blocks rotates the heads' rotary part instead.
  const float* rope;  // [positions, nrope/2] pairs (cos, sin); null: no such part
  const int* pos;
  int nrope;
};

// rotate copies the rotary values behind x's k columns behind y's n columns.
__device__ __forceinline__ void rotate(const GemmP& p, int m0, int tokens) {
  int half = p.nrope / 2, head = blockIdx.z;
  for (int i = threadIdx.x; i < tokens * half; i += blockDim.x) {
    int m = m0 + i / half, j = i % half;
    if (m >= p.m) break;
    float2 cs = reinterpret_cast<const float2*>(p.rope)[(size_t)p.pos[m] * half + j];
    const float* x = p.x + (size_t)m * p.ldx + (size_t)head * p.xhead + p.k + 2 * j;
    float* y = p.y + (size_t)m * p.ldy + (size_t)head * p.yhead + p.n + 2 * j;
    float a = x[0], b = x[1];
    y[0] = a * cs.x - b * cs.y;
    y[1] = b * cs.x + a * cs.y;
  }
}

constexpr int kWarps = 8;

// slice returns the share of kt that the warp works on.
__device__ __forceinline__ void slice(int kt, int warp, int& lo, int& hi) {
  int per = (kt + kWarps - 1) / kWarps;
  lo = min(kt, warp * per), hi = min(kt, lo + per);
}

// reduce adds the warps' sums in warp order and hands each (row, token) to f.
template <int NT, typename F>
__device__ __forceinline__ void reduce(float (&acc)[NT][4], float* smem, F f) {
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int nt = 0; nt < NT; nt++)
#pragma unroll
    for (int i = 0; i < 4; i++) smem[(warp * 16 + g + (i >> 1) * 8) * (NT * 8 + 1) + nt * 8 + t * 2 + (i & 1)] = acc[nt][i];
  __syncthreads();
  for (int i = threadIdx.x; i < 16 * NT * 8; i += blockDim.x) {
    int row = i & 15, tok = i >> 4;
    float v = 0;
#pragma unroll
    for (int w = 0; w < kWarps; w++) v += smem[(w * 16 + row) * (NT * 8 + 1) + tok];
    f(row, tok, v);
  }
}

template <int NT>
__device__ __forceinline__ void gemm_bf16(const GemmP& p) {
  __shared__ float smem[kWarps * 16 * (NT * 8 + 1)];
  begin();
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  int kt = (p.k + 15) / 16, lo, hi, m0 = blockIdx.y * 8 * NT, head = blockIdx.z;
  slice(kt, warp, lo, hi);
  if (p.rope && blockIdx.x == gridDim.x - 1) {
    ready(p.at);
    rotate(p, m0, 8 * NT);
    return finish(p.at);
  }
  const uint4* w = reinterpret_cast<const uint4*>(static_cast<const char*>(p.w) + head * p.whead) + ((size_t)blockIdx.x * kt) * 32 + lane;
  const float* x = p.x + (size_t)head * p.xhead;
  float acc[NT][4] = {};
  constexpr int U = NT <= 2 ? 8 : 4;
  uint4 q[U];
#pragma unroll
  for (int u = 0; u < U; u++)
    if (lo + u < hi) q[u] = __ldcs(w + (size_t)(lo + u) * 32);
  ready(p.at);
  const float* xr[NT];
#pragma unroll
  for (int nt = 0; nt < NT; nt++) xr[nt] = m0 + nt * 8 + g < p.m ? x + (size_t)(m0 + nt * 8 + g) * p.ldx : nullptr;
  for (int i = lo; i < hi; i += U) {
    uint4 cur[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
      cur[u] = q[u];
      if (i + U + u < hi) q[u] = __ldcs(w + (size_t)(i + U + u) * 32);
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
      if (i + u >= hi) break;
      uint32_t a[4] = {cur[u].x, cur[u].y, cur[u].z, cur[u].w};
#pragma unroll
      for (int nt = 0; nt < NT; nt++) mma_split(acc[nt], a, load_x(xr[nt], (i + u) * 16 + t * 2, p.k));
    }
  }
  reduce<NT>(acc, smem, [&](int row, int tok, float v) {
    int r = blockIdx.x * 16 + row, m = m0 + tok;
    if (r < p.n && m < p.m) p.y[(size_t)m * p.ldy + (size_t)head * p.yhead + r] = v * p.global;
  });
  finish(p.at);
}

extern "C" __global__ void __launch_bounds__(256) gemm_bf16_8(const __grid_constant__ GemmP p) { gemm_bf16<1>(p); }
extern "C" __global__ void __launch_bounds__(256) gemm_bf16_16(const __grid_constant__ GemmP p) { gemm_bf16<2>(p); }
extern "C" __global__ void __launch_bounds__(256) gemm_bf16_32(const __grid_constant__ GemmP p) { gemm_bf16<4>(p); }
extern "C" __global__ void __launch_bounds__(256) gemm_bf16_64(const __grid_constant__ GemmP p) { gemm_bf16<8>(p); }

template <int NT>
__device__ __forceinline__ void gemm_fp4(const GemmP& p) {
  __shared__ float smem[kWarps * 16 * (NT * 8 + 1)];
  begin();
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  int kt = (p.k + 63) / 64, lo, hi, m0 = blockIdx.y * 8 * NT;
  slice(kt, warp, lo, hi);
  const uint4* w = static_cast<const uint4*>(p.w) + ((size_t)blockIdx.x * kt) * 32 + lane;
  const uint2* s = reinterpret_cast<const uint2*>(p.scales) + ((size_t)blockIdx.x * kt) * 8 + g;
  float acc[NT][4] = {};
  ready(p.at);
  const float* xr[NT];
#pragma unroll
  for (int nt = 0; nt < NT; nt++) xr[nt] = m0 + nt * 8 + g < p.m ? p.x + (size_t)(m0 + nt * 8 + g) * p.ldx : nullptr;
  for (int i = lo; i < hi; i++) {
    uint4 q = __ldcs(w + (size_t)i * 32);
    uint2 sc = __ldcs(s + (size_t)i * 8);
    uint32_t qs[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
      uint32_t a[4];
      unpack_fp4(a, qs[j]);
      float sg = e4m3x2((sc.x >> (8 * j)) & 0xff).x, sh = e4m3x2((sc.y >> (8 * j)) & 0xff).x;
#pragma unroll
      for (int nt = 0; nt < NT; nt++) {
        float c[4] = {};
        mma_split(c, a, load_x(xr[nt], i * 64 + j * 16 + t * 2, p.k));
        acc[nt][0] += sg * c[0], acc[nt][1] += sg * c[1], acc[nt][2] += sh * c[2], acc[nt][3] += sh * c[3];
      }
    }
  }
  reduce<NT>(acc, smem, [&](int row, int tok, float v) {
    int r = blockIdx.x * 16 + row, m = m0 + tok;
    if (r < p.n && m < p.m) p.y[(size_t)m * p.ldy + r] = v * (p.global_up != 0 && r >= p.n / 2 ? p.global_up : p.global);
  });
  finish(p.at);
}

extern "C" __global__ void __launch_bounds__(256) gemm_fp4_8(const __grid_constant__ GemmP p) { gemm_fp4<1>(p); }
extern "C" __global__ void __launch_bounds__(256) gemm_fp4_64(const __grid_constant__ GemmP p) { gemm_fp4<8>(p); }

// float32 weights, row-major: a warp a row of w, eight tokens at a time. Lanes
// stride k; the lanes' sums are added in a fixed tree.
extern "C" __global__ void __launch_bounds__(256) gemm_f32(const __grid_constant__ GemmP p) {
  begin();
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, r = blockIdx.x * 8 + warp, m0 = blockIdx.y * 8, head = blockIdx.z;
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
