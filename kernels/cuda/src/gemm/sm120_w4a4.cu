// Products of NVFP4 weights and NVFP4 activations on matrix units that take both as
// they are, with their block scales: mma.sync of compute capability 12.0. Elsewhere
// mma4 does by shuffles what the instruction is documented to do: slowly, so that
// only tests launch it.
//
// Weights: a unit is 16 rows by 64 columns, 576 bytes: for each lane the four
// registers of its fragment (rows g and g + 8 at columns 8t .. 8t + 7, then at 32 +
// 8t; the lowest column in the lowest bits), then for each row its four E4M3 scales,
// the first columns' in the lowest bits. A matrix is [tiles of 16 rows][kt units].
#include "mma/nvfp4_w4a4.cuh"

constexpr int kUnit = 576;  // bytes

extern "C" __global__ void pack_fp4a4_mma(const Pack4 p) {
  size_t units = (size_t)p.tiles * p.kt;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < units * 144; i += (size_t)gridDim.x * blockDim.x) {
    size_t unit = i / 144, kt = unit % p.kt, tile = unit / p.kt;
    int at = i % 144;
    uint32_t word = 0;
    if (at < 128) {
      int lane = at >> 2, j = at & 3, r = tile * 16 + (lane >> 2) + (j & 1) * 8,
          c = kt * 64 + (lane & 3) * 8 + (j >> 1) * 32;
      word = p.codes(r, c);
    } else {
      word = p.scales4(tile * 16 + at - 128, kt * 64);
    }
    reinterpret_cast<uint32_t*>(static_cast<char*>(p.out) + unit * kUnit)[at] = word;
  }
}

// A thread 16 values, as quant_pairs rounds them. Columns past k are 0.
extern "C" __global__ void __launch_bounds__(256) quant_fp4(const __grid_constant__ Fp4P p) {
  begin();
  ready(p.at);
  int i = blockIdx.x * blockDim.x + threadIdx.x, blocks = p.kt * 4, row = i / blocks, b = i % blocks;
  if (row < p.m) {
    uint32_t q[2] = {0, 0};
    uint8_t sf = 0;
    if (b * 16 < p.k) {
      const float* x = p.x + (size_t)(p.by_pair ? row : row / p.topk) * p.ldx + b * 16;
      float a = 0, in = p.input[p.experts ? p.experts[row] : 0];
      for (int j = 0; j < 16; j++) a = fmaxf(a, fabsf(x[j]));
      sf = __nv_cvt_float_to_fp8(fminf(a / 6.0f / in, 448.0f), __NV_SATFINITE, __NV_E4M3);
      float den = e4m3x2(sf).x * in;
      for (int j = 0; j < 16; j++) {
        float v = den == 0 ? 0 : fabsf(x[j] / den);
        uint32_t code = v <= 0.25f ? 0 : v < 0.75f ? 1 : v <= 1.25f ? 2 : v < 1.75f ? 3 : v <= 2.5f ? 4 : v < 3.5f ? 5 :
            v <= 5 ? 6 : 7;
        q[j >> 3] |= (code | (x[j] < 0 ? 8 : 0)) << (4 * (j & 7));
      }
    }
    *reinterpret_cast<uint2*>(p.codes_out + ((size_t)row * blocks + b) * 8) = make_uint2(q[0], q[1]);
    p.scales_out[(size_t)row * blocks + b] = sf;
  }
  finish(p.at);
}

