// Weights into the order in which the products read them. One thread a word.
#include "mma/nvfp4.cuh"
#include "gemm/params.h"

// BF16: [tiles][kt][lane] of 8 values, the lane's A fragment of m16n8k16.
extern "C" __global__ void pack_bf16(const PackP p) {
  const uint16_t* w = reinterpret_cast<const uint16_t*>(p.data);
  size_t n = (size_t)p.tiles * p.kt * 32 * 8;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    int j = i & 7, lane = (i >> 3) & 31;
    size_t kt = (i >> 8) % p.kt, tile = (i >> 8) / p.kt;
    int r = tile * 16 + (lane >> 2) + ((j >> 1) & 1) * 8;
    int c = kt * 16 + (lane & 3) * 2 + (j & 1) + (j >> 2) * 8;
    reinterpret_cast<uint16_t*>(p.out)[i] = r < p.rows && c < p.cols ? w[(size_t)r * p.cols + c] : 0;
  }
}

// FP8: [tiles][kt][lane] of 16 codes, the lane's A fragments of two m16n8k16, two
// words each: in bytes 1, 3, 0, 2 of the first the fragment's values 0 to 3, of the
// second 4 to 7.
extern "C" __global__ void pack_fp8(const PackP p) {
  size_t n = (size_t)p.tiles * p.kt * 32 * 16;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    int byte = i & 3, j = ((i >> 2) & 1) * 4 + (byte & 1 ? 0 : 2) + (byte >> 1), lane = (i >> 4) & 31;
    size_t kt = (i >> 9) % p.kt, tile = (i >> 9) / p.kt;
    int r = tile * 16 + (lane >> 2) + ((j >> 1) & 1) * 8;
    int c = kt * 32 + ((i >> 3) & 1) * 16 + (lane & 3) * 2 + (j & 1) + (j >> 2) * 8;
    reinterpret_cast<uint8_t*>(p.out)[i] = r < p.rows && c < p.cols ? p.data[(size_t)r * p.cols + c] : 0;
  }
}

// fp4_code, fp4_scale_byte: as nvfp4.cuh has them, of a checkpoint's code and E4M3 scale.
__device__ __forceinline__ uint32_t fp4_code(uint32_t q, uint32_t scale) {
  if ((scale & 0x7f) == 0) return 0;
  return q ^ ((scale & 0x80) >> 4);
}
__device__ __forceinline__ uint8_t fp4_scale_byte(uint32_t scale) {
  uint32_t v = scale & 0x7f;
  if (v == 0 || v == 0x7f) return v == 0 ? 0 : 0xff;
  if (v >= 8) return v + (15 << 3);
  int top = 31 - __clz(v);  // a subnormal: v * 2^-9
  return (13 + top) << 3 | ((v << (3 - top)) & 7);
}

// FP4: see nvfp4.cuh. Columns and rows past the matrix are 0.
extern "C" __global__ void pack_fp4(const PackP p) {
  size_t units = (size_t)p.tiles * p.kt;
  char* out = static_cast<char*>(p.out);
  auto scale = [&](int r, int c) -> uint32_t { return r < p.rows &&
      c < p.cols ? p.scales[(size_t)r * (p.cols / 16) + c / 16] : 0; };
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < units * 128; i += (size_t)gridDim.x * blockDim.x) {
    int j = i & 3, lane = (i >> 2) & 31;
    size_t unit = i >> 7, kt = unit % p.kt, tile = unit / p.kt;
    uint32_t word = 0;
    for (int half = 0; half < 2; half++)
      for (int f = 0; f < 4; f++) {
        int r = tile * 16 + (lane >> 2) + (f & 1) * 8;
        int c = kt * 64 + (j >> 1) * 32 + half * 16 + (lane & 3) * 4 + (j & 1) * 2 + (f >> 1);
        uint32_t q = 0;
        if (r < p.rows && c < p.cols) {
          uint8_t b = p.data[((size_t)r * p.cols + c) >> 1];
          q = fp4_code(c & 1 ? b >> 4 : b & 15, scale(r, c));
        }
        uint32_t s = q >> 3, m = q & 7, v;
        switch (f) {
          case 0: v = s << 15 | m << 6; break;
          case 1: v = s << 12 | m << 3; break;
          case 2: v = s << 9 | m; break;
          default: v = s << 11 | (m >> 2) << 10 | (m & 3) << 13;
        }
        word |= v << (16 * half);
      }
    *reinterpret_cast<uint32_t*>(out + unit * kFp4Unit + (i & 127) * 4) = word;
  }
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < units * 64; i += (size_t)gridDim.x * blockDim.x) {
    int at = i & 3, hi = (i >> 2) & 1, g = (i >> 3) & 7;
    size_t unit = i >> 6, kt = unit % p.kt, tile = unit / p.kt;
    int row = tile * 16 + g + hi * 8, column = kt * 64 + (at >> 1) * 16;
    uint8_t first = fp4_scale_byte(scale(row, column)), second = fp4_scale_byte(scale(row, column + 32));
    out[unit * kFp4Unit + 512 + (i & 63)] = at & 1 ? (second & 15) << 4 | first >> 4 : (first & 15) << 4 | second >> 4;
  }
}
