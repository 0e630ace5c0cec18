// Products of few rows, y[m, n] = x[m, k] w[n, k]ᵀ with m <= 8, whose weights are on
// their way before x is there. Rows of x start at multiples of 16 bytes.
#pragma once
#include "mma/fragments.cuh"
#include "gemm/params.h"

// A warp has a slice of a tile's k, and copies its weights into shared memory, each
// lane what it will use itself: as much as its ring holds before x is ready. It works
// on groups of kGroup steps of 512 bytes; those that the slice lacks are zero. x is
// there for a window of groups. The slices and the order of sums follow from n and k
// alone. The loop over steps has little but loads from shared memory and products:
// with all weights on the multiprocessor, instructions are what takes time.
constexpr int kGroup = 4;
constexpr int kRowPitch = kGemvRowBytes;  // bytes of a row's 128 columns of x, as pairs of (high parts, low parts)

// The layout for at most R rows, 1 or 8, and weights of F fragments a step.
template <int R, int F>
struct Layout {
  static constexpr int kRing = R == 1 ? 4 : 2;            // groups
  static constexpr int kWindow = R == 1 ? 4 : 2 / F;      // groups
  static constexpr int kCells = R == 1 ? 2 * F : R;       // 128 columns of a row, of a window
  static constexpr int kPitch = R == 1 ? 512 : kRowPitch;  // of a cell
};

// bring loads the lane's four values of each cell. x: of the first; hop: values from
// one to the next; left: columns that remain in the row, of which each cell takes
// hop where R is 1.
template <int R, bool kShared, int V>
__device__ __forceinline__ void bring(float4 (&v)[V], const float* x, int rows, int hop, int left) {
#pragma unroll
  for (int i = 0; i < V; i++) {
    v[i] = {0, 0, 0, 0};
    if (left > 0 && (R == 1 || i < rows)) v[i] = kShared ? *reinterpret_cast<const float4*>(x) :
        __ldcg(reinterpret_cast<const float4*>(x));
    x += hop;
    if (R == 1) left -= hop;
  }
}
// store leaves cells in shared memory as fragments' lanes t want them: 64 bytes a
// fragment, 16 a lane: the low parts of pairs t and t+4 of its eight, the high parts.
// A lane has two pairs next to each other; lane^2 has the two that belong to them.
template <int V>
__device__ __forceinline__ void store(char* xs, int rows, int pitch, const float4 (&v)[V], uint32_t low) {
  int lane = threadIdx.x & 31;
  bool second = lane & 2;
  char* at = xs + (lane >> 2) * 64 + ((lane & 1) * 2 + second) * 16;
  __syncwarp();
#pragma unroll
  for (int i = 0; i < V; i++)
    if (i < rows) {
      Split a = split(v[i].x, v[i].y, low), b = split(v[i].z, v[i].w, low);
      uint32_t lo = __shfl_xor_sync(~0u, second ? a.lo : b.lo, 2), hi = __shfl_xor_sync(~0u, second ? a.hi : b.hi, 2);
      *reinterpret_cast<uint4*>(at + i * pitch) = second ? uint4{lo, b.lo, hi, b.hi} : uint4{a.lo, lo, a.hi, hi};
    }
  __syncwarp();
}

// gate_rows leaves silu(gate) up in shared memory, k values a row.
__device__ __forceinline__ void gate_rows(const GemvP& p, float* rows, bool keep) {
  for (int i = threadIdx.x * 4; i < p.m * p.k; i += kWarps * 32 * 4) {
    int m = i / p.k, j = i - m * p.k;
    const float* x = p.x + (size_t)m * p.ldx + j;
    float4 g = __ldcg(reinterpret_cast<const float4*>(x)), u = __ldcg(reinterpret_cast<const float4*>(x + p.k));
    g = {silu(g.x) * u.x, silu(g.y) * u.y, silu(g.z) * u.z, silu(g.w) * u.w};
    *reinterpret_cast<float4*>(rows + i) = g;
    if (keep) *reinterpret_cast<float4*>(p.act + (size_t)m * p.ldact + j) = g;
  }
  __syncthreads();
}

