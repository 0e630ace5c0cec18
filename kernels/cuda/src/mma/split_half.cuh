// FP8 caches' values as float16, which holds them exactly, and what is multiplied
// with them: a float32 value as the sum of two float16, scaled by a power of two.
#pragma once
#include "device/device.cuh"

__device__ __forceinline__ void mma_f16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ Split split_f16(float a, float b) {
  __half2 h = __floats2half2_rn(a, b);
  float2 f = __half22float2(h);
  __half2 l = __floats2half2_rn(a - f.x, b - f.y);
  return {*reinterpret_cast<uint32_t*>(&h), *reinterpret_cast<uint32_t*>(&l)};
}
__device__ __forceinline__ uint32_t half_of(uint32_t two) {
  uint32_t r;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"((uint16_t)two));
  return r;
}

// half_high is half_of of the upper two bytes of four.
__device__ __forceinline__ uint32_t half_high(uint32_t four) {
  uint32_t r;
  asm("{\n\t.reg .b16 l, h;\n\tmov.b32 {l, h}, %1;\n\tcvt.rn.f16x2.e4m3x2 %0, h;\n\t}" : "=r"(r) : "r"(four));
  return r;
}

// power is 2^e of a float's biased exponent e, within what is safe to invert.
__device__ __forceinline__ int exponent(float v) { return max(24, min(250, (int)(__float_as_uint(v) >> 23))); }
__device__ __forceinline__ float power(int biased) { return __uint_as_float((uint32_t)biased << 23); }

// warm makes the way to an address short: before the values are there.
__device__ __forceinline__ void warm(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
