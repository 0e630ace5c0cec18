// What the sparse-attention indexer's kernels share: keys as they are cached and as
// fragments, queries that are rotated and split.
#pragma once
#include "mma/split_half.cuh"
#include "mma/sm90_wgmma.cuh"
#include "indexer/params.h"

constexpr int kPage = kPageTokens, kBlocks = 4;  // a key has at most four blocks of 32 values

// A lane's keys of 16 positions as they are in the cache, eight values at a time:
// of positions lane/4 and that + 8. F: 0 float32, 1 BF16, 2 FP8, its scales apart.
template <int F>
struct Loaded {
  uint4 v[kBlocks][2][F == 0 ? 2 : 1];
  float scale[2];

  // load reads the keys of the positions from p0 on. Pages past the sequence's are
  // any of the cache's: their scores are not kept.
  __device__ __forceinline__ void load(const IndexP& p, const int* pages, int p0, int lane) {
    int page[2];
    find(page, p, pages, p0, lane), load(p, page, p0, lane);
  }
  static __device__ __forceinline__ void find(int (&page)[2], const IndexP& p, const int* pages, int p0, int lane) {
#pragma unroll
    for (int r = 0; r < 2; r++) page[r] = pages[min((p0 + (lane >> 2) + 8 * r) / kPage, p.pages_ld - 1)];
  }
  __device__ __forceinline__ void load(const IndexP& p, const int (&page)[2], int p0, int lane) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      int in = (p0 + (lane >> 2) + 8 * r) % kPage;
      const int width = F == 0 ? 4 : F == 1 ? 2 : 1;  // bytes of a value
      const char* c = static_cast<const char*>(p.cache) + (size_t)page[r] * kPage * (p.k * width + (F == 2 ? 4 : 0));
      scale[r] = 1;
      if (F == 2) scale[r] = reinterpret_cast<const float*>(c + kPage * p.k)[in];
      c += in * p.k * width;
#pragma unroll
      for (int b = 0; b < kBlocks; b++) {
        if (b * 32 >= p.k) break;
        int at = b * 32 + (lane & 3) * 8;
        if (F == 2) {
          uint2 x = *reinterpret_cast<const uint2*>(c + at);
          v[b][r][0].x = x.x, v[b][r][0].y = x.y;
        } else if (F == 1) {
          v[b][r][0] = *reinterpret_cast<const uint4*>(c + at * 2);
        } else {
          v[b][r][0] = *reinterpret_cast<const uint4*>(c + at * 4),
              v[b][r][F == 0] = *reinterpret_cast<const uint4*>(c + at * 4 + 16);
        }
      }
    }
  }
};

// The same as A fragments: FP8 as float16, float32 as BF16 and what that leaves.
template <int F>
struct Keys {
  uint32_t high[kBlocks][2][4], low[F == 0 ? kBlocks : 1][2][4];
  float scale[2];

  __device__ __forceinline__ void from(const Loaded<F>& l) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      scale[r] = l.scale[r];
#pragma unroll
      for (int b = 0; b < kBlocks; b++) {
        uint4 x = l.v[b][r][0];
        uint32_t* h = high[b][r];
        if (F == 2) {
          h[0] = half_of(x.x), h[1] = half_of(x.x >> 16), h[2] = half_of(x.y), h[3] = half_of(x.y >> 16);
        } else if (F == 1) {
          h[0] = x.x, h[1] = x.y, h[2] = x.z, h[3] = x.w;
        } else {
          uint4 y = l.v[b][r][F == 0];
          Split s[4] = {split(__uint_as_float(x.x), __uint_as_float(x.y)),
              split(__uint_as_float(x.z), __uint_as_float(x.w)),
                        split(__uint_as_float(y.x), __uint_as_float(y.y)),
                            split(__uint_as_float(y.z), __uint_as_float(y.w))};
#pragma unroll
          for (int i = 0; i < 4; i++) h[i] = s[i].hi, low[F == 0 ? b : 0][r][i] = s[i].lo;
        }
      }
    }
  }
  // part is one of the fragments of a block: of its first or its last two values in four.
  __device__ __forceinline__ void part(uint32_t (&a)[4], int b, int i) const {
    const auto& h = high[b];
    a[0] = h[0][2 * i], a[1] = h[1][2 * i], a[2] = h[0][2 * i + 1], a[3] = h[1][2 * i + 1];
  }
  __device__ __forceinline__ void rest(uint32_t (&a)[4], int b, int i) const {
    const auto& l = low[F == 0 ? b : 0];
    a[0] = l[0][2 * i], a[1] = l[1][2 * i], a[2] = l[0][2 * i + 1], a[3] = l[1][2 * i + 1];
  }
};

