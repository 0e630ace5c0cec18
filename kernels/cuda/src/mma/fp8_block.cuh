// FP8 weights with a float32 scale for each 128 values of a row: of a checkpoint's
// blocks of 128 rows, each row has its block's. A value is a code times its scale,
// rounded to BF16, so that products have the bits of those with BF16 weights.
//
// [tiles of 16 rows][blocks of 128 columns] of kBlockBytes: the rows' scales, then 8
// fragments as pack_bf16 has them, of each lane 8 codes.
#pragma once
#include "device/device.cuh"
#include "mma/params.h"

constexpr int kScaleBytes = 64;
static_assert(kBlockBytes == kScaleBytes + kBlockFrags * 256);

// Fp8Block is a lane's share of a fragment, and the scales of its two rows.
struct Fp8Block {
  static constexpr int kStep = 16;  // columns
  uint2 q;
  float low, high;

  __device__ __forceinline__ void load(const char* w, int tile, int kt, int i, int lane) {
    const char* block = w + ((size_t)tile * ((kt + kBlockFrags - 1) / kBlockFrags) + i / kBlockFrags) * kBlockBytes;
    q = __ldcs(reinterpret_cast<const uint2*>(block + kScaleBytes + i % kBlockFrags * 256) + lane);
    const float* scales = reinterpret_cast<const float*>(block) + (lane >> 2);
    low = __ldg(scales), high = __ldg(scales + 8);
  }

  static __device__ __forceinline__ uint32_t two(uint32_t codes, float scale) {
    float2 v = e4m3x2(static_cast<uint16_t>(codes));
    return bf16x2(__fmul_rn(v.x, scale), __fmul_rn(v.y, scale));
  }
  __device__ __forceinline__ void frag(uint32_t (&a)[4]) const {
    a[0] = two(q.x, low), a[1] = two(q.x >> 16, high), a[2] = two(q.y, low), a[3] = two(q.y >> 16, high);
  }
};
