// The sparse-attention indexer: scores of all positions, and the best of them.
#include "device.cuh"

struct IndexP {
  const float* q;    // [m, heads, k]; the first nrope of k are rotated here
  const float* hw;   // [m, heads]
  const float* rope; // [positions, nrope/2] pairs
  const void* cache;
  const int* pages;
  const int* seq;
  const int* pos;
  float* scores;     // [m, n]
  int* sel;          // [m, topk]
  u64* at;
  int m, n, k, heads, nrope, topk, pages_ld, ldq, ldhw, lds;
  float scale;
};

constexpr int kPage = 64;

// Eight key values, at the positions that k32-permuted fragments want, as BF16.
template <int F>
__device__ __forceinline__ void load_key(uint32_t (&hi)[4], uint32_t (&lo)[4], const void* cache, int slot, int dim, int k) {
  if (F == 1) {
    uint4 v = *reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(cache) + (size_t)slot * dim + k);
    hi[0] = v.x, hi[1] = v.y, hi[2] = v.z, hi[3] = v.w;
  } else if (F == 2) {
    const uint8_t* page = static_cast<const uint8_t*>(cache) + (size_t)(slot / kPage) * kPage * (dim + 4);
    uint2 q = *reinterpret_cast<const uint2*>(page + (slot % kPage) * dim + k);
    float2 a = e4m3x2(q.x & 0xffff), b = e4m3x2(q.x >> 16), c = e4m3x2(q.y & 0xffff), d = e4m3x2(q.y >> 16);
    hi[0] = bf16x2(a.x, a.y), hi[1] = bf16x2(b.x, b.y), hi[2] = bf16x2(c.x, c.y), hi[3] = bf16x2(d.x, d.y);
  } else {
    const float4* v = reinterpret_cast<const float4*>(static_cast<const float*>(cache) + (size_t)slot * dim + k);
    float4 a = v[0], b = v[1];
    Split s0 = split(a.x, a.y), s1 = split(a.z, a.w), s2 = split(b.x, b.y), s3 = split(b.z, b.w);
    hi[0] = s0.hi, hi[1] = s1.hi, hi[2] = s2.hi, hi[3] = s3.hi;
    lo[0] = s0.lo, lo[1] = s1.lo, lo[2] = s2.lo, lo[3] = s3.lo;
  }
}

// turn rotates the first n of four values, two pairs, by (cos, sin) pairs.
__device__ __forceinline__ float4 turn(float4 v, const float* cs, int n) {
  float4 r = {v.x * cs[0] - v.y * cs[1], v.y * cs[0] + v.x * cs[1], v.z, v.w};
  if (n > 2) r.z = v.z * cs[2] - v.w * cs[3], r.w = v.w * cs[2] + v.z * cs[3];
  return r;
}

