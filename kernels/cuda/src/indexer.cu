// The sparse-attention indexer: scores of all positions.
#include "half.cuh"
#include "wgmma.cuh"

struct IndexP {
  const float* q;    // [m, heads, k]; the first nrope of k are rotated here
  const float* hw;   // [m, heads]
  const float* rope; // [positions, nrope/2] pairs
  const void* cache;
  const int* pages;
  const int* seq;
  const int* pos;
  float* scores;     // [m, lds]
  u64* at;
  int m, k, heads, nrope, span, pages_ld, ldq, ldhw, lds;
  float scale;
};

constexpr int kPage = 64, kBlocks = 4;  // a key has at most four blocks of 32 values

// A lane's keys of 16 positions as they are in the cache, eight values at a time:
// of positions lane/4 and that + 8. F: 0 float32, 1 BF16, 2 FP8, its scales apart.
template <int F>
struct Loaded {
  uint4 v[kBlocks][2][F == 0 ? 2 : 1];
  float scale[2];

  // load reads the keys of the positions from p0 on. Pages past the sequence's are
  // any of the cache's: their scores are not kept.
  __device__ __forceinline__ void load(const IndexP& p, const int* pages, int p0, int lane) {
    int page[2];
    find(page, p, pages, p0, lane), load(p, page, p0, lane);
  }
  static __device__ __forceinline__ void find(int (&page)[2], const IndexP& p, const int* pages, int p0, int lane) {
#pragma unroll
    for (int r = 0; r < 2; r++) page[r] = pages[min((p0 + (lane >> 2) + 8 * r) / kPage, p.pages_ld - 1)];
  }
  __device__ __forceinline__ void load(const IndexP& p, const int (&page)[2], int p0, int lane) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      int in = (p0 + (lane >> 2) + 8 * r) % kPage;
      const int width = F == 0 ? 4 : F == 1 ? 2 : 1;  // bytes of a value
      const char* c = static_cast<const char*>(p.cache) + (size_t)page[r] * kPage * (p.k * width + (F == 2 ? 4 : 0));
      scale[r] = 1;
      if (F == 2) scale[r] = reinterpret_cast<const float*>(c + kPage * p.k)[in];
      c += in * p.k * width;
#pragma unroll
      for (int b = 0; b < kBlocks; b++) {
        if (b * 32 >= p.k) break;
        int at = b * 32 + (lane & 3) * 8;
        if (F == 2) {
          uint2 x = *reinterpret_cast<const uint2*>(c + at);
          v[b][r][0].x = x.x, v[b][r][0].y = x.y;
        } else if (F == 1) {
          v[b][r][0] = *reinterpret_cast<const uint4*>(c + at * 2);
        } else {
          v[b][r][0] = *reinterpret_cast<const uint4*>(c + at * 4), v[b][r][F == 0] = *reinterpret_cast<const uint4*>(c + at * 4 + 16);
        }
      }
    }
  }
};

// The same as A fragments: FP8 as float16, float32 as BF16 and what that leaves.
template <int F>
struct Keys {
  uint32_t high[kBlocks][2][4], low[F == 0 ? kBlocks : 1][2][4];
  float scale[2];

  __device__ __forceinline__ void from(const Loaded<F>& l) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      scale[r] = l.scale[r];
#pragma unroll
      for (int b = 0; b < kBlocks; b++) {
        uint4 x = l.v[b][r][0];
        uint32_t* h = high[b][r];
        if (F == 2) {
          h[0] = half_of(x.x), h[1] = half_of(x.x >> 16), h[2] = half_of(x.y), h[3] = half_of(x.y >> 16);
        } else if (F == 1) {
          h[0] = x.x, h[1] = x.y, h[2] = x.z, h[3] = x.w;
        } else {
          uint4 y = l.v[b][r][F == 0];
          Split s[4] = {split(__uint_as_float(x.x), __uint_as_float(x.y)), split(__uint_as_float(x.z), __uint_as_float(x.w)),
                        split(__uint_as_float(y.x), __uint_as_float(y.y)), split(__uint_as_float(y.z), __uint_as_float(y.w))};
#pragma unroll
          for (int i = 0; i < 4; i++) h[i] = s[i].hi, low[F == 0 ? b : 0][r][i] = s[i].lo;
        }
      }
    }
  }
  // part is one of the fragments of a block: of its first or its last two values in four.
  __device__ __forceinline__ void part(uint32_t (&a)[4], int b, int i) const {
    const auto& h = high[b];
    a[0] = h[0][2 * i], a[1] = h[1][2 * i], a[2] = h[0][2 * i + 1], a[3] = h[1][2 * i + 1];
  }
  __device__ __forceinline__ void rest(uint32_t (&a)[4], int b, int i) const {
    const auto& l = low[F == 0 ? b : 0];
    a[0] = l[0][2 * i], a[1] = l[1][2 * i], a[2] = l[0][2 * i + 1], a[3] = l[1][2 * i + 1];
  }
};

