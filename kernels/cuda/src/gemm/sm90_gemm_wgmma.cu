// y[m, n] = x[m, k] w[n, k]ᵀ for more rows than gemm.cu is for, on Hopper: the same
// sums in the same order, by warpgroup products of 64 outputs and NT tokens.
//
// The order is gemm.cu's: k in slices of per steps, each summed on its own; eight
// slices make a block's sum, and the blocks' sums make the output.
#include "mma/sm90_wgmma.cuh"
#include "gemm/params.h"

// W16, W4: a unit of 64 columns of the lane's rows of a tile, in BF16 or NVFP4; read is
// half its fragments.
struct W16 {
  static constexpr bool kFp4 = false;
  static constexpr int kUnit = 2048;
  static __device__ __forceinline__ void read(uint32_t (&a)[2][4], const char* unit, int half, int lane) {
    const uint4* p = reinterpret_cast<const uint4*>(unit) + half * 64 + lane;
#pragma unroll
    for (int j = 0; j < 2; j++) {
      uint4 q = p[j * 32];
      a[j][0] = q.x, a[j][1] = q.y, a[j][2] = q.z, a[j][3] = q.w;
    }
  }
};
struct W4 {
  static constexpr bool kFp4 = true;
  static constexpr int kUnit = kFp4Unit;
  static __device__ __forceinline__ void read(uint32_t (&a)[2][4], const char* unit, int half, int lane) {
    uint2 q = reinterpret_cast<const uint2*>(fp4_codes(unit, lane))[half], s = *fp4_scales(unit, lane);
    uint32_t s0 = half ? fp4_scale<1>(s.x) : fp4_scale<0>(s.x), t0 = half ? fp4_scale<1>(s.y) : fp4_scale<0>(s.y);
    unpack_fp4(a[0], q.x, s0, t0), unpack_fp4(a[1], q.y, s0, t0);
  }
};

__device__ __forceinline__ float scale_of(const WgmmaP& p, int row) {
  return p.global_up != 0 && row >= p.n / 2 ? p.global_up : p.global;
}

// x[m, k] as panels: [heads][tiles of 64][k/64][hi, lo]. A thread 8 columns of a row;
// rows past m are zeros. grid (any, heads)
constexpr int kTile = 64, kPanel = kTile * 128;  // rows and bytes
template <bool FP4>
__device__ __forceinline__ void pack_panels(const WgmmaP& p) {
  begin();
  ready(p.at);
  int kt = p.k / 64, all = (p.m + kTile - 1) / kTile * kTile * kt * 8;  // a multiple of 32
  const float* x = p.x + (size_t)blockIdx.y * p.xhead;
  char* out = const_cast<char*>(p.panels) + (size_t)blockIdx.y * p.panel_head;
  const uint32_t low = low_of(p.rounded);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
    int m = i / (kt * 8), c = i % (kt * 8), row = m % kTile;
    float4 u = {0, 0, 0, 0}, v = u;
    if (m < p.m) {
      const float* s = x + (size_t)m * p.ldx + (FP4 ? (c & ~3) * 8 + (c & 3) * 4 : c * 8);
      u = *reinterpret_cast<const float4*>(s), v = *reinterpret_cast<const float4*>(s + (FP4 ? 16 : 4));
    }
    uint4 hi, lo;
    if (FP4) {
      Split a = split(u.x, v.x, low), b = split(u.y, v.y, low), d = split(u.z, v.z, low), e = split(u.w, v.w, low);
      uint32_t h[4] = {a.hi, b.hi, d.hi, e.hi}, l[4] = {a.lo, b.lo, d.lo, e.lo};
      hi = quarter(h), lo = quarter(l);
    } else {
      Chunk q = chunk_of(u, v, low);
      hi = make_uint4(q.a.hi, q.b.hi, q.c.hi, q.d.hi), lo = make_uint4(q.a.lo, q.b.lo, q.c.lo, q.d.lo);
    }
    char* at = out + ((size_t)(m / kTile) * kt + (c >> 3)) * (2 * kPanel) + panel_at(row, c & 7);
    *reinterpret_cast<uint4*>(at) = hi;
    *reinterpret_cast<uint4*>(at + kPanel) = lo;
  }
  // The call ends with its product.
}

