// Selection by one block a row. Bins are linear in the values, between about the
// least and the greatest of a sample: how the rest falls changes no result, only how
// often bins have to be narrowed. What bounds it is how many instructions a
// multiprocessor gets through.
#include "indexer/index_topk.cuh"

template <int T>
struct RowShared {
  alignas(16) int bins[kBins];  // then the selection
  u64 joint[kRivals];           // what is left: (key, ~position)
  int taken[kRivals];           // positions of those that are selected; of the others kNone
  uint32_t least[T / 32], most[T / 32];
  int sums[T / 32], rivals;
  alignas(16) int found[4];
};
constexpr int kNone = 0x7fffffff;

// find returns the bin at which the count from above reaches need, which becomes
// what it lacks above that bin; size: what is in it.
template <int T>
__device__ __forceinline__ int find(RowShared<T>& s, int& need, int& size) {
  constexpr int E = kBins / T;  // bins of a thread: thread 0 has the uppermost
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, first = kBins - ((int)threadIdx.x + 1) * E, count[E], sum = 0;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < E; i += 2) {
    int2 two = *reinterpret_cast<const int2*>(s.bins + first + i);
    count[i] = two.x, count[i + 1] = two.y, sum += two.x + two.y;
  }
  int all = __reduce_add_sync(~0u, sum);
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
    for (int i = E - 1; i >= 0; i--) {
      if (above < need && need <= above + count[i]) s.found[0] = first + i, s.found[1] = above, s.found[2] = count[i];
      above += count[i];
    }
  }
  __syncthreads();
  int4 f = *reinterpret_cast<const int4*>(s.found);
  need -= f.y, size = f.z;
  return f.x;
}

// places returns where each run's first of the scores that mask has goes, in the order
// of positions: run r of a warp has bits 4r to 4r+3.
template <int T, int R>
__device__ __forceinline__ void places(int (&place)[R], uint32_t mask, int* sums) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  uint32_t count = 0;  // a byte a run
#pragma unroll
  for (int r = 0; r < R; r++) count |= __popc(mask >> 4 * r & 15) << 8 * r;
  uint32_t in = count;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    uint32_t u = __shfl_up_sync(~0u, in, o);
    if (lane >= o) in += u;
  }
  uint32_t all = __shfl_sync(~0u, in, 31), before = in - count;
  int sum = 0;
#pragma unroll
  for (int r = 0; r < R; r++) place[r] = sum + (before >> 8 * r & 255), sum += all >> 8 * r & 255;
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  sum = __reduce_add_sync(~0u, lane < warp ? sums[lane] : 0);
#pragma unroll
  for (int r = 0; r < R; r++) place[r] += sum;
}

