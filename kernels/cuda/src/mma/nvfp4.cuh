// NVFP4 weights as the products read them.
//
// A unit is 16 rows by 64 columns, 576 bytes: for each lane 16 bytes of codes,
// then for each of 8 row pairs (g, g + 8) 4 bytes of scales of row g and 4 of row
// g + 8. A matrix is [tiles of 16 rows][kt units along k].
//
// A unit has four A fragments of m16n8k16. Fragments 2P and 2P + 1 cover columns
// 32P .. 32P + 31, each half of them, with a column of the first 16 in the lower
// half of a register and one of the second 16 in the upper half: so one register
// of scales serves both. Lane t of a group of four has, of fragment 2P + i,
// columns 32P + 4t + 2i + {0, 16} in a[0], a[1] and 32P + 4t + 2i + 1 + {0, 16} in
// a[2], a[3]. Fp4X loads activations for it. In a fragment's own numbering, k index
// 2t + h + 8r is column 32P + 16h + 4t + 2i + r.
//
// Codes: in both halves of word j (fragment j), a[0] has its sign at bit 15 and its
// magnitude at 8:6; a[1] at 12, 5:3; a[2] at 9, 2:0; a[3] has its sign at 11 and
// its magnitude's bits at 10, 14, 13. The three bits of a magnitude land on the
// lowest exponent bits and the first mantissa bit of a BF16 value, which makes it
// code * 2^-126.
//
// Scales: a byte has 5 bits of exponent and 3 of mantissa, so that the BF16 value
// with bits 0x7000 | byte << 4 is scale * 2^119. NaN is 0xff and stays NaN. Codes
// whose scale is 0 are 0, and a negative scale is its codes' sign. In the lower half
// of a row's word the byte of columns 0 .. 15 is at 11:4 and that of columns 32 .. 47,
// once the half's two bytes are swapped; in the upper half those of columns 16 .. 31
// and 48 .. 63.
//
// So code times scale comes out as their exact product, 6 bits wide, times 2^-7;
// weights' per-tensor scales hold the 2^7.
#pragma once
#include "device/device.cuh"
#include "mma/params.h"


struct Fp4 {
  uint4 q;
  uint2 s;
};

// fp4_codes, fp4_scales: the lane's place in a unit.
__device__ __forceinline__ const uint4* fp4_codes(const char* unit, int lane) {
  return reinterpret_cast<const uint4*>(unit) + lane;
}
__device__ __forceinline__ const uint2* fp4_scales(const char* unit, int lane) {
  return reinterpret_cast<const uint2*>(unit + 512) + (lane >> 2);
}

__device__ __forceinline__ Fp4 load_fp4(const char* unit, int lane) {
  return {__ldcs(fp4_codes(unit, lane)), __ldcs(fp4_scales(unit, lane))};
}

// times multiplies two pairs of BF16 values.
__device__ __forceinline__ uint32_t times(uint32_t a, uint32_t b) {
  uint32_t r;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

// fp4_scale is the scales of one row for fragments 2P and 2P + 1.
template <int P>
__device__ __forceinline__ uint32_t fp4_scale(uint32_t s) {
  uint32_t r;
  if (P) s = __byte_perm(s, 0, 0x2301);
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(r) : "r"(s), "r"(0x0FF00FF0u), "r"(0x70007000u));  // (s & mask) | bits
  return r;
}

// unpack_fp4: one fragment of codes q; s, t: scales of rows g and g + 8.
__device__ __forceinline__ void unpack_fp4(uint32_t (&a)[4], uint32_t q, uint32_t s, uint32_t t) {
  const uint32_t m = 0x81C081C0u;
  a[0] = times(q & m, s);
  a[1] = times((q << 3) & m, t);
  a[2] = times((q << 6) & m, s);
  a[3] = times((((q >> 7) & 0x00D800D8u) * (1 + (1 << 5) + (1 << 11))) & m, t);  // the copies' bits do not meet
}

// Fp4X: activations of a token for the fragments 2P and 2P + 1.
struct Fp4X {
  Frag f[2];
};
__device__ __forceinline__ Fp4X split_fp4(float4 u, float4 v) {
  return {{{split(u.x, v.x), split(u.y, v.y)}, {split(u.z, v.z), split(u.w, v.w)}}};
}
// load_fp4x: k is 32P of the unit's first column, plus 4t. x null: zeros.
__device__ __forceinline__ Fp4X load_fp4x(const float* x, int k, int kmax) {
  float4 u = {0, 0, 0, 0}, v = {0, 0, 0, 0};
  if (x && k < kmax) u = *reinterpret_cast<const float4*>(x + k);
  if (x && k + 16 < kmax) v = *reinterpret_cast<const float4*>(x + k + 16);
  return split_fp4(u, v);
}
