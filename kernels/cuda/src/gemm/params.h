// What the kernels of products are given, see device/params.h.
#pragma once
#include "device/params.h"

enum {
  kGemvRowBytes = 576,     // bytes of a row of 128 columns in a block of several rows
  kPrefetchTiles = 3,      // of a block of hfuse_prefetch
  kPrefetchThreads = 288,
  kPrefetchColumns = 256,  // of a warp, at most
  kPrefetchSteps = 2,      // of a warp, at least: its sums are where they were
  kPrefetchBars = 128,     // bytes
  kShortKColumns = 128,    // of a warp of hfuse_short_k, at most
  kMultiTileWidth = 6,     // tiles of a block of gemv_multi_tile
  kMultiTileSlots = 4,     // pieces of weights that a warp has in shared memory
  kMultiTileInbox = 128,   // bytes
  kClusterCalls = 2,       // of a launch of gemm_cluster
  kClusterTiles = 8,       // of 16 outputs in a block, at most
  kClusterPanels = 2,      // of 64 columns in a stage: copies are long, each costs about 25 ns
  kClusterStages = 3,        // of two terms of x
  kClusterRounded = 4,       // of one
};

typedef struct PackP {
  const uint8_t* data;    // as the checkpoint has it, row-major
  const uint8_t* scales;  // NVFP4: E4M3 [rows, cols/16]
  void* out;
  int rows, cols;
  int tiles, kt;  // of 16 rows; of 16 columns (BF16) or 64 columns (FP4)
} PackP;

typedef struct Fp8BlockP {
  const uint8_t* data;    // pack: codes, row-major; unpack: what pack wrote
  const uint8_t* scales;  // pack: float32 [rows, cols/128, rounded up], at any address
  void* out;              // unpack: as pack_bf16 writes
  u64* at;
  int rows, cols;
  int tiles, kt;  // of 16 rows, of 16 columns
} Fp8BlockP;

typedef struct GemmP {
  const void* w;
  const float* x;
  float* y;
  u64* at;
  int m, n, k, ldx, ldy;
  float global, global_up;  // scale of the sums; FP4: of rows below and from half of n on (global_up 0: one for all)
  int heads;                // products side by side: one of heads weights, and its columns of x and y
  int xhead, yhead;         // columns of x and y from one head to the next
  int64_t whead;            // bytes of one head's weight
  // q_absorb: the last column of blocks rotates the heads' rotary part instead.
  const float* rope;  // [positions, nrope/2] pairs (cos, sin); null: no such part
  const int* pos;
  int nrope;
  uint32_t rounded;  // 1: x is rounded to BF16 first
} GemmP;

typedef struct ExactP {
  const char* w;        // of head or expert 0
  const float2* globals;  // FP4: (lower half of the rows, upper half) of each matrix; null: global for all
  const float* x;
  float* y;
  const int* experts;   // [m, topk], ascending in a row
  const float* weights; // [m, topk]: y += Σ weight (w x)
  const float* rope;    // q_absorb: [positions, nrope/2] pairs (cos, sin)
  const int* pos;
  u64* at;
  int m, n, k, ldx, ldy, ldw;  // n: outputs; of moe_up half of a matrix's rows
  int heads, xhead, yhead, nrope, topk, groups;
  int by_pair;          // moe_up: x has a row a pair
  float global;
  int64_t wnext;        // bytes from one matrix to the next
} ExactP;

typedef struct GemvP {
  const void* w;
  const float* x;
  float* y;
  u64* at;
  int m, n, k, ldx, ldy;
  float global;  // scale of the sums
  int heads;     // products side by side: one of heads weights, and its columns of x and y
  int tiles;     // of 16 outputs, of one head
  int share;     // blocks of a cluster that share a tile's k
  int ring;      // bytes of shared memory for a warp's weights: a whole ring, or what its slice takes
  int xhead, yhead;
  int64_t whead;  // bytes of one head's weight
  // Where x is yet to be gated, being [gate k | up k]: where silu(gate) up goes, its row
  // stride, and the stamps of that call. null: x is as it is.
  float* act;
  u64* act_at;
  int ldact;
  uint32_t rounded;  // 1: x is rounded to BF16 first
} GemvP;

