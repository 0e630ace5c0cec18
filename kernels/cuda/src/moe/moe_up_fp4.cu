// The gate and up projections of experts with few rows, see moe_few_rows.cuh.
#include "moe/moe_few_rows.cuh"
#include "moe/moe_prologue.cuh"

// open is what comes before the products where the launch has an prologue, which is for
// one row: a warp chooses, eight do the shared expert's product, and the others stage x.
__device__ __forceinline__ void open(const MoeUpP& u, Prologue& mem, char* xs, int xrow) {
  const MoeP& p = u.moe;
  int warp = threadIdx.x >> 5;
  bool write = blockIdx.x == gridDim.x - 1;  // which has no items, if there are multiprocessors enough
  if (warp == 0) {
    Chooser c;
    c.fetch(u.prologue.route);
    opened(u.prologue);
    c.choose(u.prologue.route, mem, 0, write);
  } else if (warp < kUpSlices - kWarps) {
    opened(u.prologue);
    for (int j = threadIdx.x - 32; j < (p.k + 63) / 64 * 8;
        j += (kUpSlices - kWarps - 1) * 32) stage_x(xs, xrow, 1, 0, p.x, j, p.k, low_of(p.rounded));
  } else {
    SharedDown s;
    if (u.prologue.shared.w) s.fetch(u.prologue.shared, warp - kWarps);
    opened(u.prologue);
    if (u.prologue.shared.w) s.load(u.prologue.shared, warp - kWarps),
        s.multiply(u.prologue.shared, mem, warp - kWarps, write);
  }
  __syncthreads();
  begin();
  if (p.at && blockIdx.x == 0 && threadIdx.x == 0) atomicMin(p.at, globaltimer()), p.at[2] = p.topk;
}

// y[pair, n] = silu(gate x) (up x). The blocks share the list of (group, 16 outputs);
// the warps of a block share k, each a slice, of which D units are in flight. D
// divides a slice.
template <int D>
__device__ __forceinline__ void moe_up(const MoeUpP& all) {
  constexpr int W = kUpSlices;
  const MoeP& p = all.moe;
  extern __shared__ __align__(128) char smem[];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, tokens = p.tokens;
  int kt = (p.k + 63) / 64, xrow = staged_row(kt), tp = (p.n + 15) / 16;
  bool prologue = all.prologue.route.x;
  // Shared memory: the prologue, sums of two items, lists, x.
  Prologue& mem = *reinterpret_cast<Prologue*>(smem);
  float* sums = reinterpret_cast<float*>(smem + (prologue ? sizeof(Prologue) : 0));
  int* lists = reinterpret_cast<int*>(sums + 2 * W * 32 * tokens);
  char* xs = reinterpret_cast<char*>(lists) + (128 + p.slots * (2 + tokens) * 4 + 15) / 16 * 16;
  Groups groups(p, p.slots, lists, xs);
  const uint32_t low = low_of(p.rounded);
  bool one = p.m == 1 && !p.by_pair, staged = one && p.early;  // all groups have the same row
  if (staged)
    for (int j = threadIdx.x; j < kt * 8; j += W * 32) stage_x(xs, xrow, tokens, 0, p.x, j, p.k, low);
  int n = p.topk;  // groups
  if (prologue) open(all, mem, xs, xrow), staged = true;
  else {
    ready(p.at);
    begin();  // moe_down may start: the experts are known
    n = groups.number(p);
  }
  int items = n * tp, workers = min(items, (int)gridDim.x),
      i0 = min(items, (int)((int64_t)items * blockIdx.x / workers)),
      i1 = min(items, (int)((int64_t)items * (blockIdx.x + 1) / workers));
  int q = i0 / tp, at = i0 - q * tp, g0 = q;
  if (prologue) groups.take(mem.rows[0].chosen.expert, g0, i1 > i0 ? (i1 - 1) / tp + 1 : g0);
  else groups.list(p, g0, i1 > i0 ? (i1 - 1) / tp + 1 : g0);
  q = 0;
  int per = (kt + W - 1) / W, lo = min(kt, warp * per), blocks = min(kt - lo, per) / D;
  // What is fetched next: from item fi, which is output tile fat of group fq, its fb-th
  // D units.
  size_t half = (size_t)tp * kt * kFp4Unit;  // from gate to up
  int fi = i0, fq = 0, fat = at, fb = 0;
  Lane l, l2;
  auto aim = [&]() {
    l.at(p.w + (size_t)groups.expert[fq] * p.wexpert + ((size_t)fat * kt + lo) * kFp4Unit);
    l2.codes = l.codes + half, l2.scales = l.scales + half;
  };
  auto advance = [&]() {
    int step = D * kFp4Unit;
    if (++fb == blocks) {
      fb = 0, fi++, step = (kt - (blocks - 1) * D) * kFp4Unit;
      if (++fat == tp) {
        fat = 0, fq++;
        if (fi < i1) aim();
        return;
      }
    }
    l.codes += step, l.scales += step, l2.codes += step, l2.scales += step;
  };
  Fp4 u[D][2];
  if (i0 < i1 && blocks > 0) {
    aim();
#pragma unroll
    for (int d = 0; d < D; d++) u[d][0] = l.load(d), u[d][1] = l2.load(d);
    advance();
  }
  int have = -1, count = 0;  // the group whose x is here
  for (int i = i0; i < i1; i++) {
    if (q != have) {
      have = q, count = groups.count[q];
      for (int c = 0; c < count && !staged; c++) {
        int pair = groups.pair[q * tokens + c];
        const float* x = p.x + (size_t)(p.by_pair ? pair : pair / p.topk) * p.ldx;
#pragma unroll 2
        for (int j = threadIdx.x; j < kt * 8; j += W * 32) stage_x(xs, xrow, tokens, c, x, j, p.k, low);
      }
      staged = one;
      __syncthreads();
    }
    int nat = at + 1 == tp ? 0 : at + 1, nq = nat ? q : q + 1;
    float acc[2][4] = {};
    const uint4* x = staged_x(xs, xrow, tokens, count) + lo * 8;
    for (int b = 0; b < blocks; b++, x += D * 8) {
      bool more = fi < i1;
#pragma unroll
      for (int d = 0; d < D; d++) {
        add<2>(acc, u[d], x + d * 8);
        if (more) u[d][0] = l.load(d), u[d][1] = l2.load(d);
      }
      advance();
    }
    whole(acc);
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
      if (lane < 16 && at * 16 + lane < p.n) p.y[(size_t)groups.pair[q * tokens + c] * p.n + at * 16 + lane] =
          silu(v) * up;
    }
    q = nq, at = nat;
  }
  finish(p.at);
}

// Entries: D.
#define ENTRY(name, ...) \
  extern "C" __global__ void __launch_bounds__(512, 1) name(const __grid_constant__ MoeUpP p) { __VA_ARGS__(p); }
ENTRY(moe_up_fp4_1, moe_up<1>)
ENTRY(moe_up_fp4_2, moe_up<2>)
