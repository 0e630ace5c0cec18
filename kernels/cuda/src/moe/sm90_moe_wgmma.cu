// The experts' products for many rows, and the rows as these and sm90_moe_up_wgmma_128.cu read
// them. See sm90_moe_wgmma.cuh.
#include "moe/sm90_moe_wgmma.cuh"

constexpr int kRows = 48;      // of an expert in a block of up
constexpr int kDownRows = kWgmmaDownRows;

// split_rows is 32 columns as the four chunks that fragments want, see nvfp4.cuh.
__device__ __forceinline__ void split_rows(const float* x, uint4 (&hi)[4], uint4 (&lo)[4]) {
  const float4* s = reinterpret_cast<const float4*>(x);
  uint32_t h[4][4], l[4][4];
#pragma unroll
  for (int t = 0; t < 4; t++) {
    float4 u = s[t], v = s[4 + t];
    Split a = split(u.x, v.x), b = split(u.y, v.y), c = split(u.z, v.z), d = split(u.w, v.w);
    h[0][t] = a.hi, h[1][t] = b.hi, h[2][t] = c.hi, h[3][t] = d.hi;
    l[0][t] = a.lo, l[1][t] = b.lo, l[2][t] = c.lo, l[3][t] = d.lo;
  }
#pragma unroll
  for (int j = 0; j < 4; j++)
    hi[j] = make_uint4(h[j][0], h[j][1], h[j][2], h[j][3]), lo[j] = make_uint4(l[j][0], l[j][1], l[j][2], l[j][3]);
}

// Rows of x in BF16: [m][k/64][hi, lo][64]. A lane of four a chunk of 32 columns.
__device__ __forceinline__ void moe_pack_panels(const MoeWgmmaP& p) {
  begin();
  ready(p.at);
  int chunks = p.k / 8, all = p.m * chunks;  // a multiple of 8: groups of lanes stay together
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i - (int)(threadIdx.x & 31) < all; i += gridDim.x * blockDim.x) {
    int m = i / chunks, c = i % chunks, t = c & 3;
    float4 u = {0, 0, 0, 0}, v = u;
    if (i < all) {
      const float* s = p.x + (size_t)m * p.ldx + (c - t) * 8 + t * 4;
      u = *reinterpret_cast<const float4*>(s), v = *reinterpret_cast<const float4*>(s + 16);
    }
    Split a = split(u.x, v.x), b = split(u.y, v.y), d = split(u.z, v.z), e = split(u.w, v.w);
    uint32_t h[4] = {a.hi, b.hi, d.hi, e.hi}, l[4] = {a.lo, b.lo, d.lo, e.lo};
    uint4 hi = quarter(h), lo = quarter(l);
    if (i < all) {
      uint4* o = reinterpret_cast<uint4*>(p.rows + ((size_t)m * chunks + (c & ~7)) * 32) + (c & 7);
      o[0] = hi;
      if (!p.rounded) o[8] = lo;
    }
  }
}

// Tile is up to kDownRows rows of one expert.
struct Tile {
  int expert, count;  // expert -1: there is no such tile
  int pairs[kDownRows];
};
static_assert(sizeof(Tile) <= kWgmmaDownTile);
// find_tile fills in tile number b; all threads of one warp call it.
__device__ __forceinline__ void find_tile(const MoeWgmmaP& p, int b, Tile& tile) {
  int lane = threadIdx.x & 31, each = (p.groups + 31) / 32, lo = min(p.groups, lane * each),
      hi = min(p.groups, lo + each), n = 0;
  for (int e = lo; e < hi; e++) n += (p.offsets[e + 1] - p.offsets[e] + kDownRows - 1) / kDownRows;
  int upto = n;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    int v = __shfl_up_sync(~0u, upto, o);
    if (lane >= o) upto += v;
  }
  bool mine = b >= upto - n && b < upto;
  unsigned has = __ballot_sync(~0u, mine);
  int expert = -1, first = 0, count = 0;
  if (mine)
    for (int e = lo, at = upto - n; e < hi; e++) {
      int start = p.offsets[e], have = p.offsets[e + 1] - start, tiles = (have + kDownRows - 1) / kDownRows;
      if (b < at + tiles) {
        expert = e, first = start + (b - at) * kDownRows, count = min(kDownRows, have - (b - at) * kDownRows);
        break;
      }
      at += tiles;
    }
  int from = has ? __ffs(has) - 1 : 0;
  expert = __shfl_sync(~0u, expert, from), first = __shfl_sync(~0u, first, from), count = __shfl_sync(~0u, count, from);
  for (int i = lane; i < kDownRows; i += 32) tile.pairs[i] = i < count ? p.list[first + i] : -1;
  if (lane == 0) tile.expert = expert, tile.count = count;
}

