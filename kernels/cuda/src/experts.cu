// The experts' products with FP4 weights where an expert has few rows: every block
// stays and walks over its part of the work, and each warp has its own ring of
// weights that the copy engine fills, so that the memory is never idle.
//
// Rows that choose the same expert are a group, of up to `tokens` rows; each block
// makes the list of its groups from the chosen experts.
#include "moe.cuh"

constexpr int kChunk = 2;         // units of a stage, of each of the two tiles of up
constexpr int kDownChunk = 4;     // of down's tile

__device__ __forceinline__ uint32_t shared_at(const void* p) { return __cvta_generic_to_shared(p); }
__device__ __forceinline__ void bar_init(uint32_t bar) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory"); }
__device__ __forceinline__ void bar_expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bulk(uint32_t dst, const void* src, uint32_t bytes, uint32_t bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst), "l"(src), "r"(bytes), "r"(bar) : "memory");
}
// bar_wait gives up after about a second, which only a fault of the memory takes.
__device__ __forceinline__ void bar_wait(uint32_t bar, uint32_t parity) {
#pragma unroll 1
  for (int i = 0; i < 1 << 20; i++) {
    uint32_t done;
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(done) : "r"(bar), "r"(parity) : "memory");
    if (done) return;
  }
  __trap();
}

// Ring is a warp's stages.
struct Ring {
  char* at;
  uint32_t bar;
  int bytes, stages, stage, parity;

  __device__ __forceinline__ Ring(char* all, u64* bars, int bytes, int stages) : bytes(bytes), stages(stages), stage(0), parity(0) {
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    at = all + (size_t)warp * stages * bytes, bar = shared_at(bars + warp * stages);
    if (lane < stages) bar_init(bar + lane * 8);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __device__ __forceinline__ const char* wait() const {
    bar_wait(bar + stage * 8, parity);
    return at + stage * bytes;
  }
  __device__ __forceinline__ void next() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

// scan returns the sum over the threads before this one, and all of them in total.
__device__ __forceinline__ int scan(int v, int* sums, int& total) {
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, n = blockDim.x >> 5, in = v;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    int u = __shfl_up_sync(~0u, in, o);
    if (lane >= o) in += u;
  }
  if (lane == 31) sums[warp] = in;
  __syncthreads();
  int s = lane < n ? sums[lane] : 0, w = s;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    int u = __shfl_up_sync(~0u, w, o);
    if (lane >= o) w += u;
  }
  total = __shfl_sync(~0u, w, 31);
  int before = __shfl_sync(~0u, w - s, warp);
  __syncthreads();
  return before + in - v;
}

// Groups are those of a block. work is for making them only.
struct Groups {
  int *sums;                          // [32]
  int *expert, *count, *slot, *pair;  // [n], [n], [n], [n, tokens]
  int *ids, *rank, *rows, *first;     // work: [pairs], [pairs], [experts], [experts]
  uint8_t* before;                    // work: [chunks of 32 pairs][experts]
  int tokens;

  __device__ __forceinline__ Groups(const MoeP& p, int n, int* lists, char* work) : tokens(p.tokens) {
    int pairs = p.m * p.topk;
    sums = lists, expert = sums + 32, count = expert + n, slot = count + n, pair = slot + n;
    ids = reinterpret_cast<int*>(work), rank = ids + pairs, rows = rank + pairs, first = rows + p.groups;
    before = reinterpret_cast<uint8_t*>(first + p.groups);
  }

  // number numbers all groups, by expert, and returns how many there are.
  __device__ __forceinline__ int number(const MoeP& p) {
    int pairs = p.m * p.topk, lane = threadIdx.x & 31, chunks = (pairs + 31) / 32;
    if (p.m == 1) {
      if (p.at && blockIdx.x == 0 && threadIdx.x == 0) p.at[2] = pairs;
      return pairs;
    }
    for (int i = threadIdx.x; i < (chunks * p.groups + 3) / 4; i += blockDim.x) reinterpret_cast<int*>(before)[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < chunks * 32; i += blockDim.x) {
      int e = i < pairs ? __ldcg(p.experts + i) : -1;
      unsigned same = __match_any_sync(~0u, e);
      int r = __popc(same & ((1u << lane) - 1));
      if (i < pairs) {
        ids[i] = e, rank[i] = r;
        if (r == 0) before[(i >> 5) * p.groups + e] = __popc(same);
      }
    }
    __syncthreads();
    int per = (p.groups + blockDim.x - 1) / blockDim.x, mine = 0, touched = 0, total;
    int lo = min(p.groups, (int)threadIdx.x * per), hi = min(p.groups, lo + per);
    for (int e = lo; e < hi; e++) {
      int n = 0;
      for (int c = 0; c < chunks; c++) {
        int k = before[c * p.groups + e];
        before[c * p.groups + e] = n, n += k;
      }
      rows[e] = n, mine += (n + tokens - 1) / tokens, touched += n > 0;
    }
    if (p.at && blockIdx.x == 0) {
      int all;
      scan(touched, sums, all);
      if (threadIdx.x == 0) p.at[2] = all;
    }
    int at = scan(mine, sums, total);
    for (int e = lo; e < hi; e++) first[e] = at, at += (rows[e] + tokens - 1) / tokens;
    __syncthreads();
    return total;
  }

