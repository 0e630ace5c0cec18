// What the host gives the kernels of host.cu, and what all parameters are made of.
//
// A folder's params.h has the structs that its kernels are given, by value, and the numbers that host and kernels
// both must have: once, in C, for nvcc and for Go, whose plan/params.go is made from it (go generate). Pointers are
// addresses on the GPU.
#pragma once
#include <stdint.h>

typedef unsigned long long u64;
#ifndef __CUDACC__
typedef struct float2 float2;
typedef struct __nv_bfloat16 __nv_bfloat16;
#endif

enum {
  kPageTokens = 64,      // tokens of a page of a cache
  kStampEnds = 8,        // places where the end of a call is kept
  kMaxStamps = 1 << 14,  // calls of a list
  kStampBytes = 24,      // of a call: start, end and experts touched
  kCopyWords = 4,        // of a thread of host_copy
};

typedef struct FaultP {
  u64 hang;  // ns; 0: an address
} FaultP;

typedef struct HostCopyP {
  const unsigned* from;
  unsigned* to;
  u64* at;   // [kStampEnds][3 kMaxStamps]: (start, end, experts) a call; of the others than the first only the end
  u64* out;  // [calls][3]; nullptr: nobody wants them
  int words, calls, in;
} HostCopyP;

typedef struct ClockP {
  unsigned* ask;  // on the host, as all of these: the round that is asked for
  unsigned* answer;
  u64* time;
  u64 limit;      // ns to wait for a round
  unsigned before, rounds;
} ClockP;