// scores[m, s] = Σ heads hw relu(q · key_s). A block: 128 positions of a row; a
// warp: 16. Columns are permuted within 32 so that a lane reads its eight values
// at once; q is laid out alike. grid (n/128, m)
template <int F>
__device__ __forceinline__ void index_logits(const IndexP& p) {
  extern __shared__ __align__(16) char smem[];
  begin();
  ready(p.at);
  int m = blockIdx.y, n = p.pos[m] + 1, base = blockIdx.x * 128;
  if (n <= p.topk || base >= n) return finish(p.at);
  int kb = p.k / 32, nts = (p.heads + 7) / 8, tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3;
  uint4* qs = reinterpret_cast<uint4*>(smem);  // [nts][kb][lane] of hi, then lo
  float* hw = reinterpret_cast<float*>(qs + nts * kb * 64);
  for (int i = tid; i < nts * kb * 32; i += blockDim.x) {
    int l = i & 31, b = (i >> 5) % kb, h = (i >> 5) / kb * 8 + (l >> 2);
    float4 u = {0, 0, 0, 0}, v = {0, 0, 0, 0};
    if (h < p.heads) {
      const float4* q = reinterpret_cast<const float4*>(p.q + (size_t)m * p.ldq + (size_t)h * p.k + b * 32 + (l & 3) * 8);
      u = q[0], v = q[1];
      const float* cs = p.rope + (size_t)(n - 1) * p.nrope + b * 32 + (l & 3) * 8;
      int rot = p.nrope - b * 32 - (l & 3) * 8;  // values left to rotate
      if (rot > 0) u = turn(u, cs, rot);
      if (rot > 4) v = turn(v, cs + 4, rot - 4);
    }
    Split a = split(u.x, u.y), c = split(u.z, u.w), d = split(v.x, v.y), e = split(v.z, v.w);
    qs[i * 2] = make_uint4(a.hi, c.hi, d.hi, e.hi);
    qs[i * 2 + 1] = make_uint4(a.lo, c.lo, d.lo, e.lo);
  }
  for (int i = tid; i < nts * 8; i += blockDim.x) hw[i] = i < p.heads ? p.hw[(size_t)m * p.ldhw + i] * p.scale : 0;
  __syncthreads();
  int p0 = base + warp * 16;
  if (p0 >= n) return finish(p.at);
  const int* pages = p.pages + (size_t)p.seq[m] * p.pages_ld;
  int a0 = min(p0 + g, n - 1), a1 = min(p0 + g + 8, n - 1);
  int s0 = pages[a0 / kPage] * kPage + a0 % kPage, s1 = pages[a1 / kPage] * kPage + a1 % kPage;
  float sum0 = 0, sum1 = 0, k0 = 1, k1 = 1;
  if (F == 2) {
    const char* c = static_cast<const char*>(p.cache);
    size_t page = (size_t)kPage * (p.k + 4);
    k0 = reinterpret_cast<const float*>(c + (s0 / kPage) * page + kPage * p.k)[s0 % kPage];
    k1 = reinterpret_cast<const float*>(c + (s1 / kPage) * page + kPage * p.k)[s1 % kPage];
  }
  constexpr int kMax = 4;  // dim <= 128
  uint32_t hi0[kMax][4], hi1[kMax][4], lo0[kMax][4], lo1[kMax][4];
#pragma unroll
  for (int b = 0; b < kMax; b++)
    if (b < kb) {
      load_key<F>(hi0[b], lo0[b], p.cache, s0, p.k, b * 32 + t * 8);
      load_key<F>(hi1[b], lo1[b], p.cache, s1, p.k, b * 32 + t * 8);
    }
  for (int nt = 0; nt < nts; nt++) {
    float c[4] = {};
#pragma unroll
    for (int b = 0; b < kMax; b++)
      if (b < kb) {
        uint4 qh = qs[((nt * kb + b) * 32 + lane) * 2], ql = qs[((nt * kb + b) * 32 + lane) * 2 + 1];
        uint32_t x[4] = {hi0[b][0], hi1[b][0], hi0[b][1], hi1[b][1]}, y[4] = {hi0[b][2], hi1[b][2], hi0[b][3], hi1[b][3]};
        if (F == 0) {
          uint32_t u[4] = {lo0[b][0], lo1[b][0], lo0[b][1], lo1[b][1]}, v[4] = {lo0[b][2], lo1[b][2], lo0[b][3], lo1[b][3]};
          mma(c, u, qh.x, qh.y);
          mma(c, v, qh.z, qh.w);
        }
        mma(c, x, ql.x, ql.y);
        mma(c, x, qh.x, qh.y);
        mma(c, y, ql.z, ql.w);
        mma(c, y, qh.z, qh.w);
      }
    float w0 = hw[nt * 8 + t * 2], w1 = hw[nt * 8 + t * 2 + 1];
    sum0 += fmaxf(c[0] * k0, 0) * w0 + fmaxf(c[1] * k0, 0) * w1;
    sum1 += fmaxf(c[2] * k1, 0) * w0 + fmaxf(c[3] * k1, 0) * w1;
  }
#pragma unroll
  for (int o = 1; o < 4; o <<= 1) sum0 += __shfl_xor_sync(~0u, sum0, o), sum1 += __shfl_xor_sync(~0u, sum1, o);
  if (t == 0) {
    float* out = p.scores + (size_t)m * p.lds;
    if (p0 + g < n) out[p0 + g] = sum0;
    if (p0 + g + 8 < n) out[p0 + g + 8] = sum1;
  }
  finish(p.at);
}

extern "C" __global__ void __launch_bounds__(256) index_logits_f32(const __grid_constant__ IndexP p) { index_logits<0>(p); }
extern "C" __global__ void __launch_bounds__(256) index_logits_bf16(const __grid_constant__ IndexP p) { index_logits<1>(p); }
extern "C" __global__ void __launch_bounds__(256) index_logits_fp8(const __grid_constant__ IndexP p) { index_logits<2>(p); }

// order maps a float to an unsigned that sorts alike (NaN last).
__device__ __forceinline__ uint32_t order(float f) {
  uint32_t u = __float_as_uint(f);
  if (f != f) return 0;
  if (f == 0) u = 0;  // -0 ties with 0
  return u & 0x80000000u ? ~u : u | 0x80000000u;
}

