// Weights into the order in which the products read them. One thread a word.
#include "device.cuh"

struct PackP {
  const uint8_t* data;    // as the checkpoint has it, row-major
  const uint8_t* scales;  // NVFP4: E4M3 [rows, cols/16]
  void* out;
  void* out_scales;
  int rows, cols;
  int tiles, kt;  // of 16 rows; of 16 columns (BF16) or 64 columns (FP4)
};

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

// FP8: E4M3 values are exact in BF16; the tensor's scale multiplies the sums.
extern "C" __global__ void pack_fp8(const PackP p) {
  size_t n = (size_t)p.tiles * p.kt * 32 * 8;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    int j = i & 7, lane = (i >> 3) & 31;
    size_t kt = (i >> 8) % p.kt, tile = (i >> 8) / p.kt;
    int r = tile * 16 + (lane >> 2) + ((j >> 1) & 1) * 8;
    int c = kt * 16 + (lane & 3) * 2 + (j & 1) + (j >> 2) * 8;
    float v = r < p.rows && c < p.cols ? e4m3x2(p.data[(size_t)r * p.cols + c]).x : 0;
    reinterpret_cast<__nv_bfloat16*>(p.out)[i] = __float2bfloat16_rn(v);
  }
}

// FP4: [tiles][kt][lane] of 4 words, each the lane's 8 codes of an A fragment:
// in both halves a0 at sign 15, bits 8:6; a1 at 12, 5:3; a2 at 9, 2:0; a3 at
// 14, 13, 11:10. Scales: [tiles][kt][8 row pairs][4 of row g, 4 of row g+8].
extern "C" __global__ void pack_fp4(const PackP p) {
  size_t n = (size_t)p.tiles * p.kt * 32 * 4;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    int sub = i & 3, lane = (i >> 2) & 31;
    size_t kt = (i >> 7) % p.kt, tile = (i >> 7) / p.kt;
    uint32_t word = 0;
    for (int half = 0; half < 2; half++)
      for (int f = 0; f < 4; f++) {
        int r = tile * 16 + (lane >> 2) + (f & 1) * 8;
        int c = kt * 64 + sub * 16 + (lane & 3) * 2 + half + (f >> 1) * 8;
        uint32_t q = 0;
        if (r < p.rows && c < p.cols) {
          uint8_t b = p.data[((size_t)r * p.cols + c) >> 1];
          q = c & 1 ? b >> 4 : b & 15;
        }
        uint32_t s = q >> 3, m = q & 7, v;
        switch (f) {
          case 0: v = s << 15 | m << 6; break;
          case 1: v = s << 12 | m << 3; break;
          case 2: v = s << 9 | m; break;
          default: v = s << 14 | (m >> 2) << 13 | (m & 3) << 10;
        }
        word |= v << (16 * half);
      }
    reinterpret_cast<uint32_t*>(p.out)[i] = word;
  }
  size_t ns = (size_t)p.tiles * p.kt * 64;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < ns; i += (size_t)gridDim.x * blockDim.x) {
    int sub = i & 3, hi = (i >> 2) & 1, g = (i >> 3) & 7;
    size_t kt = (i >> 6) % p.kt, tile = (i >> 6) / p.kt;
    int r = tile * 16 + g + hi * 8, b = kt * 4 + sub;
    reinterpret_cast<uint8_t*>(p.out_scales)[i] = r < p.rows && b < p.cols / 16 ? p.scales[(size_t)r * (p.cols / 16) + b] : 0;
  }
}
