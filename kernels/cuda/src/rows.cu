// Kernels that work on whole rows: norms, caches, rotation, activation.
#include "device.cuh"

struct RowsP {
  const float* x;
  float* y;
  const float* w;      // norm weight
  const float* b;      // bias (index_write)
  const float* rope;   // [positions, nrope/2] pairs
  const int* pos;
  const int* idx;      // slots (cache writes), rows (gather), tokens (embed)
  float* res;          // residual, updated in place
  void* cache;
  u64* at;
  int m, n, k, ldx, ldy, ldr;  // ldr: of res
  int nrope, heads, format;  // format: 0 float32, 1 BF16, 2 FP8
  float eps;
};

constexpr int kPage = 64;

__device__ __forceinline__ float2 turn(const RowsP& p, int m, int j, float a, float b) {
  float2 cs = reinterpret_cast<const float2*>(p.rope)[(size_t)p.pos[m] * (p.nrope / 2) + j];
  return {a * cs.x - b * cs.y, b * cs.x + a * cs.y};
}

// y = x / rms(x) * w. A block a row.
extern "C" __global__ void __launch_bounds__(512) rms_norm(const __grid_constant__ RowsP p) {
  __shared__ float s[32];
  begin();
  ready(p.at);
  const float* x = p.x + (size_t)blockIdx.x * p.ldx;
  float ss = 0;
  for (int i = threadIdx.x; i < p.k; i += blockDim.x) ss = fmaf(x[i], x[i], ss);
  float r = rsqrtf(block_sum(ss, s) / p.k + p.eps);
  for (int i = threadIdx.x; i < p.k; i += blockDim.x) p.y[(size_t)blockIdx.x * p.ldy + i] = x[i] * r * p.w[i];
  finish_beside(p.at);
}

// res += part; y = norm of res.
extern "C" __global__ void __launch_bounds__(1024) add_norm(const __grid_constant__ RowsP p) {
  __shared__ float s[32];
  begin();
  float w[8];
#pragma unroll
  for (int j = 0; j < 8; j++) w[j] = threadIdx.x + j * blockDim.x < p.n ? p.w[threadIdx.x + j * blockDim.x] : 0;
  ready(p.at);
  float* res = p.res + (size_t)blockIdx.x * p.ldr;
  float ss = 0, keep[8], part[8];
#pragma unroll
  for (int j = 0; j < 8; j++) {  // all loads before the first store, which they do not have to wait for
    int i = threadIdx.x + j * blockDim.x;
    keep[j] = i < p.n ? res[i] : 0;
    part[j] = i < p.n ? p.x[(size_t)blockIdx.x * p.ldx + i] : 0;
  }
#pragma unroll
  for (int j = 0; j < 8; j++) {
    int i = threadIdx.x + j * blockDim.x;
    if (i < p.n) {
      keep[j] += part[j];
      res[i] = keep[j];
      ss = fmaf(keep[j], keep[j], ss);
    }
  }
  float r = rsqrtf(block_sum(ss, s) / p.n + p.eps);
#pragma unroll
  for (int j = 0; j < 8; j++) {
    int i = threadIdx.x + j * blockDim.x;
    if (i < p.n) p.y[(size_t)blockIdx.x * p.ldy + i] = keep[j] * r * w[j];
  }
  finish_beside(p.at);
}

__device__ __forceinline__ uint8_t to_e4m3(float v) { return __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E4M3); }

// A token's latent: norm of the first k values, rotation of the last nrope, into
// the cache's entry. A block a token.
extern "C" __global__ void __launch_bounds__(128) latent_write(const __grid_constant__ RowsP p) {
  __shared__ float s[32];
  extern __shared__ float c[];  // [k]
  begin();
  ready(p.at);
  int m = blockIdx.x, slot = p.idx[m], width = p.k + p.nrope;
  const float* x = p.x + (size_t)m * p.ldx;
  float ss = 0;
  for (int i = threadIdx.x; i < p.k; i += blockDim.x) ss = fmaf(x[i], x[i], ss);
  float r = rsqrtf(block_sum(ss, s) / p.k + p.eps);
  for (int i = threadIdx.x; i < p.k; i += blockDim.x) c[i] = x[i] * r * p.w[i];
  __syncthreads();
  if (p.format == 0) {
    float* e = static_cast<float*>(p.cache) + (size_t)slot * width;
    for (int i = threadIdx.x; i < p.k; i += blockDim.x) e[i] = c[i];
    for (int j = threadIdx.x; j < p.nrope / 2; j += blockDim.x) reinterpret_cast<float2*>(e + p.k)[j] = turn(p, m, j, x[p.k + 2 * j], x[p.k + 2 * j + 1]);
  } else if (p.format == 1) {
    __nv_bfloat16* e = static_cast<__nv_bfloat16*>(p.cache) + (size_t)slot * width;
    for (int i = threadIdx.x; i < p.k; i += blockDim.x) e[i] = __float2bfloat16_rn(c[i]);
    for (int j = threadIdx.x; j < p.nrope / 2; j += blockDim.x) {
      float2 v = turn(p, m, j, x[p.k + 2 * j], x[p.k + 2 * j + 1]);
      reinterpret_cast<uint32_t*>(e + p.k)[j] = bf16x2(v.x, v.y);
    }
  } else {
    int blocks = (p.k + 127) / 128, entry = p.k + 4 * blocks + 2 * p.nrope;
    uint8_t* e = static_cast<uint8_t*>(p.cache) + (size_t)slot * entry;
    for (int b = 0; b < blocks; b++) {
      int i = b * 128 + threadIdx.x;
      float v = i < p.k ? c[i] : 0, a = block_max(fabsf(v), s), sc = fmaxf(a / 448.0f, 1.17549435e-38f);
      if (i < p.k) e[i] = to_e4m3(v / sc);
      if (threadIdx.x == 0) reinterpret_cast<float*>(e + p.k)[b] = sc;
    }
    for (int j = threadIdx.x; j < p.nrope / 2; j += blockDim.x) {
      float2 v = turn(p, m, j, x[p.k + 2 * j], x[p.k + 2 * j + 1]);
      reinterpret_cast<uint32_t*>(e + p.k + 4 * blocks)[j] = bf16x2(v.x, v.y);
    }
  }
  finish(p.at);
}

