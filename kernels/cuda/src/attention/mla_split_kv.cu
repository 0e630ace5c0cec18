// Latent attention over the paged cache, read in place. A block: 32 positions of
// one row for up to 8 heads; the heads are the columns of the products, so each
// cache entry is read once for all of them. Splits of 32 positions follow from
// the row's own selection, and are combined in order.
#include "attention/mla.cuh"

constexpr int kTile = kMlaTile;

__device__ __forceinline__ void ldmatrix(uint32_t (&a)[4], const void* row) {
  uint32_t s = __cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(s));
}
__device__ __forceinline__ void ldmatrix_trans(uint32_t (&a)[4], const void* row) {
  uint32_t s = __cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
      : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(s));
}
__device__ __forceinline__ void cp16(void* dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(dst)), "l"(src));
}

// Eight E4M3 values; entries are multiples of 4 bytes, GLM-5's of 16.
__device__ __forceinline__ uint2 load8(const uint8_t* e, bool wide) {
  if (wide) return *reinterpret_cast<const uint2*>(e);
  const uint32_t* w = reinterpret_cast<const uint32_t*>(e);
  return make_uint2(w[0], w[1]);
}

// F: 1 BF16, 2 FP8 (E4M3 is exact in BF16; the scale of a position's 128 values
// multiplies sums, never values).
template <int F>
__device__ __forceinline__ void mla_attend(const AttendP& p) {
  extern __shared__ __align__(16) char smem[];
  begin();
  int width = p.k + p.nrope, pitch = width + 8, blocks = (p.k + 127) / 128;
  __nv_bfloat16* tile = reinterpret_cast<__nv_bfloat16*>(smem);            // [32][pitch]
  float* s = reinterpret_cast<float*>(tile + kTile * pitch);               // [4][32][8]
  float* pr = s + 4 * kTile * 8;                                           // [8][40]
  float* sc = pr + 8 * 40;                                                 // [32][blocks]
  int* slot = reinterpret_cast<int*>(sc + kTile * blocks);                 // [32]
  ready(p.at);
  int part_no = blockIdx.x, m = blockIdx.y, h0 = blockIdx.z * 8, n = positions(p, m), first = part_no * kTile;
  if (first >= n) return finish(p.at);
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3;
  if (tid < kTile) {
    int i = first + tid, at = -1;
    if (i < n) {
      int pos = p.sel ? p.sel[(size_t)m * p.topk + i] : i;
      at = p.pages[(size_t)p.seq[m] * p.pages_ld + pos / kPage] * kPage + pos % kPage;
    }
    slot[tid] = at;
  }
  __syncthreads();
  // The tile, 16 bytes at a time; positions past the end are zero.
  if (F == 1) {
    int chunks = width / 8;
    for (int i = tid; i < kTile * chunks; i += blockDim.x) {
      int r = i / chunks, c = i % chunks;
      char* dst = reinterpret_cast<char*>(tile + r * pitch + c * 8);
      if (slot[r] >= 0) cp16(dst, static_cast<const char*>(p.cache) + ((size_t)slot[r] * width + c * 8) * 2);
      else *reinterpret_cast<uint4*>(dst) = make_uint4(0, 0, 0, 0);
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
  } else {
    int entry = p.k + 4 * blocks + 2 * p.nrope, chunks = p.k / 8, rest = p.nrope / 2;
    if (entry % 16 == 0 && p.k % 16 == 0 && blocks % 4 == 0) {
      // 16 bytes at a time, several in flight: 16 latents, 4 scales or 8 rotary values.
      constexpr int kFlight = 6;
      int per = entry / 16, all = kTile * per;
      for (int base = 0; base < all; base += kFlight * 256) {
        uint4 v[kFlight];
#pragma unroll
        for (int j = 0; j < kFlight; j++) {
          int i = base + j * 256 + tid, r = i / per;
          v[j] = make_uint4(0, 0, 0, 0);
          if (i < all && slot[r] >= 0) v[j] = *reinterpret_cast<const uint4*>(static_cast<const uint8_t*>(p.cache) +
              (size_t)slot[r] * entry + (i - r * per) * 16);
        }
#pragma unroll
        for (int j = 0; j < kFlight; j++) {
          int i = base + j * 256 + tid, r = i / per, b = (i - r * per) * 16;
          if (i >= all) break;
          if (b < p.k) {
            uint32_t q[4] = {v[j].x, v[j].y, v[j].z, v[j].w}, o[8];
#pragma unroll
            for (int u = 0; u < 4; u++) {
              float2 a = e4m3x2(q[u] & 0xffff), d = e4m3x2(q[u] >> 16);
              o[2 * u] = bf16x2(a.x, a.y), o[2 * u + 1] = bf16x2(d.x, d.y);
            }
            uint4* dst = reinterpret_cast<uint4*>(tile + r * pitch + b);
            dst[0] = make_uint4(o[0], o[1], o[2], o[3]), dst[1] = make_uint4(o[4], o[5], o[6], o[7]);
          } else if (b < p.k + 4 * blocks) {
            *reinterpret_cast<uint4*>(sc + r * blocks + (b - p.k) / 4) = v[j];
          } else {
            *reinterpret_cast<uint4*>(tile + r * pitch + p.k + (b - p.k - 4 * blocks) / 2) = v[j];
          }
        }
      }
    } else for (int i = tid; i < kTile * (chunks + rest + blocks); i += blockDim.x) {
      int r = i / (chunks + rest + blocks), c = i % (chunks + rest + blocks);
      const uint8_t* e = static_cast<const uint8_t*>(p.cache) + (size_t)max(slot[r], 0) * entry;
      bool ok = slot[r] >= 0;
      if (c < chunks) {
        uint4 v = make_uint4(0, 0, 0, 0);
        if (ok) {
          uint2 q = load8(e + c * 8, entry % 8 == 0);
          float2 a = e4m3x2(q.x & 0xffff), b = e4m3x2(q.x >> 16), d = e4m3x2(q.y & 0xffff), f = e4m3x2(q.y >> 16);
          v = make_uint4(bf16x2(a.x, a.y), bf16x2(b.x, b.y), bf16x2(d.x, d.y), bf16x2(f.x, f.y));
        }
        *reinterpret_cast<uint4*>(tile + r * pitch + c * 8) = v;
      } else if (c < chunks + rest) {
        int j = c - chunks;
        reinterpret_cast<uint32_t*>(tile + r * pitch + p.k)[j] = ok ?
            reinterpret_cast<const uint32_t*>(e + p.k + 4 * blocks)[j] : 0;
      } else {
        int j = c - chunks - rest;
        sc[r * blocks + j] = ok ? reinterpret_cast<const float*>(e + p.k)[j] : 0;
      }
    }
  }
  __syncthreads();
  // Scores: a warp has 16 positions and a quarter of the columns.
  {
    int mt = warp & 1, quarter = warp >> 1, steps = width / 16, lo = steps * quarter / 4,
        hi = steps * (quarter + 1) / 4;
    const float* q = h0 + g < p.heads ? p.q + (size_t)m * p.ldq + (size_t)(h0 + g) * width : nullptr;
    float total[4] = {}, acc[4] = {};
    auto flush = [&](int block) {
      float a = 1, b = 1;
      if (F == 2 && block < blocks) a = sc[(mt * 16 + g) * blocks + block], b = sc[(mt * 16 + g + 8) * blocks + block];
      total[0] += a * acc[0], total[1] += a * acc[1], total[2] += b * acc[2], total[3] += b * acc[3];
      acc[0] = acc[1] = acc[2] = acc[3] = 0;
    };
    for (int i = lo; i < hi; i++) {
      uint32_t a[4];
      ldmatrix(a, tile + (mt * 16 + (lane & 15)) * pitch + i * 16 + (lane >> 4) * 8);
      Frag f = load_x(q, i * 16 + t * 2, width);
      mma_split(acc, a, f);
      if (F == 2 && (i == hi - 1 || (i + 1) * 16 >= p.k || (i + 1) % 8 == 0)) flush(i * 16 < p.k ? i / 8 : blocks);
    }
    if (F != 2) flush(blocks);
#pragma unroll
    for (int i = 0; i < 4; i++) s[(quarter * kTile + mt * 16 + g + (i >> 1) * 8) * 8 + t * 2 + (i & 1)] = total[i];
  }
  __syncthreads();
  // Softmax within the split: warp h has head h0+h, a lane a position.
  {
    float a = -INFINITY;
    if (first + lane < n) {
      a = 0;
#pragma unroll
      for (int c = 0; c < 4; c++) a += s[(c * kTile + lane) * 8 + warp];
      a *= p.scale;
    }
    float mx = warp_max(a);
    a = expf(a - mx);
    float l = warp_sum(a);
    pr[warp * 40 + lane] = a;
    if (lane == 0 && h0 + warp < p.heads) {
      float* o = p.part + (((size_t)m * p.splits + part_no) * p.heads + h0 + warp) * (p.k + 2) + p.k;
      o[0] = mx, o[1] = l;
    }
  }
  __syncthreads();
  // Sums of latents: a warp has 16 of the k values at a time, all positions.
  for (int mt = warp; mt < p.k / 16; mt += 8) {
    float acc[4] = {};
#pragma unroll
    for (int i = 0; i < kTile / 16; i++) {
      uint32_t a[4];
      const int off = (i * 16 + (lane & 7) + (lane >> 4) * 8) * pitch + mt * 16 + ((lane >> 3) & 1) * 8;
      ldmatrix_trans(a, tile + off);
      const float* pp = pr + g * 40 + i * 16 + t * 2;
      float v[4] = {pp[0], pp[1], pp[8], pp[9]};
      if (F == 2) {
        const float* q = sc + (i * 16 + t * 2) * blocks + mt / 8;
        v[0] *= q[0], v[1] *= q[blocks], v[2] *= q[8 * blocks], v[3] *= q[9 * blocks];
      }
      Frag f = {split(v[0], v[1]), split(v[2], v[3])};
      mma_split(acc, a, f);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int h = h0 + t * 2 + (i & 1);
      if (h < p.heads) p.part[(((size_t)m * p.splits + part_no) * p.heads + h) * (p.k + 2) + mt * 16 + g +
          (i >> 1) * 8] = acc[i];
    }
  }
  finish(p.at);
}

// The float32 cache, for checks against references: float32 sums throughout.
extern "C" __global__ void __launch_bounds__(256) mla_attend_f32(const __grid_constant__ AttendP p) {
  extern __shared__ __align__(16) char f32_smem[];
  begin();
  int width = p.k + p.nrope, pitch = width + 1;
  float* tile = reinterpret_cast<float*>(f32_smem);  // [32][pitch]
  float* pr = tile + kTile * pitch;              // [8][64]
  int* slot = reinterpret_cast<int*>(pr + 8 * kTile);
  ready(p.at);
  int part_no = blockIdx.x, m = blockIdx.y, h0 = blockIdx.z * 8, n = positions(p, m), first = part_no * kTile;
  if (first >= n) return finish(p.at);
  int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
  if (tid < kTile) {
    int i = min(first + tid, n - 1), pos = p.sel ? p.sel[(size_t)m * p.topk + i] : i;
    slot[tid] = p.pages[(size_t)p.seq[m] * p.pages_ld + pos / kPage] * kPage + pos % kPage;
  }
  __syncthreads();
  for (int i = tid; i < kTile * width; i += blockDim.x) tile[i / width * pitch + i % width] =
      static_cast<const float*>(p.cache)[(size_t)slot[i / width] * width + i % width];
  __syncthreads();
  if (h0 + warp < p.heads) {
    const float* q = p.q + (size_t)m * p.ldq + (size_t)(h0 + warp) * width;
    float a = 0;
    for (int d = 0; d < width; d++) a = fmaf(q[d], tile[lane * pitch + d], a);
    a = first + lane < n ? a * p.scale : -INFINITY;
    float mx = warp_max(a);
    a = expf(a - mx);
    float l = warp_sum(a);
    pr[warp * kTile + lane] = a;
    float* o = p.part + (((size_t)m * p.splits + part_no) * p.heads + h0 + warp) * (p.k + 2);
    if (lane == 0) o[p.k] = mx, o[p.k + 1] = l;
    __syncwarp();
    for (int d = lane; d < p.k; d += 32) {
      float v = 0;
      for (int i = 0; i < kTile; i++) v = fmaf(pr[warp * kTile + i], tile[i * pitch + d], v);
      o[d] = v;
    }
  }
  finish(p.at);
}
extern "C" __global__ void __launch_bounds__(256) mla_attend_bf16(const __grid_constant__ AttendP p) {
  mla_attend<1>(p);
}
extern "C" __global__ void __launch_bounds__(256) mla_attend_fp8(const __grid_constant__ AttendP p) {
  mla_attend<2>(p);
}

// The splits of a row, in order: four runs of them, each in order, then the runs.
// A block has 64 of the k values. grid (heads, k/64, m)
extern "C" __global__ void __launch_bounds__(256) mla_combine(const __grid_constant__ AttendP p) {
  extern __shared__ float weight[];  // [splits]
  __shared__ float red[32];
  __shared__ float sum[4][64];
  begin();
  ready(p.at);
  int h = blockIdx.x, m = blockIdx.z, n = (positions(p, m) + kTile - 1) / kTile;
  const float* part = p.part + ((size_t)m * p.splits * p.heads + h) * (p.k + 2);
  size_t step = (size_t)p.heads * (p.k + 2);
  float mx = -INFINITY;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    weight[i] = part[i * step + p.k];
    mx = fmaxf(mx, weight[i]);
  }
  mx = block_max(mx, red);
  float l = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    weight[i] = expf(weight[i] - mx);
    l = fmaf(weight[i], part[i * step + p.k + 1], l);
  }
  l = block_sum(l, red);
  int d = blockIdx.y * 64 + (threadIdx.x & 63), run = threadIdx.x >> 6, per = (n + 3) / 4, hi = min(n, (run + 1) * per);
  float v = 0;
  if (d < p.k) {
#pragma unroll 8
    for (int i = run * per; i < hi; i++) v = fmaf(weight[i], part[i * step + d], v);
  }
  sum[run][threadIdx.x & 63] = v;
  __syncthreads();
  if (run == 0 && d < p.k) p.y[(size_t)m * p.ldy + (size_t)h * p.k + d] =
      (sum[0][threadIdx.x] + sum[1][threadIdx.x] + sum[2][threadIdx.x] + sum[3][threadIdx.x]) / l;
  finish(p.at);
}

