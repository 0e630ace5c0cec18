// y[m, n] = x[m, k] w[n, k]ᵀ for more rows than sm90_gemm_cluster.cu is for, on Hopper: the
// sums of gemv.cuh in the same order. A block has 64 outputs for each of its warpgroups, of
// 64 or 128 tokens; how many follows from what fills the GPU. Two products of the same rows
// share a launch.
#include "mma/fragments.cuh"
#include "mma/sm90_wgmma.cuh"
#include "gemm/persistent.h"

__device__ __forceinline__ float4 of_block4(const float* p, int rank) {
  float4 v;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
      : "r"(remote_of(p, rank)) : "memory");
  return v;
}
__device__ __forceinline__ void add4(float4& sum, float4 v) { sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w; }

// A block walks through tiles, outputs first. One warp fetches panels, another one weights,
// each into a ring; of the next tile while sums are stored. SHARE: a cluster's blocks have
// one tile, and of its k each a block of slices, whose sums they add for some tokens each.
template <typename W, int WG, int NT, bool SHARE, int TERMS>
__device__ __forceinline__ void persistent_gemm(const PersistentGemmP& p) {
  extern __shared__ __align__(1024) char smem[];
  // bytes of 64 columns of 16 outputs, and of the block's
  constexpr int F = W::kFrags, kUnit = 2048 / F, kUnits = WG * 4 * kUnit;
  constexpr int T = NT / 64, kPiece = 64 * 128, kPanels = NT * 128 * TERMS, kOutputs = WG * 64;
  constexpr int kTokens = kPersistentTokens, kPitch = kPersistentPitch;  // of staged sums
  constexpr bool kWait = !SHARE && WG * NT > 256;  // sums of blocks of slices have no room in registers
  const int PS = p.panel_stages, US = p.unit_stages;
  char* ring = smem + (-(int)shared_of(smem) & 1023);
  char* units = ring + PS * kPanels;
  char* staged = units + US * kUnits;
  const uint32_t pfull = shared_of(staged) + WG * kTokens * kPitch * 4, pempty = pfull + PS * 8,
      ufull = pempty + PS * 8, uempty = ufull + US * 8;
  begin();
  const int tid = threadIdx.x, warp = __shfl_sync(~0u, tid >> 5, 0), lane = tid & 31, g = lane >> 2, t = lane & 3;
  if (tid == 0) {
    for (int s = 0; s < PS; s++) mbar_init(pfull + s * 8, 1), mbar_init(pempty + s * 8, WG * 4);
    for (int s = 0; s < US; s++) mbar_init(ufull + s * 8, 1), mbar_init(uempty + s * 8, WG * 4);
    mbar_ready();
  }
  __syncthreads();
  const int rows = p.one.m, kt = p.one.k / 64, columns = p.two.w ? p.two.until : p.one.until,
      tiles = columns * ((rows + NT - 1) / NT);
  const int share = SHARE ? p.blocks : 1, part = SHARE ? blockIdx.x % share : 0, from = blockIdx.x / share,
      by = gridDim.x / share;
  const int lo = SHARE ? part * 2 * p.per : 0, hi = SHARE ? lo + 2 * p.per : kt;  // units
  // of is the tile's product, and column its first output there.
  auto of = [&](int tile, int& column) -> const PersistentOneP& {
    column = tile % columns;
    bool second = column >= p.one.until;
    column = (second ? column - p.one.until : column) * kOutputs;
    return second ? p.two : p.one;
  };
  if (warp >= WG * 4) {
    if (WG > 1) asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    int s = 0, phase = 1;
    if (warp == WG * 4) {
      ready(nullptr);
#pragma unroll 1
      for (int tile = from; tile < tiles; tile += by) {
        // Panels; those that are not there are the last.
        const int first = tile / columns * T, last = (rows + 63) / 64 - 1;
#pragma unroll 1
        for (int i = lo; i < hi; i++) {
          uint32_t bar = pfull + s * 8, to = shared_of(ring) + s * kPanels;
          mbar_wait(pempty + s * 8, phase);
          expect_one(bar, kPanels);
#pragma unroll
          for (int j = 0; j < T; j++) {  // the high parts of all tokens, then the low ones
            const char* from = p.panels + ((size_t)min(first + j, last) * kt + i) * (2 * kPiece);
            copy_one(to + j * kPiece, from, kPiece, bar);
            if (TERMS == 2) copy_one(to + (T + j) * kPiece, from + kPiece, kPiece, bar);
          }
          if (++s == PS) s = 0, phase ^= 1;
        }
      }
    } else if (warp == WG * 4 + 1) {  // weights, also before the rows are there
#pragma unroll 1
      for (int tile = from; tile < tiles; tile += by) {
        int column;
        const PersistentOneP& o = of(tile, column);
        const char* w = static_cast<const char*>(o.w);
        const int first = column / 16, last = (o.n + 15) / 16 - 1;
#pragma unroll 1
        for (int i = lo; i < hi; i++) {
          uint32_t bar = ufull + s * 8, to = shared_of(units) + s * kUnits;
          mbar_wait(uempty + s * 8, phase);
          expect_one(bar, kUnits);
#pragma unroll
          for (int j = 0; j < WG * 4; j++) copy_one(to + j * kUnit, w + ((size_t)min(first + j, last) * kt + i) * kUnit,
              kUnit, bar);
          if (++s == US) s = 0, phase ^= 1;
        }
      }
    }
    __syncwarp();
    if (SHARE) cluster_sync(), cluster_sync(), cluster_sync();
  } else {
    if (WG == 3) asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    if (WG == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    ready(p.one.at);
    if (p.two.at && tid == 0 && blockIdx.x == 0) atomicMin(p.two.at, globaltimer());
    const char* mine = units + warp * kUnit + lane * 16;
    const uint32_t at = shared_of(ring);
    uint32_t a[2][2][4];  // fragments of half a unit, and of the next half
    int s = 0, phase = 0, us = 0, uphase = 0;
    auto read = [&](uint32_t (&a)[2][4], int half) {
      const char* from = mine + us * kUnits + half * (kUnit / 2);
#pragma unroll
      for (int j = 0; j < 2; j += F) W::frags(*reinterpret_cast<uint32_t(*)[F][4]>(&a[j]),
          *reinterpret_cast<const uint4*>(from + j / F * 512));
    };
    float4* waiting = reinterpret_cast<float4*>(p.waiting) + ((size_t)blockIdx.x * WG + (warp >> 2)) * (NT / 8) * 128 +
        (tid & 127);
#pragma unroll 1
    for (int tile = from; tile < tiles; tile += by) {
      // of a slice, of a block of slices, of blocks
      float acc[NT / 2], sum[NT / 2] = {}, total[kWait ? 1 : NT / 2] = {};
      int step = 0, slice = 0, before = 0;
      bool several = false;
      // add_block adds the sums of a block of slices to those of the blocks in front.
      auto add_block = [&](bool more) {
#pragma unroll
        for (int j = 0; j < NT / 8; j++) {
          float4 v = {0, 0, 0, 0};
          if (!kWait) v = {total[kWait ? 0 : j * 4], total[kWait ? 0 : j * 4 + 1], total[kWait ? 0 : j * 4 + 2],
              total[kWait ? 0 : j * 4 + 3]};
          else if (several) v = __ldcg(waiting + j * 128);
          add4(v, {sum[j * 4], sum[j * 4 + 1], sum[j * 4 + 2], sum[j * 4 + 3]});
          if (!more) sum[j * 4] = v.x, sum[j * 4 + 1] = v.y, sum[j * 4 + 2] = v.z, sum[j * 4 + 3] = v.w;
          else if (kWait) __stcg(waiting + j * 128, v);
          else total[kWait ? 0 : j * 4] = v.x, total[kWait ? 0 : j * 4 + 1] = v.y, total[kWait ? 0 : j * 4 + 2] = v.z,
              total[kWait ? 0 : j * 4 + 3] = v.w;
        }
        slice = 0, several = true;
        if (more)
#pragma unroll
          for (int j = 0; j < NT / 2; j++) sum[j] = 0;
      };
      mbar_wait(ufull + us * 8, uphase);
      read(a[0], 0);
#pragma unroll 1
      for (int i = lo; i < hi; i++) {
        mbar_wait(pfull + s * 8, phase);
#pragma unroll
        for (int h = 0; h < 2; h++) {
          Operand high(at + s * kPanels + h * 64), low = high + (NT * 128 >> 4);
          wg_fence();
#pragma unroll
          for (int j = 0; j < 2; j++) {
            if (TERMS == 2) wgmma(acc, a[h][j], low + j * 2, j ? 1 : step);
            wgmma(acc, a[h][j], high + j * 2, TERMS == 2 || j ? 1 : step);
          }
          wg_commit();
          step += 2;
          // The half before is done, and its fragments are free for the next one's.
          wg_wait<1>();
          if (h == 0) {
            if (i > lo && lane == 0) mbar_arrive(pempty + before * 8);
            read(a[1], 1);
          } else if (i + 1 < hi) {
            if (lane == 0) mbar_arrive(uempty + us * 8);
            if (++us == US) us = 0, uphase ^= 1;
            mbar_wait(ufull + us * 8, uphase);
            read(a[0], 0);
          }
          if (step == p.per) {
            wg_wait<0>();
            add_to(sum, acc);
            step = 0;
            if (!SHARE && ++slice == kWarps && p.blocks > 1 && (h == 0 || i + 1 < hi)) add_block(true);
          }
        }
        before = s;
        if (++s == PS) s = 0, phase ^= 1;
      }
      if (lane == 0) mbar_arrive(uempty + us * 8);
      if (++us == US) us = 0, uphase ^= 1;
      wg_wait<0>();
      if (lane == 0) mbar_arrive(pempty + before * 8);
      if (step) add_to(sum, acc);
      int column;
      const PersistentOneP& o = of(tile, column);
      const int m0 = tile / columns * NT;
      if (SHARE) {
        constexpr int kRow = kOutputs + 4, kQuads = kOutputs / 4;
        float* sums = reinterpret_cast<float*>(ring);  // [NT][kRow], where the rings were
        cluster_sync();
#pragma unroll
        for (int j = 0; j < NT / 2; j++) sums[(j / 4 * 8 + t * 2 + (j & 1)) * kRow + warp * 16 + g + (j >> 1 & 1) * 8] =
            sum[j];
        cluster_sync();
        const int tokens = NT / share;
        for (int i = tid; i < tokens * kQuads; i += WG * 128) {
          int row = part * tokens + i / kQuads, r = column + i % kQuads * 4, m = m0 + row;
          float4 v = {0, 0, 0, 0};
          for (int b = 0; b < share; b++) add4(v, of_block4(sums + row * kRow + i % kQuads * 4, b));
          if (m < rows && r < o.n) *reinterpret_cast<float4*>(o.y + (size_t)m * o.ldy + r) =
              make_float4(v.x * o.global, v.y * o.global, v.z * o.global, v.w * o.global);
        }
        cluster_sync();
      } else {
        if (several) add_block(false);
        // Rows of 64 outputs by way of shared memory, so that stores are long.
        const int wg = warp >> 2, r = column + wg * 64 + (tid & 15) * 4, row = (tid & 127) >> 4;
        float* sums = reinterpret_cast<float*>(staged) + wg * kTokens * kPitch;
#pragma unroll
        for (int q = 0; q < NT / kTokens; q++) {
          meet(1 + wg, 128);
#pragma unroll
          for (int j = 0; j < kTokens / 2; j++) sums[(j / 4 * 8 + t * 2 + (j & 1)) * kPitch + (warp & 3) * 16 + g +
              (j >> 1 & 1) * 8] = sum[q * (kTokens / 2) + j] * o.global;
          meet(1 + wg, 128);
#pragma unroll
          for (int j = 0; j < kTokens; j += 8) {
            int m = m0 + q * kTokens + j + row;
            if (m < rows && r < o.n) *reinterpret_cast<float4*>(o.y + (size_t)m * o.ldy + r) =
                *reinterpret_cast<const float4*>(sums + (j + row) * kPitch + (tid & 15) * 4);
          }
        }
      }
    }
  }
  finish(p.one.at);
  if (p.two.at && tid == 0) stamp_end(p.two.at);
}

#define KERNEL(name, w, wg, nt, share, terms, each) \
  extern "C" __global__ void __launch_bounds__(wg * 128 + 128, each) name(const __grid_constant__ PersistentGemmP p) { \
    HOPPER((persistent_gemm<w, wg, nt, share, terms>(p));) \
  }
#define ALL(f, w, terms)                                           \
  KERNEL(gemm_persistent_##f##_64x64, w, 1, 64, false, terms, 2)     \
  KERNEL(gemm_persistent_##f##_128x64, w, 2, 64, false, terms, 1)    \
  KERNEL(gemm_persistent_##f##_128x128, w, 2, 128, false, terms, 1)  \
  KERNEL(gemm_persistent_##f##_192x64, w, 3, 64, false, terms, 1)    \
  KERNEL(gemm_persistent_##f##_192x128, w, 3, 128, false, terms, 1)  \
  KERNEL(gemm_persistent_##f##_64x64_k, w, 1, 64, true, terms, 2)    \
  KERNEL(gemm_persistent_##f##_128x128_k, w, 2, 128, true, terms, 1) \
  KERNEL(gemm_persistent_##f##_192x64_k, w, 3, 64, true, terms, 1)   \
  KERNEL(gemm_persistent_##f##_192x128_k, w, 3, 128, true, terms, 1)
ALL(bf16, Bf16Step, 2)
ALL(fp8, Fp8Step, 2)
ALL(rounded_bf16, Bf16Step, 1)
ALL(rounded_fp8, Fp8Step, 1)
KERNEL(gemm_persistent_rounded_bf16_128x192, Bf16Step, 2, 192, false, 1, 1)
KERNEL(gemm_persistent_rounded_fp8_128x192, Fp8Step, 2, 192, false, 1, 1)