// with_tokens calls f with count, at most Most, rounded up to a number of tokens that a
// product has.
template <int Most, typename F>
__device__ __forceinline__ void with_tokens(int count, F f) {
  if (Most > 48 && count > 48) f(std::integral_constant<int, Most>());
  else if (count > 32) f(std::integral_constant<int, 48>());
  else if (count > 16) f(std::integral_constant<int, 32>());
  else f(std::integral_constant<int, 16>());
}

// Up: four warpgroups of products, of 64 outputs each half the rows, and one that fetches
// two units of 64 columns at a time. Of a unit's rows the high parts of all come first,
// then the low ones: one product has both, each in sums of its own.
constexpr int kStages = 4, kPanels = kRows * 256, kUnits = 16 * kFp4Unit, kUpThreads = 512;
struct UpShared {
  char panels[kStages][2][kPanels];
  char units[kStages][2][kUnits];  // 8 tiles of gate, 8 of up
  float sums[kRows / 2][kUpThreads];  // of the slices so far, each thread's
  u64 full[kStages], empty[kStages];
  int start[];  // [3 groups + 1] the first tile of each expert, by size
};
static_assert(sizeof(UpShared) + 1024 <= kWgmmaUpShared && kUpThreads + 128 == kWgmmaUpThreads);

// An item is 128 outputs of one tile. Large tiles come first: tiles of three, of two
// and of one times 16 rows, each by expert.
constexpr int kClasses = kRows / 16;
struct Item {
  int expert, first, count, part;  // rows first .. of the list; outputs 128 part ..
};
__device__ __forceinline__ int tiles_of(int rows, int size) {  // of an expert's, of up to that many rows
  int rest = (rows % kRows + 15) / 16 * 16;
  return (rest == size) + (size == kRows ? rows / kRows : 0);
}
__device__ __forceinline__ Item item_of(const MoeWgmmaP& p, const int* start, int i) {
  int parts = p.n / 128, tile = i / parts, lo = 0, hi = p.groups * kClasses;
  while (hi - lo > 1) {
    int mid = (lo + hi) / 2;
    if (start[mid] <= tile) lo = mid;
    else hi = mid;
  }
  int expert = lo % p.groups, from = p.offsets[expert], rows = p.offsets[expert + 1] - from,
      at = (lo < p.groups ? tile - start[lo] : rows / kRows) * kRows;
  return {expert, from + at, min(kRows, rows - at), i % parts};
}

template <int H, int TERMS>
__device__ __forceinline__ void up_products(const MoeWgmmaP& p, UpShared& sh, int n, int work) {
  int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3,
      tile = (warp >> 3) * 4 + (warp & 3);
  int count = __shfl_sync(~0u, item_of(p, sh.start, work).count, 0);
  float* sums = &sh.sums[0][threadIdx.x];
  with_tokens<kRows>(count, [&](auto tokens) {
    constexpr int N = decltype(tokens)::value, kSums = N / 2;
    float both[N / 2 * TERMS] = {};  // of the slice, by the terms of x
    uint32_t a[2][2][4];  // fragments of half a unit, and of the other half
    bool fresh = true;
    int step = 0, before = -1;
    auto add_slice = [&]() {
#pragma unroll
      for (int i = 0; i < kSums; i++) sums[i * kUpThreads] = (fresh ? 0 : sums[i * kUpThreads]) +
          (TERMS == 2 ? both[i] + both[(TERMS - 1) * kSums + i] : both[i]);
      fresh = false, step = 0;
    };
    auto arrived = [&](int n) {
      mbar_wait(shared_of(&sh.full[n % kStages]), n / kStages & 1);
      written();  // the rows, by others
    };
    // load takes a unit, of which read makes half the fragments at a time.
    uint4 q, r;
    uint32_t sg, su;
    auto load = [&](const char* unit) {
      const char* gate = unit + tile * kFp4Unit;
      const char* up = gate + 8 * kFp4Unit;
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
    const int end = n + p.k / 128;
    arrived(n);
    load(sh.units[n % kStages][0]), read(a[0], first), read(a[1], second);
#pragma unroll 1
    for (int start = n; n < end; n++) {
      const int s = n % kStages;
#pragma unroll
      for (int i = 0; i < 4; i++) {  // halves of two units
        const int u = i >> 1, h = i & 1;
        Operand rows(shared_of(sh.panels[s][u]) + h * 64);
        wg_fence();
#pragma unroll
        for (int j = 0; j < 2; j++) wgmma(both, a[h][j], rows + j * 2, j || h ? 1 : step);
        wg_commit();
        if (i == 2 && n + 1 < end) arrived(n + 1);
        if (i == 1) load(sh.units[s][1]);
        if (i == 3 && n + 1 < end) load(sh.units[(n + 1) % kStages][0]);
        if (h == 1 && ++step == p.per) {
          wg_wait<0>();
          add_slice();
        }
        wg_wait<1>();  // the half before is done, and its fragments free for the next one's
        if (i == 0) {
          if (before >= 0 && lane == 0) mbar_arrive(shared_of(&sh.empty[before]));
          if (n > start) read(a[1], second);
        } else if (i == 2) {
          read(a[1], second);
        } else if (i == 1 || n + 1 < end) {
          read(a[0], first);
        }
      }
      before = s;
    }
    wg_wait<0>();
    if (lane == 0) mbar_arrive(shared_of(&sh.empty[before]));
    if (step) add_slice();
  });
  Item item = item_of(p, sh.start, work);
  float2 global = p.global[item.expert];
  int r = (item.part * 8 + tile) * 16 + H * 8 + g;
#pragma unroll
  for (int j = 0; j < kRows / 8; j++)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int row = j * 8 + t * 2 + i;
      if (row < item.count)
        p.y[(size_t)p.list[item.first + row] * p.n + r] =
            silu(sums[(j * 4 + i) * kUpThreads] * global.x) * (sums[(j * 4 + 2 + i) * kUpThreads] * global.y);
    }
}

