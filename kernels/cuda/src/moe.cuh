// What the experts' products have in common.
#pragma once
#include "fp4.cuh"

struct MoeP {
  const char* w;         // of expert 0
  const float2* global;  // FP4: (lower half of the rows, upper half) of each expert
  const float* x;
  const int* experts;    // [m, topk], ascending in a row
  const float* weights;  // [m, topk]
  float* y;
  const int* list;       // (token, choice) pairs ordered by expert; null: each its own group
  const int* offsets;    // [groups+1] into list
  float* scratch;        // down, grouped: [m*topk, n]
  u64* at;
  int m, n, k, topk, groups, ldx, ldy, ldw;
  int by_pair;           // x has a row for each pair even where tokens share one (quantised inputs)
  int tokens, slots;     // experts.cuh: rows of a group; up: groups of a block, at most; down: experts of the ring
  int early;             // may be read before ready: by up x, by down the experts and their weights
  int64_t wexpert;       // bytes from one expert to the next
};

// k is cut into slices whose sums are added in ascending order, whoever computes
// them: of the units of 64 columns (BF16: of 16) slice s has ceil(kt / slices) from
// s * ceil(kt / slices) on. The slices are 16 for up and 1 for down. With FP4 weights
// the products with the rows' upper terms and those with their lower terms are
// chains of their own, and a slice's sum is the sum of both.
constexpr int kUpSlices = 16;
