// What the kernels of latent attention are given, see device/params.h.
#pragma once
#include "device/params.h"

enum {
  kMlaTile = 32,                               // positions of a split
  kMlaBf16ClusterBlocks = 16,
  kMlaBf16ClusterThreads = 256,
  kMlaBf16ClusterShared = 27264 + 128 * 1168,  // bytes
  kMlaFp8ClusterThreads = 256,                 // of a team: of a block of a cluster of 16, half of one of 8
  kMlaFp8Cluster16Shared = 55808 + 128 * 656,
  kMlaFp8Cluster8Shared = 63488 + 256 * 656,
  kMlaPersistentThreads = 640,
  kMlaPersistentReach = 2048,                  // positions of a row, at most
  kMlaPersistentShared = 228976,               // bytes of a block
  kMlaPersistentLeft = 18432,                  // and of what it takes from the others of its row
};

typedef struct AttendP {
  const float* q;      // [m, heads, k+nrope]
  const void* cache;
  const int* pages;    // [sequences, pages_ld]
  const int* seq;
  const int* pos;
  const int* sel;      // [m, topk] ascending, -1 past the end; null: 0..pos
  // [m, splits, heads, k+2]: sums, then max and weight; or what blocks of a row leave for each other
  float* part;
  float* y;            // [m, heads, k]
  u64* at;
  int m, k, nrope, heads, topk, splits, pages_ld, ldq, ldy;
  float scale;
} AttendP;

typedef struct CastP {
  const uint8_t* cache;
  __nv_bfloat16* out;
  u64* at;
  int64_t slots;
  int k, nrope;
} CastP;
