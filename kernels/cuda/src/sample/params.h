// What sampling is given and makes, see device/params.h.
#pragma once
#include "device/params.h"

enum {
  kAlternatives = 20,  // kernels.MaxLogprobs
  kSampleSlices = 8,   // of a row's tokens
};

typedef struct Params {  // kernels.SampleParams
  float temperature, top_p, min_p, repetition;
  int top_k, logprobs, seen, last;
  u64 seed, counter;
  float presence, frequency;
  int counts, mask, allowed, entries, biases, labels, forced, assumed;
} Params;

typedef struct Entry {  // kernels.Entry
  int token, after;
  float bias;
} Entry;

typedef struct Sampled {  // kernels.Sampled
  int token;
  float logprob;
  int ids[kAlternatives];
  float logps[kAlternatives];
} Sampled;

typedef struct SampleP {
  const float* logits;  // [m, ld]
  const Params* params;
  const uint8_t *seen, *counts, *masks;  // rows of bits, of 16-bit numbers, of bits; null: none
  const Entry* entries;
  Sampled* y;
  float* work;  // [m, n to 4]: steered logits
  u64* at;
  int n, ld, seen_bytes, mask_bytes, count_bytes;  // n: tokens; a row's bytes
} SampleP;

typedef struct FeedP {
  const Sampled* last;  // of the list before
  const int *from, *rows, *seq, *pages;
  int *tokens, *pos, *slots;
  Params* params;
  uint8_t *seen, *counts;  // rows of bits, of 16-bit numbers
  u64* at;
  int m, n, pages_ld, seen_bytes, count_bytes;
} FeedP;

typedef struct AcceptP {
  const Sampled* sampled;  // [n]
  const int *tips, *rows;  // [m, 2]: the first row of logits, and how many; [n]: the step's row
  const int *tokens, *pos, *seq, *slots;
  const Params* params;  // [n]
  int *next, *from, *at_pos, *at_seq, *at_slots;
  Params* at_params;  // [m]
  u64* at;
  int m, n;
} AcceptP;