  // list lists the groups [lo, hi) with their pairs.
  __device__ __forceinline__ void list(const MoeP& p, int lo, int hi) {
    int pairs = p.m * p.topk;
    if (p.m == 1) {
      for (int q = threadIdx.x; q < hi - lo; q += blockDim.x) expert[q] = __ldcg(p.experts + lo + q), count[q] = 1, slot[q] = q, pair[q] = lo + q;
      __syncthreads();
      return;
    }
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
      int e = ids[i], r = rank[i] + before[(i >> 5) * p.groups + e], q = first[e] + r / tokens - lo, c = r % tokens;
      if (q < 0 || q >= hi - lo) continue;
      pair[q * tokens + c] = i;
      if (c == 0) expert[q] = e, count[q] = min(tokens, rows[e] - r);
    }
    __syncthreads();
  }

  // place gives each row of the block's n groups a slot.
  __device__ __forceinline__ void place(const MoeP& p, int n) {
    if (p.m == 1) return;
    int per = (n + blockDim.x - 1) / blockDim.x, lo = min(n, (int)threadIdx.x * per), hi = min(n, lo + per), mine = 0, all;
    for (int q = lo; q < hi; q++) mine += count[q];
    int at = scan(mine, sums, all);
    for (int q = lo; q < hi; q++) slot[q] = at, at += count[q];
    __syncthreads();
  }
};

// One unit of T tiles times the activations x, staged, of up to 8 rows.
template <int T>
__device__ __forceinline__ void unit(float (&acc)[T][4], const char* const (&u)[T], const uint4* x, int lane) {
  uint4 q[T];
  uint2 s[T];
#pragma unroll
  for (int a = 0; a < T; a++) q[a] = *fp4_codes(u[a], lane), s[a] = *fp4_scales(u[a], lane);
#pragma unroll
  for (int half = 0; half < 2; half++) {
    uint4 v[2] = {x[half * 8], x[half * 8 + 4]};
#pragma unroll
    for (int a = 0; a < T; a++) {
      uint32_t g = half ? fp4_scale<1>(s[a].x) : fp4_scale<0>(s[a].x), h = half ? fp4_scale<1>(s[a].y) : fp4_scale<0>(s[a].y);
#pragma unroll
      for (int i = 0; i < 2; i++) {
        uint32_t frag[4];
        unpack_fp4(frag, half ? (i ? q[a].w : q[a].z) : (i ? q[a].y : q[a].x), g, h);
        mma(acc[a], frag, v[i].z, v[i].w);
        mma(acc[a], frag, v[i].x, v[i].y);
      }
    }
  }
}

// A row of staged activations has for each fragment four B fragments of 16 bytes,
// {b0.hi, b1.hi, b0.lo, b1.lo}, and 64 bytes that spread rows over the banks.
__host__ __device__ constexpr int staged_row(int kt) { return kt * 256 + 64; }

// stage_x writes the i'th part, of 8 columns, of a row.
__device__ __forceinline__ void stage_x(char* row, const float* x, int i, int kmax) {
  int pair = i >> 2, t = i & 3;
  Fp4X f = load_fp4x(x, pair * 32 + t * 4, kmax);
#pragma unroll
  for (int j = 0; j < 2; j++) reinterpret_cast<uint4*>(row)[(2 * pair + j) * 4 + t] = make_uint4(f.f[j].b0.hi, f.f[j].b1.hi, f.f[j].b0.lo, f.f[j].b1.lo);
}