// Many rows: a block has 64 WG outputs of NT tokens and all of k, then the next such
// tile, outputs first. A warp fetches panels and weights into a ring of p.stages: of the
// next tile while sums are stored. With p.rope the last tile of outputs rotates, and a
// block has one tile. grid (outputs, tokens, heads), or any
template <typename W, int NT, int WG>
__device__ __forceinline__ void gemm_wgmma(const WgmmaP& p) {
  extern __shared__ __align__(1024) char smem[];
  // hi and lo
  constexpr int kPanels = NT * 256, kUnit = W::kUnit, kWeights = WG * 4 * kUnit,
      kStage = (kPanels + kWeights + 1023) / 1024 * 1024;
  const int S = p.stages;
  char* ring = smem + (-(int)shared_of(smem) & 1023);
  uint32_t full = shared_of(ring + S * kStage), empty = full + S * 8;
  begin();
  int tid = threadIdx.x, warp = __shfl_sync(~0u, tid >> 5, 0), lane = tid & 31, g = lane >> 2, t = lane & 3,
      kt = p.k / 64;
  if (p.rope && blockIdx.x == gridDim.x - 1) {
    ready(p.at);
    rotate(p, blockIdx.y * NT, NT);
    return finish(p.at);
  }
  if (tid == 0) {
    for (int s = 0; s < S; s++) mbar_init(full + s * 8, 1), mbar_init(empty + s * 8, WG * 4);
    mbar_ready();
  }
  __syncthreads();
  const int parts = (p.n + WG * 64 - 1) / (WG * 64) + (p.rope ? 1 : 0), rows = (p.m + NT - 1) / NT,
      tiles = parts * rows * p.heads;
  const int from = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z),
      step = gridDim.x * gridDim.y * gridDim.z;
  if (warp >= WG * 4) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (warp == WG * 4) {
      const int last = (p.n + 15) / 16 - 1;
      constexpr int T = NT / kTile;
      uint32_t at = shared_of(ring);
      int s = 0, phase = 1, first = S;  // stages that are free from the start
#pragma unroll 1
      for (int tile = from; tile < tiles; tile += step) {
        int head = tile / (parts * rows), part = tile % parts;
        const char *w = static_cast<const char*>(p.w) + head * p.whead,
            *x = p.panels + head * p.panel_head + (size_t)(tile / parts % rows) * kt * kPanels;
        auto weights = [&](int i, uint32_t to, uint32_t bar) {
          expect_one(bar, kPanels + kWeights);
#pragma unroll
          for (int j = 0; j < WG * 4; j++) copy_one(to + kPanels + j * kUnit, w +
              ((size_t)min(part * WG * 4 + j, last) * kt + i) * kUnit, kUnit, bar);
        };
        auto panels = [&](int i, uint32_t to, uint32_t bar) {  // the high parts of all tokens, then the low ones
#pragma unroll
          for (int j = 0; j < T; j++) {
            const char* from = x + ((size_t)j * kt + i) * (2 * kPanel);
            copy_one(to + j * kPanel, from, kPanel, bar), copy_one(to + (T + j) * kPanel, from + kPanel, kPanel, bar);
          }
        };
        int i = 0;
        if (first) {  // weights before the rows are there
          first = min(S, kt);
#pragma unroll 1
          for (int j = 0; j < first; j++) weights(j, at + j * kStage, full + j * 8);
          ready(nullptr);
#pragma unroll 1
          for (; i < first; i++) panels(i, at + i * kStage, full + i * 8);
          s = first == S ? 0 : first, phase = first == S ? 0 : 1, first = 0;
        }
#pragma unroll 1
        for (; i < kt; i++) {
          mbar_wait(empty + s * 8, phase);
          weights(i, at + s * kStage, full + s * 8), panels(i, at + s * kStage, full + s * 8);
          if (++s == S) s = 0, phase ^= 1;
        }
      }
    }
    __syncwarp();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    ready(p.at);
    const char* weights = ring + kPanels + warp * kUnit;
    uint32_t at = shared_of(ring), a[2][2][4];  // fragments of half a unit, and of the other half
    int s = 0, phase = 0;