template <int F>
__device__ __forceinline__ void times(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if (F == 2) mma_f16(c, a, b0, b1);
  else mma(c, a, b0, b1);
}

// turn rotates two pairs by (cos, sin) pairs.
__device__ __forceinline__ float4 turn(float4 v, float4 cs) {
  return {v.x * cs.x - v.y * cs.y, v.y * cs.x + v.x * cs.y, v.z * cs.z - v.w * cs.w, v.w * cs.z + v.z * cs.w};
}

__device__ __forceinline__ float most_of(float m, float4 v) {
  return fmaxf(fmaxf(m, fmaxf(fabsf(v.x), fabsf(v.y))), fmaxf(fabsf(v.z), fabsf(v.w)));
}

// split_query is two values of a query as the keys' format wants them, times up if that is
// FP8; rounded: to BF16 first, without lower parts.
template <int F>
__device__ __forceinline__ Split split_query(float a, float b, float up, uint32_t rounded) {
  if (rounded) {
    uint32_t v = bf16x2(a, b);
    a = lowf(v), b = highf(v);
  }
  Split s = F == 2 ? split_f16(a * up, b * up) : split(a, b);
  s.lo &= low_of(rounded);
  return s;
}

// A warp's eight queries of a row: read, rotated, and written as B fragments of
// high parts, then low ones. For FP8 keys they are float16, scaled by a power of
// two that the head's weight takes back.
template <int F, bool kLate>
struct Queries {
  float4 v[kBlocks][2], cs[kBlocks][2];  // cs: read when stored if kLate
  const float* angles;
  float w;

  __device__ __forceinline__ float4 cosines(int at, int nrope) const { return at < nrope ?
      *reinterpret_cast<const float4*>(angles + at) : make_float4(1, 0, 1, 0); }
  __device__ __forceinline__ void load(const IndexP& p, int m, int tile, int lane) {
    int h = tile * 8 + (lane >> 2), t = lane & 3;
    const float* q = p.q + (size_t)m * p.ldq + (size_t)h * p.k;
    angles = p.rope + (size_t)p.pos[m] * p.nrope;
    w = h < p.heads ? p.hw[(size_t)m * p.ldhw + h] * p.scale : 0;
#pragma unroll
    for (int b = 0; b < kBlocks; b++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        int at = b * 32 + t * 8 + i * 4;
        v[b][i] = h < p.heads && at < p.k ? *reinterpret_cast<const float4*>(q + at) : make_float4(0, 0, 0, 0);
        if (!kLate) cs[b][i] = cosines(at, p.nrope);
      }
  }
  __device__ __forceinline__ void turned(const IndexP& p, int lane) {
#pragma unroll
    for (int b = 0; b < kBlocks; b++)
#pragma unroll
      for (int i = 0; i < 2; i++) v[b][i] = turn(v[b][i], kLate ? cosines(b * 32 + (lane & 3) * 8 + i * 4, p.nrope) :
          cs[b][i]);
  }
  // power is what the values are multiplied by, and what undoes it.
  __device__ __forceinline__ void power(float& up, float& down) const {
    up = down = 1;
    if (F != 2) return;
    float most = 0;
#pragma unroll
    for (int b = 0; b < kBlocks; b++) most = most_of(most_of(most, v[b][0]), v[b][1]);
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
    int e = max(24, min(250, (int)(__float_as_uint(most) >> 23)));
    up = __uint_as_float((uint32_t)(264 - e) << 23), down = __uint_as_float((uint32_t)(e - 10) << 23);  // at most 2^11
  }
  __device__ __forceinline__ void store(const IndexP& p, uint4* qs, float* hw, int tile, int kb, int lane) {
    float up, down;
    turned(p, lane), power(up, down);
#pragma unroll
    for (int b = 0; b < kBlocks; b++) {
      if (b >= kb) break;
      float4 x = v[b][0], y = v[b][1];
      const uint32_t r = p.rounded;
      Split s[4] = {split_query<F>(x.x, x.y, up, r), split_query<F>(x.z, x.w, up, r), split_query<F>(y.x, y.y, up, r),
          split_query<F>(y.z, y.w, up, r)};
      uint4* o = qs + ((tile * kb + b) * 32 + lane) * 2;
      o[0] = make_uint4(s[0].hi, s[1].hi, s[2].hi, s[3].hi);
      o[1] = make_uint4(s[0].lo, s[1].lo, s[2].lo, s[3].lo);
    }
    if ((lane & 3) == 0) hw[tile * 8 + (lane >> 2)] = w * down;
  }
};

