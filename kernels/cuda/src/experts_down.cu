// The down projections of experts with few rows, see experts.cuh.
#include "experts.cuh"

// y[m, n] += Σ weight (down x). A block owns rows of n, in bundles of T tiles, and a
// warp takes groups in turn: their products wait in shared memory until each row
// adds its experts in order. F units of each tile are in flight; F divides kt, which
// is KT unless that is 0.
template <int W, int T, int F, int KT>
__device__ __forceinline__ void experts_down(const MoeP& p) {
  extern __shared__ __align__(128) char smem[];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, tokens = p.tokens, pairs = p.m * p.topk;
  int kt = KT ? KT : (p.k + 63) / 64, xrow = staged_row(kt), tiles = (p.n + 15) / 16;
  int per = (tiles + gridDim.x - 1) / gridDim.x, tile0 = blockIdx.x * per, nt = max(0, min(per, tiles - tile0)), rows = per * 16;
  int most = min(pairs, p.groups + pairs / tokens);  // groups
  // Shared memory: products and weights, unless scratch memory has them; lists, each
  // warp's x.
  bool here = !p.scratch;
  float* parts = here ? reinterpret_cast<float*>(smem) : p.scratch + tile0 * 16;
  int ldp = here ? rows : p.n;
  float* weights = reinterpret_cast<float*>(smem) + pairs * rows;
  int* lists = reinterpret_cast<int*>(smem + (here ? (pairs * (rows + 1) * 4 + 15) / 16 * 16 : 0));
  char* work = reinterpret_cast<char*>(lists) + (128 + most * (2 + tokens) * 4 + 15) / 16 * 16;
  char* xs = work + warp * 2 * tokens * xrow;
  Groups groups(p, most, lists, work);
  begin();
  if (!p.early) ready(p.at);
  int n = groups.number(p), blocks = kt / F;
  groups.list(p, 0, n);
  struct At {
    int q, tile, b;
  };
  auto next = [&](At& a) {
    if (++a.b < blocks) return false;
    a.b = 0;
    if ((a.tile += T) >= nt) a.tile = 0, a.q += W;
    return true;
  };
  Fp4 u[F][T];
  At cur = {nt ? warp : n, 0, 0}, ahead = cur;  // what is worked on, what is fetched next
  Lane l;
  int live = 0;  // tiles there
  auto aim = [&]() {
    if (ahead.q >= n) return;
    live = nt - ahead.tile;
    l.at(p.w + (size_t)groups.expert[ahead.q] * p.wexpert + (size_t)(tile0 + ahead.tile) * kt * kFp4Unit);
  };
  auto advance = [&]() {
    if (next(ahead)) aim();
    else l.codes += F * kFp4Unit, l.scales += F * kFp4Unit;
  };
  auto load = [&](int d) {
#pragma unroll
    for (int i = 0; i < T; i++)
      if (i < live) u[d][i] = l.load(i * kt + d);
  };
  aim();
  if (ahead.q < n) {
#pragma unroll
    for (int d = 0; d < F; d++) load(d);
  }
  advance();
  if (p.early) ready(p.at);
  // What the end needs is on its way meanwhile: the weights, a thread's first output.
  auto output = [&](int j) { return p.y + (size_t)(j / (nt * 16)) * p.ldy + tile0 * 16 + j % (nt * 16); };
  int outputs = here && nt ? p.m * nt * 16 : 0;
  for (int i = threadIdx.x; here && i < pairs; i += W * 32) weights[i] = p.weights[(size_t)(i / p.topk) * p.ldw + i % p.topk];
  float y0 = threadIdx.x < outputs && tile0 * 16 + threadIdx.x % (nt * 16) < p.n ? *output(threadIdx.x) : 0;
  float acc[T][4] = {};
  int count = 0;
  while (cur.q < n) {
    if (cur.b == 0 && cur.tile == 0) {
      count = groups.count[cur.q];
      __syncwarp();
      for (int j = lane; j < count * kt * 8; j += 32) {
        int c = j / (kt * 8);
        stage_x(xs, xrow, tokens, c, p.x + (size_t)groups.pair[cur.q * tokens + c] * p.ldx, j - c * kt * 8, p.k);
      }
      __syncwarp();
    }
    bool more = ahead.q < n;
    const uint4* x = staged_x(xs, xrow, tokens, count) + cur.b * F * 8;
#pragma unroll
    for (int d = 0; d < F; d++) {
      add<T>(acc, u[d], x + d * 8);
      if (more) load(d);
    }
    advance();
    if (cur.b + 1 == blocks) {
      whole(acc);
      float2 global = p.global[groups.expert[cur.q]];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int c = t * 2 + (j & 1);
        int pair = c < count ? groups.pair[cur.q * tokens + c] : 0;
#pragma unroll
        for (int i = 0; i < T; i++) {
          int r = (cur.tile + i) * 16 + g + (j >> 1) * 8;
          if (c < count && cur.tile + i < nt && tile0 * 16 + r < p.n) parts[(size_t)pair * ldp + r] = acc[i][j] * (tile0 * 16 + r < p.n / 2 ? global.x : global.y);
          acc[i][j] = 0;
        }
      }
    }
    next(cur);
  }
  __syncthreads();
  for (int j = threadIdx.x; j < outputs; j += W * 32) {
    int m = j / (nt * 16), r = j % (nt * 16);
    if (tile0 * 16 + r >= p.n) continue;
    float v = j < W * 32 ? y0 : *output(j);
    for (int c = 0; c < p.topk; c++) v = fmaf(weights[m * p.topk + c], parts[(m * p.topk + c) * rows + r], v);
    *output(j) = v;
  }
  finish(p.at);
}

// Entries: F, with a K of 256 or any (0). More in flight pays where experts have
// several rows.
#define ENTRY(name, ...) \
  extern "C" __global__ void __launch_bounds__(512, 1) name(const __grid_constant__ MoeP p) { __VA_ARGS__(p); }
ENTRY(experts_down_fp4_0_1, experts_down<16, 3, 1, 0>)
ENTRY(experts_down_fp4_0_2, experts_down<16, 3, 2, 0>)
ENTRY(experts_down_fp4_256_2, experts_down<16, 3, 2, 4>)
ENTRY(experts_down_fp4_256_4, experts_down<16, 3, 4, 4>)