// A token's indexer key: layer norm, rotation of the first nrope values, into
// its cache. A block a token.
extern "C" __global__ void __launch_bounds__(128) index_write(const __grid_constant__ RowsP p) {
  __shared__ float s[32];
  extern __shared__ float c[];  // [k]
  begin();
  ready(p.at);
  int m = blockIdx.x, slot = p.idx[m];
  const float* x = p.x + (size_t)m * p.ldx;
  float sum = 0, ss = 0;
  for (int i = threadIdx.x; i < p.k; i += blockDim.x) sum += x[i];
  float mean = block_sum(sum, s) / p.k;
  for (int i = threadIdx.x; i < p.k; i += blockDim.x) ss = fmaf(x[i] - mean, x[i] - mean, ss);
  float r = rsqrtf(block_sum(ss, s) / p.k + p.eps);
  for (int i = threadIdx.x; i < p.k; i += blockDim.x) c[i] = (x[i] - mean) * r * p.w[i] + p.b[i];
  __syncthreads();
  for (int j = threadIdx.x; j < p.nrope / 2; j += blockDim.x) {
    float2 v = turn(p, m, j, c[2 * j], c[2 * j + 1]);
    c[2 * j] = v.x, c[2 * j + 1] = v.y;
  }
  __syncthreads();
  if (p.format == 0) {
    for (int i = threadIdx.x; i < p.k; i += blockDim.x) static_cast<float*>(p.cache)[(size_t)slot * p.k + i] = c[i];
  } else if (p.format == 1) {
    for (int i = threadIdx.x; i < p.k; i += blockDim.x) static_cast<__nv_bfloat16*>(p.cache)[(size_t)slot * p.k + i] = __float2bfloat16_rn(c[i]);
  } else {
    uint8_t* page = static_cast<uint8_t*>(p.cache) + (size_t)(slot / kPage) * kPage * (p.k + 4);
    float a = 0;
    for (int i = threadIdx.x; i < p.k; i += blockDim.x) a = fmaxf(a, fabsf(c[i]));
    float sc = fmaxf(block_max(a, s) / 448.0f, 1.17549435e-38f);
    for (int i = threadIdx.x; i < p.k; i += blockDim.x) page[(slot % kPage) * p.k + i] = to_e4m3(c[i] / sc);
    if (threadIdx.x == 0) reinterpret_cast<float*>(page + kPage * p.k)[slot % kPage] = sc;
  }
  finish_beside(p.at);
}

// y = silu(gate) up; a row of x is [gate n | up n].
extern "C" __global__ void __launch_bounds__(256) silu_mul(const __grid_constant__ RowsP p) {
  begin();
  ready(p.at);
  const float* x = p.x + (size_t)blockIdx.y * p.ldx;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < p.n; i += gridDim.x * blockDim.x) p.y[(size_t)blockIdx.y * p.ldy + i] = silu(x[i]) * x[p.n + i];
  finish_beside(p.at);
}

extern "C" __global__ void __launch_bounds__(256) gather_rows(const __grid_constant__ RowsP p) {
  begin();
  ready(p.at);
  const float* x = p.x + (size_t)p.idx[blockIdx.x] * p.ldx;
  for (int i = threadIdx.x; i < p.n; i += blockDim.x) p.y[(size_t)blockIdx.x * p.ldy + i] = x[i];
  finish_beside(p.at);
}

// Rows of a row-major table, float32 or BF16.
extern "C" __global__ void __launch_bounds__(256) embed(const __grid_constant__ RowsP p) {
  begin();
  ready(p.at);
  size_t row = (size_t)p.idx[blockIdx.x] * p.n;
  float* y = p.y + (size_t)blockIdx.x * p.ldy;
  for (int i = threadIdx.x; i < p.n; i += blockDim.x)
    y[i] = p.format == 0 ? static_cast<const float*>(p.cache)[row + i] : __bfloat162float(static_cast<const __nv_bfloat16*>(p.cache)[row + i]);
  finish(p.at);
}

// Quantises activations as 4- and 8-bit kernels see them: a thread 16 values, rows
// are (token, choice) pairs. 4-bit values are E2M1 times their E4M3 scale, exact in
// BF16, and the sums want the expert's input scale; 8-bit ones are whole.
struct QuantP {
  const float* x;
  float* y;
  const int* experts;
  const float* input;  // of each expert; null: 8-bit, scale of each 16 values
  u64* at;
  int pairs, k, topk, ldx, by_pair;
};
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
      float sf = e4m3x2(to_e4m3(fminf(a / 6.0f / in, 448.0f))).x, den = sf * in;
      for (int j = 0; j < 16; j++) {
        float v = den == 0 ? 0 : fabsf(x[j] / den), q;
        q = v <= 0.25f ? 0 : v < 0.75f ? 0.5f : v <= 1.25f ? 1 : v < 1.75f ? 1.5f : v <= 2.5f ? 2 : v < 3.5f ? 3 : v <= 5 ? 4 : 6;
        y[j] = copysignf(q, x[j]) * sf;
      }
    } else {
      float sc = a / 127.0f;
      for (int j = 0; j < 16; j++) y[j] = sc == 0 ? 0 : rintf(x[j] / sc) * sc;
    }
  }
  finish(p.at);
}
