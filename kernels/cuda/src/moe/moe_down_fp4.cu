// The down projections of experts with few rows, see moe_few_rows.cuh.
#include "moe/moe_few_rows.cuh"
#include "mma/sm90_wgmma.cuh"

// y[m, n] += Σ weight (down x). A block owns rows of n, in bundles of T tiles, and a
// warp takes groups in turn: their products wait in shared memory until each row
// adds its experts in order. F units of each tile are in flight; F divides kt, which
// is KT unless that is 0.
template <int W, int T, int F, int KT>
__device__ __forceinline__ void moe_down(const MoeP& p) {
  extern __shared__ __align__(128) char smem[];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, tokens = p.tokens,
      pairs = p.m * p.topk;
  int kt = KT ? KT : (p.k + 63) / 64, xrow = staged_row(kt), tiles = (p.n + 15) / 16;
  int per = (tiles + gridDim.x - 1) / gridDim.x, tile0 = blockIdx.x * per, nt = max(0, min(per, tiles - tile0)),
      rows = per * 16;
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
  for (int i = threadIdx.x; here && i < pairs; i += W * 32) weights[i] = p.weights[(size_t)(i / p.topk) * p.ldw +
      i % p.topk];
  float y0 = threadIdx.x < outputs && tile0 * 16 + threadIdx.x % (nt * 16) < p.n ? *output(threadIdx.x) : 0;
  float acc[T][4] = {};
  int count = 0;
  while (cur.q < n) {
    if (cur.b == 0 && cur.tile == 0) {
      count = groups.count[cur.q];
      __syncwarp();
      for (int j = lane; j < count * kt * 8; j += 32) {
        int c = j / (kt * 8);
        stage_x(xs, xrow, tokens, c, p.x + (size_t)groups.pair[cur.q * tokens + c] * p.ldx, j - c * kt * 8, p.k,
            low_of(p.rounded));
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
          if (c < count && cur.tile + i < nt && tile0 * 16 + r < p.n) parts[(size_t)pair * ldp + r] =
              acc[i][j] * (tile0 * 16 + r < p.n / 2 ? global.x : global.y);
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

// Where a block of moe_down_fp4_all keeps what, in bytes of shared memory, with its
// ring behind; the plan counts them too.
constexpr int kDownSlots = kDownAllSlots, kDownExperts = kDownAllExperts, kDownRows = kDownAllRows;
template <int W, int KT>
struct DownRoom {
  static constexpr int kTiles = 3, kRows = 4, kItem = kTiles * KT * kFp4Unit, kX = staged_row(KT), kY = kTiles * 16 + 4;
  static constexpr int full = W * 2 * kRows * kX, issued = full + kDownSlots * 8, turns = issued + kDownSlots * 4 + 8,
      first = turns + kDownRows * 4;
  static constexpr int list = first + kDownExperts * 4, there = list + kDownExperts * 16;
  int order, y, ring;
  __device__ __forceinline__ DownRoom(int m, int topk)
      : order(there + kDownExperts * 9 / 8 * ((m + 31) / 32) * 4), y(order + m * topk * 16),
          ring((y + m * kY * 4 + 127) / 128 * 128) {}
};
typedef DownRoom<kDownAllWarps, 4> DownAllRoom;
static_assert(DownAllRoom::there == kDownAllThere && DownAllRoom::kItem == kDownAllItem &&
    DownAllRoom::kY == kDownAllY);

// The same where x has 256 columns. A block owns 3 tiles of n and takes all experts
// that were chosen, in ascending order: each of W warps every W'th. The weights of
// the next `slots` experts are on their way into a ring or are there, a copy each; who
// is done with one has another come in its place. The x of a warp's next 4 rows is on
// its way into registers while it multiplies. It adds the products to the rows, in
// shared memory, as soon as the row's experts before have been added.
template <int W, int KT>
__device__ __forceinline__ void moe_down_all(const MoeP& p) {
  typedef DownRoom<W, KT> Room;
  constexpr int T = Room::kTiles, C = Room::kRows, kTile = KT * kFp4Unit, kThreads = W * 32, kMasks = kDownRows / 32;
  static_assert(KT == 4, "a lane has 8 columns of x");
  extern __shared__ __align__(128) char smem[];
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3, topk = p.topk,
      pairs = p.m * topk, words = (p.m + 31) / 32;
  int tile0 = blockIdx.x * T;
  Room room(p.m, topk);
  char *ring = smem + room.ring, *xs = smem + warp * 2 * C * Room::kX;
  // [slots]; [m]: how many of a row's experts have been added
  uint32_t full = shared_of(smem + Room::full), turns = shared_of(smem + Room::turns);
  volatile int* issued = reinterpret_cast<int*>(smem + Room::issued);                   // [slots]: which of the list
  // [experts]: its first pair in order
  int* first = reinterpret_cast<int*>(smem + Room::first);
  // an expert, its first pair, how many
  int4* list = reinterpret_cast<int4*>(smem + Room::list);
  // [experts, words]: rows that chose it
  uint32_t* there = reinterpret_cast<uint32_t*>(smem + Room::there);
  // pairs by expert: where their x and y are, their weights, rows << 8 | places in it
  int4* order = reinterpret_cast<int4*>(smem + room.order);
  float* ys = reinterpret_cast<float*>(smem + room.y);
  auto rows_of = [&](int e) { return there + (e + (e >> 3)) * words; };  // spread over banks
  begin();
  if (!p.early) ready(p.at);
  // A thread has two pairs.
  int own[2];
  float weight[2];
#pragma unroll
  for (int j = 0; j < 2; j++) {
    int i = tid + j * kThreads;
    own[j] = -1;
    if (i < pairs) own[j] = __ldcg(p.experts + i), weight[j] = __ldcg(p.weights + (size_t)(i / topk) * p.ldw +
        i % topk);
  }
  if (tid < kDownSlots) mbar_init(full + tid * 8, 1), issued[tid] = -1;
  mbar_ready();
  if (tid < kDownRows) reinterpret_cast<int*>(smem + Room::turns)[tid] = 0;
  for (int i = tid; i < kDownExperts * 9 / 8 * words; i += kThreads) there[i] = 0;
  __syncthreads();
#pragma unroll
  for (int j = 0; j < 2; j++) {
    int m = (tid + j * kThreads) / topk;
    if (own[j] >= 0) atomicOr(rows_of(own[j]) + (m >> 5), 1u << (m & 31));
  }
  __syncthreads();
  // The list: a lane counts 8 experts, a warp lists those that it takes.
  int k[8], sum = 0, n;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    k[i] = 0;
#pragma unroll
    for (int j = 0; j < kMasks; j++)
      if (j < words) k[i] += __popc(rows_of(lane * 8 + i)[j]);
    sum += k[i] << 16 | (k[i] > 0);
  }
  int in = sum;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    int v = __shfl_up_sync(~0u, in, o);
    if (lane >= o) in += v;
  }
  n = __shfl_sync(~0u, in, 31) & 0xffff;
  in -= sum;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    int q = in & 0xffff;
    if (k[i] && q % W == warp) list[q] = make_int4(lane * 8 + i, in >> 16, k[i], 0), first[lane * 8 + i] = in >> 16;
    in += k[i] << 16 | (k[i] > 0);
  }
  __syncwarp();
  auto fetch = [&](int q, int slot) {
    if (lane || q >= n) return;
    mbar_expect(full + slot * 8, Room::kItem);
    copy_once(shared_of(ring + slot * Room::kItem), p.w + (size_t)tile0 * kTile + (size_t)list[q].x * p.wexpert,
        Room::kItem, full + slot * 8);
    issued[slot] = q;
  };
#pragma unroll 1
  for (int q = warp; q < p.slots; q += W) fetch(q, q);
  __syncthreads();
#pragma unroll
  for (int j = 0; j < 2; j++)
    if (own[j] >= 0) {
      int i = tid + j * kThreads, m = i / topk, at = first[own[j]];
#pragma unroll
      for (int w = 0; w < kMasks; w++)
        if (w <= m >> 5) at += __popc(rows_of(own[j])[w] & (w < m >> 5 ? ~0u : (1u << (m & 31)) - 1));
      order[at] = make_int4(i * p.ldx, m * Room::kY, __float_as_int(weight[j]), m << 8 | i - m * topk);
    }
  __syncthreads();
  if (p.early) ready(p.at);
  // A step is up to 4 rows of an expert.
  struct Step {
    int q, at, count, left;  // left: more rows of it
    float global;
  };
  Step next = {warp - W, 0, 0, 0};
  float4 x[C][2];
  const float *xlane = p.x + g * 32 + t * 4, *globals = &p.global->x + (tile0 * 16 >= p.n / 2);
  auto step = [&]() {
    next.at += C;
    if (!next.left) {
      if ((next.q += W) >= n) return false;
      int4 item = list[next.q];
      next.at = item.y, next.left = item.z, next.global = globals[2 * item.x];
    }
    next.count = min(C, next.left), next.left -= next.count;
#pragma unroll
    for (int i = 0; i < C; i++)
      if (i < next.count) {
        const float* from = xlane + order[next.at + i].x;
        x[i][0] = *reinterpret_cast<const float4*>(from), x[i][1] = *reinterpret_cast<const float4*>(from + 16);
      }
    return true;
  };
  bool any = step();
#pragma unroll 1
  for (int i = tid; i < p.m * T * 4; i += kThreads) {
    int m = i / (T * 4), r = i % (T * 4) * 4;
    copy16(ys + m * Room::kY + r, p.y + (size_t)m * p.ldy + tile0 * 16 + r, 16);
  }
  commit();
  if (p.at && blockIdx.x == 0 && tid == 0) p.at[2] = n;
  bool fresh = true, met = false, upper = t >> 1;  // of a tile's rows the lane keeps g or g + 8, of columns c and c + 1
  int slot = warp, phase = 0, c = (t & 1) * 2;
  const uint4* mine_x = staged_x(xs, Room::kX, C, C);
  float* mine_y = ys + g + upper * 8;
  for (; slot >= p.slots; slot -= p.slots) phase ^= 1;
#pragma unroll 1
  while (any) {
    Step cur = next;
#pragma unroll
    for (int i = 0; i < C; i++)
      if (i < cur.count) {
        Fp4X f = split_fp4(x[i][0], x[i][1], low_of(p.rounded));
        char* to = xs + i * Room::kX + lane * 16;
        *reinterpret_cast<uint4*>(to) = make_uint4(f.f[0].b0.hi, f.f[0].b1.hi, f.f[1].b0.hi, f.f[1].b1.hi);
        *reinterpret_cast<uint4*>(to + C * Room::kX) =
            make_uint4(f.f[0].b0.lo, f.f[0].b1.lo, f.f[1].b0.lo, f.f[1].b1.lo);
      }
    __syncwarp();
    any = step();
    if (fresh) {
      for (int i = 0; issued[slot] != cur.q; i++)  // the barrier may still be at the round before
        if (i == 1 << 20) __trap();
      mbar_wait(full + slot * 8, phase);
    }
    float acc[T][4] = {};
    const char* item = ring + slot * Room::kItem;
#pragma unroll
    for (int d = 0; d < KT; d++) {
      Fp4 u[T];
#pragma unroll
      for (int i = 0; i < T; i++) {
        const char* unit = item + i * kTile + d * kFp4Unit;
        u[i] = {*fp4_codes(unit, lane), *fp4_scales(unit, lane)};
      }
      add<T>(acc, u, mine_x + d * 8);
    }
    __syncwarp();
    fresh = !cur.left;
    if (fresh) {
      fetch(cur.q + p.slots, slot);
      for (slot += W; slot >= p.slots; slot -= p.slots) phase ^= 1;
    }
    int4 to[2];
#pragma unroll
    for (int j = 0; j < 2; j++) to[j] = order[cur.at + (c + j < cur.count ? c + j : 0)];
    // The upper terms' sums and the lower terms' are two lanes apart.
    float v[2][T];
#pragma unroll
    for (int i = 0; i < T; i++)
#pragma unroll
      for (int j = 0; j < 2; j++) v[j][i] = ((upper ? acc[i][2 + j] : acc[i][j]) +
          __shfl_xor_sync(~0u, upper ? acc[i][j] : acc[i][2 + j], 2)) * cur.global;
    if (!met) {
      met = true;
      landed<0>();
      __syncthreads();
    }
#pragma unroll 1
    for (int i = 0;; i++) {  // it ends: what comes before is with the warps before, or was this one's
      if (i == 1 << 20) __trap();
      bool turn = true;
#pragma unroll
      for (int j = 0; j < 2; j++) {
        int added;
        asm volatile("ld.acquire.cta.shared.b32 %0, [%1];" : "=r"(added) : "r"(turns + (to[j].w >> 8) * 4) : "memory");
        turn &= added == (to[j].w & 255);
      }
      if (__all_sync(~0u, turn)) break;
    }
#pragma unroll
    for (int j = 0; j < 2; j++)
      if (c + j < cur.count) {
        float* y = mine_y + to[j].y;
#pragma unroll
        for (int i = 0; i < T; i++) y[i * 16] = fmaf(__int_as_float(to[j].z), v[j][i], y[i * 16]);
      }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < 2; j++)
      if (lane < 2 && c + j < cur.count)
        asm volatile("st.release.cta.shared.b32 [%0], %1;" ::"r"(turns + (to[j].w >> 8) * 4), "r"((to[j].w & 255) + 1)
            : "memory");
  }
  if (!met) {
    landed<0>();
    __syncthreads();
  }
  __syncthreads();
#pragma unroll 1
  for (int i = tid; i < p.m * T * 4; i += kThreads) {
    int m = i / (T * 4), r = i % (T * 4) * 4;
    *reinterpret_cast<float4*>(p.y + (size_t)m * p.ldy + tile0 * 16 + r) =
        *reinterpret_cast<const float4*>(ys + m * Room::kY + r);
  }
  finish(p.at);
}

// Entries: F, with any K.
#define ENTRY(name, threads, ...) \
  extern "C" __global__ void __launch_bounds__(threads, 1) name(const __grid_constant__ MoeP p) { __VA_ARGS__(p); }
ENTRY(moe_down_fp4_0_1, 512, moe_down<16, 3, 1, 0>)
ENTRY(moe_down_fp4_0_2, 512, moe_down<16, 3, 2, 0>)
ENTRY(moe_down_fp4_256_2, 512, moe_down<16, 3, 2, 4>)
ENTRY(moe_down_fp4_all, 480, moe_down_all<15, 4>)