template <int F>
__device__ __forceinline__ void times(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if (F == 2) mma_f16(c, a, b0, b1);
  else mma(c, a, b0, b1);
}

// turn rotates two pairs by (cos, sin) pairs.
__device__ __forceinline__ float4 turn(float4 v, float4 cs) { return {v.x * cs.x - v.y * cs.y, v.y * cs.x + v.x * cs.y, v.z * cs.z - v.w * cs.w, v.w * cs.z + v.z * cs.w}; }

__device__ __forceinline__ float most_of(float m, float4 v) { return fmaxf(fmaxf(m, fmaxf(fabsf(v.x), fabsf(v.y))), fmaxf(fabsf(v.z), fabsf(v.w))); }

// A warp's eight queries of a row: read, rotated, and written as B fragments of
// high parts, then low ones. For FP8 keys they are float16, scaled by a power of
// two that the head's weight takes back.
template <int F, bool kLate>
struct Queries {
  float4 v[kBlocks][2], cs[kBlocks][2];  // cs: read when stored if kLate
  const float* angles;
  float w;

  __device__ __forceinline__ float4 cosines(int at, int nrope) const { return at < nrope ? *reinterpret_cast<const float4*>(angles + at) : make_float4(1, 0, 1, 0); }
  __device__ __forceinline__ void load(const IndexP& p, int m, int tile, int lane) {
    int h = tile * 8 + (lane >> 2), t = lane & 3;
    const float* q = p.q + (size_t)m * p.ldq + (size_t)h * p.k;
    angles = p.rope + (size_t)p.pos[m] * p.nrope;
    w = h < p.heads ? p.hw[(size_t)m * p.ldhw + h] * p.scale : 0;
#pragma unroll
    for (int b = 0; b < kBlocks; b++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        int at = b * 32 + t * 8 + i * 4;
        v[b][i] = h < p.heads && at < p.k ? *reinterpret_cast<const float4*>(q + at) : make_float4(0, 0, 0, 0);
        if (!kLate) cs[b][i] = cosines(at, p.nrope);
      }
  }
  __device__ __forceinline__ void turned(const IndexP& p, int lane) {
#pragma unroll
    for (int b = 0; b < kBlocks; b++)
#pragma unroll
      for (int i = 0; i < 2; i++) v[b][i] = turn(v[b][i], kLate ? cosines(b * 32 + (lane & 3) * 8 + i * 4, p.nrope) : cs[b][i]);
  }
  // power is what the values are multiplied by, and what undoes it.
  __device__ __forceinline__ void power(float& up, float& down) const {
    up = down = 1;
    if (F != 2) return;
    float most = 0;
#pragma unroll
    for (int b = 0; b < kBlocks; b++) most = most_of(most_of(most, v[b][0]), v[b][1]);
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
    int e = max(24, min(250, (int)(__float_as_uint(most) >> 23)));
    up = __uint_as_float((uint32_t)(264 - e) << 23), down = __uint_as_float((uint32_t)(e - 10) << 23);  // at most 2^11
  }
  __device__ __forceinline__ void store(const IndexP& p, uint4* qs, float* hw, int tile, int kb, int lane) {
    float up, down;
    turned(p, lane), power(up, down);
#pragma unroll
    for (int b = 0; b < kBlocks; b++) {
      if (b >= kb) break;
      float4 x = v[b][0], y = v[b][1];
      Split s[4];
      if (F == 2) s[0] = split_f16(x.x * up, x.y * up), s[1] = split_f16(x.z * up, x.w * up), s[2] = split_f16(y.x * up, y.y * up), s[3] = split_f16(y.z * up, y.w * up);
      else s[0] = split(x.x, x.y), s[1] = split(x.z, x.w), s[2] = split(y.x, y.y), s[3] = split(y.z, y.w);
      uint4* o = qs + ((tile * kb + b) * 32 + lane) * 2;
      o[0] = make_uint4(s[0].hi, s[1].hi, s[2].hi, s[3].hi);
      o[1] = make_uint4(s[0].lo, s[1].lo, s[2].lo, s[3].lo);
    }
    if ((lane & 3) == 0) hw[tile * 8 + (lane >> 2)] = w * down;
  }
};