// C[16,8] += A[16,64] B[64,8]: row g's scales in lanes t = 0, row g + 8's in t = 1,
// column g's in t = 0.
#if defined(__CUDA_ARCH_FEAT_SM120_ALL)
__device__ __forceinline__
#else
__device__ __noinline__
#endif
void mma4(float (&c)[4], const uint4& a, uint32_t sa, uint32_t b0, uint32_t b1, uint32_t sb) {
#if defined(__CUDA_ARCH_FEAT_SM120_ALL)
  asm volatile(
      "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, {%10}, {%11,%11}, {%12}, {%11,%11};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1), "r"(sa), "h"((uint16_t)0), "r"(sb));
#else
  int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  uint32_t rows[2], columns[2];
  for (int i = 0; i < 2; i++) rows[i] = __shfl_sync(~0u, sa, g * 4 + i),
      columns[i] = __shfl_sync(~0u, sb, (2 * t + i) * 4);
  for (int q = 0; q < 4; q++) {  // the lane of a quad whose columns these are
    uint32_t x[2][2], y[2][2];   // by row or column, and half of k
    x[0][0] = __shfl_sync(~0u, a.x, g * 4 + q), x[1][0] = __shfl_sync(~0u, a.y, g * 4 + q);
    x[0][1] = __shfl_sync(~0u, a.z, g * 4 + q), x[1][1] = __shfl_sync(~0u, a.w, g * 4 + q);
    for (int j = 0; j < 2; j++) y[j][0] = __shfl_sync(~0u, b0, (2 * t + j) * 4 + q),
        y[j][1] = __shfl_sync(~0u, b1, (2 * t + j) * 4 + q);
    for (int h = 0; h < 2; h++) {
      int shift = 8 * (2 * h + (q >> 1));  // of the block's scales
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
          float scale = e4m3x2(rows[i] >> shift & 0xff).x * e4m3x2(columns[j] >> shift & 0xff).x;
          c[2 * i + j] = fmaf(0.25f * dot8(x[i][h], y[j][h]), scale, c[2 * i + j]);
        }
    }
  }
#endif
}

// product adds units [lo, hi) of T tiles, for 8 NT rows of activations (-1: none).
template <int T, int NT>
__device__ __forceinline__ void product(float (&acc)[T][NT][4], const Fp4P& p, const char* w, const int (&tile)[T],
    const int (&row)[NT], int lo, int hi, int lane) {
  int g = lane >> 2, t = lane & 3;
#pragma unroll 2
  for (int i = lo; i < hi; i++) {
    uint4 a[T];
    uint32_t sa[T];
#pragma unroll
    for (int j = 0; j < T; j++) {
      const char* unit = w + ((size_t)tile[j] * p.kt + i) * kUnit;
      a[j] = __ldcs(reinterpret_cast<const uint4*>(unit) + lane);
      sa[j] = __ldcs(reinterpret_cast<const unsigned*>(unit + 512) + g + (t & 1) * 8);
    }
#pragma unroll
    for (int nt = 0; nt < NT; nt++) {
      uint32_t b0 = 0, b1 = 0, sb = 0;
      if (row[nt] >= 0) {
        const uint32_t* c = reinterpret_cast<const uint32_t*>(p.codes + ((size_t)row[nt] * p.kt + i) * kCodes) + t;
        b0 = c[0], b1 = c[4], sb = reinterpret_cast<const uint32_t*>(p.scales)[(size_t)row[nt] * p.kt + i];
      }
#pragma unroll
      for (int j = 0; j < T; j++) mma4(acc[j][nt], a[j], sa[j], b0, b1, sb);
    }
  }
}

// A block has 16 outputs (of gate and of up alike where T is 2); its warps share k,
// in slices that follow from k alone, and are added in order.
template <int T, int NT, typename F>
__device__ __forceinline__ void shared_k(const Fp4P& p, const char* w, const int (&tile)[T], const int (&row)[NT],
    F store) {
  __shared__ float sums[T][kWarps][16][NT * 8 + 1];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  int per = (p.kt + kWarps - 1) / kWarps, lo = min(p.kt, warp * per), hi = min(p.kt, lo + per);
  float acc[T][NT][4] = {};
  product<T, NT>(acc, p, w, tile, row, lo, hi, lane);
#pragma unroll
  for (int j = 0; j < T; j++)
#pragma unroll
    for (int nt = 0; nt < NT; nt++)
#pragma unroll
      for (int i = 0; i < 4; i++) sums[j][warp][g + (i >> 1) * 8][nt * 8 + t * 2 + (i & 1)] = acc[j][nt][i];
  __syncthreads();
  for (int i = threadIdx.x; i < 16 * NT * 8; i += blockDim.x) {
    int r = i & 15, column = i >> 4;
    float v[T] = {};
#pragma unroll
    for (int j = 0; j < T; j++)
#pragma unroll
      for (int o = 0; o < kWarps; o++) v[j] += sums[j][o][r][column];
    store(r, column, v);
  }
  __syncthreads();
}

