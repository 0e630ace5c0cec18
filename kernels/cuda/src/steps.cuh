// How packed weights become fragments.
#pragma once
#include "device.cuh"

// A step is 512 bytes of weights, 16 of a lane: kFrags times 16 columns of 16 rows.
struct Bf16Step {
  static constexpr int kFrags = 1;
  static __device__ __forceinline__ void frags(uint32_t (&a)[1][4], uint4 q) { a[0][0] = q.x, a[0][1] = q.y, a[0][2] = q.z, a[0][3] = q.w; }
};
// E4M3 codes as BF16: the exponent is shifted into place, which scales the value by
// 2^-120, and one exact multiplication undoes that.
struct Fp8Step {
  static constexpr int kFrags = 2;
  static __device__ __forceinline__ uint32_t two(uint32_t v) {
    uint32_t r = (v & 0x80008000u) | ((v >> 4) & 0x07F007F0u);
    asm("mul.rn.bf16x2 %0, %0, %1;" : "+r"(r) : "r"(0x7B807B80u));
    return r;
  }
  static __device__ __forceinline__ void frags(uint32_t (&a)[2][4], uint4 q) {
    a[0][0] = two(q.x), a[0][1] = two(q.x << 8), a[0][2] = two(q.y), a[0][3] = two(q.y << 8);
    a[1][0] = two(q.z), a[1][1] = two(q.z << 8), a[1][2] = two(q.w), a[1][3] = two(q.w << 8);
  }
};

