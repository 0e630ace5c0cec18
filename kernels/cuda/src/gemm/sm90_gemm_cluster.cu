// y[m, n] = x[m, k] w[n, k]ᵀ for 17 to 256 rows on Hopper: the sums of gemv.cuh in
// the same order. The blocks of a cluster share k, so that each reads little
// of x, and all of the GPU reads weights. Two calls with the same rows share a launch.
#include "mma/fragments.cuh"
#include "mma/sm90_wgmma.cuh"
#include "gemm/params.h"

// send4 writes four values at a place of block rank's shared memory, whose barrier bar counts the bytes.
__device__ __forceinline__ void send4(uint32_t to, uint32_t bar, int rank, const float* v) {
  asm volatile("{\n\t.reg .b32 a, b;\n\tmapa.shared::cluster.u32 a, %0, %2;\n\tmapa.shared::cluster.u32 b, %1, %2;\n\t"
               "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [a], {%3, %4, %5, %6}, [b];\n\t"
                   "}" ::"r"(to), "r"(bar), "r"(rank),
               "r"(__float_as_uint(v[0])), "r"(__float_as_uint(v[1])), "r"(__float_as_uint(v[2])),
                   "r"(__float_as_uint(v[3])) : "memory");
}
// All blocks of the cluster have come here; what they have read may be written over.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