// block_scan: exclusive prefix of v over the block; total in all threads.
__device__ __forceinline__ int block_scan(int v, int* s, int& total) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, in = v;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    int u = __shfl_up_sync(~0u, in, o);
    if (lane >= o) in += u;
  }
  __syncthreads();
  if (lane == 31) s[warp] = in;
  __syncthreads();
  int before = 0;
  total = 0;
  for (int i = 0; i < 32; i++) {
    if (i < warp) before += s[i];
    total += s[i];
  }
  return before + in - v;
}

// narrow finds the digit of BITS bits at shift at which the count from above
// reaches need, among keys that agree with prefix above it. count: 2048 values.
template <int BITS, typename F>
__device__ __forceinline__ void narrow(int shift, uint32_t& prefix, int& need, int* count, int* scan, int* found, F keys) {
  int tid = threadIdx.x;
  count[tid] = 0, count[tid + 1024] = 0;
  __syncthreads();
  keys([&](uint32_t u) {
    if (shift + BITS == 32 || u >> (shift + BITS) == prefix >> (shift + BITS)) atomicAdd(&count[(u >> shift) & ((1 << BITS) - 1)], 1);
  });
  __syncthreads();
  // Thread t has the digits 2047-2t and 2046-2t: counts from above ascend with t.
  int a = count[2047 - 2 * tid], b = count[2046 - 2 * tid], total, above = block_scan(a + b, scan, total);
  if (above < need && need <= above + a) found[0] = 2047 - 2 * tid, found[1] = need - above;
  else if (above + a < need && need <= above + a + b) found[0] = 2046 - 2 * tid, found[1] = need - above - a;
  __syncthreads();
  prefix |= (uint32_t)found[0] << shift, need = found[1];
  __syncthreads();
}

// The topk best of scores[0..pos], positions ascending, ties to the lower. A
// block a row: the threshold by radix, eleven bits at a time, then one ordered
// pass. Rows no longer than topk select everything. Each thread has a run of
// positions, kept in registers where it is short.
constexpr int kRun = 8;
template <bool kShort>
__device__ __forceinline__ void select(const IndexP& p, const float* x, int n, int* sel, int* count, int* scan, int* found) {
  int tid = threadIdx.x, per = (n + 1023) / 1024, lo = min(n, tid * per), hi = min(n, lo + per);
  uint32_t run[kRun];
  if (kShort) {
#pragma unroll
    for (int i = 0; i < kRun; i++) run[i] = lo + i < hi ? order(x[lo + i]) : 0;
  }
  auto each = [&](auto f) {
    if (kShort) {
#pragma unroll
      for (int i = 0; i < kRun; i++)
        if (lo + i < hi) f(run[i], lo + i);
    } else {
      for (int i = lo; i < hi; i++) f(order(x[i]), i);
    }
  };
  auto keys = [&](auto f) {
    if (kShort) each([&](uint32_t u, int) { f(u); });
    else
      for (int i = tid; i < n; i += 1024) f(order(x[i]));
  };
  uint32_t prefix = 0;
  int need = p.topk;
  narrow<11>(21, prefix, need, count, scan, found, keys);
  narrow<11>(10, prefix, need, count, scan, found, keys);
  narrow<10>(0, prefix, need, count, scan, found, keys);
  int above = 0, equal = 0, total;
  each([&](uint32_t u, int) { above += u > prefix, equal += u == prefix; });
  int eq = block_scan(equal, scan, total);
  __syncthreads();
  int at = block_scan(above + max(0, min(equal, need - eq)), scan, total);
  each([&](uint32_t u, int i) {
    if (u > prefix || (u == prefix && eq++ < need)) sel[at++] = i;
  });
}

extern "C" __global__ void __launch_bounds__(1024) index_topk(const __grid_constant__ IndexP p) {
  __shared__ int count[2048];
  __shared__ int scan[32];
  __shared__ int found[2];
  begin();
  ready(p.at);
  int m = blockIdx.x, n = p.pos[m] + 1;
  int* sel = p.sel + (size_t)m * p.topk;
  const float* x = p.scores + (size_t)m * p.lds;
  if (n <= p.topk) {
    for (int i = threadIdx.x; i < p.topk; i += blockDim.x) sel[i] = i < n ? i : -1;
  } else if (n <= 1024 * kRun) {
    select<true>(p, x, n, sel, count, scan, found);
  } else {
    select<false>(p, x, n, sel, count, scan, found);
  }
  finish(p.at);
}
