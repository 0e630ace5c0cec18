// What products of many rows are given, see device/params.h.
#pragma once
#include "device/params.h"

enum {
  kPersistentCalls = 2,    // of a launch
  kPersistentTokens = 32,  // whose sums a warpgroup stages at a time
  kPersistentPitch = 68,   // of those, in values
};

typedef struct PersistentOneP {
  const void* w;
  float* y;
  u64* at;
  int m, n, k, ldy;
  int until;  // columns of tiles up to and with this product's
  float global;
} PersistentOneP;

typedef struct PersistentGemmP {
  PersistentOneP one, two;        // two.w null: there is none
  const char* panels;             // of x: [tiles of 64 rows][k/64][hi, lo]
  float* waiting;                 // sums of blocks of slices: [blocks of the grid][warpgroups][NT/8][128][4]
  int per, blocks;                // steps of 16 columns in a slice, blocks of 8 slices
  int panel_stages, unit_stages;  // of the rings
} PersistentGemmP;
