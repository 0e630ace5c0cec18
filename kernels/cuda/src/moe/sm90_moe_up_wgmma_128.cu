// moe_up for experts with very many rows: 128 share the unpacking of a weight, where
// sm90_moe_wgmma.cu has 48. See sm90_moe_wgmma.cuh.
#include "moe/sm90_moe_wgmma.cuh"

// Two warpgroups have products, of 64 outputs each half the rows of weights; a third one
// fetches.
constexpr int kTokens = 128;  // rows of an expert in an item, at most
constexpr int kUpThreads = 256, kSizes = kTokens / 16;
template <int TERMS>  // of x
struct UpShared {
  static constexpr int kStages = TERMS == 2 ? 5 : 8, kPanels = kTokens * 128 * TERMS,
      kStage = (kPanels + 8 * kFp4Unit + 1023) / 1024 * 1024;
  char stages[kStages][kStage];  // panels, then 4 tiles of gate, 4 of up
  u64 full[kStages], empty[kStages];
  int start[];  // [kSizes groups + 1] the first tile of each expert, by size; then [groups + 1] the offsets
};
static_assert(sizeof(UpShared<2>) + 1024 == kWgmma128Shared && sizeof(UpShared<1>) + 1024 <= kWgmma128Shared &&
    kUpThreads + 128 == kWgmma128Threads && 4 * (kSizes + 1) == kWgmma128Expert);

struct Item {
  int expert, first, count, part;  // rows first .. of the list; outputs 64 part ..
};
__device__ __forceinline__ int tiles_of(int rows, int c) {  // of an expert's, of kTokens - 16 c rows
  int rest = rows % kTokens;
  return (rest > 0 && (kTokens - rest) / 16 == c) + (c == 0 ? rows / kTokens : 0);
}
__device__ __forceinline__ Item item_of(const MoeWgmmaP& p, const int* start, int i) {
  int parts = p.n / 64, tile = i / parts, lo = 0, hi = p.groups * kSizes;
  const int* offsets = start + hi + 1;
  while (hi - lo > 1) {
    int mid = (lo + hi) / 2;
    if (start[mid] <= tile) lo = mid;
    else hi = mid;
  }
  int expert = lo % p.groups, from = offsets[expert], rows = offsets[expert + 1] - from,
      at = (lo < p.groups ? tile - start[lo] : rows / kTokens) * kTokens;
  return {expert, from + at, min(kTokens, rows - at), i % parts};
}

template <int H, int N, int TERMS>
__device__ __forceinline__ void up_products(const MoeWgmmaP& p, UpShared<TERMS>& sh, int n, int work) {
  constexpr int kStages = sh.kStages, kStage = sh.kStage, kPanels = sh.kPanels;
  int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3,
      tile = warp & 3;
  const Item item = item_of(p, sh.start, work);
  int count = __shfl_sync(~0u, item.count, 0);
  const uint32_t full = shared_of(sh.full), empty = shared_of(sh.empty);
  float upper[N / 2], lower[N / 2], sums[N / 2] = {};  // of the slice, by the terms of x; of all
  uint32_t a[2][2][4];
  int s = n % kStages, phase = n / kStages & 1, step = 0, before = 0;
  // load takes a unit, of which read makes half the fragments at a time.
  uint4 q, r;
  uint32_t sg, su;
  auto load = [&](int s) {
    const char* gate = sh.stages[s] + kPanels + tile * kFp4Unit;
    const char* up = gate + 4 * kFp4Unit;
    q = *fp4_codes(gate, lane), r = *fp4_codes(up, lane);
    sg = reinterpret_cast<const uint32_t*>(gate + 512)[g * 2 + H],
        su = reinterpret_cast<const uint32_t*>(up + 512)[g * 2 + H];
  };
  auto read = [&](uint32_t (&a)[2][4], auto half) {
    constexpr int P = decltype(half)::value;
    uint32_t s = fp4_scale<P>(sg), t = fp4_scale<P>(su);
    unpack_half<H>(a[0], P ? q.z : q.x, s, P ? r.z : r.x, t);
    unpack_half<H>(a[1], P ? q.w : q.y, s, P ? r.w : r.y, t);
  };
  std::integral_constant<int, 0> first;
  std::integral_constant<int, 1> second;
  mbar_wait(full + s * 8, phase);
  written();  // the rows, by others
  load(s), read(a[0], first), read(a[1], second);
  const int kt = p.k / 64;
  for (int i = 0; i < kt; i++) {
    Operand hi(shared_of(sh.stages[0]) + s * kStage), lo = hi + (kTokens * 128 >> 4);
    const int now = s;
    if (++s == kStages) s = 0, phase ^= 1;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      wg_fence();
#pragma unroll
      for (int j = 0; j < 2; j++) {
        if (TERMS == 2) wgmma(lower, a[h][j], lo + (h * 2 + j) * 2, j || h ? 1 : step);
        wgmma(upper, a[h][j], hi + (h * 2 + j) * 2, j || h ? 1 : step);
      }
      wg_commit();
      if (h == 0 && i + 1 < kt) mbar_wait(full + s * 8, phase), written();
      if (h == 1 && i + 1 < kt) load(s);
      if (h == 1 && ++step == p.per) {
        wg_wait<0>();
#pragma unroll
        for (int j = 0; j < N / 2 && TERMS == 2; j++) upper[j] += lower[j];
#pragma unroll
        for (int j = 0; j < N / 2; j++) sums[j] += upper[j];
        step = 0;
      }
      wg_wait<1>();
      // The other half's fragments of the next unit, for its products with these ones are done.
      if (h == 0) {
        if (i > 0) {
          if (lane == 0) mbar_arrive(empty + before * 8);
          read(a[1], second);
        }
      } else if (i + 1 < kt) {
        read(a[0], first);
      }
    }
    before = now;
  }
  wg_wait<0>();
  if (lane == 0) mbar_arrive(empty + before * 8);
  if (step)
