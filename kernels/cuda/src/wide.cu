// y[m, n] = x[m, k] w[n, k]ᵀ for more rows than gemm.cu is for, on Hopper: the same
// sums in the same order, by warpgroup products of 64 outputs and NT tokens.
//
// The order is gemm.cu's: k in slices of per steps, each summed on its own; eight
// slices make a block's sum, and the blocks' sums make the output.
#include "wgmma.cuh"

struct WideP {
  const void* w;
  const float* x;  // few_*
  const char* panels;  // wide_*: of x, as wide_split leaves them
  float* y;
  u64* at;
  int m, n, k, ldx, ldy;
  int per, blocks;          // steps of 16 columns in a slice, blocks of 8 slices
  int groups;               // few_*: of 64 outputs in a cluster
  float global, global_up;  // as GemmP
  int heads, xhead, yhead;
  int64_t whead, panelhead;  // bytes from one head to the next
  const float* rope;
  const int* pos;
  int nrope;
};

// W16, W4: a unit of 64 columns of the lane's rows of a tile, in BF16 or NVFP4.
struct W16 {
  static constexpr bool kFp4 = false;
  uint4 q[4];
  __device__ __forceinline__ void load(const char* w, size_t unit, int lane) {
    const uint4* p = reinterpret_cast<const uint4*>(w) + unit * 128 + lane;
#pragma unroll
    for (int j = 0; j < 4; j++) q[j] = __ldg(p + j * 32);
  }
  __device__ __forceinline__ void fragment(uint32_t (&a)[4], int j) const { a[0] = q[j].x, a[1] = q[j].y, a[2] = q[j].z, a[3] = q[j].w; }
};
struct W4 {
  static constexpr bool kFp4 = true;
  Fp4 u;
  __device__ __forceinline__ void load(const char* w, size_t unit, int lane) {
    const char* p = w + unit * kFp4Unit;
    u = {__ldg(fp4_codes(p, lane)), __ldg(fp4_scales(p, lane))};
  }
  __device__ __forceinline__ void fragment(uint32_t (&a)[4], int j) const {
    uint32_t s = j < 2 ? fp4_scale<0>(u.s.x) : fp4_scale<1>(u.s.x), t = j < 2 ? fp4_scale<0>(u.s.y) : fp4_scale<1>(u.s.y);
    unpack_fp4(a, j == 0 ? u.q.x : j == 1 ? u.q.y : j == 2 ? u.q.z : u.q.w, s, t);
  }
};

// rotate copies the rotary values behind x's k columns behind y's n columns, as gemm.cu's.
__device__ __forceinline__ void rotate(const WideP& p, int m0, int tokens) {
  int half = p.nrope / 2, head = blockIdx.z;
  for (int i = threadIdx.x; i < tokens * half; i += blockDim.x) {
    int m = m0 + i / half, j = i % half;
    if (m >= p.m) break;
    float2 cs = reinterpret_cast<const float2*>(p.rope)[(size_t)p.pos[m] * half + j];
    const float* x = p.x + (size_t)m * p.ldx + (size_t)head * p.xhead + p.k + 2 * j;
    float* y = p.y + (size_t)m * p.ldy + (size_t)head * p.yhead + p.n + 2 * j;
    float a = x[0], b = x[1];
    y[0] = a * cs.x - b * cs.y;
    y[1] = b * cs.x + a * cs.y;
  }
}

__device__ __forceinline__ float scale_of(const WideP& p, int row) { return p.global_up != 0 && row >= p.n / 2 ? p.global_up : p.global; }

