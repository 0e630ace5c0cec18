// Products that round their inputs to BF16: of the two terms of x the lower ones do not
// count. The sums are those of the upper terms alone, as kernels of many rows have them,
// which add no lower terms; so a row's bits are the same.
#pragma once
#include "mma/nvfp4.cuh"

// low_of are the bits of lower terms that count: all, or none.
__device__ __forceinline__ uint32_t low_of(uint32_t rounded) { return rounded - 1; }

__device__ __forceinline__ Split split(float a, float b, uint32_t low) {
  Split s = split(a, b);
  s.lo &= low;
  return s;
}
__device__ __forceinline__ Frag load_x(const float* x, int k, int kmax, uint32_t low) {
  Frag f = load_x(x, k, kmax);
  f.b0.lo &= low, f.b1.lo &= low;
  return f;
}
__device__ __forceinline__ Fp4X counted(Fp4X x, uint32_t low) {
#pragma unroll
  for (int i = 0; i < 2; i++) x.f[i].b0.lo &= low, x.f[i].b1.lo &= low;
  return x;
}
__device__ __forceinline__ Fp4X split_fp4(float4 u, float4 v, uint32_t low) { return counted(split_fp4(u, v), low); }
__device__ __forceinline__ Fp4X load_fp4x(const float* x, int k, int kmax, uint32_t low) {
  return counted(load_fp4x(x, k, kmax), low);
}