typedef struct MultiTileP {
  const void* w;
  const float* x;
  float* y;
  u64* at;
  int m, n, k, ldx, ldy;
  float global;  // scale of the sums
  int tiles;     // of 16 outputs
  int share;     // blocks of a cluster that share a tile's k
  int width;     // tiles of a block, at most kMultiTileWidth
  int slots;     // pieces of weights that a warp has room for, at most kMultiTileSlots
  uint32_t rounded;  // 1: x is rounded to BF16 first
} MultiTileP;

typedef struct AbsorbP {
  const void* w;
  const float* x;
  float* y;
  u64* at;
  const float* rope;  // [positions, nrope/2] pairs (cos, sin)
  const int* pos;
  int64_t whead;  // bytes of one head's weight
  int m, n, k, ldx, ldy;
  int nrope, heads, tiles;  // tiles: of a head
  int xhead, yhead;         // columns of x and y from one head to the next
  int early;                // x and pos may be read before ready
  float global;             // scale of the sums
  uint32_t rounded;  // 1: x is rounded to BF16 first
} AbsorbP;

typedef struct BatchedGemmP {
  const void* w;
  const float* x;
  float* y;
  char* panels;  // of y, all heads', to leave; or null
  u64* at;
  int m, n, k, ldx, ldy;
  int per;  // steps of 16 columns in a slice
  int xhead, yhead;
  float global;
  int64_t whead;
  // The last column of blocks rotates the heads' rotary part instead, as in gemm.cu.
  const float* rope;
  const int* pos;
  int nrope;
  // Where x is yet to be gated, being [gate k | up k]: where silu(gate) up goes, and the
  // stamps of that call. null: x is as it is.
  float* act;
  u64* act_at;
  int ldact;
  int late;  // what comes next may count on all before this
  uint32_t rounded;  // 1: x is rounded to BF16 first
} BatchedGemmP;

typedef struct ClusterGemmP {
  const void* w;
  const char* panels;  // of x: [tiles of 64 rows][k/64][hi, lo]
  float* y;
  u64* at;
  int m, n, k, ldy;
  int per, slices;  // steps of 16 columns in a slice; slices of a block: 4, or all 8 that are added first
  int parts;        // of k, blocks of a cluster: 1, 2, 4 or 8
  int tiles;        // of 16 outputs in a block, at most 8
  int until;        // the cluster behind this call's
  float global;
} ClusterGemmP;

typedef struct ClusterGemmsP {
  ClusterGemmP p[kClusterCalls];
} ClusterGemmsP;

typedef struct WgmmaP {
  const void* w;
  const float* x;
  float* sums;         // gemm_split_k_*: what parts leave
  const char* panels;  // gemm_wgmma_*: of x, as pack_panels and norms leave them
  float* y;
  u64* at;
  int m, n, k, ldx, ldy;
  int per, blocks;          // steps of 16 columns in a slice, blocks of 8 slices
  int groups;               // gemm_split_k_*: of 64 outputs in a block
  int parts;                // gemm_split_k_*: of a block of slices: 1, 2, 4 or 8
  float global, global_up;  // as GemmP
  int heads, xhead, yhead;
  int64_t whead, panel_head;  // bytes from one head to the next
  const float* rope;
  const int* pos;
  int nrope;
  int stages;
  uint32_t rounded;  // 1: x is rounded to BF16 first
} WgmmaP;

typedef struct Fp4P {
  const char* w;          // of expert 0
  const float2* globals;  // (lower half of the rows, upper half) of each expert, times its input scale
  const uint8_t* codes;   // of the rows
  const uint8_t* scales;
  const int* experts;     // of each row; null: all 0
  const int* list;        // rows ordered by expert; null: each its own group
  const int* offsets;     // [groups+1] into list
  float* y;
  // Quantising: float32 rows x, one for all topk or by_pair.
  const float* x;
  const float* input;     // of each expert
  uint8_t* codes_out;
  uint8_t* scales_out;
  u64* at;
  int m, n, k, kt, ldx, ldy, topk, groups, by_pair;  // m: rows
  int64_t wexpert;
} Fp4P;

typedef struct Combine4P {
  const float* rows;  // [m, topk, n]
  const float* weights;
  float* y;
  u64* at;
  int n, topk, ldw, ldy;
} Combine4P;