// score leaves a lane's sums over heads of its positions, lane/4 and that + 8 of
// each of T tiles; N tiles of heads at a time, which changes no sum.
template <int F, int T, int N>
__device__ __forceinline__ void score(float (&sum)[T][2], const Keys<F> (&keys)[T], const uint4* q, const float* w, int tiles, int kb, int lane) {
#pragma unroll
  for (int j = 0; j < T; j++) sum[j][0] = sum[j][1] = 0;
  for (int i = 0; i < tiles; i += N) {
    float ch[N][T][4] = {}, cl[N][T][4] = {};
#pragma unroll
    for (int b = 0; b < kBlocks; b++) {
      if (b >= kb) break;
      uint4 qh[N], ql[N];
#pragma unroll
      for (int n = 0; n < N; n++) {
        const uint4* x = q + (((i + n) * kb + b) * 32 + lane) * 2;
        qh[n] = x[0], ql[n] = x[1];
      }
      // Products with q's high and low parts, each to sums of their own.
#pragma unroll
      for (int part = 0; part < 2; part++) {
#pragma unroll
        for (int j = 0; j < T; j++) {
          uint32_t a[4];
          keys[j].part(a, b, part);
#pragma unroll
          for (int n = 0; n < N; n++) {
            times<F>(ch[n][j], a, part ? qh[n].z : qh[n].x, part ? qh[n].w : qh[n].y);
            times<F>(cl[n][j], a, part ? ql[n].z : ql[n].x, part ? ql[n].w : ql[n].y);
          }
          if (F != 0) continue;
          keys[j].rest(a, b, part);
#pragma unroll
          for (int n = 0; n < N; n++) times<F>(cl[n][j], a, part ? qh[n].z : qh[n].x, part ? qh[n].w : qh[n].y);
        }
      }
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
      float2 u = *reinterpret_cast<const float2*>(w + (i + n) * 8 + (lane & 3) * 2);
#pragma unroll
      for (int j = 0; j < T; j++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
          sum[j][r] = fmaf(fmaxf(ch[n][j][2 * r] + cl[n][j][2 * r], 0), u.x, sum[j][r]);
          sum[j][r] = fmaf(fmaxf(ch[n][j][2 * r + 1] + cl[n][j][2 * r + 1], 0), u.y, sum[j][r]);
        }
    }
  }
#pragma unroll
  for (int j = 0; j < T; j++)
#pragma unroll
    for (int r = 0; r < 2; r++) {
      sum[j][r] += __shfl_xor_sync(~0u, sum[j][r], 1);
      sum[j][r] += __shfl_xor_sync(~0u, sum[j][r], 2);
      sum[j][r] *= keys[j].scale[r];
    }
}