// y[pair, n] = silu(gate x) (up x). The blocks share the list of (group, 16 outputs);
// the warps of a block share k.
template <int W>
__device__ __forceinline__ void experts_up(const MoeP& p) {
  extern __shared__ __align__(128) char smem[];
  constexpr int kTile = kChunk * kFp4Unit;
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, tokens = p.tokens;
  int kt = (p.k + 63) / 64, xrow = staged_row(kt), tp = (p.n + 15) / 16;
  // Shared memory: ring, sums of two items, barriers, lists, x.
  float* sums = reinterpret_cast<float*>(smem + W * p.stages * 2 * kTile);
  u64* bars = reinterpret_cast<u64*>(sums + 2 * W * 32 * tokens);
  int* lists = reinterpret_cast<int*>(bars + W * p.stages);
  char* xs = reinterpret_cast<char*>(lists) + (128 + p.slots * (3 + tokens) * 4 + 15) / 16 * 16;
  Groups groups(p, p.slots, lists, xs);
  Ring ring(smem, bars, 2 * kTile, p.stages);
  bool one = p.m == 1 && !p.by_pair, staged = one && p.early;  // all groups have the same row
  if (staged)
    for (int j = threadIdx.x; j < kt * 8; j += W * 32) stage_x(xs, p.x, j, p.k);
  __syncthreads();
  ready(p.at);
  begin();  // moe_down may start to read: the experts are known
  int items = groups.number(p) * tp, i0 = (int)((int64_t)items * blockIdx.x / gridDim.x), i1 = (int)((int64_t)items * (blockIdx.x + 1) / gridDim.x);
  int g0 = i0 / tp;
  groups.list(p, g0, i1 > i0 ? (i1 - 1) / tp + 1 : g0);
  int per = (kt + kUpSlices - 1) / kUpSlices, lo = min(kt, warp * per), hi = min(kt, lo + per), chunks = (hi - lo + kChunk - 1) / kChunk;
  int fi = i0, fq = 0, fat = i0 - g0 * tp, fc = 0;  // what is fetched next
  auto fetch = [&](int stage) {
    if (fi >= i1 || chunks == 0) return;
    if (lane == 0) {
      int u = lo + fc * kChunk, n = min(kChunk, hi - u) * kFp4Unit;
      const char* w = p.w + (size_t)groups.expert[fq] * p.wexpert + ((size_t)fat * kt + u) * kFp4Unit;
      uint32_t bar = ring.bar + stage * 8, to = shared_at(ring.at + stage * 2 * kTile);
      bar_expect(bar, 2 * n);
      bulk(to, w, n, bar);
      bulk(to + kTile, w + (size_t)tp * kt * kFp4Unit, n, bar);
    }
    if (++fc == chunks) {
      fc = 0, fi++;
      if (++fat == tp) fat = 0, fq++;
    }
  };
  for (int s = 0; s < p.stages; s++) fetch(s);
  int q = -1, count = 0;
  for (int i = i0; i < i1; i++) {
    int at = i % tp;
    if (i / tp - g0 != q) {
      q = i / tp - g0, count = groups.count[q];
      for (int c = 0; c < count && !staged; c++) {
        int pair = groups.pair[q * tokens + c];
        const float* x = p.x + (size_t)(p.by_pair ? pair : pair / p.topk) * p.ldx;
#pragma unroll 2
        for (int j = threadIdx.x; j < kt * 8; j += W * 32) stage_x(xs + c * xrow, x, j, p.k);
      }
      staged = one;
      __syncthreads();
    }
    float acc[2][4] = {};
    const uint4* x = reinterpret_cast<const uint4*>(xs + (g < count ? g : 0) * xrow) + lo * 16 + t;
    for (int c = 0; c < chunks; c++, x += kChunk * 16) {
      const char* u = ring.wait();
      int n = hi - lo - c * kChunk;
#pragma unroll
      for (int s = 0; s < kChunk; s++) {
        const char* us[2] = {u + s * kFp4Unit, u + kTile + s * kFp4Unit};
        if (s < n) unit<2>(acc, us, x + s * 16, lane);
      }
      __syncwarp();
      fetch(ring.stage);
      ring.next();
    }
    float* mine = sums + ((i & 1) * W + warp) * 32 * tokens;
#pragma unroll
    for (int a = 0; a < 2; a++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int c = t * 2 + (j & 1);
        if (c < count) mine[(a * 16 + g + (j >> 1) * 8) * tokens + c] = acc[a][j];
      }
    __syncthreads();
    int c = (warp - i) & (W - 1);  // this warp adds up one row's 16 gates and 16 ups
    if (c < count) {
      const float* from = sums + (i & 1) * W * 32 * tokens + lane * tokens + c;
      float v = 0;
#pragma unroll
      for (int w = 0; w < W; w++) v += from[w * 32 * tokens];
      float2 global = p.global[groups.expert[q]];
      v *= lane < 16 ? global.x : global.y;
      float up = __shfl_xor_sync(~0u, v, 16);
      if (lane < 16 && at * 16 + lane < p.n) p.y[(size_t)groups.pair[q * tokens + c] * p.n + at * 16 + lane] = silu(v) * up;
    }
  }
  finish(p.at);
}

