// What the indexer's kernels are given, see device/params.h.
#pragma once
#include "gemm/params.h"

enum {
  kIndexPagesSharedBf16 = 214016,      // bytes of a block of index_logits_pages
  kIndexPagesSharedFp8 = 118784,
  kIndexRowsShared = 82944,            // and of index_logits_rows
  kIndexQueries = 2 * 64 * 128 + 128,  // bytes of a row's queries and weights
  kTopStagedShared = 109136,           // bytes of a block of index_topk_8_512_32
  kTopShared = 43616,                  // and of index_topk_8_1024_32
};

typedef struct IndexP {
  const float* q;    // [m, heads, k]; the first nrope of k are rotated here
  const float* hw;   // [m, heads]
  const float* rope; // [positions, nrope/2] pairs
  const void* cache;
  const int* pages;
  const int* seq;
  const int* pos;
  float* scores;     // [m, lds]
  u64* at;
  char* split;       // [m] queries as panels, see sm90_index_logits.cu
  int m, k, heads, nrope, span, pages_ld, ldq, ldhw, lds;
  int early;         // pos may be read before ready
  float scale;
  uint32_t rounded;  // 1: rotated queries are rounded to BF16
} IndexP;

typedef struct TopP {
  const float* scores;  // [m, lds]: a row's width
  const int* pos;
  int* sel;             // [m, topk]
  u64* at;
  int topk, lds, m;
  int waits;       // 0: first; 1: pos may be read before that; 2: at last, for what it does not need
  AbsorbP absorb;  // of the blocks behind those of the m rows
} TopP;
