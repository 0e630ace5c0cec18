// The experts of each token.
#pragma once
#include "device.cuh"

struct RouteP {
  const float* x;     // logits [m, n]
  const float* bias;  // [n]
  int* experts;       // [m, topk]
  float* weights;     // [m, topk]
  u64* at;
  int m, n, topk, ldx, ldw;
  int groups, keep, norm;  // groups of experts, those that stay
  float scale;
};

constexpr int kOfLane = 8;     // experts of a lane, where all are in registers
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

// order_of maps values to integers of the same order; NaN comes last. 0 is none.
__device__ __forceinline__ uint32_t order_of(float v) {
  if (v != v) return 1;
  uint32_t u = __float_as_uint(v + 0.0f);
  return u ^ (u >> 31 ? 0xFFFFFFFFu : 0x80000000u);
}
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

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

__device__ __forceinline__ void write_row(const RouteP& p, int m, const Chosen& c) {
  float sum = 0;
  for (int j = 0; j < p.topk; j++) sum += c.score[j];
  float f = p.norm ? p.scale / (sum + 1e-20f) : p.scale;
  for (int j = threadIdx.x & 31; j < p.topk; j += 32) {
    p.experts[(size_t)m * p.topk + j] = c.expert[j];
    p.weights[(size_t)m * p.ldw + j] = c.score[j] * f;
  }
}

// route has a warp a token. Lane l has experts per*l and on, so that ties go to the
// lower lane and there to the lower place. What comes after it may start once what
// came before it is done.
__device__ __forceinline__ void route(const RouteP& p, int block, char* smem) {
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, m = block * (blockDim.x >> 5) + warp, per = (p.n + 31) / 32;
  RouteMemory& mem = reinterpret_cast<RouteMemory*>(smem)[warp];
  float b[kOfLane], s[kOfLane];
  uint32_t key[kOfLane];
#pragma unroll
  for (int i = 0; i < kOfLane; i++) b[i] = i < per && lane * per + i < p.n ? p.bias[lane * per + i] : 0;
  ready(p.at, block == 0);
  begin();
  if (m < p.m) {
#pragma unroll
    for (int i = 0; i < kOfLane; i++) s[i] = i < per && lane * per + i < p.n ? p.x[(size_t)m * p.ldx + lane * per + i] : 0;
#pragma unroll
    for (int i = 0; i < kOfLane; i++) s[i] = sigmoid(s[i]), b[i] += s[i];
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
    for (int i = 0; i < kOfLane; i++) key[i] = i < per && lane * per + i < p.n ? order_of(b[i]) : 0;
    unsigned mine = 0;  // which of the lane's are chosen
    for (int j = 0; j < p.topk; j++) {
      uint32_t top = 0;
#pragma unroll
      for (int i = 0; i < kOfLane; i++) top = max(top, key[i]);
      uint32_t all = __reduce_max_sync(~0u, top);
      if (lane == __ffs(__ballot_sync(~0u, top == all)) - 1) {
        bool done = false;
#pragma unroll
        for (int i = 0; i < kOfLane; i++)
          if (!done && key[i] == all) done = true, key[i] = 0, mine |= 1u << i;
      }
    }
    int at = 0;
#pragma unroll
    for (int i = 0; i < kOfLane; i++) at += __popc(__ballot_sync(~0u, mine >> i & 1) & ((1u << lane) - 1));
#pragma unroll
    for (int i = 0; i < kOfLane; i++)
      if (mine >> i & 1) mem.chosen.expert[at] = lane * per + i, mem.chosen.score[at++] = s[i];
    __syncwarp();
    write_row(p, m, mem.chosen);
  }
  finish(p.at);
}
