// The experts of each token.
#pragma once
#include "device/device.cuh"
#include "moe/params.h"

constexpr int kOfLane = kInRegisters / 32;  // experts of a lane, where all are in registers
constexpr int kMaxRouted = 64;  // largest topk and number of groups

// Chosen is a token's experts, ascending, while they are chosen.
struct Chosen {
  float score[kMaxRouted];
  int expert[kMaxRouted];
  float best[kMaxRouted];  // of groups
};
// What a warp of route needs in shared memory.
struct RouteMemory {
  Chosen chosen;
  float choice[32 * kOfLane];
};
static_assert(8 * sizeof(RouteMemory) == kRouteMemory);

// order_of maps values to integers of the same order; NaN comes last. 0 is none.
__device__ __forceinline__ uint32_t order_of(float v) {
  uint32_t u = __float_as_uint(v + 0.0f);
  u ^= (uint32_t)((int)u >> 31) | 0x80000000u;
  return v != v ? 1 : u;
}
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// sigmoids is sigmoid of several, with the same bits and no branches between them: a
// reciprocal and one step of Newton's round correctly below 2^126.
__device__ __forceinline__ void sigmoids(float (&s)[kOfLane]) {
  float v[kOfLane];
  bool far = false;
#pragma unroll
  for (int i = 0; i < kOfLane; i++) {
    float r;
    v[i] = 1.0f + expf(-s[i]), far |= v[i] >= 0x1p126f;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v[i]));
    s[i] = fmaf(r, -fmaf(v[i], r, -1.0f), r);
  }
  if (far)
#pragma unroll
    for (int i = 0; i < kOfLane; i++) s[i] = v[i] >= 0x1p126f ? __frcp_rn(v[i]) : s[i];
}

// limit zeroes the choices outside the `keep` groups whose two best are largest.
__device__ __forceinline__ void limit(const RouteP& p, float* choice, float* best) {
  int lane = threadIdx.x & 31, per = p.n / p.groups;
  for (int g = lane; g < p.groups; g += 32) {
    float a = -INFINITY, b = -INFINITY;
    for (int i = g * per; i < (g + 1) * per; i++) {
      float v = choice[i];
      if (v > a) b = a, a = v;
      else if (v > b) b = v;
    }
    best[g] = per == 1 ? a : a + b;
  }
  __syncwarp();
  for (int g = lane; g < p.groups; g += 32) {
    int before = 0;
    for (int o = 0; o < p.groups; o++) before += best[o] > best[g] || (best[o] == best[g] && o < g);
    if (before >= p.keep)
      for (int i = g * per; i < (g + 1) * per; i++) choice[i] = 0;
  }
  __syncwarp();
}

__device__ __forceinline__ void write_row(const RouteP& p, int m, const Chosen& c, bool write = true) {
  int lane = threadIdx.x & 31;
  float sum = 0, lower = lane < p.topk ? c.score[lane] : 0, upper = lane + 32 < p.topk ? c.score[lane + 32] : 0;
#pragma unroll 4
  for (int j = 0; j < p.topk; j++) sum += __shfl_sync(~0u, j < 32 ? lower : upper, j & 31);
  float f = p.norm ? p.scale / (sum + 1e-20f) : p.scale;
#pragma unroll 1
  for (int j = lane; j < p.topk && write; j += 32) {
    p.experts[(size_t)m * p.topk + j] = c.expert[j];
    p.weights[(size_t)m * p.ldw + j] = (j < 32 ? lower : upper) * f;
  }
}

// eight loads a lane's values; what is beyond n is 0.
__device__ __forceinline__ void eight(float (&v)[kOfLane], const float* from, int at, int per, int n) {
  if (per == kOfLane && n == 32 * kOfLane && (reinterpret_cast<size_t>(from) & 15) == 0) {
    float4 a = reinterpret_cast<const float4*>(from + at)[0], b = reinterpret_cast<const float4*>(from + at)[1];
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
    return;
  }
#pragma unroll
  for (int i = 0; i < kOfLane; i++) v[i] = i < per && at + i < n ? from[at + i] : 0;
}

// sort puts eight keys in descending order, equal ones in that of their places, which
// it returns, 4 bits each.
__device__ __forceinline__ uint32_t sort(uint32_t (&key)[kOfLane]) {
  static_assert(kOfLane == 8, "");
  constexpr int kPairs[19][2] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 1}, {2, 3}, {4, 5},
      {6, 7}, {2, 4}, {3, 5}, {1, 4}, {3, 6}, {1, 2}, {3, 4}, {5, 6}};
  uint32_t place[kOfLane], all = 0;
