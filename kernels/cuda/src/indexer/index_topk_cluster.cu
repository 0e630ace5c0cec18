// Selection of rows of many positions by a cluster of blocks each; a thread has a run of
// positions. Bins are linear in the values between the least and the greatest, then in
// their bits. Blocks send each other their ranges, their counts and what is left; each
// then finds the same.
#include "indexer/index_topk.cuh"

// value undoes order.
__device__ __forceinline__ float value(uint32_t key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

template <int C, int T, int V, bool kStaged>
struct TopShared {
  alignas(16) float x[kStaged ? T * V : 4];
  alignas(16) int bins[kBins];
  alignas(16) uint32_t all[C][kBins / 2];         // of the cluster's blocks, two counts a word
  uint32_t joint[kRivals], chosen[kRivals / 32];  // what is left, in the order of positions
  uint32_t least[32], most[32];                   // of warps
  alignas(8) uint2 ranges[C];
  int above[C], sums[32], found[3];
  u64 loaded, gate[3];                            // mbarriers: of x; of ranges, all, joint
};
static_assert(sizeof(TopShared<8, 512, 32, true>) == kTopStagedShared &&
    sizeof(TopShared<8, 1024, 32, false>) == kTopShared);

// post sends words to where p, an address in this block's shared memory, is in block rank's.
template <int N>
__device__ __forceinline__ void post(const void* p, const u64* gate, int rank, const uint32_t (&v)[N]) {
  uint32_t a = remote_of(p, rank), b = remote_of(gate, rank);
  if constexpr (N == 1) asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
      ::"r"(a), "r"(v[0]), "r"(b) : "memory");
  if constexpr (N == 2) asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1,%2}, "
      "[%3];" ::"r"(a), "r"(v[0]), "r"(v[1]), "r"(b) : "memory");
  if constexpr (N == 4) asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], "
      "{%1,%2,%3,%4}, [%5];" ::"r"(a), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(b) : "memory");
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
  int w = lane < T / 32 ? sums[lane] : 0;
  total = __reduce_add_sync(~0u, w);
  return __reduce_add_sync(~0u, lane < warp ? w : 0) + in - v;
}

// range leaves the least and the greatest key of the row's threads in lo, hi.
template <int C, int T, typename S>
__device__ __forceinline__ void range(S& s, uint32_t& lo, uint32_t& hi, int rank, int parity) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  lo = __reduce_min_sync(~0u, lo), hi = __reduce_max_sync(~0u, hi);
  if (lane == 0) s.least[warp] = lo, s.most[warp] = hi;
  __syncthreads();
  if (warp == 0) lo = __reduce_min_sync(~0u, lane < T / 32 ? s.least[lane] : ~0u),
      hi = __reduce_max_sync(~0u, lane < T / 32 ? s.most[lane] : 0);
  if (threadIdx.x < C) post(&s.ranges[rank], &s.gate[0], threadIdx.x, {lo, hi});
  mbar_wait(shared_of(&s.gate[0]), parity);
  uint2 of = s.ranges[lane % C];
  lo = __reduce_min_sync(~0u, of.x), hi = __reduce_max_sync(~0u, of.y);
}

// find returns the bin at which the count from above reaches need, which becomes
// what it lacks above that bin; size: what is in it.
template <int C, int T, typename S>
__device__ __forceinline__ int find(S& s, int& need, int& size, int rank, int parity) {
  constexpr int kEach = kBins / T;
  int count[kEach], sum = 0, last = kBins - (int)threadIdx.x * kEach - 1;  // thread t: from above
  __syncthreads();
  for (int i = threadIdx.x; i < C * kBins / 8; i += T) {
    const int4 *b = reinterpret_cast<const int4*>(s.bins) + i % (kBins / 8) * 2, u = b[0], v = b[1];
    post(&s.all[rank][i % (kBins / 8) * 4], &s.gate[1], i / (kBins / 8),
        {(uint32_t)(u.x | u.y << 16), (uint32_t)(u.z | u.w << 16), (uint32_t)(v.x | v.y << 16),
        (uint32_t)(v.z | v.w << 16)});
  }
  mbar_wait(shared_of(&s.gate[1]), parity);
#pragma unroll
  for (int i = 0; i < kEach; i += 2) {
    count[i] = count[i + 1] = 0;
#pragma unroll
    for (int r = 0; r < C; r++) {
      uint32_t two = s.all[r][(last - i) / 2];
      count[i] += two >> 16, count[i + 1] += two & 0xffff;
    }
    sum += count[i] + count[i + 1];
  }
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, all = __reduce_add_sync(~0u, sum);
  if (lane == 0) s.sums[warp] = all;
  __syncthreads();
  int above = __reduce_add_sync(~0u, lane < warp ? s.sums[lane] : 0);
  if (above < need && need <= above + all) {  // this warp has it
    int in = sum;
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      int u = __shfl_up_sync(~0u, in, o);
      if (lane >= o) in += u;
    }
    above += in - sum;
#pragma unroll
    for (int i = 0; i < kEach; i++) {
      if (above < need && need <= above + count[i]) s.found[0] = last - i, s.found[1] = above, s.found[2] = count[i];
      above += count[i];
    }
  }
  __syncthreads();
  need -= s.found[1], size = s.found[2];
  return s.found[0];
}

