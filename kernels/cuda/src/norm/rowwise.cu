// Kernels that work on whole rows and have launches of their own.
#include "norm/rowwise.cuh"

// res += x; y = norm of res. A block a row of at most 9216 values.
extern "C" __global__ void __launch_bounds__(768) add_norm(const __grid_constant__ RowwiseP p) {
  constexpr int kFour = 3;  // values of a thread, by fours
  __shared__ float s[32];
  begin();
  float4 w[kFour], v[kFour];
#pragma unroll
  for (int j = 0; j < kFour; j++) w[j] = load_row(p.w, (j * 768 + threadIdx.x) * 4, p.n);
  ready(p.at);
  float* res = p.res + (size_t)blockIdx.x * p.ldr;
  const float* x = p.x + (size_t)blockIdx.x * p.ldx;
  float4 part[kFour];
#pragma unroll
  for (int j = 0; j < kFour; j++) {  // all loads before the first store, which they do not have to wait for
    int i = (j * 768 + threadIdx.x) * 4;
    v[j] = load_row(res, i, p.n), part[j] = load_row(x, i, p.n);
  }
  float ss = 0;
#pragma unroll
  for (int j = 0; j < kFour; j++) {
    v[j] = {v[j].x + part[j].x, v[j].y + part[j].y, v[j].z + part[j].z, v[j].w + part[j].w};
    store_row(res, (j * 768 + threadIdx.x) * 4, p.n, v[j]);
    ss = squares(v[j], ss);
  }
  float r = rsqrtf(block_sum(ss, s) / p.n + p.eps);
#pragma unroll
  for (int j = 0; j < kFour; j++) {
    int i = (j * 768 + threadIdx.x) * 4;
    v[j] = mul(v[j], r, w[j]);
    store_row(p.y + (size_t)blockIdx.x * p.ldy, i, p.n, v[j]);
    if (p.cache) store_panels(static_cast<char*>(p.cache), blockIdx.x, i, p.n, v[j]);
  }
  finish_beside(p.at);
}

extern "C" __global__ void __launch_bounds__(256) gather_rows(const __grid_constant__ RowwiseP p) {
  begin();
  ready(p.at);
  const float* x = p.x + (size_t)p.idx[blockIdx.x] * p.ldx;
  for (int i = threadIdx.x; i < p.n; i += blockDim.x) p.y[(size_t)blockIdx.x * p.ldy + i] = x[i];
  finish_beside(p.at);
}

// Rows of a row-major table, float32 or BF16. Those of BF16 are taken by eight values
// where they can be, a block so many that all loads are on their way at once.
extern "C" __global__ void __launch_bounds__(256) embed(const __grid_constant__ RowwiseP p) {
  begin();
  ready(p.at);
  size_t row = (size_t)p.idx[blockIdx.x] * p.n;
  float* y = p.y + (size_t)blockIdx.x * p.ldy;
  const int from = blockIdx.y * kEmbedded, to = min(p.n, from + kEmbedded);
  if (p.format && p.n % 8 == 0 && p.ldy % 4 == 0 && (uintptr_t)p.y % 16 == 0) {
    int i = from + 8 * threadIdx.x;
    if (i < to) {
      uint4 v = *reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(p.cache) + row + i);
      *reinterpret_cast<float4*>(y + i) = {lowf(v.x), highf(v.x), lowf(v.y), highf(v.y)};
      *reinterpret_cast<float4*>(y + i + 4) = {lowf(v.z), highf(v.z), lowf(v.w), highf(v.w)};
    }
    return finish_beside(p.at);
  }
  for (int i = from + threadIdx.x; i < to; i += blockDim.x)
    y[i] = p.format == 0 ? static_cast<const float*>(p.cache)[row + i] :
        __bfloat162float(static_cast<const __nv_bfloat16*>(p.cache)[row + i]);
  finish_beside(p.at);
}

extern "C" __global__ void __launch_bounds__(256) quant_pairs(const __grid_constant__ QuantP p) {
  begin();
  ready(p.at);
  int i = blockIdx.x * blockDim.x + threadIdx.x, blocks = p.k / 16;
  if (i < p.pairs * blocks) {
    int pair = i / blocks, b = i % blocks;
    const float* x = p.x + (size_t)(p.by_pair ? pair : pair / p.topk) * p.ldx + b * 16;
    float* y = p.y + (size_t)pair * p.k + b * 16;
    float a = 0;
    for (int j = 0; j < 16; j++) a = fmaxf(a, fabsf(x[j]));
    if (p.input) {
      float in = p.input[p.experts[pair]];
      float sf = e4m3x2(__nv_cvt_float_to_fp8(fminf(a / 6.0f / in, 448.0f), __NV_SATFINITE, __NV_E4M3)).x,
          den = sf * in;
      for (int j = 0; j < 16; j++) {
        float v = den == 0 ? 0 : fabsf(x[j] / den), q;
        q = v <= 0.25f ? 0 : v < 0.75f ? 0.5f : v <= 1.25f ? 1 : v < 1.75f ? 1.5f : v <= 2.5f ? 2 : v < 3.5f ? 3 :
            v <= 5 ? 4 : 6;
        y[j] = copysignf(q, x[j]) * sf;
      }
    } else {
      float sc = a / 127.0f;
      for (int j = 0; j < 16; j++) y[j] = sc == 0 ? 0 : rintf(x[j] / sc) * sc;
    }
  }
  finish_beside(p.at);
}
