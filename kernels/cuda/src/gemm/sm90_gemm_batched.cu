// Products of few columns for each head, y[m, head n] = x[m, head k] w[head, n, k]ᵀ, of
// more rows than gemv.cuh is for, on Hopper: q_absorb, v_up, and the shared expert's
// down product, which gates its input itself. The sums are gemv.cuh's in
// the same order. A block has 64 outputs of 16 rows and all of k, of which its two
// warpgroups have four slices each; its weights are on their way before x is there.
#include "mma/sm90_wgmma.cuh"
#include "gemm/params.h"

constexpr int kHeadRows = 16, kHeadPanel = kHeadRows * 128, kHeadPitch = 68;

template <bool GATE>
__device__ __forceinline__ void batched_gemm(const BatchedGemmP& p) {
  extern __shared__ __align__(1024) char smem[];
  constexpr int R = GATE ? 2 : 4;  // chunks of 8 columns of a thread on their way
  if (!p.late) begin();
  int tid = threadIdx.x, warp = __shfl_sync(~0u, tid >> 5, 0), lane = tid & 31, g = lane >> 2, t = lane & 3;
  int group = blockIdx.x, m0 = blockIdx.y * kHeadRows, head = blockIdx.z, kt = p.k / 16;
  bool first = group == 0 && m0 == 0 && head == 0;
  if (!GATE && group * 64 == p.n) {
    ready(p.at, first);
    if (p.late) begin();
    rotate(p, m0, kHeadRows);
    return finish(p.at);
  }
  char* panels = smem + (-(int)shared_of(smem) & 1023);
  char* w = panels + p.k / 64 * 2 * kHeadPanel;
  float *held = reinterpret_cast<float*>(w + p.k * 128), *out = held + 4 * 8 * 128;
  uint32_t bar = shared_of(out + kHeadRows * kHeadPitch);
  if (tid == 0) {
    mbar_init(bar, 1);
    mbar_ready();
    mbar_expect(bar, p.k * 128);
    copy_bulk(shared_of(w), static_cast<const char*>(p.w) + head * p.whead + (size_t)group * p.k * 128, p.k * 128, bar);
  }
  __syncthreads();
  ready(p.at, first);
  if (p.late) begin();
  if (GATE && first && p.act_at && tid == 0) atomicMin(p.act_at, globaltimer());
  int chunks = p.k / 8, items = kHeadRows * chunks;
  const float* x = p.x + (size_t)head * p.xhead;
  for (int i0 = tid; i0 < items; i0 += R * 256) {
    float4 u[R], v[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
      int i = i0 + r * 256, m = m0 + i / chunks;
      u[r] = v[r] = make_float4(0, 0, 0, 0);
      if (i < items && m < p.m) {
        const float4* s = reinterpret_cast<const float4*>(x + (size_t)m * p.ldx + i % chunks * 8);
        u[r] = __ldcg(s), v[r] = __ldcg(s + 1);
        if (GATE) {
          float4 a = __ldcg(s + p.k / 4), b = __ldcg(s + p.k / 4 + 1);
          u[r] = {silu(u[r].x) * a.x, silu(u[r].y) * a.y, silu(u[r].z) * a.z, silu(u[r].w) * a.w};
          v[r] = {silu(v[r].x) * b.x, silu(v[r].y) * b.y, silu(v[r].z) * b.z, silu(v[r].w) * b.w};
          if (group == 0) {
            float4* to = reinterpret_cast<float4*>(p.act + (size_t)m * p.ldact + i % chunks * 8);
            to[0] = u[r], to[1] = v[r];
          }
        }
      }
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
      int i = i0 + r * 256, c = i % chunks;
      if (i >= items) break;
      Chunk s = chunk_of(u[r], v[r], low_of(p.rounded));
      char* to = panels + (c >> 3) * 2 * kHeadPanel + panel_at(i / chunks, c & 7);
      *reinterpret_cast<uint4*>(to) = make_uint4(s.a.hi, s.b.hi, s.c.hi, s.d.hi);
      *reinterpret_cast<uint4*>(to + kHeadPanel) = make_uint4(s.a.lo, s.b.lo, s.c.lo, s.d.lo);
    }
  }
  written();
  __syncthreads();
  if (GATE && group == 0 && p.act_at && tid == 0) atomicMax(p.act_at + 1, globaltimer());
  mbar_wait(bar, 0);
  int lo = min(kt, (warp >> 2) * 4 * p.per), hi = min(kt, lo + 4 * p.per);
  float acc[8], sum[8] = {};
  uint32_t a[2][2][4];
  const char* mine = w + (warp & 3) * kt * 512 + lane * 16;
  auto load = [&](uint32_t (&a)[2][4], int step) {
#pragma unroll
    for (int j = 0; j < 2; j++) {
      uint4 q = *reinterpret_cast<const uint4*>(mine + min(step + j, kt - 1) * 512);
      a[j][0] = q.x, a[j][1] = q.y, a[j][2] = q.z, a[j][3] = q.w;
    }
  };
  load(a[0], lo);
  int in = 0, slice = 0;  // steps of the slice so far
  float* at = held + (tid & 127);  // sums of the second warpgroup's slices
#pragma unroll 1
  for (int i = lo; i < hi; i += 4)
#pragma unroll
    for (int b = 0; b < 2; b++) {
      if (i + b * 2 >= hi) break;
      uint64_t x = operand(shared_of(panels) + (i >> 2) * 2 * kHeadPanel) + b * 4;
      wg_fence();
#pragma unroll
      for (int j = 0; j < 2; j++) {
        wgmma(acc, a[b][j], x + (kHeadPanel >> 4) + j * 2, j ? 1 : in);
        wgmma(acc, a[b][j], x + j * 2, 1);
      }
      wg_commit();
      load(a[b ^ 1], i + b * 2 + 2);
      wg_wait<0>();
      in += 2;
      if (in == p.per || i + b * 2 + 2 == hi) {
        if (warp < 4) add_to(sum, acc);
        else {
#pragma unroll
          for (int j = 0; j < 8; j++) at[(slice * 8 + j) * 128] = acc[j];
        }
        in = 0, slice++;
      }
    }
  __syncthreads();
  if (warp < 4) {
    int more = (min(kt, 8 * p.per) - min(kt, 4 * p.per) + p.per - 1) / p.per;
    for (int s = 0; s < more; s++)
#pragma unroll
      for (int j = 0; j < 8; j++) sum[j] += at[(s * 8 + j) * 128];
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) out[(j * 8 + t * 2 + (i & 1)) * kHeadPitch + warp * 16 + g + (i >> 1) * 8] =
          sum[j * 4 + i] * p.global;
  }
  __syncthreads();
  int row = tid >> 3, c = tid & 7, m = m0 + row;
  if (row < kHeadRows && m < p.m) {
    const float4* from = reinterpret_cast<const float4*>(out + row * kHeadPitch + c * 8);
    float4 u = from[0], v = from[1];
    float4* y = reinterpret_cast<float4*>(p.y + (size_t)m * p.ldy + (size_t)head * p.yhead + group * 64 + c * 8);
    y[0] = u, y[1] = v;
    if (p.panels) {
      Chunk s = chunk_of(u, v);
      int all = gridDim.z * p.n / 64;
      char* to = p.panels + ((size_t)(m / 64) * all + head * (p.n / 64) + group) * 16384 + panel_at(m % 64, c);
      *reinterpret_cast<uint4*>(to) = make_uint4(s.a.hi, s.b.hi, s.c.hi, s.d.hi);
      *reinterpret_cast<uint4*>(to + 8192) = make_uint4(s.a.lo, s.b.lo, s.c.lo, s.d.lo);
    }
  }
  finish(p.at);
}

extern "C" __global__ void __launch_bounds__(256) gemm_batched_bf16(const __grid_constant__ BatchedGemmP p) {
  HOPPER((batched_gemm<false>(p));)
}
extern "C" __global__ void __launch_bounds__(256, 3) gemm_batched_silu_bf16(const __grid_constant__ BatchedGemmP p) {
  HOPPER((batched_gemm<true>(p));)
}