#pragma unroll 1
    for (int tile = from; tile < tiles; tile += step) {
      float acc[NT / 2], sum[NT / 2] = {}, total[NT / 2] = {};  // of a slice, of a block of slices, of blocks
      int step = 0, slice = 0, before = -1;
      bool several = false;
      mbar_wait(full + s * 8, phase);
      W::read(a[0], weights + s * kStage, 0, lane), W::read(a[1], weights + s * kStage, 1, lane);
      for (int i = 0; i < kt; i++) {
        Operand hi(at + s * kStage), lo = hi + (NT * 128 >> 4);
        const int now = s;
        if (++s == S) s = 0, phase ^= 1;
#pragma unroll
        for (int h = 0; h < 2; h++) {
          wg_fence();
#pragma unroll
          for (int j = 0; j < 2; j++) {
            wgmma(acc, a[h][j], lo + (h * 2 + j) * 2, j ? 1 : step);
            wgmma(acc, a[h][j], hi + (h * 2 + j) * 2, 1);
          }
          wg_commit();
          step += 2;
          if (step == p.per) {
            wg_wait<0>();
            add_to(sum, acc);
            step = 0;
            if (++slice == kWarps && p.blocks > 1) {
              add_to(total, sum);
              slice = 0, several = true;
#pragma unroll
              for (int j = 0; j < NT / 2; j++) sum[j] = 0;
            }
          }
          // The other half's fragments of the next unit, for its products with these ones are done.
          wg_wait<1>();
          if (h == 0) {
            if (i > 0) {
              if (lane == 0) mbar_arrive(empty + before * 8);
              W::read(a[1], weights + now * kStage, 1, lane);
            }
          } else if (i + 1 < kt) {
            mbar_wait(full + s * 8, phase);
            W::read(a[0], weights + s * kStage, 0, lane);
          }
        }
        before = now;
      }
      wg_wait<0>();
      if (lane == 0) mbar_arrive(empty + before * 8);
      if (step) add_to(sum, acc);
#pragma unroll
      for (int j = 0; j < NT / 2; j++) sum[j] = several ? total[j] + sum[j] : sum[j];
      int r = (tile % parts * WG * 4 + warp) * 16 + g, m = tile / parts % rows * NT + t * 2;
      float* y = p.y + (size_t)(tile / (parts * rows)) * p.yhead;
      float s0 = scale_of(p, r), s1 = scale_of(p, r + 8);
#pragma unroll
      for (int j = 0; j < NT / 8; j++)
#pragma unroll
        for (int i = 0; i < 2; i++)
          if (m + j * 8 + i < p.m) {
            float* at = y + (size_t)(m + j * 8 + i) * p.ldy + r;
            if (r < p.n) at[0] = sum[j * 4 + i] * s0;
            if (r + 8 < p.n) at[8] = sum[j * 4 + 2 + i] * s1;
          }
    }
  }
  finish(p.at);
}