#pragma unroll
    for (int j = 0; j < N / 2; j++) sums[j] += TERMS == 2 ? upper[j] + lower[j] : upper[j];
  float2 global = p.global[item.expert];
  int row0 = (item.part * 4 + tile) * 16 + H * 8 + g;
#pragma unroll
  for (int j = 0; j < N / 8; j++)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int row = j * 8 + t * 2 + i;
      if (row < count) p.y[(size_t)p.list[item.first + row] * p.n + row0] =
          silu(sums[j * 4 + i] * global.x) * (sums[j * 4 + 2 + i] * global.y);
    }
}

// up_sizes are the block's items of up to N rows, and those of fewer.
template <int H, int N, int TERMS>
__device__ __forceinline__ void up_sizes(const MoeWgmmaP& p, UpShared<TERMS>& sh, int i, int n) {
  int end = __shfl_sync(~0u, sh.start[(kSizes - N / 16 + 1) * p.groups] * (p.n / 64), 0);
#pragma unroll 1
  for (; i < end; i += gridDim.x, n += p.k / 64) up_products<H, N, TERMS>(p, sh, n, i);
  if constexpr (N > 16) up_sizes<H, N - 16, TERMS>(p, sh, i, n);
}

// A warp fetches two tiles of a unit, and a quarter of the rows; for rows past the
// last that one again, whose products nobody stores.
template <int TERMS>
__device__ __forceinline__ void up_fetch(const MoeWgmmaP& p, UpShared<TERMS>& sh, int items) {
  constexpr int kStages = sh.kStages, kStage = sh.kStage, kPanels = sh.kPanels;
  int id = threadIdx.x - kUpThreads, warp = id >> 5, lane = id & 31, row0 = id >> 3, kt = p.k / 64, s = 0, phase = 1;
  const uint32_t full = shared_of(sh.full), rows_at = shared_of(sh.stages[0]) + panel_at(row0, id & 7),
      units_at = shared_of(sh.stages[0]) + kPanels + warp * 2 * kFp4Unit + lane * 16;
  const int apart = kt * kFp4Unit, skip = apart - kFp4Unit;  // from a tile to the next; in the copies
  for (int i = blockIdx.x; i < items; i += gridDim.x) {
    Item item = item_of(p, sh.start, i);
    const int rows = (item.count + 15) / 16;
    const char* w = p.w + (size_t)item.expert * p.wexpert +
        (size_t)(item.part * 4 + (warp & 1) * 2 + (warp & 2 ? p.n / 16 : 0)) * apart + lane * 16;
    const char* src[kTokens / 16];
#pragma unroll
    for (int j = 0; j < kTokens / 16; j++) {
      int pair = p.list[item.first + min(row0 + j * 16, item.count - 1)];
      src[j] = p.rows + (size_t)(p.by_pair ? pair : pair / p.topk) * (kt * 256) + (id & 7) * 16;
    }
#pragma unroll 1
    for (int k = 0; k < kt; k++) {
      uint32_t bar = full + s * 8, to = units_at + s * kStage;
      mbar_wait(bar + kStages * 8, phase);
      copy16(to, w, true);
      copy16(to + 512, w + 512 + (lane < 4 ? 0 : skip), true);
      if (lane < 8) copy16(to + 1024, w + 1024 + skip, true);
      to = rows_at + s * kStage;
#pragma unroll
      for (int j = 0; j < kTokens / 16; j++)
        if (j < rows) {
          copy16(to + j * 16 * 128, src[j], true);
          if (TERMS == 2) copy16(to + (j * 16 + kTokens) * 128, src[j] + 128, true);
          src[j] += 256;
        }
      copies_arrive(bar);
      w += kFp4Unit;
      if (++s == kStages) s = 0, phase ^= 1;
    }
  }
}