// The named fault: the whole pool to BF16, for replay's what-if only.
extern "C" __global__ void __launch_bounds__(256) kv_cast(const __grid_constant__ CastP p) {
  begin();
  ready(p.at);
  int blocks = (p.k + 127) / 128, entry = p.k + 4 * blocks + 2 * p.nrope, width = p.k + p.nrope, chunks = width / 8;
  int step = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x, c = i % chunks;
#pragma unroll 4
  for (int64_t slot = i / chunks; slot < p.slots;) {
    const uint8_t* e = p.cache + slot * entry;
    uint4 v;
    if (c * 8 < p.k) {
      uint2 q = load8(e + c * 8, entry % 8 == 0);
      float sc = reinterpret_cast<const float*>(e + p.k)[c / 16];
      float2 a = e4m3x2(q.x & 0xffff), b = e4m3x2(q.x >> 16), d = e4m3x2(q.y & 0xffff), f = e4m3x2(q.y >> 16);
      v = make_uint4(bf16x2(a.x * sc, a.y * sc), bf16x2(b.x * sc, b.y * sc), bf16x2(d.x * sc, d.y * sc),
          bf16x2(f.x * sc, f.y * sc));
    } else {
      const uint32_t* r = reinterpret_cast<const uint32_t*>(e + p.k + 4 * blocks + (c * 8 - p.k) * 2);
      v = make_uint4(r[0], r[1], r[2], r[3]);
    }
    *reinterpret_cast<uint4*>(p.out + slot * width + c * 8) = v;
    slot += step / chunks, c += step % chunks;
    if (c >= chunks) c -= chunks, slot++;
  }
  finish(p.at);
}