template <typename W, int TERMS>
__device__ __forceinline__ void cluster_gemm(const ClusterGemmsP& ps) {
  extern __shared__ __align__(1024) char smem[];
  // Bytes of a panel, and of its weights of 16 outputs; panels of a stage, and stages.
  constexpr int NT = 64, kX = NT * 128 * TERMS, kW = 2048 / W::kFrags;
  constexpr int kPair = kClusterPanels, ST = TERMS == 2 ? kClusterStages : kClusterRounded;
  begin();
  int tid = threadIdx.x, warp = __shfl_sync(~0u, tid >> 5, 0), lane = tid & 31, g = lane >> 2, t = lane & 3;
  int cluster = blockIdx.x / ps.p[0].parts, part = blockIdx.x % ps.p[0].parts, second = cluster >= ps.p[0].until;
  const ClusterGemmP& p = ps.p[second];
  if (second) cluster -= ps.p[0].until;
  int m0 = blockIdx.y * NT, tile0 = cluster * p.tiles, tiles = (p.n + 15) / 16, kt = p.k / 16, wgs = (p.tiles + 3) / 4;
  int steps = p.slices * p.per, lo = part * steps, panels = steps / 4, stages = panels / kPair;
  char* ring = smem + (-(int)shared_of(smem) & 1023);
  int slot = kPair * (kX + p.tiles * kW);
  uint32_t base = shared_of(ring), full = base + ST * slot, empty = full + ST * 8, inbox = empty + ST * 8;
  if (tid == 256) {
    for (int s = 0; s < ST; s++) mbar_init(full + s * 8, 1), mbar_init(empty + s * 8, wgs * 4);
    mbar_init(inbox, 1), mbar_init(inbox + 8, 1);
    mbar_ready();
    mbar_expect(inbox, wgs * 16384), mbar_expect(inbox + 8, wgs * 16384);
  }
  cluster_arrive();
  float sum[32];
  int each = 8 / p.slices, q = part % each;  // blocks for 8 slices, this one among them
  if (warp >= 8) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    const char* w = static_cast<const char*>(p.w) + ((size_t)min(tile0 + lane, tiles - 1) * kt + lo) * (kW / 4);
    const char* x = p.panels + ((size_t)blockIdx.y * (p.k / 64) + lo / 4) * (NT * 256);
    __syncwarp();
    auto weights = [&](int i) {
      uint32_t bar = full + i % ST * 8;
      if (lane == 0) mbar_expect(bar, slot);
      __syncwarp();
      uint32_t to = base + i % ST * slot + kPair * (kX + lane * kW);
      const char* from = w + (size_t)i * (kPair * kW);
      if (lane < p.tiles) gridDim.y == 1 ? copy_once(to, from, kPair * kW, bar) : copy_bulk(to, from, kPair * kW, bar);
    };
    auto rows = [&](int i) {
      uint32_t to = base + i % ST * slot, bar = full + i % ST * 8;
      const char* from = x + (size_t)i * (kPair * NT * 256);
      if (TERMS == 2 && lane == 0) copy_bulk(to, from, kPair * kX, bar);
      if (TERMS == 1 && lane < kPair) copy_bulk(to + lane * kX, from + lane * (NT * 256), kX, bar);
    };
    if (warp == 8) weights(0);  // more would keep x waiting
    cluster_wait();
    ready(nullptr);
    if (warp == 8) {
      for (int i = 0; i < stages; i++) {
        if (i >= ST) mbar_wait(empty + i % ST * 8, (i / ST - 1) & 1);
        if (i > 0) weights(i);
        rows(i);
      }
    }
    __syncwarp();
    cluster_arrive();
    cluster_wait();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    cluster_wait();
    ready(p.at, cluster == 0 && part == 0 && blockIdx.y == 0);
    bool on = warp < wgs * 4;
    uint32_t a[2][2][4];
    int s = 0, phase = 0, at = 0, done = 0;  // stage, panel of it, panels done
    const char* mine = ring + kPair * (kX + min(warp, p.tiles - 1) * kW) + lane * 16;
    auto load = [&](uint32_t (&a)[2][4], int at) {
      constexpr int F = W::kFrags;
#pragma unroll
      for (int j = 0; j < 2; j += F) W::frags(*reinterpret_cast<uint32_t(*)[F][4]>(&a[j]),
          *reinterpret_cast<const uint4*>(mine + at + j / F * 512));
    };
    // half does two steps of a panel, and brings the weights of the next two.
    auto half = [&](auto b, float (&acc)[32], int more) {
      constexpr int B = decltype(b)::value;
      uint64_t hi = operand(base + s * slot + at * kX) + B * 4, lo = hi + (NT * 128 >> 4);
      wg_fence();
#pragma unroll
      for (int j = 0; j < 2; j++) {
        if (TERMS == 2) wgmma(acc, a[B][j], lo + j * 2, j ? 1 : more);
        wgmma(acc, a[B][j], hi + j * 2, TERMS == 2 || j ? 1 : more);
      }
      wg_commit();
      int was = s;
      bool last = B == 1 && at == kPair - 1;
      if (B == 0) {
        load(a[1], s * slot + at * kW + kW / 2);
      } else {
        if (last) s = s + 1 == ST ? 0 : s + 1, phase ^= s == 0;
        at = last ? 0 : at + 1;
        if (++done < panels) {
          if (last) mbar_wait(full + s * 8, phase);
          load(a[0], s * slot + at * kW);
        }
      }
      wg_wait<0>();
      if (last && lane == 0) mbar_arrive(empty + was * 8);
    };
    constexpr std::integral_constant<int, 0> first{};
    constexpr std::integral_constant<int, 1> second{};
    if (on) mbar_wait(full, 0), load(a[0], 0);
    if (q == 0) {
#pragma unroll
      for (int j = 0; j < 32; j++) sum[j] = 0;
      if (on) {
        float acc[32];
        int step = 0;
#pragma unroll 1
        for (int i = 0; i < panels; i++) {
          half(first, acc, step);
          step += 2;
          if (step == p.per) add_to(sum, acc), step = 0;
          half(second, acc, step);
          step += 2;
          if (step == p.per) add_to(sum, acc), step = 0;
        }
      }
      cluster_arrive();
      cluster_wait();
      if (on && each == 2) {
#pragma unroll
        for (int j = 0; j < 8; j++) send4(base + (j * 8 + warp) * 512 + lane * 16, inbox, part + 1, sum + j * 4);
      }
    } else {
      float held[4][32];
#pragma unroll
      for (int h = 0; h < 4; h++)
        if (on) {
#pragma unroll 1
          for (int i = 0; i < p.per; i += 4) half(first, held[h], i), half(second, held[h], 1);
        }
      cluster_arrive();
      cluster_wait();
      if (on) {
        mbar_wait(inbox, 0);
#pragma unroll
        for (int j = 0; j < 8; j++) {
          float4 v = *reinterpret_cast<const float4*>(ring + (j * 8 + warp) * 512 + lane * 16);
          sum[j * 4] = v.x, sum[j * 4 + 1] = v.y, sum[j * 4 + 2] = v.z, sum[j * 4 + 3] = v.w;
        }
#pragma unroll
        for (int h = 0; h < 4; h++) add_to(sum, held[h]);
      }
    }
    if (on && q == each - 1) {
      int r = (tile0 + warp) * 16 + g, blocks = p.parts / each;
      bool mine = warp < p.tiles;
      auto store = [&](int j, const float* v) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
          int m = m0 + j * 8 + t * 2 + i;
          if (m < p.m && mine) {
            float* y = p.y + (size_t)m * p.ldy + r;
            if (r < p.n) y[0] = v[i] * p.global;
            if (r + 8 < p.n) y[8] = v[2 + i] * p.global;
          }
        }
      };
      if (blocks == 1) {
#pragma unroll
        for (int j = 0; j < 8; j++) store(j, sum + j * 4);
      } else {  // each block adds those of 64 / blocks rows
        int few = 8 / blocks, b = part / each;
        uint32_t box = base + 32768 + warp * 512 + lane * 16;
#pragma unroll
        for (int j = 0; j < 8; j++) send4(box + (b * few + j % few) * 4096, inbox + 8, j / few * each + q, sum + j * 4);
        mbar_wait(inbox + 8, 0);
        for (int j = 0; j < few; j++) {
          float v[4] = {};
          for (int i = 0; i < blocks; i++) {
            float4 u = *reinterpret_cast<const float4*>(ring + 32768 + ((i * few + j) * 8 + warp) * 512 + lane * 16);
            v[0] += u.x, v[1] += u.y, v[2] += u.z, v[3] += u.w;
          }
          store(b * few + j, v);
        }
      }
    }
  }
  finish(p.at);
}

#define KERNEL(name, w, terms)                                                                                     \
  extern "C" __global__ void __launch_bounds__(384, 1) name(const __grid_constant__ ClusterGemmsP p) { \
    HOPPER((cluster_gemm<w, terms>(p));)                                                               \
  }
KERNEL(gemm_cluster_bf16, Bf16Step, 2)
KERNEL(gemm_cluster_fp8, Fp8Step, 2)
KERNEL(gemm_cluster_rounded_bf16, Bf16Step, 1)
KERNEL(gemm_cluster_rounded_fp8, Fp8Step, 1)
