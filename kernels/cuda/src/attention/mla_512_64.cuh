// What the ways to attend to entries of 512 latents and 64 rotary values share.
//
// The order of sums for FP8 entries, the same for every number of rows: a row's
// positions (of its selection, in order) are leaves of 128. A leaf's scores, in powers
// of two, are relative to their highest one rounded up; its sums are one chain of
// products a column. Leaf i of more than 16 is added to leaf i % 16, and those 16 in
// pairs, then pairs of pairs. References are whole powers of two: to bring sums to
// another one changes no bits, whenever it is done.
#pragma once
#include "attention/mla.cuh"
#include "mma/split_half.cuh"

constexpr int kLatent = 512, kRope = 64, kWidth = kLatent + kRope;
constexpr int kSteps = kWidth / 16;               // of 16 columns
// bytes of an FP8 entry; also what rows are apart in shared memory: 4 banks
constexpr int kEntry = kLatent + 16 + 2 * kRope;
constexpr int kLeaf = 128, kLeaves = 16;

// A GPU of sm_120 has less shared memory than a block needs: nothing is compiled for it.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
#define LATENT(call)
#else
#define LATENT(call) call
#endif

// Column g of a product's n-th group of eight positions is its row place(g) + group(n):
// rows are such that neither the eight positions of a score's product nor the four of
// a sum's collide in shared memory's banks.
__device__ __forceinline__ int place(int g) { return 2 * (g ^ (g >> 2)); }
__device__ __forceinline__ constexpr int group(int n) { return (n & 1) + 16 * (n >> 1); }

// push writes v to where p is in block rank's shared memory, and counts it there.
__device__ __forceinline__ void push(void* p, u64* bar, int rank, float4 v) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1,%2,%3,%4}, [%5];"
      ::"r"(remote_of(p, rank)), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(remote_of(bar, rank)) : "memory");
}
__device__ __forceinline__ void push(void* p, u64* bar, int rank, float2 v) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1,%2}, [%3];"
      ::"r"(remote_of(p, rank)), "f"(v.x), "f"(v.y), "r"(remote_of(bar, rank)) : "memory");
}
__device__ __forceinline__ void push(void* p, u64* bar, int rank, float v) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
      ::"r"(remote_of(p, rank)), "r"(__float_as_uint(v)), "r"(remote_of(bar, rank)) : "memory");
}

// Blocks of a row that are anywhere leave sums for each other in global memory. They
// all run at once. What is not there yet is kAbsent, which no sum is; who takes a sum
// leaves that in its place, for the next launch.
constexpr uint32_t kAbsent = 0xffffffff;
__device__ __forceinline__ void leave(float4* p, float4 v) {
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
      : "memory");
}
__device__ __forceinline__ void clear(float4* p) {
  const float v = __uint_as_float(kAbsent);
  *p = make_float4(v, v, v, v);
}
__device__ __forceinline__ bool there(float4 v) {
  return __float_as_uint(v.x) != kAbsent && __float_as_uint(v.y) != kAbsent && __float_as_uint(v.z) != kAbsent &&
      __float_as_uint(v.w) != kAbsent;
}
// await takes N values, stride apart, for each lane of a warp when all of them are
// there. It gives up like mbar_wait.
template <int N>
__device__ __forceinline__ void await(float4 (&v)[N], const float4* p, int stride) {
#pragma unroll 1
  for (int i = 0; i < 1 << 20; i++) {
    bool all = true;
#pragma unroll
    for (int j = 0; j < N; j++) asm volatile("ld.relaxed.gpu.global.v4.f32 {%0,%1,%2,%3}, [%4];"
        : "=f"(v[j].x), "=f"(v[j].y), "=f"(v[j].z), "=f"(v[j].w) : "l"(p + j * stride) : "memory");
#pragma unroll
    for (int j = 0; j < N; j++) all = all && there(v[j]);
    if (__all_sync(~0u, all)) return;
  }
  __trap();
}

// tree adds values in pairs, then pairs of those.
template <int N>
__device__ __forceinline__ float tree(const float* v) {
  if constexpr (N == 1) return *v;
  else return tree<N / 2>(v) + tree<N / 2>(v + N / 2);
}