// y[pair, n] = silu(gate x) * (up x). The blocks share the items.
template <int TERMS>
__device__ __forceinline__ void moe_up_wgmma(const MoeWgmmaP& p) {
  extern __shared__ __align__(1024) char smem[];
  using Shared = UpShared<TERMS>;
  Shared& sh = *reinterpret_cast<Shared*>(smem + (-(int)shared_of(smem) & 1023));
  begin();
  int tid = threadIdx.x, warp = __shfl_sync(~0u, tid >> 5, 0), lane = tid & 31;
  if (tid == 0) {
    for (int s = 0; s < Shared::kStages; s++) mbar_init(shared_of(&sh.full[s]), 128),
        mbar_init(shared_of(&sh.empty[s]), kUpThreads / 32);
    mbar_ready();
  }
  ready(p.at);
  int* offsets = sh.start + kSizes * p.groups + 1;
  for (int e = tid; e <= p.groups; e += kUpThreads + 128) offsets[e] = p.offsets[e];
  __syncthreads();
  if (warp == 0) {
    int each = (p.groups + 31) / 32, lo = min(p.groups, lane * each), hi = min(p.groups, lo + each), before = 0;
    for (int c = 0; c < kSizes; c++) {
      int n = 0;
      for (int e = lo; e < hi; e++) n += tiles_of(offsets[e + 1] - offsets[e], c);
      int upto = n;
#pragma unroll
      for (int o = 1; o < 32; o *= 2) {
        int v = __shfl_up_sync(~0u, upto, o);
        if (lane >= o) upto += v;
      }
      for (int e = lo, at = before + upto - n; e < hi; e++) {
        sh.start[c * p.groups + e] = at;
        at += tiles_of(offsets[e + 1] - offsets[e], c);
      }
      before += __shfl_sync(~0u, upto, 31);
    }
    if (lane == 31) sh.start[kSizes * p.groups] = before;
  }
  __syncthreads();
  int items = __shfl_sync(~0u, sh.start[kSizes * p.groups] * (p.n / 64), 0);
  if (tid >= kUpThreads) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    up_fetch(p, sh, items);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    auto walk = [&](auto half) {
      constexpr int H = decltype(half)::value;
      int i = blockIdx.x, n = 0;
      up_sizes<H, kTokens, TERMS>(p, sh, i, n);
    };
    if (warp >> 2 & 1) walk(std::integral_constant<int, 1>());
    else walk(std::integral_constant<int, 0>());
  }
  finish(p.at);
}

extern "C" __global__ void __launch_bounds__(kUpThreads + 128, 1)
    moe_up_wgmma_128_fp4(const __grid_constant__ MoeWgmmaP p) {
  HOPPER(moe_up_wgmma<2>(p);)
}
extern "C" __global__ void __launch_bounds__(kUpThreads + 128, 1)
    moe_up_wgmma_128_rounded_fp4(const __grid_constant__ MoeWgmmaP p) {
  HOPPER(moe_up_wgmma<1>(p);)
}
