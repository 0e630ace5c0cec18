// The topk best scores of a row: positions ascending, ties to the lower. Rows no
// longer than topk select everything.
//
// A row has one block, or a cluster of them; a thread has a run of positions.
// First all scores are counted in bins between the least and the greatest; the bin
// at which the count from above reaches topk is narrowed further, by the bits of
// the values, until few enough are left to be compared with each other. That is
// exact: bins keep the order.
#include "half.cuh"

struct TopP {
  const float* scores;  // [m, lds]: a row's width
  const int* pos;
  int* sel;             // [m, topk]
  u64* at;
  int topk, lds;
};

constexpr int kBins = 2048, kRivals = 512;

// order maps a float to an unsigned that sorts alike (NaN last); value undoes it.
__device__ __forceinline__ uint32_t order(float f) {
  uint32_t u = __float_as_uint(f);
  if (f != f) return 0;
  if (f == 0) u = 0;  // -0 ties with 0
  return u & 0x80000000u ? ~u : u | 0x80000000u;
}
__device__ __forceinline__ float value(uint32_t key) { return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key); }

template <int C>
struct TopShared {
  alignas(16) int bins[kBins], all[C > 1 ? kBins : 4];  // of the block, of the cluster
  uint32_t rivals[kRivals], joint[C > 1 ? kRivals : 1];
  uint32_t least[32], most[32];  // of warps
  int sums[32];
  uint32_t range[2];             // of the block
  int rival, size, found[2], counts[2], choice[2];
};

// remote is the address of what p is here in block rank.
__device__ __forceinline__ uint32_t remote(const void* p, int rank) {
  uint32_t a = __cvta_generic_to_shared(p), b;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(b) : "r"(a), "r"(rank));
  return b;
}
__device__ __forceinline__ uint32_t read(uint32_t at) {
  uint32_t v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
  return v;
}

// meet waits for all threads of the row, and for what they wrote.
template <int C>
__device__ __forceinline__ void meet() {
  if (C > 1) cluster_sync();
  else __syncthreads();
}

// prefix is the exclusive sum of v over the block's threads; total in all of them.
template <int T>
__device__ __forceinline__ int prefix(int v, int* sums, int& total) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, in = v;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    int u = __shfl_up_sync(~0u, in, o);
    if (lane >= o) in += u;
  }
  if (lane == 31) sums[warp] = in;
  __syncthreads();
  int w = lane < T / 32 ? sums[lane] : 0, all = w;
#pragma unroll
  for (int o = 1; o < T / 32; o <<= 1) {
    int u = __shfl_up_sync(~0u, all, o);
    if (lane >= o) all += u;
  }
  total = __shfl_sync(~0u, all, T / 32 - 1);
  return __shfl_sync(~0u, all - w, warp) + in - v;
}

// range leaves the least and the greatest key of the row's threads in lo, hi.
template <int C, int T>
__device__ __forceinline__ void range(TopShared<C>& s, uint32_t& lo, uint32_t& hi) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  lo = __reduce_min_sync(~0u, lo), hi = __reduce_max_sync(~0u, hi);
  if (lane == 0) s.least[warp] = lo, s.most[warp] = hi;
  __syncthreads();
  lo = __reduce_min_sync(~0u, lane < T / 32 ? s.least[lane] : ~0u), hi = __reduce_max_sync(~0u, lane < T / 32 ? s.most[lane] : 0);
  if (C == 1) return;
  if (threadIdx.x == 0) s.range[0] = lo, s.range[1] = hi;
  meet<C>();
  lo = __reduce_min_sync(~0u, lane < C ? read(remote(&s.range[0], lane % C)) : ~0u);
  hi = __reduce_max_sync(~0u, lane < C ? read(remote(&s.range[1], lane % C)) : 0);
}