// x[m, k] as panels of NT tokens: [heads][tiles of NT][k/64][hi, lo]. A thread 32
// columns of a row; rows past m are zeros. grid (any, heads)
template <int NT, bool FP4>
__device__ __forceinline__ void wide_split(const WideP& p) {
  begin();
  ready(p.at);
  int kt = p.k / 64, tiles = (p.m + NT - 1) / NT, chunks = kt * 2;
  const float* x = p.x + (size_t)blockIdx.y * p.xhead;
  char* out = const_cast<char*>(p.panels) + (size_t)blockIdx.y * p.panelhead;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < tiles * NT * chunks; i += gridDim.x * blockDim.x) {
    int m = i / chunks, c = i % chunks, row = m % NT;
    float4 v[8] = {};
    if (m < p.m) {
      const float4* s = reinterpret_cast<const float4*>(x + (size_t)m * p.ldx + c * 32);
#pragma unroll
      for (int j = 0; j < 8; j++) v[j] = s[j];
    }
    char* panel = out + ((size_t)(m / NT) * kt + (c >> 1)) * (NT * 256);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      uint4 hi, lo;
      if (FP4) {
        Split a, b, d, e;
        auto pick = [&](int t) {
          float4 u = v[t], w = v[4 + t];
          return j == 0 ? split(u.x, w.x) : j == 1 ? split(u.y, w.y) : j == 2 ? split(u.z, w.z) : split(u.w, w.w);
        };
        a = pick(0), b = pick(1), d = pick(2), e = pick(3);
        hi = make_uint4(a.hi, b.hi, d.hi, e.hi), lo = make_uint4(a.lo, b.lo, d.lo, e.lo);
      } else {
        Chunk q = chunk_of(v[2 * j], v[2 * j + 1]);
        hi = make_uint4(q.a.hi, q.b.hi, q.c.hi, q.d.hi), lo = make_uint4(q.a.lo, q.b.lo, q.c.lo, q.d.lo);
      }
      char* at = panel + panel_at(row, (c & 1) * 4 + j);
      *reinterpret_cast<uint4*>(at) = hi;
      *reinterpret_cast<uint4*>(at + NT * 128) = lo;
    }
  }
  // The call ends with its product.
}