// y[m, n] = x wᵀ. grid (tiles, m/(8 NT))
template <int NT>
__device__ __forceinline__ void fp4a4_gemm(const Fp4P& p) {
  begin();
  ready(p.at);
  int m0 = blockIdx.y * 8 * NT, tile[1] = {(int)blockIdx.x}, row[NT];
#pragma unroll
  for (int nt = 0; nt < NT; nt++) {
    row[nt] = m0 + nt * 8 + (int)((threadIdx.x & 31) >> 2);
    if (row[nt] >= p.m) row[nt] = -1;
  }
  shared_k<1, NT>(p, p.w, tile, row, [&](int r, int column, const float (&v)[1]) {
    int o = tile[0] * 16 + r, m = m0 + column;
    if (o < p.n && m < p.m) p.y[(size_t)m * p.ldy + o] = v[0] * (o < p.n / 2 ? p.globals[0].x : p.globals[0].y);
  });
  finish(p.at);
}

// y[row, n] = silu(gate x) * (up x). grid (n/16, groups or rows)
template <int NT>
__device__ __forceinline__ void fp4a4_up(const Fp4P& p) {
  begin();
  ready(p.at);
  Group group(p);
  int tile[2] = {(int)blockIdx.x, (int)blockIdx.x + p.n / 16};
  float2 global = p.globals[group.e];
  for (int base = 0; base < group.count; base += 8 * NT) {
    int row[NT];
#pragma unroll
    for (int nt = 0; nt < NT; nt++) row[nt] = group.row(p, base + nt * 8 + ((threadIdx.x & 31) >> 2));
    shared_k<2, NT>(p, p.w + group.e * p.wexpert, tile, row, [&](int r, int column, const float (&v)[2]) {
      int at = group.row(p, base + column);
      if (at >= 0) p.y[(size_t)at * p.n + tile[0] * 16 + r] = silu(v[0] * global.x) * (v[1] * global.y);
    });
  }
  touched(p);
  finish(p.at);
}

// y[row, n] = down x; combine_fp4a4 adds the rows of a token. A warp has 16 outputs and
// all of k. grid (n/128, groups or rows)
template <int NT>
__device__ __forceinline__ void fp4a4_down(const Fp4P& p) {
  begin();
  ready(p.at);
  Group group(p);
  int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3,
      tile[1] = {(int)blockIdx.x * kWarps + (int)(threadIdx.x >> 5)};
  float2 global = p.globals[group.e];
  if (tile[0] * 16 < p.n)
    for (int base = 0; base < group.count; base += 8 * NT) {
      int row[NT];
#pragma unroll
      for (int nt = 0; nt < NT; nt++) row[nt] = group.row(p, base + nt * 8 + g);
      float acc[1][NT][4] = {};
      product<1, NT>(acc, p, p.w + group.e * p.wexpert, tile, row, 0, p.kt, lane);
#pragma unroll
      for (int nt = 0; nt < NT; nt++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
          int at = group.row(p, base + nt * 8 + t * 2 + (i & 1)), o = tile[0] * 16 + g + (i >> 1) * 8;
          if (at >= 0 && o < p.n) p.y[(size_t)at * p.n + o] = acc[0][nt][i] * (o < p.n / 2 ? global.x : global.y);
        }
    }
  touched(p);
  finish(p.at);
}

// y[m, n] += Σ weight row, in the order of a token's experts. grid (n/256, m)
extern "C" __global__ void __launch_bounds__(256) combine_fp4a4(const __grid_constant__ Combine4P p) {
  begin();
  ready(p.at);
  int r = blockIdx.x * blockDim.x + threadIdx.x, m = blockIdx.y;
  if (r < p.n) {
    float* y = p.y + (size_t)m * p.ldy + r;
    float v = *y;
    for (int j = 0; j < p.topk; j++) v = fmaf(p.weights[(size_t)m * p.ldw + j], p.rows[(size_t)(m * p.topk + j) * p.n +
        r], v);
    *y = v;
  }
  finish(p.at);
}

#define ENTRY(name, call) extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ Fp4P p) { \
  call(p); \
}
ENTRY(gemm_fp4a4_8, fp4a4_gemm<1>)
ENTRY(gemm_fp4a4_32, fp4a4_gemm<4>)
ENTRY(moe_up_fp4a4_8, fp4a4_up<1>)
ENTRY(moe_up_fp4a4_32, fp4a4_up<4>)
ENTRY(moe_down_fp4a4_8, fp4a4_down<1>)
ENTRY(moe_down_fp4a4_32, fp4a4_down<4>)