// scores[m, s] = Σ heads hw relu(q · key_s), q rotated. A warp has 16·T positions
// at a time. Columns are permuted within 32 so that a lane reads its eight values
// at once; q is laid out alike.
//
// A block has p.span times 16·T·W positions of a row (kMany: once, of p.span rows
// one after the other, whose keys it keeps while they are of one sequence).
template <int F, int T, int N, int W, bool kMany>
__device__ __forceinline__ void index_logits(const IndexP& p) {
  extern __shared__ __align__(16) char smem[];
  begin();
  int kb = p.k / 32, tiles = (p.heads + 31) / 32 * 4, warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int room = tiles * kb * 64, step = 16 * T * W;
  uint4* qs = reinterpret_cast<uint4*>(smem);                      // [tiles][kb][lane] of high, then low; twice if kMany
  float* hw = reinterpret_cast<float*>(qs + (kMany ? 2 : 1) * room);  // [tiles*8]
  int m = blockIdx.y * (kMany ? p.span : 1), end = kMany ? min(p.m, m + p.span) : m + 1;
  int base = blockIdx.x * (kMany ? 1 : p.span) * step, p0 = base + warp * 16 * T;
  if (threadIdx.x == 0) warm(p.pos + m), warm(p.hw + (size_t)m * p.ldhw);
  if (threadIdx.x * 32 < p.heads * p.k) warm(p.q + (size_t)m * p.ldq + threadIdx.x * 32);
  // Where the keys are is in tables that no kernel before this one writes.
  const int* pages = p.pages + (size_t)p.seq[m] * p.pages_ld;
  int page[T][2];
  if (!kMany)
#pragma unroll
    for (int i = 0; i < T; i++) Loaded<F>::find(page[i], p, pages, p0 + 16 * i, lane);
  ready(p.at);
  auto past = [&](int i) {  // the next row that has positions here
    while (i < end && p.pos[i] < base) i++;
    return i;
  };
  auto write = [&](const float (&sum)[T][2], int m, int p0, int n) {
    float* out = p.scores + (size_t)m * p.lds + p0;
#pragma unroll
    for (int j = 0; j < T; j++)
#pragma unroll
      for (int r = 0; r < 2; r++) {
        int i = 16 * j + 8 * r + (lane >> 2);
        if ((lane & 3) == 0 && p0 + i < n) out[i] = sum[j][r];
      }
  };
  Loaded<F> loaded[T];
  Keys<F> keys[T];
  Queries<F, kMany> mine;
  constexpr bool kEarly = !kMany || T < 4;  // a row's queries are read before it is its turn
  auto stage = [&](uint4* q, float* w) {
    if (kEarly && warp < tiles) mine.store(p, q, w, warp, kb, lane);
    for (int i = kEarly ? warp + W : warp; i < tiles; i += W) {
      Queries<F, true> more;
      more.load(p, m, i, lane), more.store(p, q, w, i, kb, lane);
    }
    __syncthreads();
  };
  float sum[T][2];
  if (!kMany) {
#pragma unroll
    for (int i = 0; i < T; i++) loaded[i].load(p, page[i], p0 + 16 * i, lane);
    if (warp < tiles) mine.load(p, m, warp, lane);
    int n = p.pos[m] + 1, last = min(n, base + p.span * step);
    if (n <= base) return finish(p.at);
    stage(qs, hw);
    for (; p0 < last; p0 += step) {
#pragma unroll
      for (int i = 0; i < T; i++) keys[i].from(loaded[i]);
      if (p0 + step < last)
#pragma unroll
        for (int i = 0; i < T; i++) loaded[i].load(p, pages, p0 + step + 16 * i, lane);
      score<F, T, N>(sum, keys, qs, hw, tiles, kb, lane);
      write(sum, m, p0, n);
    }
  } else {
    m = past(m);
    if (kEarly && m < end && warp < tiles) mine.load(p, m, warp, lane);
    for (int turn = 0, seq = -1, next; m < end; m = next, turn ^= 1) {
      int n = p.pos[m] + 1;
      next = past(m + 1);
      if (p.seq[m] != seq) {
        seq = p.seq[m];
#pragma unroll
        for (int i = 0; i < T; i++) loaded[i].load(p, p.pages + (size_t)seq * p.pages_ld, p0 + 16 * i, lane), keys[i].from(loaded[i]);
      }
      stage(qs + turn * room, hw + turn * tiles * 8);
      if (kEarly && next < end && warp < tiles) mine.load(p, next, warp, lane);
      if (p0 >= n) continue;
      score<F, T, N>(sum, keys, qs + turn * room, hw + turn * tiles * 8, tiles, kb, lane);
      write(sum, m, p0, n);
    }
  }
  finish(p.at);
}

// The same for keys of 128 values and at most 32 heads by warpgroup products: a
// block has 256 positions of p.span rows, a warp 16 of each 64. q is the other
// operand, its high and its low parts 64 rows of it.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define S4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define S16(d, i) S4(d, i), S4(d, i + 4), S4(d, i + 8), S4(d, i + 12)
__device__ __forceinline__ void wgmma_f16(float (&d)[32], const uint32_t (&a)[4], uint64_t x, int more) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %37, 0;\n\twgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, p, 1, 1, 0;\n\t}"
      : S16(d, 0), S16(d, 16)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(x), "r"(more));
}
#undef S16
#undef S4