// find returns the bin at which the count from above reaches need, which becomes
// what it lacks above that bin; size: what is in it.
template <int C, int T>
__device__ __forceinline__ int find(TopShared<C>& s, int& need, int& size) {
  constexpr int kEach = kBins / T;
  meet<C>();
  const int* bins = s.bins;
  if (C > 1) {
    bins = s.all;
    for (int i = threadIdx.x; i < kBins / 4; i += T) {
      int4 sum = {0, 0, 0, 0}, v;
#pragma unroll
      for (int r = 0; r < C; r++) {
        asm volatile("ld.shared::cluster.v4.s32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(remote(&s.bins[4 * i], r)) : "memory");
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
      }
      *reinterpret_cast<int4*>(&s.all[4 * i]) = sum;
    }
    __syncthreads();
  }
  int count[kEach], sum = 0, total, last = kBins - (int)threadIdx.x * kEach - 1;  // thread t: from above
#pragma unroll
  for (int i = 0; i < kEach; i++) count[i] = bins[last - i], sum += count[i];
  int above = prefix<T>(sum, s.sums, total);
#pragma unroll
  for (int i = 0; i < kEach; i++) {
    if (above < need && need <= above + count[i]) s.found[0] = last - i, s.found[1] = above, s.size = count[i];
    above += count[i];
  }
  __syncthreads();
  need -= s.found[1], size = s.size;
  return s.found[0];
}

// choose compares the values that are left, size of all threads': it returns the
// need-th best, and in need how many that equal it are among them.
template <int C, int T, typename F>
__device__ __forceinline__ uint32_t choose(TopShared<C>& s, uint32_t left, F key, int& need, int size) {
  for (; left; left &= left - 1) s.rivals[atomicAdd(&s.rival, 1)] = key(__ffs(left) - 1);
  meet<C>();
  const uint32_t* all = s.rivals;
  if (C > 1) {  // a warp copies those of one block
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int count = lane < C ? read(remote(&s.rival, lane % C)) : 0, at = __reduce_add_sync(~0u, lane < warp ? count : 0);
    int own = __shfl_sync(~0u, count, warp % C);
    if (warp < C)
      for (int i = lane; i < own; i += 32) s.joint[at + i] = read(remote(&s.rivals[i], warp));
    __syncthreads();
    all = s.joint;
  }
  for (int i = threadIdx.x; i < size; i += T) {
    uint32_t mine = all[i];
    int above = 0, equal = 0;
#pragma unroll 4
    for (int j = 0; j < size; j++) above += all[j] > mine, equal += all[j] == mine;
    if (above < need && need <= above + equal) s.choice[0] = mine, s.choice[1] = need - above;
  }
  __syncthreads();
  need = s.choice[1];
  return s.choice[0];
}

// C blocks a row, T threads a block, V scores a thread: a row has at most C·T·V.
template <int C, int T, int V>
__device__ __forceinline__ void top(const TopP& p) {
  __shared__ TopShared<C> s;
  begin();
  int tid = threadIdx.x, rank = C == 1 ? 0 : blockIdx.x, m = blockIdx.y;
  for (int i = tid; i < kBins; i += T) s.bins[i] = 0;
  if (tid == 0) s.rival = 0;
  warm(p.pos + m);
  if ((rank * T + tid) * V < p.lds) warm(p.scores + (size_t)m * p.lds + (rank * T + tid) * V);
  ready(p.at);
  // This thread's scores; those past the row's end are whatever they are.
  int n = p.pos[m] + 1, per = ((p.lds + C * T - 1) / (C * T) + 3) & ~3, lo = min(p.lds, (rank * T + tid) * per), wide = min(per, p.lds - lo);
  const float* x = p.scores + (size_t)m * p.lds + lo;
  bool aligned = reinterpret_cast<uintptr_t>(x) % 16 == 0;
  float v[V];
#pragma unroll
  for (int i = 0; i < V; i += 4) {
    float4 f = {0, 0, 0, 0};
    if (aligned && i + 4 <= wide) {
      f = *reinterpret_cast<const float4*>(x + i);
    } else {
      if (i < wide) f.x = x[i];
      if (i + 1 < wide) f.y = x[i + 1];
      if (i + 2 < wide) f.z = x[i + 2];
      if (i + 3 < wide) f.w = x[i + 3];
    }
    v[i] = f.x, v[i + 1] = f.y, v[i + 2] = f.z, v[i + 3] = f.w;
  }
  int* sel = p.sel + (size_t)m * p.topk;
  if (n <= p.topk) {
    for (int i = rank * T + tid; i < p.topk; i += C * T) sel[i] = i < n ? i : -1;
    return finish(p.at);
  }
  int mine = max(0, min(per, n - lo));
  float least = INFINITY, most = -INFINITY, odd = 0;
#pragma unroll
  for (int i = 0; i < V; i++)
    if (i < mine) least = fminf(least, v[i]), most = fmaxf(most, v[i]), odd = fmaf(v[i], 0, odd);
  uint32_t l = mine ? order(least) : ~0u, h = mine ? order(most) : 0;
  if (odd != 0) l = 0, h = ~0u;  // not all are finite
  range<C, T>(s, l, h);
  uint32_t all = mine == 32 ? ~0u : (1u << mine) - 1, above = 0, left = all;  // bits: this thread's scores
  int need = p.topk, size = n;
  // Bins linear in the values, if there are values to be linear in: the low bits
  // of a sum that is rounded to a whole number.
  float base = value(l), width = value(h) - base, scale = (kBins - 1) / width;
  if (l > 0x007fffffu && h < 0xff800000u && width > 0 && width < INFINITY && scale < INFINITY) {
    int bin[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
      bin[i] = min(kBins - 1, (int)(__float_as_uint(fmaf(v[i] - base, scale, 8388608.0f)) - 0x4b000000u));
      if (i < mine) atomicAdd(&s.bins[bin[i]], 1);
    }
    int b = find<C, T>(s, need, size);
    left = 0;
#pragma unroll
    for (int i = 0; i < V; i++) {
      if (bin[i] > b) above |= 1u << i;
      if (bin[i] == b) left |= 1u << i;
    }
    above &= all, left &= all;
  }
  // Ever narrower by the bits of what is left.
  bool equal = false;
#pragma unroll 1
  while (size > need && size > kRivals && !equal) {
    l = ~0u, h = 0;
    for (uint32_t b = left; b; b &= b - 1) {
      uint32_t u = order(x[__ffs(b) - 1]);
      l = min(l, u), h = max(h, u);
    }
    meet<C>();
    for (int i = tid; i < kBins; i += T) s.bins[i] = 0;
    range<C, T>(s, l, h);
    equal = l == h;
    if (equal) break;
    int shift = max(0, 21 - __clz(h - l));
    for (uint32_t b = left; b; b &= b - 1) atomicAdd(&s.bins[(order(x[__ffs(b) - 1]) - l) >> shift], 1);
    int found = find<C, T>(s, need, size);
    for (uint32_t b = left; b; b &= b - 1) {
      int i = __ffs(b) - 1, at = (order(x[i]) - l) >> shift;
      if (at > found) above |= 1u << i;
      if (at != found) left &= ~(1u << i);
    }
  }
  if (size > need && !equal) {
    auto key_of = [&](int i) {  // rarely more than one of a thread's
      if (V > 8) return order(x[i]);
      float f = v[0];
#pragma unroll
      for (int j = 1; j < V; j++)
        if (j == i) f = v[j];
      return order(f);
    };
    uint32_t key = choose<C, T>(s, left, key_of, need, size);
    for (uint32_t b = left; b; b &= b - 1) {
      int i = __ffs(b) - 1;
      uint32_t u = key_of(i);
      if (u > key) above |= 1u << i;
      if (u != key) left &= ~(1u << i);
    }
  }
  // Those above, and the first need of those left.
  int sums;
  uint32_t both = prefix<T>(__popc(above) | __popc(left) << 16, s.sums, sums);
  int before = both & 0xffff, ties = both >> 16;
  if (C > 1) {
    if (tid == 0) s.counts[0] = sums & 0xffff, s.counts[1] = (uint32_t)sums >> 16;
    meet<C>();
    int lane = tid & 31;
    before += __reduce_add_sync(~0u, lane < rank ? read(remote(&s.counts[0], lane)) : 0);
    ties += __reduce_add_sync(~0u, lane < rank ? read(remote(&s.counts[1], lane)) : 0);
  }
  int at = before + min(ties, need);
  while (__popc(left) > max(0, need - ties)) left &= ~(0x80000000u >> __clz(left));
#pragma unroll 1
  for (uint32_t b = above | left; b; b &= b - 1) sel[at++] = lo + __ffs(b) - 1;
  if (C > 1) meet<C>();  // none leaves while others read
  finish(p.at);
}

#define INDEX_TOPK(C, T, V) \
  extern "C" __global__ void __cluster_dims__(C, 1, 1) __launch_bounds__(T) index_topk_##C##_##V(const __grid_constant__ TopP p) { top<C, T, V>(p); }
INDEX_TOPK(1, 1024, 8)
INDEX_TOPK(1, 1024, 12)
INDEX_TOPK(1, 1024, 16)
INDEX_TOPK(8, 1024, 16)
INDEX_TOPK(8, 1024, 32)
