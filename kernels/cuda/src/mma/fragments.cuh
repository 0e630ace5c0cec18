// How packed weights become fragments.
#pragma once
#include "mma/fp8_block.cuh"
#include "mma/rounding.cuh"

// A step is 512 bytes of weights, 16 of a lane: kFrags times 16 columns of 16 rows.
struct Step {
  typedef uint4 Part;  // a lane's
  static __device__ __forceinline__ void load(uint4& q, const char* w, int tile, int steps, int i, int lane) {
    q = __ldcs(reinterpret_cast<const uint4*>(w) + ((size_t)tile * steps + i) * 32 + lane);
  }
};
struct Bf16Step : Step {
  static constexpr int kFrags = 1, kAhead = 4;  // steps on their way at once
  static __device__ __forceinline__ void frags(uint32_t (&a)[1][4], uint4 q) {
    a[0][0] = q.x, a[0][1] = q.y, a[0][2] = q.z, a[0][3] = q.w;
  }
};
// E4M3 codes as BF16: the exponent is shifted into place, which scales the value by
// 2^-120, and one exact multiplication undoes that.
struct Fp8Step : Step {
  static constexpr int kFrags = 2, kAhead = 2;
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
// E4M3 codes with scales for blocks: a step is a fragment, in 256 bytes.
struct BlockStep {
  typedef Fp8Block Part;
  static constexpr int kFrags = 1, kAhead = 8;
  static __device__ __forceinline__ void load(Fp8Block& b, const char* w, int tile, int steps, int i, int lane) {
    b.load(w, tile, steps, i, lane);
  }
  static __device__ __forceinline__ void frags(uint32_t (&a)[1][4], const Fp8Block& b) { b.frag(a[0]); }
};
