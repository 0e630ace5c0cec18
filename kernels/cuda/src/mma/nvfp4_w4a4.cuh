// What the products of 4-bit weights and 4-bit activations share (sm120_w4a4.cu,
// sm100_w4a4.cu). Activations: rows of kt 32-byte pieces of codes, the lowest column
// in the lowest bits, and kt words of four E4M3 scales.
#pragma once
#include "device/device.cuh"
#include "gemm/params.h"

constexpr int kCodes = 32;  // bytes of a row's 64 codes

// Pack4 reads a matrix that is packed.
struct Pack4 : PackP {
  __device__ __forceinline__ uint32_t scale(int r, int c) const {
    return r < rows && c < cols ? scales[(size_t)r * (cols / 16) + c / 16] : 0;
  }
  // Eight codes of a row from column c on. Their scale's sign becomes theirs.
  __device__ __forceinline__ uint32_t codes(int r, int c) const {
    uint32_t word = 0;
    for (int n = 0; n < 8; n++)
      if (r < rows && c + n < cols) {
        uint32_t b = data[((size_t)r * cols + c + n) >> 1], q = n & 1 ? b >> 4 : b & 15;
        word |= (q ^ (scale(r, c + n) >> 7 << 3)) << (4 * n);
      }
    return word;
  }
  // The four scales of 64 columns from c on.
  __device__ __forceinline__ uint32_t scales4(int r, int c) const {
    uint32_t word = 0;
    for (int b = 0; b < 4; b++) word |= (scale(r, c + b * 16) & 0x7f) << (8 * b);
    return word;
  }
};

// Group is the expert of a block and its rows.
struct Group {
  int e, first, count;
  __device__ __forceinline__ Group(const Fp4P& p) {
    if (p.list) e = blockIdx.y, first = p.offsets[e], count = p.offsets[e + 1] - first;
    else if (p.experts) first = blockIdx.y, count = 1, e = p.experts[first];
    else first = 0, count = p.m, e = 0;
  }
  __device__ __forceinline__ int row(const Fp4P& p, int i) const {
    return i >= count ? -1 : p.list ? p.list[first + i] : first + i;
  }
};

// touched counts the experts of rows that are groups of their own: the first block does.
__device__ __forceinline__ void touched(const Fp4P& p) {
  if (!p.at || p.list || !p.experts || blockIdx.x || blockIdx.y) return;
  int n = 0;
  for (int base = 0; base < p.groups; base += blockDim.x) {
    bool seen = false;
    for (int i = 0; i < p.m && !seen; i++) seen = p.experts[i] == base + (int)threadIdx.x;
    n += __syncthreads_count(seen);
  }
  if (threadIdx.x == 0) p.at[2] = n;
}

// dot8 is the sum of eight products of E2M1 codes, times 4: for GPUs without the
// instructions.
__device__ __forceinline__ int dot8(uint32_t a, uint32_t b) {
  auto twice = [](uint32_t q) {
    int v = (q & 7) < 2 ? (q & 1) : (2 | (q & 1)) << ((q >> 1 & 3) - 1);
    return q & 8 ? -v : v;
  };
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 32; i += 4) sum += twice(a >> i) * twice(b >> i);
  return sum;
}