template <int F>
__device__ __forceinline__ void index_logits_wide(const IndexP& p) {
  extern __shared__ __align__(1024) char panels[];
  constexpr int kPanel = 64 * 128, kRoom = 2 * kPanel;  // 64 columns of q, all
  begin();
  int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  int base = blockIdx.x * 256, m = blockIdx.y * p.span, end = min(p.m, m + p.span);
  float* hw = reinterpret_cast<float*>(panels + 2 * kRoom);  // [2][32]
  ready(p.at);
  auto past = [&](int i) {  // the next row that has positions here
    while (i < end && p.pos[i] < base) i++;
    return i;
  };
  uint32_t keys[4][8][4];
  float scale[4][2];
  int seq = -1;
  m = past(m);
  for (int turn = 0, next; m < end; m = next, turn ^= 1) {
    int n = p.pos[m] + 1;
    next = past(m + 1);
    if (p.seq[m] != seq) {
      seq = p.seq[m];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        Loaded<F> loaded;
        Keys<F> k;
        loaded.load(p, p.pages + (size_t)seq * p.pages_ld, base + 64 * j + 16 * warp, lane), k.from(loaded);
#pragma unroll
        for (int i = 0; i < 8; i++) k.part(keys[j][i], i / 2, i % 2);
        scale[j][0] = k.scale[0], scale[j][1] = k.scale[1];
      }
    }
    Queries<F, true> mine;
    mine.load(p, m, warp, lane), mine.turned(p, lane);
    char* room = panels + turn * kRoom;
    float up, down;
    mine.power(up, down);
#pragma unroll
    for (int b = 0; b < kBlocks; b++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float4 v = mine.v[b][i];
        Split x = F == 2 ? split_f16(v.x * up, v.y * up) : split(v.x, v.y), y = F == 2 ? split_f16(v.z * up, v.w * up) : split(v.z, v.w);
        char* panel = room + b / 2 * kPanel + t * 4;
        int chunk = (b * 2 + i) * 2 % 8, row = warp * 8 + g;
        *reinterpret_cast<uint32_t*>(panel + panel_at(row, chunk)) = x.hi, *reinterpret_cast<uint32_t*>(panel + panel_at(row, chunk + 1)) = y.hi;
        *reinterpret_cast<uint32_t*>(panel + panel_at(row + 32, chunk)) = x.lo, *reinterpret_cast<uint32_t*>(panel + panel_at(row + 32, chunk + 1)) = y.lo;
      }
    if (t == 0) hw[turn * 32 + warp * 8 + g] = mine.w * down;
    written();
    __syncthreads();
    uint32_t at = shared_of(room);
    float* out = p.scores + (size_t)m * p.lds + base + 16 * warp;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (base + 64 * j >= n) break;
      float d[32];
      wg_fence();
#pragma unroll
      for (int i = 0; i < 8; i++) {
        uint64_t q = operand(at + i / 4 * kPanel + i % 4 * 32);
        if (F == 2) wgmma_f16(d, keys[j][i], q, i > 0);
        else wgmma(d, keys[j][i], q, i > 0);
      }
      wg_commit(), wg_wait<0>();
      float sum[2] = {};
#pragma unroll
      for (int h = 0; h < 4; h++) {
        float2 u = *reinterpret_cast<const float2*>(hw + turn * 32 + h * 8 + t * 2);
#pragma unroll
        for (int r = 0; r < 2; r++) {
          sum[r] = fmaf(fmaxf(d[h * 4 + 2 * r] + d[16 + h * 4 + 2 * r], 0), u.x, sum[r]);
          sum[r] = fmaf(fmaxf(d[h * 4 + 2 * r + 1] + d[16 + h * 4 + 2 * r + 1], 0), u.y, sum[r]);
        }
      }
#pragma unroll
      for (int r = 0; r < 2; r++) {
        sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
        sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
        int i = 64 * j + 8 * r + g;
        if (t == 0 && base + 16 * warp + i < n) out[i] = sum[r] * scale[j][r];
      }
    }
  }
  finish(p.at);
}
#else
template <int F>
__device__ __forceinline__ void index_logits_wide(const IndexP& p) { index_logits<F, 4, 1, 4, true>(p); }
#endif
extern "C" __global__ void __launch_bounds__(128, 2) index_logits_bf16_wide(const __grid_constant__ IndexP p) { index_logits_wide<1>(p); }
extern "C" __global__ void __launch_bounds__(128, 2) index_logits_fp8_wide(const __grid_constant__ IndexP p) { index_logits_wide<2>(p); }

// A block's shape is in the name: tiles of a warp, warps, whether it has many rows.
#define INDEX_LOGITS(NAME, F, T, N, W, MANY, MIN) \
  extern "C" __global__ void __launch_bounds__(32 * W, MIN) index_logits_##NAME##_##T##_##W##_##MANY(const __grid_constant__ IndexP p) { index_logits<F, T, N, W, MANY>(p); }
INDEX_LOGITS(f32, 0, 1, 2, 4, 0, 1)
INDEX_LOGITS(bf16, 1, 1, 4, 8, 0, 1)
INDEX_LOGITS(bf16, 1, 2, 2, 4, 0, 1)
INDEX_LOGITS(bf16, 1, 2, 2, 8, 0, 1)
INDEX_LOGITS(bf16, 1, 4, 1, 4, 1, 2)
INDEX_LOGITS(fp8, 2, 1, 4, 8, 0, 1)
INDEX_LOGITS(fp8, 2, 2, 2, 4, 0, 1)
INDEX_LOGITS(fp8, 2, 2, 2, 8, 0, 1)
INDEX_LOGITS(fp8, 2, 4, 1, 4, 1, 2)