// A warp fetches four tiles of a unit: 32 chunks of 16 bytes of each, then the last four of all.
template <int TERMS>
__device__ __forceinline__ void up_fetch(const MoeWgmmaP& p, UpShared& sh, int items) {
  int id = threadIdx.x - kUpThreads, warp = id >> 5, lane = id & 31, c = id & 7, row0 = id >> 3, kt = p.k / 64, n = 0;
  // From a tile to the next; from the first chunk to the last.
  const int apart = kt * kFp4Unit, rest = (lane >> 2) * apart + 512 - (lane >> 2) * 64;
  const uint32_t units = shared_of(sh.units) + warp * 4 * kFp4Unit + lane * 16,
                 panels = shared_of(sh.panels) + panel_at(row0, c), full = shared_of(sh.full);
  for (int i = blockIdx.x; i < items; i += gridDim.x) {
    Item item = item_of(p, sh.start, i);
    const int count = item.count, rows = (count + 15) / 16 * 16;
    const char* w = p.w + (size_t)item.expert * p.wexpert +
                    (size_t)(item.part * 8 + (warp & 1) * 4 + (warp & 2 ? p.n / 16 : 0)) * apart + lane * 16;
    const char* src[kRows / 16];
#pragma unroll
    for (int j = 0; j < kRows / 16; j++) {
      int pair = row0 + j * 16 < count ? p.list[item.first + row0 + j * 16] : 0;
      src[j] = p.rows + (size_t)(p.by_pair ? pair : pair / p.topk) * kt * 256 + c * 16;
    }
#pragma unroll 1
    for (int k = 0; k < kt; k += 2, n++) {
      int s = n % kStages;
      if (n >= kStages) mbar_wait(full + (kStages + s) * 8, (n / kStages - 1) & 1);
#pragma unroll
      for (int u = 0; u < 2; u++) {
        uint32_t to = units + (s * 2 + u) * kUnits;
#pragma unroll
        for (int j = 0; j < 4; j++) copy16(to + j * kFp4Unit, w + j * apart, true);
        if (lane < 16) copy16(to + (lane >> 2) * (kFp4Unit - 64) + 512, w + rest, true);
        to = panels + (s * 2 + u) * kPanels;
#pragma unroll
        for (int j = 0; j < kRows / 16; j++)
          if (j * 16 < rows) {
            copy16(to + j * 16 * 128, src[j], row0 + j * 16 < count);
            if (TERMS == 2) copy16(to + (j * 16 + rows) * 128, src[j] + 128, row0 + j * 16 < count);
            src[j] += 256;
          }
        w += kFp4Unit;
      }
      copies_arrive(full + s * 8);
    }
  }
}