__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// share is 2^(high - of) of whole numbers, no less than 2^-126 but for 0: what of the
// sums relative to 2^high is left relative to 2^of. Nothing has -INFINITY.
__device__ __forceinline__ float share(float high, float of) {
  return __int_as_float(((int)fmaxf(high - of, -127.0f) + 127) << 23);
}

__device__ __forceinline__ void load_a(uint32_t (&a)[4], const uint4* q, int step, int lane) {
  uint4 v = q[step * 32 + lane];
  a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
}

// Half the columns' part of 32 FP8 positions' scores: w[n][i] is head lane/4's of column
// 2(lane%4)+i of group n. q: A fragments, latents in float16 scaled by 1/down. kAtOnce:
// column blocks at once.
template <int kAtOnce>
__device__ __forceinline__ void scores(float (&w)[4][2], const uint4* q, const char* rows, int half, float down,
    int lane) {
  int g = lane >> 2, t = lane & 3;
  const char *row = rows + place(g) * kEntry + t * 8,
      *scales[2] = {rows + place(2 * t) * kEntry + kLatent, rows + place(2 * t + 1) * kEntry + kLatent};
  float c[4][2][4];
  auto clear = [&]() {
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) c[n][0][i] = c[n][1][i] = 0;
  };
  auto sum = [&](int n, int i) { return (c[n][0][i] + c[n][1][i]) + (c[n][0][i + 2] + c[n][1][i + 2]); };
#pragma unroll
  for (int n = 0; n < 4; n++) w[n][0] = w[n][1] = 0;
#pragma unroll kAtOnce
  for (int o = 0; o < 2; o++) {  // columns with a scale of their own
    int b = half * 2 + o;
    clear();
#pragma unroll
    for (int i = 0; i < 4; i++) {
      uint32_t x[4], y[4];
      load_a(x, q, b * 8 + i * 2, lane), load_a(y, q, b * 8 + i * 2 + 1, lane);
      uint2 v[4];
#pragma unroll
      for (int n = 0; n < 4; n++) v[n] = *reinterpret_cast<const uint2*>(row + group(n) * kEntry + b * 128 + i * 32);
#pragma unroll
      for (int n = 0; n < 4; n++) mma_f16(c[n][0], x, half_of(v[n].x), half_high(v[n].x));
#pragma unroll
      for (int n = 0; n < 4; n++) mma_f16(c[n][1], y, half_of(v[n].y), half_high(v[n].y));
    }
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
      for (int i = 0; i < 2; i++) w[n][i] = fmaf(reinterpret_cast<const float*>(scales[i] +
          group(n) * kEntry)[b] * down, sum(n, i), w[n][i]);
  }
  if (half == 0) return;
  clear();
#pragma unroll
  for (int j = 0; j < kRope / 16; j++) {
    uint32_t a[4];
    load_a(a, q, kLatent / 16 + j, lane);
#pragma unroll
    for (int n = 0; n < 4; n++) {
      uint2 v = *reinterpret_cast<const uint2*>(row + group(n) * kEntry + kLatent + 16 + j * 32);
      mma(c[n][j & 1], a, v.x, v.y);
    }
  }
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int i = 0; i < 2; i++) w[n][i] += sum(n, i);
}

// latents is four latents of 16 positions as two A fragments.
__device__ __forceinline__ void latents(uint32_t (&u)[4], uint32_t (&v)[4], uint32_t x0, uint32_t x1, uint32_t x2,
    uint32_t x3) {
  uint32_t p0 = __byte_perm(x0, x1, 0x5140), p1 = __byte_perm(x2, x3, 0x5140), q0 = __byte_perm(x0, x1, 0x7362),
      q1 = __byte_perm(x2, x3, 0x7362);
  u[0] = half_of(p0), u[1] = half_high(p0), u[2] = half_of(p1), u[3] = half_high(p1);
  v[0] = half_of(q0), v[1] = half_high(q0), v[2] = half_of(q1), v[3] = half_high(q1);
}
