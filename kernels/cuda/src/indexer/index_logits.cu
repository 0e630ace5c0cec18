// The sparse-attention indexer: scores of all positions.
#include "indexer/index_logits.cuh"

// score leaves a lane's sums over heads of its positions, lane/4 and that + 8 of
// each of T tiles; N tiles of heads at a time, which changes no sum.
template <int F, int T, int N>
__device__ __forceinline__ void score(float (&sum)[T][2], const Keys<F> (&keys)[T], const uint4* q, const float* w,
    int tiles, int kb, int lane) {
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
  // [tiles][kb][lane] of high, then low; twice if kMany
  uint4* qs = reinterpret_cast<uint4*>(smem);
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
        for (int i = 0; i < T; i++) loaded[i].load(p, p.pages + (size_t)seq * p.pages_ld, p0 + 16 * i, lane),
            keys[i].from(loaded[i]);
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

// A block's shape is in the name: tiles of a warp, warps, whether it has many rows.
#define INDEX_LOGITS(NAME, F, T, N, W, MANY, MIN) \
  extern "C" __global__ void __launch_bounds__(32 * W, MIN) \
      index_logits_##NAME##_##T##_##W##_##MANY(const __grid_constant__ IndexP p) { \
    index_logits<F, T, N, W, MANY>(p); \
  }
INDEX_LOGITS(f32, 0, 1, 2, 4, 0, 1)
INDEX_LOGITS(bf16, 1, 2, 2, 4, 0, 1)
INDEX_LOGITS(bf16, 1, 4, 1, 4, 1, 2)
INDEX_LOGITS(fp8, 2, 2, 2, 4, 0, 1)
INDEX_LOGITS(fp8, 2, 4, 1, 4, 1, 2)