template <typename W, int R>
__device__ __forceinline__ void gemv(const GemvP& p, int block, char* smem) {
  constexpr int F = W::kFrags;
  using L = Layout<R, F>;
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  int part = block % p.share, tile = block / p.share % p.tiles, head = block / (p.share * p.tiles);
  int steps = (p.k + 16 * F - 1) / (16 * F), per = (steps + p.share * kWarps - 1) / (p.share * kWarps);
  int lo = min(steps, (part * kWarps + warp) * per), n = head < p.heads ? min(per, steps - lo) : 0;
  __shared__ __align__(8) u64 inbox;
  if (p.share > 1) open_inbox(&inbox, (p.share - 1) * p.m * 16 * 4);
  const char* w = static_cast<const char*>(p.w) + head * p.whead + (((size_t)tile * steps + lo) * 32 + lane) * 16;
  char* ring = smem + warp * p.ring + lane * 16;
  int groups = (n + kGroup - 1) / kGroup;
  auto fill = [&](int group, int place) {
    if (group < groups) {
      int left = n - group * kGroup;
      const char* from = w + (size_t)group * (kGroup * 512);
#pragma unroll
      for (int u = 0; u < kGroup; u++) copy16(ring + (place * kGroup + u) * 512, from + u * 512, u < left ? 16 : 0);
    }
    commit();
  };
  // A group at a time: the kernels in front still need the memory system.
#pragma unroll 1
  for (int i = 0; i < L::kRing; i++) {
    fill(i, i);
    landed<0>();
  }
  ready(p.at, block == 0);
  u64* act_at = p.act && block == 0 && threadIdx.x == 0 ? p.act_at : nullptr;
  if (act_at) atomicMin(act_at, globaltimer());
  constexpr int kCells = L::kCells;
  int cells = R == 1 ? kCells : p.m, hop = R == 1 ? 128 : p.ldx;
  char* behind = smem + kWarps * p.ring;  // x, then sums of the cluster's blocks
  char* xs = behind + warp * cells * L::kPitch;
  // columns of fragments without a row are not used
  const char* mine = xs + (R == 1 ? 0 : min(g, p.m - 1) * L::kPitch) + t * 16;
  float* gated = p.act ? reinterpret_cast<float*>(behind + kWarps * cells * L::kPitch + p.share * p.m * 64) : nullptr;
  if (gated) {
    gate_rows(p, gated, block == 0);
    if (act_at) atomicMax(act_at + 1, globaltimer());
  }
  float4 v[kCells];
  auto window = [&](int first) {  // group
    int k = (lo + first * kGroup) * F * 16 + lane * 4, left = min(p.k, (lo + n) * F * 16) - k;
    if (gated) bring<R, true>(v, gated + k, p.m, R == 1 ? hop : p.k, left);
    else bring<R, false>(v, p.x + (size_t)head * p.xhead + k, p.m, hop, left);
  };
  window(0);
  float acc[4] = {};
#pragma unroll 1
  for (int first = 0; first < groups; first += L::kWindow) {
    store(xs, cells, L::kPitch, v, low_of(p.rounded));
    if (first + L::kWindow < groups) window(first + L::kWindow);
    int turned = L::kWindow == L::kRing ? 0 : first % L::kRing;
#pragma unroll
    for (int i = 0; i < L::kWindow; i++) {
      if (first + i >= groups) break;
      landed<L::kRing - 1>();
#pragma unroll
      for (int u = 0; u < kGroup; u++) {
        uint32_t a[F][4];
        W::frags(a, *reinterpret_cast<const uint4*>(ring + ((turned + i) * kGroup + u) * 512));
#pragma unroll
        for (int j = 0; j < F; j++) {
          uint4 b = *reinterpret_cast<const uint4*>(mine + ((i * kGroup + u) * F + j) * 64);
          mma_split(acc, a[j], {{b.z, b.x}, {b.w, b.y}});
        }
      }
      fill(first + i + L::kRing, turned + i);
    }
  }
  // The warps' sums, each where its weights were, in warp order; then the blocks'.
  __syncwarp();
  float* sums = reinterpret_cast<float*>(smem + warp * p.ring);
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (R > 1 || t * 2 + (i & 1) == 0) sums[(g + (i >> 1) * 8) * 9 + t * 2 + (i & 1)] = acc[i];
  __syncthreads();
  int line = threadIdx.x & 15, m = threadIdx.x >> 4;
  float sum = 0;
  if (m < p.m) {
#pragma unroll
    for (int i = 0; i < kWarps; i++) sum += reinterpret_cast<float*>(smem + i * p.ring)[line * 9 + m];
  }
  if (p.share > 1) {
    float* parts = reinterpret_cast<float*>(behind + kWarps * cells * L::kPitch);  // [share][m][16]
    inboxes_open();
    if (part) {
      if (m < p.m) send(&parts[part * p.m * 16 + threadIdx.x], &inbox, cluster_rank() - part, sum);
      return;
    }
    receive(&inbox);
    for (int i = 1; m < p.m && i < p.share; i++) sum += parts[i * p.m * 16 + threadIdx.x];
  }
  int r = tile * 16 + line;
  if (m < p.m && r < p.n && head < p.heads) p.y[(size_t)m * p.ldy + (size_t)head * p.yhead + r] = sum * p.global;
  finish_beside(p.at);
}
