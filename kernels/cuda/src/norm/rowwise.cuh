// What is done to whole rows by 256 threads: norms, cache entries, rotation and
// activation. block counts from the call's first block.
#pragma once
#include "mma/panels.cuh"
#include "norm/params.h"

constexpr int kPage = kPageTokens;

// Cosine and sine of pair j of the rotary values of a position.
__device__ __forceinline__ float2 angle(const RowwiseP& p, int pos, int j) {
  return reinterpret_cast<const float2*>(p.rope)[(size_t)pos * (p.nrope / 2) + j];
}

// Four values, of a row of n, from i on; those past its end are 0 and not stored.
__device__ __forceinline__ bool whole(const float* x, int i, int n) {
  return i + 4 <= n && reinterpret_cast<uintptr_t>(x) % 16 == 0;
}
__device__ __forceinline__ float4 load_row(const float* x, int i, int n) {
  if (whole(x, i, n)) return __ldcg(reinterpret_cast<const float4*>(x + i));
  float4 v = {0, 0, 0, 0};
  if (i < n) v.x = __ldcg(x + i);
  if (i + 1 < n) v.y = __ldcg(x + i + 1);
  if (i + 2 < n) v.z = __ldcg(x + i + 2);
  if (i + 3 < n) v.w = __ldcg(x + i + 3);
  return v;
}
__device__ __forceinline__ void store_row(float* y, int i, int n, float4 v) {
  if (whole(y, i, n)) {
    *reinterpret_cast<float4*>(y + i) = v;
    return;
  }
  if (i < n) y[i] = v.x;
  if (i + 1 < n) y[i + 1] = v.y;
  if (i + 2 < n) y[i + 2] = v.z;
  if (i + 3 < n) y[i + 3] = v.w;
}
__device__ __forceinline__ float2 load_pair(const float* x, int j) {
  return {__ldcg(x + 2 * j), __ldcg(x + 2 * j + 1)};
}
__device__ __forceinline__ float4 mul(float4 a, float r, float4 w) {
  return {a.x * r * w.x, a.y * r * w.y, a.z * r * w.z, a.w * r * w.w};
}
__device__ __forceinline__ float squares(float4 v, float s) {
  return fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, fmaf(v.x, v.x, s))));
}
// The scale of E4M3 codes whose largest value is v.
__device__ __forceinline__ float e4m3_scale(float v) { return fmaxf(v / 448.0f, 1.17549435e-38f); }

// y = x / rms(x) * w. A block a row; rows of more than 2048 values are read twice.
__device__ __forceinline__ void norm(const RowwiseP& p, int m) {
  constexpr int kFour = 2, kPass = kFour * 1024;  // values of a thread, by fours; of a pass
  __shared__ float s[32];
  const float* x = p.x + (size_t)m * p.ldx;
  int i0 = threadIdx.x * 4;
  float4 v[kFour], w[kFour];
#pragma unroll
  for (int j = 0; j < kFour; j++) w[j] = load_row(p.w, j * 1024 + i0, p.k);
  ready(p.at, m == 0);
  float ss = 0;
  for (int pass = 0; pass < p.k; pass += kPass) {
#pragma unroll
    for (int j = 0; j < kFour; j++) v[j] = load_row(x, pass + j * 1024 + i0, p.k);
#pragma unroll
    for (int j = 0; j < kFour; j++) ss = squares(v[j], ss);
  }
  float r = rsqrtf(block_sum(ss, s) / p.k + p.eps);
  for (int pass = 0; pass < p.k; pass += kPass)
#pragma unroll
    for (int j = 0; j < kFour; j++) {
      int i = pass + j * 1024 + i0;
      if (p.k > kPass) v[j] = load_row(x, i, p.k), w[j] = load_row(p.w, i, p.k);
      v[j] = mul(v[j], r, w[j]);
      store_row(p.y + (size_t)m * p.ldy, i, p.k, v[j]);
      if (p.cache) store_panels(static_cast<char*>(p.cache), m, i, p.k, v[j]);
    }
  finish_beside(p.at);
}

