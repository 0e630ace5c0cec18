// Panels: activations as warpgroup products read them, two BF16 parts a value.
#pragma once
#include "device/device.cuh"

// A panel is tokens x 64 columns in BF16: a row has 128 bytes, whose 16-byte chunks
// are at chunk ^ (row & 7). Panels start at multiples of 1,024 bytes.
__device__ __forceinline__ int panel_at(int row, int chunk) { return row * 128 + ((chunk ^ (row & 7)) << 4); }

// store_panels leaves columns i to i + 3 of row m of x[any, k] in panels of 64 rows:
// [tiles of 64 rows][k/64][hi, lo].
__device__ __forceinline__ void store_panels(char* panels, int m, int i, int k, float4 v) {
  if (i >= k) return;
  Split a = split(v.x, v.y), b = split(v.z, v.w);
  char* at = panels + ((size_t)(m / 64) * (k / 64) + i / 64) * 16384 + panel_at(m % 64, i % 64 / 8) + (i & 4) * 2;
  *reinterpret_cast<uint2*>(at) = {a.hi, b.hi};
  *reinterpret_cast<uint2*>(at + 8192) = {a.lo, b.lo};
}