// y[m, n] += Σ weight (down x). A block owns rows of n and walks over all groups,
// whose products wait in shared memory until each row adds its experts in order.
template <int W>
__device__ __forceinline__ void experts_down(const MoeP& p) {
  extern __shared__ __align__(128) char smem[];
  constexpr int kTile = kDownChunk * kFp4Unit;
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, tokens = p.tokens, pairs = p.m * p.topk;
  int kt = (p.k + 63) / 64, xrow = staged_row(kt), tiles = (p.n + 15) / 16;
  int per = (tiles + gridDim.x - 1) / gridDim.x, tile0 = blockIdx.x * per, nt = max(0, min(per, tiles - tile0)), rows = per * 16;
  int most = min(pairs, p.groups + pairs / tokens);  // groups
  // Shared memory: ring, barriers, products, lists, x.
  u64* bars = reinterpret_cast<u64*>(smem + W * p.stages * kTile);
  float* parts = reinterpret_cast<float*>(bars + W * p.stages);
  int* lists = reinterpret_cast<int*>(parts + pairs * rows);
  char* xs = reinterpret_cast<char*>(lists) + (128 + most * (3 + tokens) * 4 + 15) / 16 * 16;
  Groups groups(p, most, lists, xs);
  Ring ring(smem, bars, kTile, p.stages);
  begin();
  __syncthreads();
  if (!p.early) ready(p.at);
  int n = groups.number(p), chunks = (kt + kDownChunk - 1) / kDownChunk, items = n * nt;
  groups.list(p, 0, n);
  groups.place(p, n);
  int fi = warp, fc = 0;  // what is fetched next
  auto fetch = [&](int stage) {
    if (fi >= items) return;
    if (lane == 0) {
      int u = fc * kDownChunk, bytes = min(kDownChunk, kt - u) * kFp4Unit;
      uint32_t bar = ring.bar + stage * 8;
      bar_expect(bar, bytes);
      bulk(shared_at(ring.at + stage * kTile), p.w + (size_t)groups.expert[fi / nt] * p.wexpert + ((size_t)(tile0 + fi % nt) * kt + u) * kFp4Unit, bytes, bar);
    }
    if (++fc == chunks) fc = 0, fi += W;
  };
  for (int s = 0; s < p.stages; s++) fetch(s);
  if (p.early) ready(p.at);
  for (int ga = 0, i = warp; ga < n;) {  // the groups whose rows fit the slots
    int base = groups.slot[ga], gb = ga + 1;
    while (gb < n && groups.slot[gb] + groups.count[gb] - base <= p.slots) gb++;
    if (ga > 0) __syncthreads();
    for (int j = threadIdx.x; j < (gb - ga) * tokens * kt * 8; j += W * 32) {
      int row = j / (kt * 8), q = ga + row / tokens, c = row % tokens;
      if (c < groups.count[q]) stage_x(xs + (groups.slot[q] - base + c) * xrow, p.x + (size_t)groups.pair[q * tokens + c] * p.ldx, j % (kt * 8), p.k);
    }
    __syncthreads();
    for (; i < items && i / nt < gb; i += W) {
      int q = i / nt, tile = i % nt, count = groups.count[q];
      float acc[1][4] = {};
      const uint4* x = reinterpret_cast<const uint4*>(xs + (groups.slot[q] - base + (g < count ? g : 0)) * xrow) + t;
      for (int c = 0; c < chunks; c++, x += kDownChunk * 16) {
        const char* u = ring.wait();
        int left = kt - c * kDownChunk;
#pragma unroll
        for (int s = 0; s < kDownChunk; s++) {
          const char* us[1] = {u + s * kFp4Unit};
          if (s < left) unit<1>(acc, us, x + s * 16, lane);
        }
        __syncwarp();
        fetch(ring.stage);
        ring.next();
      }
      float2 global = p.global[groups.expert[q]];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int c = t * 2 + (j & 1), r = tile * 16 + g + (j >> 1) * 8;
        if (c < count) parts[groups.pair[q * tokens + c] * rows + r] = acc[0][j] * (tile0 * 16 + r < p.n / 2 ? global.x : global.y);
      }
    }
    ga = gb;
  }
  __syncthreads();
  for (int j = threadIdx.x; j < p.m * nt * 16; j += W * 32) {
    int m = j / (nt * 16), r = j % (nt * 16);
    if (tile0 * 16 + r >= p.n) continue;
    float* y = p.y + (size_t)m * p.ldy + tile0 * 16 + r;
    float v = *y;
    for (int c = 0; c < p.topk; c++) v = fmaf(p.weights[(size_t)m * p.ldw + c], parts[(m * p.topk + c) * rows + r], v);
    *y = v;
  }
  finish(p.at);
}

extern "C" __global__ void __launch_bounds__(512, 1) experts_up_fp4(const __grid_constant__ MoeP p) { experts_up<16>(p); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_down_fp4_8(const __grid_constant__ MoeP p) { experts_down<8>(p); }
extern "C" __global__ void __launch_bounds__(512, 1) experts_down_fp4_16(const __grid_constant__ MoeP p) { experts_down<16>(p); }
