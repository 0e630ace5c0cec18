// What collectives of the ranks of one host have in common.
//
// A rank pushes its values into the other ranks' inboxes; who waits for a value
// polls its place until it is there. An empty place holds kEmpty, a NaN that no
// arithmetic makes, so a value is its own flag: there are no fences, and every
// four bytes stand for themselves. Who has taken a value empties its place.
//
// An inbox has two halves, which collectives use in turn. A rank that starts
// collective e+2 has ended e+1, so it has had values of e+1 from every rank, and
// a rank sends those after it has ended e and emptied its places. Which half it is
// follows from a count on the device, so that a graph can be replayed.
#pragma once
#include "mma/panels.cuh"
#include "comm/params.h"

constexpr int kParts = kRowParts;
constexpr uint32_t kEmpty = 0xFFFFFFFFu;

// What a launch does. Few blocks do all in one; each sends before it waits, and all
// of them run at once. For many rows on a GPU that ranks share, each phase is a
// launch and a barrier stands between them: there blocks that wait could keep
// another rank's kernels from starting.
constexpr int kSend = kSendPhase, kSum = kSumPhase, kReceive = kReceivePhase;

__device__ __forceinline__ void put(float* p, float4 v) {
  asm volatile("st.relaxed.sys.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
      : "memory");
}
__device__ __forceinline__ float4 look(const float* p) {
  float4 v;
  asm volatile("ld.relaxed.sys.global.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p)
      : "memory");
  return v;
}
__device__ __forceinline__ bool there(const float4& v) {
  return __float_as_uint(v.x) != kEmpty && __float_as_uint(v.y) != kEmpty && __float_as_uint(v.z) != kEmpty &&
      __float_as_uint(v.w) != kEmpty;
}
__device__ __forceinline__ float sendable(float v) {
  return __float_as_uint(v) == kEmpty ? __uint_as_float(0x7FFFFFFFu) : v;
}
__device__ __forceinline__ float4 sendable(float4 v) {
  return {sendable(v.x), sendable(v.y), sendable(v.z), sendable(v.w)};
}
__device__ __forceinline__ void empty(float* p) {
  float e = __uint_as_float(kEmpty);
  put(p, {e, e, e, e});
}

// read, write: four values of a row, as many as the row has from column i on.
__device__ __forceinline__ float4 read(const float* row, int i, int n, bool wide) {
  if (wide && i + 4 <= n) return *reinterpret_cast<const float4*>(row + i);
  float4 v = {0, 0, 0, 0};
  if (i < n) v.x = row[i];
  if (i + 1 < n) v.y = row[i + 1];
  if (i + 2 < n) v.z = row[i + 2];
  if (i + 3 < n) v.w = row[i + 3];
  return v;
}
__device__ __forceinline__ void write(float* row, int i, int n, bool wide, float4 v) {
  if (wide && i + 4 <= n) {
    *reinterpret_cast<float4*>(row + i) = v;
    return;
  }
  if (i < n) row[i] = v.x;
  if (i + 1 < n) row[i + 1] = v.y;
  if (i + 2 < n) row[i + 2] = v.z;
  if (i + 3 < n) row[i + 3] = v.w;
}
__device__ __forceinline__ float4 add(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

// Watch is a block's look at the host: now and then one of its threads that wait
// sees whether it is to stop. Were it all threads, their reads over the bus would
// take longer than the waits.
struct Watch {
  u64 since, next;  // ns: when the block began, when to look again
  int over;
};
constexpr u64 kGlance = 200'000;  // ns
__device__ __forceinline__ void watch(Watch& w) {
  if (threadIdx.x == 0) {
    w.since = globaltimer();
    w.next = w.since + kGlance;
    w.over = 0;
  }
  __syncthreads();
}

// Patience ends a thread's wait: after the limit, or when another rank failed.
struct Patience {
  const CommP& p;
  Watch& w;
  int spins;
  __device__ Patience(const CommP& p, Watch& w) : p(p), w(w), spins(0) {}
  // rank is the one that is waited for.
  __device__ __forceinline__ bool gone(int rank) {
    if (++spins & 63) return false;
    if (atomicOr(&w.over, 0)) return true;
    u64 now = globaltimer(), due = atomicAdd(&w.next, 0ull);
    if (now < due || atomicCAS(&w.next, due, now + kGlance) != due) return false;
    int failed = *(volatile int*)p.failed;
    bool late = now - w.since > p.limit;
    if (!failed && (late || *(volatile const int*)p.stop)) *(volatile int*)p.failed = failed = late ? rank + 1 : -1;
    if (failed) atomicExch(&w.over, 1);
    return failed;
  }
};

// after is the d-th rank after this one, which goes to the others in that order.
__device__ __forceinline__ int after(const CommP& p, int d) {
  int r = p.rank + d;
  return r < p.ranks ? r : r - p.ranks;
}

// total waits for all ranks' values, at place + r * apart, and adds them in the
// ranks' order; mine are this rank's.
__device__ __forceinline__ float4 total(float* place, size_t apart, float4 mine, const CommP& p, Patience& w) {
  float4 v[kMaxRanks];
#pragma unroll
  for (int r = 0; r < kMaxRanks; r++)
    if (r < p.ranks) v[r] = r == p.rank ? mine : look(place + r * apart);
  for (int missing = 0; missing >= 0;) {
    missing = -1;
#pragma unroll
    for (int r = kMaxRanks - 1; r >= 0; r--)
      if (r < p.ranks && r != p.rank && !there(v[r])) missing = r, v[r] = look(place + r * apart);
    if (missing >= 0 && w.gone(missing)) break;
  }
  float4 sum = v[0];
#pragma unroll
  for (int r = 1; r < kMaxRanks; r++)
    if (r < p.ranks) sum = add(sum, v[r]);
#pragma unroll
  for (int r = 0; r < kMaxRanks; r++)
    if (r < p.ranks && r != p.rank) empty(place + r * apart);
  return sum;
}

// ended counts the blocks that are done; the last one ends the collective.
__device__ __forceinline__ void ended(const CommP& p, unsigned blocks) {
  if (atomicAdd(p.epoch + 1, 1u) == blocks - 1) p.epoch[1] = 0, p.epoch[0] += 1;
}

// The start of both kernels below, which do the same in other ways and with the
// same bits: res += sum of the ranks' x, in their order; y = norm of res. A row is
// kParts parts of cols columns, a thread has four columns of a part.
struct Half {
  size_t at;    // of the inbox's half for this collective
  size_t sums;  // two-shot: behind the parts
  __device__ Half(const CommP& p) : at((*(volatile unsigned*)p.epoch & 1) * p.half),
      sums(at + (size_t)p.m * mates(p) * p.ranks * p.cols) {}
  // mates is how many parts of a row a rank sums at most.
  static __device__ __forceinline__ int mates(const CommP& p) { return (kParts + p.ranks - 1) / p.ranks; }
};
__device__ __forceinline__ float square(float4 v) { return fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, v.x * v.x))); }
__device__ __forceinline__ float4 normed(float4 v, float r, float4 w) {
  return {v.x * r * w.x, v.y * r * w.y, v.z * r * w.z, v.w * r * w.w};
}

// come waits for the values of a row that the cluster's blocks send each other, and
// makes the inbox ready for those of the next row; parity is that of the row. No
// block's next value comes before its own is sent, which is when all threads are here.
__device__ __forceinline__ void come(u64* inbox, int parity) {
  uint32_t b = shared_of(inbox);
  mbar_wait(b, parity);
  if (threadIdx.x == 0) mbar_expect(b, 4 * kParts);
}