// R16, R4: a stage of gemm_split_k_*, some steps of a tile, in shared memory.
struct R16 {
  static constexpr int kSteps = 2, kBytes = 1024;
  static constexpr bool kFp4 = false;
  static __device__ __forceinline__ void fetch(uint32_t stage, const char* w, int lane) {
    copy16(stage + lane * 16, w + lane * 16, true), copy16(stage + 512 + lane * 16, w + 512 + lane * 16, true);
  }
  static __device__ __forceinline__ void fragments(uint32_t (&a)[kSteps][4], const char* stage, int lane) {
#pragma unroll
    for (int j = 0; j < kSteps; j++) {
      uint4 q = reinterpret_cast<const uint4*>(stage)[j * 32 + lane];
      a[j][0] = q.x, a[j][1] = q.y, a[j][2] = q.z, a[j][3] = q.w;
    }
  }
};
struct R4 {
  static constexpr int kSteps = 4, kBytes = kFp4Unit;
  static constexpr bool kFp4 = true;
  static __device__ __forceinline__ void fetch(uint32_t stage, const char* w, int lane) {
    copy16(stage + lane * 16, w + lane * 16, true);
    if (lane < 4) copy16(stage + 512 + lane * 16, w + 512 + lane * 16, true);
  }
  static __device__ __forceinline__ void fragments(uint32_t (&a)[kSteps][4], const char* stage, int lane) {
    W4::read(reinterpret_cast<uint32_t(&)[2][4]>(a[0]), stage, 0, lane),
        W4::read(reinterpret_cast<uint32_t(&)[2][4]>(a[2]), stage, 1, lane);
  }
};

// split_k_stages is the length of a warp's ring.
__host__ __device__ constexpr int split_k_stages(int warpgroups) { return warpgroups == 6 ? 5 : 6; }