// Many rows: a block has 64 WG outputs of NT tokens and all of k, a producer warp and
// a ring of S panels; weights go from memory to registers. grid (outputs, tokens, heads)
template <typename W, int NT, int WG, int S>
__device__ __forceinline__ void wide(const WideP& p) {
  extern __shared__ __align__(1024) char smem[];
  constexpr int kPanels = NT * 256;  // hi and lo
  char* ring = smem + (-(int)shared_of(smem) & 1023);
  uint32_t full = shared_of(ring + S * kPanels), empty = full + S * 8;
  float* total = reinterpret_cast<float*>(ring + S * (kPanels + 16)) + threadIdx.x;  // of blocks, where there are several
  begin();
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3, kt = p.k / 64, head = blockIdx.z;
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
  if (warp >= WG * 4) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (warp == WG * 4 && lane == 0) {
      ready(nullptr);
      const char* x = p.panels + head * p.panelhead + (size_t)blockIdx.y * kt * kPanels;
      for (int i = 0; i < kt; i++) {
        int s = i % S;
        if (i >= S) mbar_wait(empty + s * 8, (i / S - 1) & 1);
        mbar_expect(full + s * 8, kPanels);
        copy_bulk(shared_of(ring + s * kPanels), x + (size_t)i * kPanels, kPanels, full + s * 8);
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    int tile = blockIdx.x * WG * 4 + warp;
    const char* w = static_cast<const char*>(p.w) + head * p.whead;
    size_t unit = (size_t)min(tile, (p.n + 15) / 16 - 1) * kt;
    W q[2];
#pragma unroll
    for (int b = 0; b < 2; b++)
      if (b < kt) q[b].load(w, unit + b, lane);
    ready(p.at);
    float acc[NT / 2], sum[NT / 2] = {};
    int step = 0, slice = 0, s = 0, phase = 0, block = 0;
    for (int i = 0; i < kt; i += 2)
#pragma unroll
      for (int b = 0; b < 2; b++)
        if (i + b < kt) {
          mbar_wait(full + s * 8, phase);
          uint64_t hi = operand(shared_of(ring + s * kPanels)), lo = hi + (NT * 128 >> 4);
#pragma unroll
          for (int h = 0; h < 2; h++) {
            uint32_t a[2][4];
            q[b].fragment(a[0], h * 2), q[b].fragment(a[1], h * 2 + 1);
            wg_fence();
#pragma unroll
            for (int j = 0; j < 2; j++) {
              wgmma(acc, a[j], lo + (h * 2 + j) * 2, j ? 1 : step);
              wgmma(acc, a[j], hi + (h * 2 + j) * 2, 1);
            }
            wg_commit();
            step += 2;
            if (step == p.per) {
              wg_wait<0>();
              add_to(sum, acc);
              step = 0;
              if (++slice == kWarps && p.blocks > 1) {
#pragma unroll
                for (int j = 0; j < NT / 2; j++) {
                  float* at = total + j * (WG * 128);
                  *at = (block ? *at : 0) + sum[j];
                  sum[j] = 0;
                }
                slice = 0, block++;
              }
            }
          }
          wg_wait<0>();
          if (lane == 0) mbar_arrive(empty + s * 8);
          if (++s == S) s = 0, phase ^= 1;
          if (i + b + 2 < kt) q[b].load(w, unit + i + b + 2, lane);
        }
    if (step) add_to(sum, acc);
    if (block) {
#pragma unroll
      for (int j = 0; j < NT / 2; j++) sum[j] = total[j * (WG * 128)] + sum[j];
    }
    float* y = p.y + (size_t)head * p.yhead;
    int r = tile * 16 + g, m = blockIdx.y * NT + t * 2;
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
  finish(p.at);
}

// of_block4 reads four floats at p, an address in this block's shared memory, in block rank's.
__device__ __forceinline__ float4 of_block4(const float* p, int rank) {
  uint32_t a = shared_of(p), b;
  float4 v;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(b) : "r"(a), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(b) : "memory");
  return v;
}
__device__ __forceinline__ float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

// P16, P4: what few_* takes at a time of a tile's slice: two steps in BF16 (zeros past
// the slice), or a unit of four in NVFP4.
struct P16 {
  static constexpr int kSteps = 2, kBytes = 512;
  static constexpr bool kFp4 = false;
  uint4 q[2];
  __device__ __forceinline__ void load(const char* slice, int i, int n, int lane) {
    const uint4* p = reinterpret_cast<const uint4*>(slice) + i * 32 + lane;
    q[0] = i < n ? __ldg(p) : make_uint4(0, 0, 0, 0);
    q[1] = i + 1 < n ? __ldg(p + 32) : make_uint4(0, 0, 0, 0);
  }
  __device__ __forceinline__ void fragment(uint32_t (&a)[4], int j) const { a[0] = q[j].x, a[1] = q[j].y, a[2] = q[j].z, a[3] = q[j].w; }
};
struct P4 : W4 {
  static constexpr int kSteps = 4, kBytes = kFp4Unit / 4;
  __device__ __forceinline__ void load(const char* slice, int i, int n, int lane) {
    if (i < n) W4::load(slice, i / 4, lane);
  }
};

// Few rows: a cluster of 8 blocks has groups of 64 outputs and shares k; a unit, one
// slice of one group, is a warpgroup's. A block keeps its columns of x as panels and
// then, over them, its units' sums, which the blocks add in order for a share of the
// outputs each. grid (8 clusters, tokens, heads)
template <typename W, int NT, int U>
__device__ __forceinline__ void few(const WideP& p) {
  extern __shared__ __align__(1024) char smem[];
  constexpr int kPanels = NT * 256, kPitch = 68, WG = 4, T = WG * 128, B = W::kSteps == 2 ? 4 : 3;
  char* panels = smem + (-(int)shared_of(smem) & 1023);
  float* part = reinterpret_cast<float*>(panels);
  begin();
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3, wg = warp >> 2;
  int rank = blockIdx.x & 7, group0 = (blockIdx.x >> 3) * p.groups, kt = (p.k + 15) / 16, tiles = (p.n + 15) / 16, head = blockIdx.z;
  int units = p.groups * p.blocks, m0 = blockIdx.y * NT;
  if (p.rope && group0 * 4 >= tiles) {
    ready(p.at);
    if (rank == 0) rotate(p, m0, NT);
    return finish(p.at);
  }
  const char* w[U];
  int n[U];
#pragma unroll
  for (int u = 0; u < U; u++) {
    int unit = wg + u * WG, slice = rank * p.blocks + unit / p.groups, tile = (group0 + unit % p.groups) * 4 + (warp & 3), lo = min(kt, slice * p.per);
    n[u] = unit < units ? min(kt, lo + p.per) - lo : 0;
    w[u] = static_cast<const char*>(p.w) + head * p.whead + ((size_t)min(tile, tiles - 1) * kt + lo) * W::kBytes;
    if (lane == 0 && n[u] > 0) prefetch(w[u], n[u] * W::kBytes);
  }
  W q[B];
#pragma unroll
  for (int b = 0; b < B; b++) q[b].load(w[0], b * W::kSteps, n[0], lane);
  ready(p.at);
  {
    int k0 = rank * p.blocks * p.per * 16, chunks = max(0, min(p.blocks * p.per * 2, (p.k - k0) / 8)), all = NT * chunks;
    const float* x = p.x + (size_t)head * p.xhead + k0;
    constexpr int R = 6;
    for (int i0 = tid; i0 < all; i0 += R * T) {
      float4 u[R], v[R];
#pragma unroll
      for (int r = 0; r < R; r++) {
        int i = i0 + r * T, m = m0 + (W::kFp4 ? (i >> 2) % NT : i / chunks);
        int c = W::kFp4 ? (i >> 2) / NT * 32 + t * 4 : i % chunks * 8;
        u[r] = v[r] = make_float4(0, 0, 0, 0);
        if (i < all && m < p.m) {
          const float* s = x + (size_t)m * p.ldx + c;
          u[r] = *reinterpret_cast<const float4*>(s), v[r] = *reinterpret_cast<const float4*>(s + (W::kFp4 ? 16 : 4));
        }
      }
#pragma unroll
      for (int r = 0; r < R; r++) {
        int i = i0 + r * T;
        if (i >= all) break;
        if (W::kFp4) {
          int row = (i >> 2) % NT, c = (i >> 2) / NT;
          char* o = panels + (c >> 1) * kPanels + t * 4;
          Split s[4] = {split(u[r].x, v[r].x), split(u[r].y, v[r].y), split(u[r].z, v[r].z), split(u[r].w, v[r].w)};
#pragma unroll
          for (int j = 0; j < 4; j++) {
            char* at = o + panel_at(row, (c & 1) * 4 + j);
            *reinterpret_cast<uint32_t*>(at) = s[j].hi, *reinterpret_cast<uint32_t*>(at + NT * 128) = s[j].lo;
          }
        } else {
          int row = i / chunks, c = i % chunks;
          Chunk s = chunk_of(u[r], v[r]);
          char* at = panels + (c >> 3) * kPanels + panel_at(row, c & 7);
          *reinterpret_cast<uint4*>(at) = make_uint4(s.a.hi, s.b.hi, s.c.hi, s.d.hi);
          *reinterpret_cast<uint4*>(at + NT * 128) = make_uint4(s.a.lo, s.b.lo, s.c.lo, s.d.lo);
        }
      }
    }
    written();
    __syncthreads();
  }
  float acc[U][NT / 2];
  uint32_t base = shared_of(panels);
#pragma unroll
  for (int u = 0; u < U; u++) {
    int at = (wg + u * WG) / p.groups * p.per;  // its first step in the block
#pragma unroll
    for (int i = 0; i < NT / 2; i++) acc[u][i] = 0;
    for (int i = 0; i < n[u]; i += B * W::kSteps)
#pragma unroll
      for (int b = 0; b < B; b++)
        if (i + b * W::kSteps < n[u]) {
          uint32_t a[W::kSteps][4];
#pragma unroll
          for (int j = 0; j < W::kSteps; j++) q[b].fragment(a[j], j);
          if (W::kFp4) q[b].load(w[u], i + (B + b) * W::kSteps, n[u], lane);
          wg_fence();
#pragma unroll
          for (int j = 0; j < W::kSteps; j++) {
            int s = at + min(i + b * W::kSteps + j, n[u] - 1);
            uint64_t hi = operand(base + (s >> 2) * kPanels + (s & 3) * 32);
            wgmma(acc[u], a[j], hi + (NT * 128 >> 4), 1);
            wgmma(acc[u], a[j], hi, 1);
          }
          wg_commit();
          wg_wait<0>();
          if (!W::kFp4) q[b].load(w[u], i + (B + b) * W::kSteps, n[u], lane);
        }
    if (u + 1 < U)
#pragma unroll
      for (int b = 0; b < B; b++) q[b].load(w[u + 1], b * W::kSteps, n[u + 1], lane);
  }
  __syncthreads();
#pragma unroll
  for (int u = 0; u < U; u++) {
    int unit = wg + u * WG;
    if (unit < units) {
      float* o = part + unit * (NT * kPitch) + (warp & 3) * 16 + g + t * 2 * kPitch;
#pragma unroll
      for (int i = 0; i < NT / 2; i++) o[((i >> 2) * 8 + (i & 1)) * kPitch + (i & 2) * 4] = acc[u][i];
    }
  }
  cluster_sync();
  int quads = p.groups * 16 * NT, share = (quads + 7) / 8, end = min(quads, (rank + 1) * share);
  for (int i = rank * share + tid; i < end; i += T) {
    int row = i & 15, tok = (i >> 4) % NT, grp = (i >> 4) / NT;
    float4 v = {0, 0, 0, 0};
    for (int c = 0; c < p.blocks; c++) {
      float4 b = {0, 0, 0, 0}, s[8];
#pragma unroll
      for (int j = 0; j < 8; j++) {
        int slice = c * 8 + j;
        s[j] = of_block4(part + (slice % p.blocks * p.groups + grp) * (NT * kPitch) + tok * kPitch + row * 4, slice / p.blocks);
      }
#pragma unroll
      for (int j = 0; j < 8; j++) b = b + s[j];
      v = p.blocks > 1 ? v + b : b;
    }
    int r = (group0 + grp) * 64 + row * 4, m = m0 + tok;
    if (m < p.m) {
      float* y = p.y + (size_t)m * p.ldy + (size_t)head * p.yhead + r;
      if (r < p.n) y[0] = v.x * scale_of(p, r);
      if (r + 1 < p.n) y[1] = v.y * scale_of(p, r + 1);
      if (r + 2 < p.n) y[2] = v.z * scale_of(p, r + 2);
      if (r + 3 < p.n) y[3] = v.w * scale_of(p, r + 3);
    }
  }
  cluster_sync();
  finish(p.at);
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HOPPER(...) __VA_ARGS__
#else
#define HOPPER(...)  // other GPUs take gemm.cu
#endif
#define SPLIT(name, nt, fp4) \
  extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ WideP p) { HOPPER((wide_split<nt, fp4>(p));) }
#define WIDE(name, w, nt, s) \
  extern "C" __global__ void __launch_bounds__(384, 1) name(const __grid_constant__ WideP p) { HOPPER((wide<w, nt, 2, s>(p));) }
#define FEW(name, w, nt) \
  extern "C" __global__ void __cluster_dims__(8) __launch_bounds__(512, 1) name(const __grid_constant__ WideP p) { HOPPER((few<w, nt, 2>(p));) }
SPLIT(wide_split_bf16_64, 64, false)
SPLIT(wide_split_bf16_128, 128, false)
SPLIT(wide_split_fp4_64, 64, true)
SPLIT(wide_split_fp4_128, 128, true)
WIDE(wide_bf16_64, W16, 64, 8)
WIDE(wide_bf16_128, W16, 128, 4)
WIDE(wide_fp4_64, W4, 64, 8)
WIDE(wide_fp4_128, W4, 128, 4)
FEW(few_bf16_16, P16, 16)
FEW(few_bf16_32, P16, 32)
FEW(few_bf16_64, P16, 64)
FEW(few_fp4_16, P4, 16)
FEW(few_fp4_32, P4, 32)
FEW(few_fp4_64, P4, 64)