// T threads have V scores each: runs of four, which are a warp's next to each other.
template <int T, int V, bool kBeside>
__device__ __forceinline__ void top(const TopP& p) {
  constexpr int R = V / 4;
  begin();
  __shared__ union {
    RowShared<T> row;
    float parts[kBeside ? T / 32 : 1][kAbsorbPart];
  } shared;
  if constexpr (kBeside)
    if (blockIdx.y >= p.m) return absorb<T>(p.absorb, blockIdx.y - p.m, gridDim.y - p.m, shared.parts);
  RowShared<T>& s = shared.row;
  int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, m = blockIdx.y, first = warp * 32 * V, lo = first + lane * 4,
      n = 0;
  auto position = [&](int i) { return lo + (i >> 2) * 128 + (i & 3); };  // of this thread's scores
#pragma unroll
  for (int i = 0; i < kBins / T; i++) s.bins[tid + i * T] = 0;
  if (tid == 0) s.rivals = 0;
  if (p.waits) n = p.pos[m] + 1;
  const float* x = p.scores + (size_t)m * p.lds;
  int* sel = p.sel + (size_t)m * p.topk;
  __syncthreads();
  wait(p, m == 0);
  if (!p.waits) n = p.pos[m] + 1;
  float v[V];
  if (reinterpret_cast<uintptr_t>(x) % 16 == 0 && p.lds % 4 == 0) {
#pragma unroll
    for (int i = 0; i < V; i += 4) {
      float4 f = {0, 0, 0, 0};
      if (position(i) < p.lds) f = __ldcg(reinterpret_cast<const float4*>(x + position(i)));
      v[i] = f.x, v[i + 1] = f.y, v[i + 2] = f.z, v[i + 3] = f.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = position(i) < p.lds ? __ldcg(x + position(i)) : 0;
  }
  float least = INFINITY, most = -INFINITY;
#pragma unroll
  for (int i = 0; i < 4; i++) {  // all warps have the same sample
    float f = __ldcg(x + min(n - 1, i * (n >> 2) + lane));
    least = fminf(least, f), most = fmaxf(most, f);
  }
  if (n <= p.topk) {
#pragma unroll 1
    for (int i = tid; i < p.topk; i += T) sel[i] = i < n ? i : -1;
    return leave(p, m);
  }
  auto up = [](float f) {
    uint32_t u = __float_as_uint(f);
    return u ^ ((uint32_t)((int)u >> 31) | 0x80000000u);
  };
  auto down = [](uint32_t k) { return __uint_as_float(k ^ ((uint32_t)((int)~k >> 31) | 0x80000000u)); };
  least = down(__reduce_min_sync(~0u, up(least))), most = down(__reduce_max_sync(~0u, up(most)));
  // The bin is the low bits of a sum that is rounded to a whole number; NaN, and what is
  // past the row's end, is in the lowest. With a scale of 0 all are in one.
  constexpr float kZero = 8388608;
  float scale = __fdividef(.8f * kBins, most - least), base = fmaf(-least, scale, kZero + .1f * kBins);
  if (!(scale > 0 && scale < INFINITY && fabsf(base) < INFINITY)) scale = 0, base = kZero;
  if (first + 32 * V > n)
#pragma unroll
    for (int i = 0; i < V; i++)
      if (position(i) >= n) v[i] = NAN;
  int bin[V];
  const uint32_t bins = shared_of(s.bins) - (__float_as_uint(kZero) << 2);
#pragma unroll
  for (int i = 0; i < V; i++) {
    bin[i] = __float_as_int(fminf(fmaxf(fmaf(v[i], scale, base), kZero), kZero + kBins - 1));
    asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(bins + (bin[i] << 2)) : "memory");
  }
  int need = p.topk, size, found = find<T>(s, need, size);
  uint32_t above = 0, not_below = 0;  // bits: this thread's scores above the bin, and not below it
#pragma unroll
  for (int i = V - 1; i >= 0; i--) {
    int less = found + __float_as_int(kZero) - bin[i];
    above = __funnelshift_l(less, above, 1), not_below = __funnelshift_l(less - 1, not_below, 1);
  }
  uint32_t left = not_below & ~above;
  if (found == 0) {  // without what is past the row's end
    size -= T * V - n;
#pragma unroll
    for (int i = 0; i < V; i++)
      if (position(i) >= n) left &= ~(1u << i);
  }
  auto key_of = [&](int i) {
    float f = v[0];
#pragma unroll
    for (int j = 1; j < V; j++) f = j == i ? v[j] : f;
    return order(f);
  };
  // Ever narrower by the bits of what is left: rarely.
  bool equal = false;
#pragma unroll 1
  while (__builtin_expect(size > need && size > kRivals && !equal, 0)) {
    uint32_t l = ~0u, h = 0;
#pragma unroll 1
    for (uint32_t b = left; b; b &= b - 1) {
      uint32_t key = key_of(__ffs(b) - 1);
      l = min(l, key), h = max(h, key);
    }
    __syncwarp();
    l = __reduce_min_sync(~0u, l), h = __reduce_max_sync(~0u, h);
    if (lane == 0) s.least[warp] = l, s.most[warp] = h;
#pragma unroll
    for (int i = 0; i < kBins / T; i++) s.bins[tid + i * T] = 0;
    __syncthreads();
    l = __reduce_min_sync(~0u, lane < T / 32 ? s.least[lane] : ~0u),
        h = __reduce_max_sync(~0u, lane < T / 32 ? s.most[lane] : 0);
    equal = l == h;
    int shift = max(0, 21 - __clz(h - l));
#pragma unroll 1
    for (uint32_t b = left; b; b &= b - 1) atomicAdd(&s.bins[(key_of(__ffs(b) - 1) - l) >> shift], 1);
    __syncwarp();
    found = find<T>(s, need, size);
#pragma unroll 1
    for (uint32_t b = left; b; b &= b - 1) {
      int i = __ffs(b) - 1, mine = (key_of(i) - l) >> shift;
      if (mine > found) above |= 1u << i;
      if (mine != found) left &= ~(1u << i);
    }
    __syncwarp();
  }
  // Those above, and need of those left.
  int place[R];
  if (size == need) {
    above |= left;
  } else if (__builtin_expect(equal, 0)) {  // the first ones
    places<T, R>(place, left, s.sums);
#pragma unroll
    for (int i = 0; i < V; i++)
      if (left >> i & 1 && place[i >> 2]++ < need) above |= 1u << i;
    __syncthreads();
  } else {
#pragma unroll 1
    for (; __any_sync(~0u, left); left &= left - 1) {  // rarely more than one of a thread's
      int i = __ffs(left) - 1;
      if (left) s.joint[atomicAdd(&s.rivals, 1)] = (u64)key_of(i) << 32 | (uint32_t)~position(i);
      __syncwarp();
    }
  }
  places<T, R>(place, above, s.sums);
  if (size > need && !equal) {
#pragma unroll 1
    for (int i = warp; i < size; i += T / 32) {
      u64 own = s.joint[i];
      int better = 0;
#pragma unroll 1
      for (int j = lane; j < size; j += 32) better += s.joint[j] > own;
      __syncwarp();
      better = __reduce_add_sync(~0u, better);
      if (lane == 0) s.taken[i] = better < need ? (int)~(uint32_t)own : kNone;
    }
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < size; i += 32) {
      int at = i + lane < size ? s.taken[i + lane] : kNone, before = __popc(__ballot_sync(~0u, at < first));
#pragma unroll
      for (int r = 0; r < R; r++) place[r] += before;
#pragma unroll 1
      for (uint32_t b = __ballot_sync(~0u, at >= first && at < first + 32 * V); b; b &= b - 1) {
        int one = __shfl_sync(~0u, at, __ffs(b) - 1) - lo;
#pragma unroll
        for (int r = 0; r < R; r++) {
          if (one < 128 * r) place[r]++;
          else if (one < 128 * r + 4) above |= 1u << (4 * r + one - 128 * r);
        }
      }
    }
  }
  if (p.topk <= kBins) {  // by way of shared memory, so that whole lines are stored
#pragma unroll
    for (int i = 0; i < V; i++) {
      uint32_t at = shared_of(s.bins) + place[i >> 2] * 4;
      asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %2, 0;\n\t@p st.shared.u32 [%0], %1;\n\t}"
          ::"r"(at), "r"(position(i)), "r"(above & 1u << i) : "memory");
      place[i >> 2] += above >> i & 1;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kBins / T; i++)
      if (tid + i * T < p.topk) sel[tid + i * T] = s.bins[tid + i * T];
  } else {
#pragma unroll
    for (int i = 0; i < V; i++)
      if (above >> i & 1) sel[place[i >> 2]++] = position(i);
  }
  leave(p, m);
}

// The name has blocks a row, threads a block, scores a thread; BESIDE: whether there may be
// blocks for another call.
#define INDEX_TOPK(T, V, BESIDE) \
  extern "C" __global__ void __launch_bounds__(T) index_topk_1_##T##_##V(const __grid_constant__ TopP p) { \
    top<T, V, BESIDE>(p); \
  }
INDEX_TOPK(1024, 8, true)
INDEX_TOPK(512, 16, false)
INDEX_TOPK(1024, 16, true)
