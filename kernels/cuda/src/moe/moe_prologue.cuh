// What comes before the experts' products of few rows and shares their launch: the
// choice of the experts, which every block makes for itself, and the shared expert's
// down product, of which each block has a few tiles. So nothing waits for another
// launch between the router's product and the experts' weights.
#pragma once
#include "moe/moe.cuh"
#include "gemm/gemv.cuh"
#include "moe/moe_route.cuh"

enum { kSharedBarrier = 1, kChosenBarrier, kListBarrier, kReadyBarrier };  // of the block, see meet

constexpr int kPrologueSteps = 2;  // of a warp
static_assert(kWarps * kPrologueSteps * 16 == kPrologueK);

// Choices are all rows' Choice, a byte a row.
struct Choices {
  uint2 mine[32], before[32];  // of each lane
};

// Prologue is what a block needs in shared memory for it.
struct alignas(16) Prologue {
  Choices choices;
  RouteMemory rows[kPrologueRows];
  float sums[kWarps][kPrologueTiles][16 * 9];
  int range[2];  // of the block's items of moe_up: from, to
};
static_assert(sizeof(Prologue) == kPrologueBytes);

// Census counts the groups of up to 4 rows with the same expert, by ascending expert:
// all of them, and what concerns a lane, its i'th expert's.
struct Census {
  int groups, touched;  // touched: experts
  int first, rows;      // the expert's first group; how many rows chose it

  __device__ __forceinline__ Census(const Choices& c, int i) : rows(0) {
    int lane = threadIdx.x & 31, all = 0, before = 0;
    uint2 mine = c.mine[lane];
#pragma unroll
    for (int j = 0; j < kOfLane; j++) {
      int n = __popc(mine.x & 0x01010101u << j) + __popc(mine.y & 0x01010101u << j);
      if (j == i) before = all, rows = n;
      all += (n + 3) / 4 + (n > 0 ? 1 << 16 : 0);
    }
    int upto = all;
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      int v = __shfl_up_sync(~0u, upto, o);
      if (lane >= o) upto += v;
    }
    first = (upto - all + before) & 0xffff;
    all = __shfl_sync(~0u, upto, 31);
    groups = all & 0xffff, touched = all >> 16;
  }

  // each calls f with each of the expert's rows: the how manieth of them it is, the row,
  // and the expert's place among those that the row chose.
  template <typename F>
  __device__ __forceinline__ void each(const Choices& c, int i, F f) const {
    uint2 mine = c.mine[threadIdx.x & 31], before = c.before[threadIdx.x & 31];
#pragma unroll 1
    for (int m = 0, r = 0; r < rows; m++) {
      if (mine.x >> i & 1) f(r++, m, (before.x & 255) + __popc(mine.x & ((1u << i) - 1)));
      mine.x = __funnelshift_r(mine.x, mine.y, 8), mine.y >>= 8;
      before.x = __funnelshift_r(before.x, before.y, 8), before.y >>= 8;
    }
  }
};

// Divisor divides by d, known early; quotients are below 2^22.
struct Divisor {
  int d;
  float inverse;

  __device__ __forceinline__ explicit Divisor(int d) : d(d), inverse(1.0f / d) {}
  __device__ __forceinline__ int operator()(int n) const {
    int q = (int)(n * inverse), r = n - q * d;
    return r < 0 ? q - 1 : r >= d ? q + 1 : q;
  }
};

// opened waits for what came before the launch and stamps the prologue's starts.
__device__ __forceinline__ void opened(const PrologueP& p) {
  ready(p.route.at);
  if (blockIdx.x == 0 && threadIdx.x == 0 && p.route.at && p.shared.w) atomicMin(p.shared.at, globaltimer()),
      atomicMin(p.shared.act_at, globaltimer());
}

// Chooser is one of the warps that choose the experts, each of a row.
struct Chooser {
  float bias[kOfLane];

