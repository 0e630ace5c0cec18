// What kernels of whole rows are given, see device/params.h.
#pragma once
#include "device/params.h"

enum {
  kEmbedded = 2048,  // values of a row that a block of embed has
};

typedef struct RowwiseP {
  const float* x;
  float* y;
  const float* w;      // norm weight
  const float* b;      // bias (index_write)
  const float* rope;   // [positions, nrope/2] pairs
  const int* pos;
  const int* idx;      // slots (cache writes), rows (gather), tokens (embed)
  float* res;          // residual, updated in place
  void* cache;         // norms: panels of y to leave, or null
  u64* at;
  int m, n, k, ldx, ldy, ldr;  // ldr: of res
  int nrope, heads, format;    // format: 0 float32, 1 BF16, 2 FP8
  float eps;
} RowwiseP;

// Quantises activations as 4- and 8-bit kernels see them: a thread 16 values, rows
// are (token, choice) pairs. 4-bit values are E2M1 times their E4M3 scale, exact in
// BF16, and the sums want the expert's input scale; 8-bit ones are whole.
typedef struct QuantP {
  const float* x;
  float* y;
  const int* experts;
  const float* input;  // of each expert; null: 8-bit, scale of each 16 values
  u64* at;
  int pairs, k, topk, ldx, by_pair;
} QuantP;