#pragma unroll
  for (int i = 0; i < kOfLane; i++) place[i] = i;
#pragma unroll
  for (int i = 0; i < 19; i++) {
    uint32_t &a = key[kPairs[i][0]], &b = key[kPairs[i][1]], &c = place[kPairs[i][0]], &d = place[kPairs[i][1]];
    bool swap = (b > a) | ((b == a) & (d < c));
    uint32_t u = swap ? b : a, v = swap ? d : c;
    b = swap ? a : b, d = swap ? c : d, a = u, c = v;
  }
#pragma unroll
  for (int i = 0; i < kOfLane; i++) all |= place[i] << (4 * i);
  return all;
}

// Choice is what a lane knows of its token's experts: which of its own are chosen, a bit
// each, and how many of the lanes before are. Lane l has experts per*l and on, so that
// ties go to the lower lane and there to the lower place.
struct Choice {
  uint32_t mine;
  int before;
};

__device__ __forceinline__ int of_lane(const RouteP& p) { return (p.n + 31) / 32; }

// choose is what a warp does for a token; s: logits, which become their sigmoids.
__device__ __forceinline__ Choice choose(const RouteP& p, const float (&bias)[kOfLane], float (&s)[kOfLane],
    RouteMemory& mem) {
  int lane = threadIdx.x & 31, per = of_lane(p);
  float b[kOfLane];
  uint32_t key[kOfLane];
  sigmoids(s);
#pragma unroll
  for (int i = 0; i < kOfLane; i++) b[i] = bias[i] + s[i];
  if (p.keep < p.groups) {
#pragma unroll
    for (int i = 0; i < kOfLane; i++)
      if (i < per) mem.choice[lane * per + i] = b[i];
    __syncwarp();
    limit(p, mem.choice, mem.chosen.best);
#pragma unroll
    for (int i = 0; i < kOfLane; i++)
      if (i < per) b[i] = mem.choice[lane * per + i];
  }
#pragma unroll
  for (int i = 0; i < kOfLane; i++) key[i] = (i < per) & (lane * per + i < p.n) ? order_of(b[i]) : 0;
  uint32_t places = sort(key);
  Choice c = {0, 0};
#pragma unroll 1
  for (int j = 0; j < p.topk; j++) {
    uint32_t all = __reduce_max_sync(~0u, key[0]);
    int winner = __ffs(__ballot_sync(~0u, key[0] == all)) - 1;
    c.before += winner < lane;
    if (lane == winner) c.mine |= 1u << (places & 15), places >>= 4;
#pragma unroll
    for (int i = 0; i < kOfLane; i++) key[i] = lane == winner ? (i + 1 < kOfLane ? key[i + 1] : 0) : key[i];
  }
  return c;
}

// list leaves a token's experts and their scores in shared memory.
__device__ __forceinline__ void list(const RouteP& p, const Choice& c, const float (&s)[kOfLane], Chosen& chosen) {
  int lane = threadIdx.x & 31, per = of_lane(p), at = c.before;
#pragma unroll
  for (int i = 0; i < kOfLane; i++)
    if (c.mine >> i & 1) chosen.expert[at] = lane * per + i, chosen.score[at++] = s[i];
  __syncwarp();
}

// route has a warp a token. In a launch of its own, what comes after it may start once
// what came before it is done.
__device__ __forceinline__ void route(const RouteP& p, int block, char* smem) {
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, m = block * (blockDim.x >> 5) + warp, per = of_lane(p);
  RouteMemory& mem = reinterpret_cast<RouteMemory*>(smem)[warp];
  float bias[kOfLane], s[kOfLane] = {};
  eight(bias, p.bias, lane * per, per, p.n);
  // The first turn is for the instructions to come while the kernels before end.
#pragma unroll 1
  for (int turn = 0; turn < 2; turn++) {
    if (turn) ready(p.at, block == 0), begin();
    if (m >= p.m) continue;
    if (turn) eight(s, p.x + (size_t)m * p.ldx, lane * per, per, p.n);
    Choice c = choose(p, bias, s, mem);
    list(p, c, s, mem.chosen);
    write_row(p, m, mem.chosen, turn);
    __syncwarp();
  }
  finish(p.at);
}