  __device__ __forceinline__ void fetch(const RouteP& p) {
    eight(bias, p.bias, (threadIdx.x & 31) * of_lane(p), of_lane(p), p.n);
  }
  // choose leaves row m's part of the choices; write: and the experts in global memory.
  __device__ __forceinline__ void choose(const RouteP& p, Prologue& mem, int m, bool write) {
    int lane = threadIdx.x & 31, per = of_lane(p);
    Choice c = {0, 0};
    if (m < p.m) {
      float s[kOfLane];
      eight(s, p.x + (size_t)m * p.ldx, lane * per, per, p.n);
      c = ::choose(p, bias, s, mem.rows[m]);
      if (write || p.m == 1) list(p, c, s, mem.rows[m].chosen);
      if (write) {
        write_row(p, m, mem.rows[m].chosen);
        __threadfence();  // before begin: the next launch may read them early
        if (p.at && lane == 0) stamp_end(p.at);
      }
    }
    reinterpret_cast<uint8_t*>(mem.choices.mine)[lane * 8 + m] = c.mine;
    reinterpret_cast<uint8_t*>(mem.choices.before)[lane * 8 + m] = c.before;
  }
};

// SharedDown is one of the kWarps warps that do the shared expert's down product: the
// sums are gemv.cuh's in the same order.
struct SharedDown {
  uint4 w[kPrologueTiles][kPrologueSteps];
  float2 gate[kPrologueSteps][2], up[kPrologueSteps][2];

  __device__ __forceinline__ static int tile(int i) { return blockIdx.x * kPrologueTiles + i; }
  // fetch asks for the weights.
  __device__ __forceinline__ void fetch(const GemvP& p, int warp) {
    const uint4* from = static_cast<const uint4*>(p.w) + warp * kPrologueSteps * 32 + (threadIdx.x & 31);
#pragma unroll
    for (int i = 0; i < kPrologueTiles; i++)
#pragma unroll
      for (int s = 0; s < kPrologueSteps; s++) w[i][s] = tile(i) < p.tiles ?
          __ldcs(from + (tile(i) * kWarps * kPrologueSteps + s) * 32) : uint4{0, 0, 0, 0};
  }
  // load asks for the lane's columns of its row.
  __device__ __forceinline__ void load(const GemvP& p, int warp) {
    int lane = threadIdx.x & 31;
    const float* x = p.x + (size_t)min(lane >> 2, p.m - 1) * p.ldx + warp * kPrologueSteps * 16 + (lane & 3) * 2;
#pragma unroll
    for (int s = 0; s < kPrologueSteps; s++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const float2* from = reinterpret_cast<const float2*>(x + s * 16 + h * 8);
        gate[s][h] = __ldcg(from), up[s][h] = __ldcg(from + p.k / 2);
      }
  }
  // multiply: write: the gated values go to global memory too.
  __device__ __forceinline__ void multiply(const GemvP& p, Prologue& mem, int warp, bool write) {
    int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, col = warp * kPrologueSteps * 16 + t * 2;
    float acc[kPrologueTiles][4] = {};
#pragma unroll
    for (int s = 0; s < kPrologueSteps; s++) {
      Split f[2];
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float2 v = {silu(gate[s][h].x) * up[s][h].x, silu(gate[s][h].y) * up[s][h].y};
        if (write && g < p.m) *reinterpret_cast<float2*>(p.act + (size_t)g * p.ldact + col + s * 16 + h * 8) = v;
        f[h] = split(v.x, v.y, low_of(p.rounded));
      }
#pragma unroll
      for (int i = 0; i < kPrologueTiles; i++) mma_split(acc[i], {w[i][s].x, w[i][s].y, w[i][s].z, w[i][s].w},
          {f[0], f[1]});
    }
    if (write && p.at && lane == 0) atomicMax(p.act_at + 1, globaltimer());
#pragma unroll
    for (int i = 0; i < kPrologueTiles; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) mem.sums[warp][i][(g + (j >> 1) * 8) * 9 + t * 2 + (j & 1)] = acc[i][j];
    meet(kSharedBarrier, kWarps * 32);
#pragma unroll 1
    for (int o = warp * 32 + lane; o < kPrologueTiles * 128; o += kWarps * 32) {
      int i = o >> 7, m = o >> 4 & 7, line = o & 15, r = tile(i) * 16 + line;
      if (m >= p.m || r >= p.n) continue;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < kWarps; j++) sum += mem.sums[j][i][line * 9 + m];
      p.y[(size_t)m * p.ldy + r] = sum * p.global;
    }
    if (p.at && warp == kWarps - 1 && lane == 0) stamp_end(p.at);
  }
};