// A token's latent: norm of the first k values, at most 512, rotation of the last
// nrope, into the cache's entry. A block a token, a thread a pair of values. Loads
// come first, in the order of what waits for them.
__device__ __forceinline__ void latent(const RowwiseP& p, int m) {
  __shared__ float s[32];
  int j = threadIdx.x, warp = j >> 5, blocks = (p.k + 127) / 128;
  bool mine = 2 * j < p.k, turned = 2 * j < p.nrope;
  float2 w = mine ? load_pair(p.w, j) : float2{0, 0};
  ready(p.at, m == 0);
  const float* x = p.x + (size_t)m * p.ldx;
  int pos = p.pos[m], slot = p.idx[m];
  float2 v = mine ? load_pair(x, j) : float2{0, 0}, r = turned ? load_pair(x + p.k, j) : float2{0, 0},
      cs = turned ? angle(p, pos, j) : float2{1, 0};
  size_t entry = p.format == 0 ? (p.k + p.nrope) * 4 : p.format == 1 ? (p.k + p.nrope) * 2 :
      p.k + 4 * blocks + 2 * p.nrope;
  char* e = static_cast<char*>(p.cache) + slot * entry;
  float rms = rsqrtf(block_sum(fmaf(v.y, v.y, v.x * v.x), s) / p.k + p.eps);
  v = {v.x * rms * w.x, v.y * rms * w.y};
  r = turn(r, cs);
  if (p.format == 2) {  // a scale for 128 values, which two warps have
    float most = warp_max(fmaxf(fabsf(v.x), fabsf(v.y)));
    __syncthreads();
    if ((j & 31) == 0) s[warp] = most;
    __syncthreads();
    float scale = e4m3_scale(fmaxf(s[warp & ~1], s[warp | 1]));
    if (mine) reinterpret_cast<uint16_t*>(e)[j] = __nv_cvt_float2_to_fp8x2({v.x / scale, v.y / scale}, __NV_SATFINITE,
        __NV_E4M3);
    if (mine && (j & 63) == 0) reinterpret_cast<float*>(e + p.k)[j >> 6] = scale;
    if (turned) reinterpret_cast<uint32_t*>(e + p.k + 4 * blocks)[j] = bf16x2(r.x, r.y);
  } else if (p.format == 1) {
    if (mine) reinterpret_cast<uint32_t*>(e)[j] = bf16x2(v.x, v.y);
    if (turned) reinterpret_cast<uint32_t*>(e + p.k * 2)[j] = bf16x2(r.x, r.y);
  } else {
    if (mine) reinterpret_cast<float2*>(e)[j] = v;
    if (turned) reinterpret_cast<float2*>(e + p.k * 4)[j] = r;
  }
  finish(p.at);
}

// A token's indexer key, at most 512 values: layer norm, rotation of the first nrope,
// into its cache. A block a token, a thread a pair.
__device__ __forceinline__ void key(const RowwiseP& p, int m) {
  __shared__ float s[32];
  int j = threadIdx.x;
  bool mine = 2 * j < p.k, turned = 2 * j < p.nrope;
  float2 w = mine ? load_pair(p.w, j) : float2{0, 0}, b = mine ? load_pair(p.b, j) : float2{0, 0};
  ready(p.at, m == 0);
  int pos = p.pos[m], slot = p.idx[m];
  float2 v = mine ? load_pair(p.x + (size_t)m * p.ldx, j) : float2{0, 0}, cs = turned ? angle(p, pos, j) : float2{1, 0};
  float mean = block_sum(v.x + v.y, s) / p.k;
  v = {v.x - mean, v.y - mean};
  float r = rsqrtf(block_sum(mine ? fmaf(v.y, v.y, v.x * v.x) : 0, s) / p.k + p.eps);
  v = turn({fmaf(v.x * r, w.x, b.x), fmaf(v.y * r, w.y, b.y)}, cs);
  if (p.format == 2) {
    char* page = static_cast<char*>(p.cache) + (size_t)(slot / kPage) * kPage * (p.k + 4);
    float scale = e4m3_scale(block_max(mine ? fmaxf(fabsf(v.x), fabsf(v.y)) : 0, s));
    if (mine) reinterpret_cast<uint16_t*>(page + slot % kPage * p.k)[j] =
        __nv_cvt_float2_to_fp8x2({v.x / scale, v.y / scale}, __NV_SATFINITE, __NV_E4M3);
    if (j == 0) reinterpret_cast<float*>(page + kPage * p.k)[slot % kPage] = scale;
  } else if (p.format == 1) {
    if (mine) reinterpret_cast<uint32_t*>(static_cast<__nv_bfloat16*>(p.cache) + (size_t)slot * p.k)[j] =
        bf16x2(v.x, v.y);
  } else {
    if (mine) reinterpret_cast<float2*>(static_cast<float*>(p.cache) + (size_t)slot * p.k)[j] = v;
  }
  finish(p.at);
}

// q_absorb's other part: the rotary values behind a head's k columns of x, rotated,
// behind its n columns of y. A block a token.
__device__ __forceinline__ void rotary(const RowwiseP& p, int m) {
  ready(p.at, m == 0);
  int half = p.nrope / 2;
  for (int i = threadIdx.x; i < p.heads * half; i += blockDim.x) {
    int head = i / half, j = i % half;
    const float* x = p.x + (size_t)m * p.ldx + head * (p.k + p.nrope) + p.k + 2 * j;
    float2 v = turn({__ldcg(x), __ldcg(x + 1)}, angle(p, p.pos[m], j));
    float* y = p.y + (size_t)m * p.ldy + head * (p.n + p.nrope) + p.n + 2 * j;
    y[0] = v.x, y[1] = v.y;
  }
  finish(p.at);
}

// y = silu(gate) up; a row of x is [gate n | up n]. A block 256 of a row's outputs.
__device__ __forceinline__ void gate(const RowwiseP& p, int block) {
  ready(p.at, block == 0);
  int per = (p.n + 255) / 256, m = block / per, i = block % per * 256 + threadIdx.x;
  const float* x = p.x + (size_t)m * p.ldx;
  if (i < p.n) p.y[(size_t)m * p.ldy + i] = silu(__ldcg(x + i)) * __ldcg(x + p.n + i);
  finish_beside(p.at);
}