// Few rows: a block has groups of 64 outputs, a warpgroup each, and the slices of one
// of the parts of a block of slices: so all of the GPU reads weights. Its columns of x
// are in shared memory as panels; each warp has a ring of weights. The first part adds
// its slices, other parts leave each apart, gemm_split_k_sum adds all. A product in one part is
// done at once. grid (groups of groups x parts of all blocks of slices, tokens, heads)
template <typename W, int NT, int WG, bool ONE>
__device__ __forceinline__ void gemm_split_k(const WgmmaP& p) {
  extern __shared__ __align__(1024) char smem[];
  constexpr int kPanels = NT * 256, T = WG * 128, R = ONE ? 4 : 6, S = split_k_stages(WG);
  begin();
  int tid = threadIdx.x, warp = __shfl_sync(~0u, tid >> 5, 0), lane = tid & 31, g = lane >> 2, t = lane & 3,
      wg = warp >> 2, head = blockIdx.z, m0 = blockIdx.y * NT;
  int all = p.blocks * p.parts, part = blockIdx.x % all, block = part / p.parts, at = part % p.parts,
      slices = kWarps / p.parts;
  int group0 = blockIdx.x / all * p.groups, kt = p.k / 16, tiles = (p.n + 15) / 16;
  if (p.rope && group0 * 4 >= tiles) {
    ready(p.at);
    if (part == 0) rotate(p, m0, NT);
    return finish(p.at);
  }
  int lo = min(kt, (block * kWarps + at * slices) * p.per), n = min(kt, lo + slices * p.per) - lo;
  char* panels = smem + (-(int)shared_of(smem) & 1023);
  char* ring = panels + (slices * p.per + 3) / 4 * kPanels + warp * S * W::kBytes;
  bool mine = wg < p.groups && (group0 + wg) * 4 < tiles;
  int tile = (group0 + wg) * 4 + (warp & 3), loads = mine ? n / W::kSteps : 0;
  const char* w = static_cast<const char*>(p.w) + head * p.whead +
      ((size_t)min(tile, tiles - 1) * kt + lo) * (W::kBytes / W::kSteps);
  auto fetch = [&](int i) {
    if (i < loads) W::fetch(shared_of(ring) + i % S * W::kBytes, w + (size_t)i * W::kBytes, lane);
    copies_commit();
  };
#pragma unroll
  for (int i = 0; i < S; i++) fetch(i);
  ready(p.at);
  int chunks = n * 2, items = NT * chunks;
  const float* x = p.x + (size_t)head * p.xhead + lo * 16;
  const uint32_t low = low_of(p.rounded);
  for (int i0 = tid; i0 < items; i0 += R * T) {
    float4 u[R], v[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
      int i = i0 + r * T, m = m0 + (W::kFp4 ? (i >> 2) % NT : i / chunks);
      int c = W::kFp4 ? (i >> 2) / NT * 32 + t * 4 : i % chunks * 8;
      u[r] = v[r] = make_float4(0, 0, 0, 0);
      if (i < items && m < p.m) {
        const float* s = x + (size_t)m * p.ldx + c;
        u[r] = *reinterpret_cast<const float4*>(s), v[r] = *reinterpret_cast<const float4*>(s + (W::kFp4 ? 16 : 4));
      }
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
      int i = i0 + r * T;
      if (i >= items) break;
      if (W::kFp4) {
        int row = (i >> 2) % NT, c = (i >> 2) / NT;
        char* o = panels + (c >> 1) * kPanels + t * 4;
        Split s[4] = {split(u[r].x, v[r].x, low), split(u[r].y, v[r].y, low), split(u[r].z, v[r].z, low),
            split(u[r].w, v[r].w, low)};
#pragma unroll
        for (int j = 0; j < 4; j++) {
          char* to = o + panel_at(row, (c & 1) * 4 + j);
          *reinterpret_cast<uint32_t*>(to) = s[j].hi, *reinterpret_cast<uint32_t*>(to + NT * 128) = s[j].lo;
        }
      } else {
        int row = i / chunks, c = i % chunks;
        Chunk s = chunk_of(u[r], v[r], low);
        char* to = panels + (c >> 3) * kPanels + panel_at(row, c & 7);
        *reinterpret_cast<uint4*>(to) = make_uint4(s.a.hi, s.b.hi, s.c.hi, s.d.hi);
        *reinterpret_cast<uint4*>(to + NT * 128) = make_uint4(s.a.lo, s.b.lo, s.c.lo, s.d.lo);
      }
    }
  }
  written();
  __syncthreads();
  if (mine) {
    uint32_t base = shared_of(panels);
    float acc[NT / 2], sum[ONE ? 1 : NT / 2];
    if (!ONE) {
#pragma unroll
      for (int j = 0; j < NT / 2; j++) sum[ONE ? 0 : j] = 0;
    }
    int r = tile * 16 + g, each = 1 + (p.parts - 1) * slices, index = block * each + (at ? 1 + (at - 1) * slices : 0);
    // store writes the sums of a slice, or of several.
    auto store = [&](const float* v) {
      float s0 = 1, s1 = 1;
      float* y = p.sums + ((size_t)(index * p.heads + head) * p.m) * p.n + r;
      int ld = p.n;
      if (all == 1) s0 = scale_of(p, r), s1 = scale_of(p, r + 8), y = p.y + (size_t)head * p.yhead + r, ld = p.ldy;
      index++;
#pragma unroll
      for (int j = 0; j < NT / 8; j++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
          int m = m0 + j * 8 + t * 2 + i;
          if (m < p.m) {
            float* to = y + (size_t)m * ld;
            if (r < p.n) to[0] = v[j * 4 + i] * s0;
            if (r + 8 < p.n) to[8] = v[j * 4 + 2 + i] * s1;
          }
        }
    };
    int i = 0;  // stage
    for (int s = 0; s < slices; s++) {
      int end = min(n, (s + 1) * p.per) / W::kSteps;
#pragma unroll
      for (int j = 0; j < NT / 2; j++) acc[j] = 0;
      for (; i < end; i++) {
        uint32_t a[W::kSteps][4];
        copies_wait<S - 1>();
        __syncwarp();
        W::fragments(a, ring + i % S * W::kBytes, lane);
        __syncwarp();
        fetch(i + S);
        wg_fence();
#pragma unroll
        for (int j = 0; j < W::kSteps; j++) {
          int step = i * W::kSteps + j;
          uint64_t hi = operand(base + (step >> 2) * kPanels + (step & 3) * 32);
          wgmma(acc, a[j], hi + (NT * 128 >> 4), 1);
          wgmma(acc, a[j], hi, 1);
        }
        wg_commit();
        wg_wait<0>();
      }
      if (ONE || at) {
        store(acc);
      } else {
#pragma unroll
        for (int j = 0; j < NT / 2; j++) sum[ONE ? 0 : j] += acc[j];
      }
    }
    if (!ONE && at == 0) store(sum);
  }
  finish(p.at);
}