// C blocks a row, T threads a block, V scores a thread: a row has at most C·T·V.
template <int C, int T, int V, bool kStaged>
__device__ __forceinline__ void top(const TopP& p) {
  extern __shared__ __align__(128) char smem[];
  TopShared<C, T, V, kStaged>& s = *reinterpret_cast<TopShared<C, T, V, kStaged>*>(smem);
  begin();
  if (blockIdx.y >= p.m) return absorb<T>(p.absorb, (blockIdx.y - p.m) * C + blockIdx.x, (gridDim.y - p.m) * C,
      reinterpret_cast<float (*)[kAbsorbPart]>(smem));
  int tid = threadIdx.x, lane = tid & 31, rank = blockIdx.x, m = blockIdx.y;
  if (tid == 0) {
    mbar_init(shared_of(&s.loaded), 1);
    for (int i = 0; i < 3; i++) mbar_init(shared_of(&s.gate[i]), 1);
    mbar_expect(shared_of(&s.gate[0]), C * 8), mbar_expect(shared_of(&s.gate[1]), C * kBins * 2);
    mbar_ready();
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  for (int i = tid; i < kBins; i += T) s.bins[i] = 0;
  warm(p.pos + m);
  constexpr int kOwn = T * V;  // scores of a block
  int first = rank * kOwn, wide = max(0, min(kOwn, p.lds - first)), lo = first + tid * V;
  const float* x = p.scores + (size_t)m * p.lds + first;
  if (kStaged) __syncthreads();
  wait(p, rank == 0 && m == 0);
  // This thread's scores; those past the row's end are whatever they are.
  // in what order it has its fours, for the banks' sake
  const int turn = kStaged ? (lane * (V / 4) / 8) & (V / 4 - 1) : 0;
  float v[V];
  bool aligned = reinterpret_cast<uintptr_t>(x) % 16 == 0 && wide % 4 == 0;
  if (kStaged) {
    if (aligned) {
      if (tid == 0) {
        mbar_expect(shared_of(&s.loaded), wide * 4);
        for (int i = 0; i < wide; i += 2048) copy_bulk(shared_of(s.x + i), x + i, min(2048, wide - i) * 4,
            shared_of(&s.loaded));
      }
      mbar_wait(shared_of(&s.loaded), 0);
    } else {
      for (int i = tid; i < wide; i += T) s.x[i] = x[i];
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < V; i += 4) {
      float4 f = *reinterpret_cast<const float4*>(s.x + tid * V + (i ^ 4 * turn));
      v[i] = f.x, v[i + 1] = f.y, v[i + 2] = f.z, v[i + 3] = f.w;
    }
  } else {
    int own = max(0, min(V, wide - tid * V));
#pragma unroll
    for (int i = 0; i < V; i += 4) {
      float4 f = {0, 0, 0, 0};
      const float* y = x + tid * V + i;
      if (aligned && i + 4 <= own) {
        f = *reinterpret_cast<const float4*>(y);
      } else {
        if (i < own) f.x = y[0];
        if (i + 1 < own) f.y = y[1];
        if (i + 2 < own) f.z = y[2];
        if (i + 3 < own) f.w = y[3];
      }
      v[i] = f.x, v[i + 1] = f.y, v[i + 2] = f.z, v[i + 3] = f.w;
    }
  }
  inboxes_open();
  int n = p.pos[m] + 1;
  int* sel = p.sel + (size_t)m * p.topk;
  if (n <= p.topk) {
    for (int i = rank * T + tid; i < p.topk; i += C * T) sel[i] = i < n ? i : -1;
    return leave(p, m + rank);
  }
  auto key_of = [&](int i) { return order(kStaged ? s.x[tid * V + i] : x[tid * V + i]); };
  int mine = max(0, min(V, n - lo));
  const uint32_t all = (1ull << mine) - 1;  // bits: this thread's scores
  uint32_t present[V / 4];                                   // of each four
#pragma unroll
  for (int j = 0; j < V / 4; j++) present[j] = (1u << max(0, min(4, mine - 4 * (j ^ turn)))) - 1;
  float least = INFINITY, most = -INFINITY, odd = 0;
#pragma unroll
  for (int i = 0; i < V; i++)
    if (present[i / 4] >> i % 4 & 1) least = fminf(least, v[i]), most = fmaxf(most, v[i]), odd = fmaf(v[i], 0, odd);
  uint32_t l = mine ? order(least) : ~0u, h = mine ? order(most) : 0;
  if (odd != 0) l = 0, h = ~0u;  // not all are finite
  range<C, T>(s, l, h, rank, 0);
  uint32_t above = 0, left = all;
  int need = p.topk, size = n, found = 0;
  int finds = 0;
  bool equal = false;
  // Bins linear in the values, if there are values to be linear in: the low bits
  // of a sum that is rounded to a whole number.
  float base = value(l), width = value(h) - base, scale = (kBins - 1) / width;
  if (l > 0x007fffffu && h < 0xff800000u && width > 0 && width < INFINITY && scale < INFINITY) {
    int bin[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
      bin[i] = min(kBins - 1, (int)(__float_as_uint(fmaf(v[i] - base, scale, 8388608.0f)) - 0x4b000000u));
      if (present[i / 4] >> i % 4 & 1) atomicAdd(&s.bins[bin[i]], 1);
    }
    found = find<C, T>(s, need, size, rank, finds++);
    left = 0;
#pragma unroll
    for (int j = 0; j < V / 4; j++) {
      uint32_t a = 0, b = 0;
#pragma unroll
      for (int i = 0; i < 4; i++) a |= (bin[4 * j + i] > found) << i, b |= (bin[4 * j + i] == found) << i;
      above |= a << 4 * (j ^ turn), left |= b << 4 * (j ^ turn);
    }
    above &= all, left &= all;
  }
  // Ever narrower by the bits of what is left.
#pragma unroll 1
  for (int round = 1; size > need && (size > kRivals || finds == 0) && !equal; round++) {
    l = ~0u, h = 0;
    for (uint32_t b = left; b; b &= b - 1) {
      uint32_t u = key_of(__ffs(b) - 1);
      l = min(l, u), h = max(h, u);
    }
    if (tid == 0) {  // all have read what the last round's messages were
      mbar_expect(shared_of(&s.gate[0]), C * 8);
      if (finds) mbar_expect(shared_of(&s.gate[1]), C * kBins * 2);
    }
    cluster_sync();
    for (int i = tid; i < kBins; i += T) s.bins[i] = 0;
    range<C, T>(s, l, h, rank, round & 1);
    equal = l == h;
    int shift = max(0, 21 - __clz(h - l));
    for (uint32_t b = left; b; b &= b - 1) atomicAdd(&s.bins[(key_of(__ffs(b) - 1) - l) >> shift], 1);
    found = find<C, T>(s, need, size, rank, finds++ & 1);
    for (uint32_t b = left; b; b &= b - 1) {
      int i = __ffs(b) - 1, at = (key_of(i) - l) >> shift;
      if (at > found) above |= 1u << i;
      if (at != found) left &= ~(1u << i);
    }
  }
  // Those above, and need of those left: the first, if all of them or if they are equal.
  bool first_ones = size == need || equal;
  int sums;
  uint32_t both = prefix<T>(__popc(above) | __popc(left) << 16, s.sums, sums);
  int before = both & 0xffff, place = both >> 16;
  int count = lane < rank ? s.all[lane][found / 2] >> 16 * (found & 1) & 0xffff : 0;
  place += __reduce_add_sync(~0u, count);
  if (tid == 0) mbar_expect(shared_of(&s.gate[2]), 4 * C + (first_ones ? 0 : 4 * size));
  if (tid < C) post(&s.above[rank], &s.gate[2], tid, {(uint32_t)sums & 0xffff});
  if (!first_ones) {
    int i = place;
    for (uint32_t b = left; b; b &= b - 1, i++) {
      uint32_t key = key_of(__ffs(b) - 1);
      for (int r = 0; r < C; r++) post(&s.joint[i], &s.gate[2], r, {key});
    }
  }
  mbar_wait(shared_of(&s.gate[2]), 0);
  before += __reduce_add_sync(~0u, lane < rank ? s.above[lane] : 0);
  if (!first_ones) {
    for (int i = tid; i < (size + 31 & ~31); i += T) {
      uint32_t mine = i < size ? s.joint[i] : 0;
      int better = i < size ? 0 : need;
#pragma unroll 4
      for (int j = 0; j < size; j++) better += s.joint[j] > mine || s.joint[j] == mine && j < i;
      uint32_t word = __ballot_sync(~0u, better < need);
      if (lane == 0) s.chosen[i / 32] = word;
    }
    __syncthreads();
  }
  int at = before + min(place, need);
  if (first_ones) {
    while (__popc(left) > max(0, need - place)) left &= ~(0x80000000u >> __clz(left));
  } else {
    at = before;
    for (int i = 0; i < place / 32; i++) at += __popc(s.chosen[i]);
    if (place % 32) at += __popc(s.chosen[place / 32] & ((1u << place % 32) - 1));
    for (uint32_t b = left; b; b &= b - 1, place++)
      if (!(s.chosen[place / 32] >> place % 32 & 1)) left ^= b & -b;
  }
#pragma unroll 1
  for (uint32_t b = above | left; b; b &= b - 1) sel[at++] = lo + __ffs(b) - 1;
  leave(p, m + rank);
}

// The name has blocks a row, threads a block, scores a thread.
#define INDEX_TOPK(C, T, V, STAGED) \
  extern "C" __global__ void __cluster_dims__(C, 1, 1) __launch_bounds__(T) \
      index_topk_##C##_##T##_##V(const __grid_constant__ TopP p) { \
    top<C, T, V, STAGED>(p); \
  }
INDEX_TOPK(8, 512, 32, true)
INDEX_TOPK(8, 1024, 32, false)
