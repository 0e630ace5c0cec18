// What collectives are given, see device/params.h.
#pragma once
#include "device/params.h"

enum {
  kMaxRanks = 8,
  kRowParts = 8,  // of a row: blocks of a cluster
  kRowPairs = kRowParts / 2,
};

// What a launch does, see collectives.cu.
enum {
  kSendPhase = 1,
  kSumPhase = 2,
  kReceivePhase = 4,
};

typedef struct CommP {
  float* inbox[kMaxRanks];  // of each rank
  u64 half;                 // values of half an inbox
  unsigned* epoch;          // collectives ended by this rank, then this one's blocks that have ended
  int* failed;              // on the host: which rank did not come in time, from 1 on; -1: stopped
  const int* stop;          // on the host: another rank has failed
  u64 limit;                // ns that a wait may take
  const float* x;
  float* y;
  const float* w;
  float* res;
  u64* at;
  char* panels;  // of y, to leave; or null
  int m, n, ldx, ldy, ldr;
  int row0;   // of the panels, that row 0 is
  int cols;   // of a part, a multiple of 4
  int rank, ranks, phases;
  int early;  // the kernels behind it may start while it runs
  int wide;   // all rows start at multiples of 16 bytes
  float eps;
  const int* to;  // of row_collectives.cu: [m, ranks], which of all rows a rank's row is; -1: none
} CommP;

typedef struct SumP {
  const float* parts;
  float* y;
  u64* at;
  long long n;
  int ranks;
} SumP;

typedef struct BarrierP {
  u64* arrived;  // of all ranks
  u64* epoch;    // of this rank
  int* failed;   // as in CommP
  const int* stop;
  u64* at;
  u64 limit;     // ns
  int ranks;
} BarrierP;