// gemm_split_k_sum adds what the parts left, in the order of k. A thread four outputs, two
// blocks of slices on their way at once. grid (any)
extern "C" __global__ void __launch_bounds__(256) gemm_split_k_sum(const __grid_constant__ WgmmaP p) {
  begin();
  ready(p.at);
  // sums of a block of slices; from one to the next
  int quads = p.n / 4, each = 1 + (p.parts - 1) * (kWarps / p.parts), next = p.heads * p.m * quads;
  const float4* sums = reinterpret_cast<const float4*>(p.sums);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < next; i += gridDim.x * blockDim.x) {
    int r = i % quads * 4, m = i / quads % p.m, head = i / quads / p.m;
    float4 v = {0, 0, 0, 0}, f[2][kWarps];
    auto load = [&](float4 (&f)[kWarps], int b) {
#pragma unroll
      for (int j = 0; j < kWarps; j++)
        if (b < p.blocks && j < each) f[j] = __ldcg(sums + (size_t)(b * each + j) * next + i);
    };
    auto add = [&](const float4 (&f)[kWarps], int b) {
      if (b >= p.blocks) return;
      float4 s = {0, 0, 0, 0};
#pragma unroll
      for (int j = 0; j < kWarps; j++)
        if (j < each) s.x += f[j].x, s.y += f[j].y, s.z += f[j].z, s.w += f[j].w;
      v.x += s.x, v.y += s.y, v.z += s.z, v.w += s.w;
    };
    for (int b = 0; b < p.blocks; b += 2) {
      load(f[0], b), load(f[1], b + 1);
      add(f[0], b), add(f[1], b + 1);
    }
    float* y = p.y + (size_t)m * p.ldy + (size_t)head * p.yhead + r;
    y[0] = v.x * scale_of(p, r), y[1] = v.y * scale_of(p, r + 1), y[2] = v.z * scale_of(p, r + 2),
        y[3] = v.w * scale_of(p, r + 3);
  }
  finish(p.at);
}

#define PACK_PANELS(name, fp4) \
  extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ WgmmaP p) { \
    HOPPER(pack_panels<fp4>(p);) \
  }
#define GEMM_WGMMA(name, w, nt) \
  extern "C" __global__ void __launch_bounds__(384, 1) name(const __grid_constant__ WgmmaP p) { \
    HOPPER((gemm_wgmma<w, nt, 2>(p));) \
  }
#define GEMM_SPLIT_K(name, w, nt) \
  extern "C" __global__ void __launch_bounds__(768, 1) name##_6(const __grid_constant__ WgmmaP p) { \
    HOPPER((gemm_split_k<w, nt, 6, true>(p));) \
  } \
  extern "C" __global__ void __launch_bounds__(512, 1) name##_4(const __grid_constant__ WgmmaP p) { \
    HOPPER((gemm_split_k<w, nt, 4, false>(p));) \
  }
PACK_PANELS(pack_panels_bf16, false)
PACK_PANELS(pack_panels_fp4, true)
GEMM_WGMMA(gemm_wgmma_bf16_64, W16, 64)
GEMM_WGMMA(gemm_wgmma_bf16_128, W16, 128)
GEMM_WGMMA(gemm_wgmma_fp4_64, W4, 64)
GEMM_WGMMA(gemm_wgmma_fp4_128, W4, 128)
GEMM_SPLIT_K(gemm_split_k_bf16_16, R16, 16)
GEMM_SPLIT_K(gemm_split_k_bf16_32, R16, 32)
GEMM_SPLIT_K(gemm_split_k_bf16_64, R16, 64)
GEMM_SPLIT_K(gemm_split_k_fp4_16, R4, 16)
GEMM_SPLIT_K(gemm_split_k_fp4_32, R4, 32)
GEMM_SPLIT_K(gemm_split_k_fp4_64, R4, 64)