// y[pair, n] = silu(gate x) * (up x). The blocks share the items.
template <int TERMS>
__device__ __forceinline__ void moe_up_wgmma(const MoeWgmmaP& p) {
  extern __shared__ __align__(1024) char smem[];
  UpShared& sh = *reinterpret_cast<UpShared*>(smem + (-(int)shared_of(smem) & 1023));
  begin();
  int tid = threadIdx.x, warp = __shfl_sync(~0u, tid >> 5, 0), lane = tid & 31;
  if (tid == 0) {
    for (int s = 0; s < kStages; s++)
      mbar_init(shared_of(&sh.full[s]), 128), mbar_init(shared_of(&sh.empty[s]), kUpThreads / 32);
    mbar_ready();
  }
  ready(p.at);
  if (warp == 0) {
    int each = (p.groups + 31) / 32, lo = min(p.groups, lane * each), hi = min(p.groups, lo + each), before = 0;
    for (int c = 0; c < kClasses; c++) {
      int size = kRows - c * 16, n = 0;
      for (int e = lo; e < hi; e++) n += tiles_of(p.offsets[e + 1] - p.offsets[e], size);
      int upto = n;
#pragma unroll
      for (int o = 1; o < 32; o *= 2) {
        int v = __shfl_up_sync(~0u, upto, o);
        if (lane >= o) upto += v;
      }
      for (int e = lo, at = before + upto - n; e < hi; e++) {
        sh.start[c * p.groups + e] = at;
        at += tiles_of(p.offsets[e + 1] - p.offsets[e], size);
      }
      before += __shfl_sync(~0u, upto, 31);
    }
    if (lane == 31) sh.start[kClasses * p.groups] = before;
  }
  __syncthreads();
  int items = __shfl_sync(~0u, sh.start[kClasses * p.groups] * (p.n / 128), 0);
  if (tid >= kUpThreads) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    up_fetch<TERMS>(p, sh, items);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 112;");
    auto walk = [&](auto half) {
#pragma unroll 1
      for (int i = blockIdx.x, n = 0; i < items; i += gridDim.x, n += p.k / 128)
        up_products<decltype(half)::value, TERMS>(p, sh, n, i);
    };
    if (warp >> 2 & 1) walk(std::integral_constant<int, 1>());
    else walk(std::integral_constant<int, 0>());
  }
  finish(p.at);
}

// Down: all of k as panels; then each warpgroup 64 outputs at a time, whose weights each
// warp has in a ring of its own.
constexpr int kDownThreads = 256, kDownRing = 2;
static_assert(kDownThreads / 32 * kDownRing == kWgmmaDownRing);

template <int N, int TERMS>
__device__ __forceinline__ void down_products(const MoeWgmmaP& p, uint32_t panels, const Tile& tile, const char* ring,
                                              uint32_t full) {
  int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  const int kt = p.k / 64, bytes = kt * kFp4Unit;
  constexpr int WG = kDownThreads / 128;
  int first = p.row0 / 64 + blockIdx.x * WG + (warp >> 2), end = (p.row0 + p.count) / 64, by = gridDim.x * WG;
  int expert = __shfl_sync(~0u, tile.expert, 0), count = __shfl_sync(~0u, tile.count, 0);
  float2 global = p.global[expert];
  const char* w = p.w + (size_t)expert * p.wexpert + (size_t)(warp & 3) * bytes;
  ring += warp * kDownRing * bytes, full += warp * kDownRing * 8;
  auto fetch = [&](int block, int slot) {
    if (lane == 0 && block < end) {
      mbar_expect(full + slot * 8, bytes);
      copy_bulk(shared_of(ring) + slot * bytes, w + (size_t)block * 4 * bytes, bytes, full + slot * 8);
    }
  };
  constexpr int kAhead = kDownRing + 2;  // blocks of weights, on their way to the cache
  auto ahead = [&](int block) {
    if (lane == 0 && block < end) prefetch(w + (size_t)block * 4 * bytes, bytes);
  };
  for (int i = 0; i < kDownRing; i++) fetch(first + i * by, i);
  for (int i = kDownRing; i < kAhead; i++) ahead(first + i * by);
  int slot = 0, phase = 0;
  for (int block = first; block < end; block += by) {
    ahead(block + kAhead * by);
    float upper[N / 2], lower[N / 2];  // by the terms of x
    uint32_t a[2][2][4];
    mbar_wait(full + slot * 8, phase);
    const char* unit = ring + slot * bytes;
    for (int i = 0; i < kt; i++, unit += kFp4Unit) {
      Operand hi(panels + i * (kDownRows * 128 * TERMS)), lo = hi + (kDownRows * 128 >> 4);
#pragma unroll
      for (int h = 0; h < 2; h++) {
        uint2 q = reinterpret_cast<const uint2*>(fp4_codes(unit, lane))[h], s = *fp4_scales(unit, lane);
        uint32_t s0 = h ? fp4_scale<1>(s.x) : fp4_scale<0>(s.x), t0 = h ? fp4_scale<1>(s.y) : fp4_scale<0>(s.y);
        unpack_fp4(a[h][0], q.x, s0, t0), unpack_fp4(a[h][1], q.y, s0, t0);
        wg_fence();
#pragma unroll
        for (int j = 0; j < 2; j++) {
          if (TERMS == 2) wgmma(lower, a[h][j], lo + (h * 2 + j) * 2, j || h ? 1 : i);
          wgmma(upper, a[h][j], hi + (h * 2 + j) * 2, j || h ? 1 : i);
        }
        wg_commit();
        wg_wait<1>();
      }
    }
    __syncwarp();
    fetch(block + kDownRing * by, slot);
    if (++slot == kDownRing) slot = 0, phase ^= 1;
    wg_wait<0>();
    int r = block * 64 + (warp & 3) * 16 + g;
    float g0 = r < p.n / 2 ? global.x : global.y, g1 = r + 8 < p.n / 2 ? global.x : global.y;
    float* y = p.y + r - p.row0;
#pragma unroll
    for (int j = 0; j < N / 8; j++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        int row = j * 8 + t * 2 + i;
        if (row < count) {
          float* at = y + (size_t)tile.pairs[row] * p.count;
          auto both = [&](int k) { return TERMS == 2 ? upper[k] + lower[k] : upper[k]; };
          at[0] = both(j * 4 + i) * g0, at[8] = both(j * 4 + 2 + i) * g1;
        }
      }
  }
}

