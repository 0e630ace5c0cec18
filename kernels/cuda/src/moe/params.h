// What the experts' kernels are given, see device/params.h.
#pragma once
#include "gemm/params.h"
#include "mma/params.h"

enum {
  kInRegisters = 256,        // experts that moe_route keeps in registers
  kRouteMemory = 8 * 1792,   // of a block of eight warps, RouteMemory
  kUpSlices = 16,            // of k
  kWsK = 6144,               // columns that moe_up_fp4_ws is for
  kWsThreads = 640,          // and experts, at most
  kWsBytes = 190704,         // of shared memory, besides its list and what making that takes
  kPrologueBytes = 28688,
  kPrologueRows = 8,
  kPrologueTiles = 3,        // of the shared expert's down product, of a block
  kPrologueK = 256,
  kDownAllSlots = 18,        // of the ring of moe_down_fp4_all
  kDownAllExperts = 256,     // at most
  kDownAllRows = 96,         // at most
  kDownAllWarps = 15,
  kDownAllItem = 3 * 4 * kFp4Unit,  // bytes of an expert's weights in the ring
  kDownAllY = 3 * 16 + 4,           // values of a row of y
  // Bytes of a block before what depends on the rows: rows of x, the ring's states, lists.
  kDownAllThere = kDownAllWarps * 2 * 4 * (4 * 128 + 64) + kDownAllSlots * 12 + 8 + kDownAllRows * 4 +
                  kDownAllExperts * 20,
  kWgmmaUpThreads = 640,
  kWgmmaUpShared = 222336,   // bytes of a block of moe_up_wgmma, besides 12 an expert
  kWgmmaDownRows = 64,       // of an expert in a block of moe_down_wgmma
  kWgmmaDownRing = 16,       // groups of 16 outputs whose weights it has
  kWgmmaDownTile = 272,      // bytes of its tile
  kWgmma128Threads = 384,
  kWgmma128Shared = 190544,  // bytes of a block of moe_up_wgmma_128
  kWgmma128Expert = 36,      // and an expert
};

typedef struct RouteP {
  const float* x;     // logits [m, n]
  const float* bias;  // [n]
  int* experts;       // [m, topk]
  float* weights;     // [m, topk]
  u64* at;
  int m, n, topk, ldx, ldw;
  int groups, keep, norm;  // groups of experts, those that stay
  float scale;
} RouteP;

typedef struct GroupP {
  const int* experts;
  int* list;
  int* offsets;
  u64* at;  // of the moe_up call; at[2]: experts touched
  int pairs, groups;
} GroupP;

typedef struct MoeP {
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
  int tokens, slots;     // moe_few_rows.cuh: rows of a group; up: groups of a block, at most; down: experts of the ring
  int early;             // may be read before ready: by up x, by down the experts and their weights
  uint32_t rounded;  // 1: x is rounded to BF16 first
  int64_t wexpert;       // bytes from one expert to the next
} MoeP;

typedef struct PrologueP {
  RouteP route;  // x null: there is no prologue
  GemvP shared;  // w null: none; its x is yet to be gated
} PrologueP;

// MoeUpP is what moe_up of few rows is given.
typedef struct MoeUpP {
  MoeP moe;
  PrologueP prologue;
} MoeUpP;

typedef struct MoeWgmmaP {
  const char* w;         // of expert 0
  const float2* global;  // (lower half of the rows, upper half) of each expert
  const float* x;
  char* rows;            // of x as moe_pack_panels leaves them
  const int* list;       // (token, choice) pairs ordered by expert
  const int* offsets;    // [groups+1] into list
  float* y;              // up: [pairs, n]; down: [pairs, rows of this launch]
  u64* at;
  int m, n, k, topk, groups, ldx;
  int by_pair;           // x has a row for each pair
  int per;               // up: units of 64 columns in a slice
  int row0, count;       // down: of the outputs of this launch
  uint32_t rounded;  // 1: x is rounded to BF16 first
  int64_t wexpert;
} MoeWgmmaP;
