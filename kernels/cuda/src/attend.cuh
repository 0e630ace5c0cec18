// What both ways to attend share: the call's parameters and where entries are.
#pragma once
#include "device.cuh"

struct AttendP {
  const float* q;      // [m, heads, k+nrope]
  const void* cache;
  const int* pages;    // [sequences, pages_ld]
  const int* seq;
  const int* pos;
  const int* sel;      // [m, topk] ascending, -1 past the end; null: 0..pos
  float* part;         // [m, splits, heads, k+2]: sums, then max and weight; or what blocks of a row leave for each other
  float* y;            // [m, heads, k]
  u64* at;
  int m, k, nrope, heads, topk, splits, pages_ld, ldq, ldy;
  float scale;
};

constexpr int kPage = 64;

// positions is how many positions row m attends to.
__device__ __forceinline__ int positions(const AttendP& p, int m) {
  int n = p.pos[m] + 1;
  return p.sel ? min(n, p.topk) : n;
}

// slot_of is the cache slot of row m's i-th position.
__device__ __forceinline__ int slot_of(const AttendP& p, int m, int i) {
  int pos = p.sel ? p.sel[(size_t)m * p.topk + i] : i;
  return p.pages[(size_t)p.seq[m] * p.pages_ld + pos / kPage] * kPage + pos % kPage;
}