// y[pair, r - row0] = down x: a block one tile and every gridDim.x-th group of outputs. grid (any, tiles)
template <int TERMS>
__device__ __forceinline__ void moe_down_wgmma(const MoeWgmmaP& p) {
  extern __shared__ __align__(1024) char smem[];
  constexpr int kFull = kDownThreads / 32 * kDownRing, kDownPanels = kDownRows * 128 * TERMS;
  char* panels = smem + (-(int)shared_of(smem) & 1023);
  char* ring = panels + p.k / 64 * kDownPanels;
  u64* full = reinterpret_cast<u64*>(ring + kFull * (p.k / 64) * kFp4Unit);
  Tile& tile = *reinterpret_cast<Tile*>(full + kFull);
  begin();
  if (threadIdx.x < kFull) mbar_init(shared_of(full + threadIdx.x), 1), mbar_ready();
  ready(p.at);
  if (threadIdx.x < 32) find_tile(p, blockIdx.y, tile);
  __syncthreads();
  if (tile.expert < 0) return finish(p.at);
  int rows = (tile.count + 15) / 16 * 16;
  for (int i = threadIdx.x; i < kDownRows * (p.k / 32); i += kDownThreads) {
    int row = i % kDownRows, c = i / kDownRows;
    if (row >= rows) continue;
    uint4 hi[4] = {}, lo[4] = {};
    if (row < tile.count) split_rows(p.x + (size_t)tile.pairs[row] * p.ldx + c * 32, hi, lo);
    char* o = panels + (c >> 1) * kDownPanels;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      char* at = o + panel_at(row, (c & 1) * 4 + j);
      *reinterpret_cast<uint4*>(at) = hi[j];
      if (TERMS == 2) *reinterpret_cast<uint4*>(at + kDownRows * 128) = lo[j];
    }
  }
  written();
  __syncthreads();
  with_tokens<kDownRows>(__shfl_sync(~0u, tile.count, 0), [&](auto n) {
    down_products<decltype(n)::value, TERMS>(p, shared_of(panels), tile, ring, shared_of(full));
  });
  finish(p.at);
}

extern "C" __global__ void __launch_bounds__(256) moe_pack_panels_fp4(const __grid_constant__ MoeWgmmaP p) {
  HOPPER(moe_pack_panels(p);)
}
#define KERNEL(name, bounds, what) \
  extern "C" __global__ void __launch_bounds__ bounds name(const __grid_constant__ MoeWgmmaP p) { HOPPER(what(p);) }
KERNEL(moe_up_wgmma_fp4, (kUpThreads + 128, 1), moe_up_wgmma<2>)
KERNEL(moe_up_wgmma_rounded_fp4, (kUpThreads + 128, 1), moe_up_wgmma<1>)
KERNEL(moe_down_wgmma_fp4, (kDownThreads, 2), moe_down_wgmma<2>)
KERNEL(moe_down_wgmma_rounded_fp4, (kDownThreads, 3), moe_down_wgmma<1>)
