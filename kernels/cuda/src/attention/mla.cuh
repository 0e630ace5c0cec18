// What both ways to attend share: the call's parameters and where entries are.
#pragma once
#include "device/device.cuh"
#include "attention/params.h"

constexpr int kPage = kPageTokens;

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
