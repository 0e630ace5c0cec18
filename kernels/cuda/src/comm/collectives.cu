// Collectives of the ranks of one host.
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

// One-shot, for few rows: a cluster a row, each of its blocks a part.
extern "C" __global__ void __cluster_dims__(kParts, 1, 1) __launch_bounds__(256, 2)
    reduce_norm(const __grid_constant__ CommP p) {
  __shared__ float s[32];
  __shared__ float squares[2][kParts];  // of a row's parts, in turn
  __shared__ u64 inbox;                 // for them
  __shared__ Watch eye;
  const int part = blockIdx.x % kParts, first = blockIdx.x / kParts, step = gridDim.x / kParts;
  const int own = 4 * threadIdx.x, i = part * p.cols + own;
  const bool on = own < p.cols && i < p.n, wide = p.wide;
  if (p.early) begin();
  float4 w = {0, 0, 0, 0};
  if (on && (p.phases & kReceive)) w = read(p.w, i, p.n, wide);
  open_inbox(&inbox, sizeof(squares[0]));
  watch(eye);
  inboxes_open();
  ready(p.at);
  const Half half(p);
  Patience patience(p, eye);
  float4 mine = {0, 0, 0, 0};
  // place is where a rank's values are in every inbox.
  auto place = [&](int row, int rank) { return half.at + ((size_t)row * p.ranks + rank) * (kParts * p.cols) + i; };

  if (on && (p.phases & kSend)) {
    for (int row = first; row < p.m; row += step) {
      mine = read(p.x + (size_t)row * p.ldx, i, p.n, wide);
      float4 v = sendable(mine);
      for (int d = 1; d < p.ranks; d++) put(p.inbox[after(p, d)] + place(row, p.rank), v);
    }
  }
  if (p.phases & kReceive) {
    const bool again = step < p.m || !(p.phases & kSend);  // mine is of another row
    for (int row = first, turn = 0; row < p.m; row += step, turn ^= 1) {
      float4 v = {0, 0, 0, 0};
      if (on) {
        float* res = p.res + (size_t)row * p.ldr;
        float4 old = read(res, i, p.n, wide);
        if (again) mine = read(p.x + (size_t)row * p.ldx, i, p.n, wide);
        v = add(old, total(p.inbox[p.rank] + place(row, 0), kParts * p.cols, mine, p, patience));
        write(res, i, p.n, wide, v);
      }
      float ss = block_sum(square(v), s);
      if (threadIdx.x < kParts) send(&squares[turn][part], &inbox, threadIdx.x, ss);
      come(&inbox, turn);
      int lane = threadIdx.x & 31;
      float r = rsqrtf(warp_sum(lane < kParts ? squares[turn][lane] : 0) / p.n + p.eps);
      if (on) {
        v = normed(v, r, w);
        write(p.y + (size_t)row * p.ldy, i, p.n, wide, v);
        if (p.panels) store_panels(p.panels, p.row0 + row, i, p.n, v);
      }
    }
    if (part == 0 && threadIdx.x == 0) ended(p, step);  // as all parts have come
  }
  finish(p.at);
}

// Two-shot, for many rows: a block a row. Each part of a row is summed by one
// rank. A thread has columns of two parts, neighbours, of which its rank sums at
// most one. With one rank x is the sum already.
constexpr int kPairs = kRowPairs;
extern "C" __global__ void __launch_bounds__(768, 1) reduce_rows(const __grid_constant__ CommP p) {
  __shared__ float s[2][kParts][8];  // of a row's parts, by warp; in turn
  __shared__ float squares[2][kParts];
  __shared__ Watch eye;
  const int each = blockDim.x / kPairs, pair = threadIdx.x / each, own = 4 * (threadIdx.x % each);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = each / 32;  // warps of a part
  const bool wide = p.wide;
  if (p.early) begin();
  auto column = [&](int k) { return (2 * pair + k) * p.cols + own; };
  auto on = [&](int k) { return own < p.cols && column(k) < p.n; };
  watch(eye);
  ready(p.at);
  const Half half(p);
  const int mates = Half::mates(p);
  float* inbox = p.inbox[p.rank];
  Patience patience(p, eye);
  auto owner = [&](int row, int k) { return (row + 2 * pair + k) % p.ranks; };
  // Places in every inbox: of a rank's values for the owner, and of a sum.
  auto place = [&](int row, int k, int rank) { return half.at +
      ((size_t)(row * mates + (2 * pair + k) / p.ranks) * p.ranks + rank) * p.cols + own; };
  auto sum_place = [&](int row, int k) { return half.sums + ((size_t)row * kParts + 2 * pair + k) * p.cols + own; };

  if (p.phases & kSend) {
    for (int row = blockIdx.x; row < p.m; row += gridDim.x) {
      float4 v[2];
#pragma unroll
      for (int k = 0; k < 2; k++)
        if (on(k)) v[k] = read(p.x + (size_t)row * p.ldx, column(k), p.n, wide);
#pragma unroll
      for (int k = 0; k < 2; k++)
        if (on(k) && owner(row, k) != p.rank) put(p.inbox[owner(row, k)] + place(row, k, p.rank), sendable(v[k]));
    }
  }
  if (p.phases & kSum) {
    for (int row = blockIdx.x; row < p.m; row += gridDim.x) {
      int k = owner(row, 0) == p.rank ? 0 : 1;
      if (!on(k) || owner(row, k) != p.rank) continue;
      float4 mine = read(p.x + (size_t)row * p.ldx, column(k), p.n, wide);
      float4 v = sendable(total(inbox + place(row, k, 0), p.cols, mine, p, patience));
      for (int d = 1; d <= p.ranks; d++) put(p.inbox[after(p, d)] + sum_place(row, k), v);
    }
  }
  if (p.phases & kReceive) {
    float4 w[2];
#pragma unroll
    for (int k = 0; k < 2; k++)
      if (on(k)) w[k] = read(p.w, column(k), p.n, wide);
    for (int row = blockIdx.x, turn = 0; row < p.m; row += gridDim.x, turn ^= 1) {
      float* res = p.res + (size_t)row * p.ldr;
      float4 v[2], old[2];
#pragma unroll
      for (int k = 0; k < 2; k++) {
        v[k] = {0, 0, 0, 0};
        if (!on(k)) continue;
        old[k] = read(res, column(k), p.n, wide);
        v[k] = p.ranks == 1 ? read(p.x + (size_t)row * p.ldx, column(k), p.n, wide) : look(inbox + sum_place(row, k));
      }
#pragma unroll
      for (int k = 0; k < 2; k++) {
        if (on(k)) {
          if (p.ranks > 1) {
            while (!there(v[k]) && !patience.gone(owner(row, k))) v[k] = look(inbox + sum_place(row, k));
            empty(inbox + sum_place(row, k));
          }
          v[k] = add(old[k], v[k]);
          write(res, column(k), p.n, wide, v[k]);
        }
        float ss = warp_sum(square(v[k]));
        if (lane == 0) s[turn][2 * pair + k][warp % warps] = ss;
      }
      // As block_sum of a part, then over the parts.
      __syncthreads();
      for (int k = warp; k < kParts; k += blockDim.x / 32) {
        float ss = warp_sum(lane < warps ? s[turn][k][lane] : 0);
        if (lane == 0) squares[turn][k] = ss;
      }
      __syncthreads();
      float r = rsqrtf(warp_sum(lane < kParts ? squares[turn][lane] : 0) / p.n + p.eps);
#pragma unroll
      for (int k = 0; k < 2; k++)
        if (on(k)) {
          v[k] = normed(v[k], r, w[k]);
          write(p.y + (size_t)row * p.ldy, column(k), p.n, wide, v[k]);
          if (p.panels) store_panels(p.panels, p.row0 + row, column(k), p.n, v[k]);
        }
    }
    if (p.ranks > 1) {
      __syncthreads();
      if (threadIdx.x == 0) ended(p, gridDim.x);
    }
  }
  finish(p.at);
}

// y = the ranks' columns side by side: n in all, cols of each rank in an inbox.
extern "C" __global__ void __launch_bounds__(256, 2) gather_columns(const __grid_constant__ CommP p) {
  __shared__ Watch eye;
  if (p.early) begin();
  watch(eye);
  ready(p.at);
  const size_t half = (*(volatile unsigned*)p.epoch & 1) * p.half;
  const int each = p.n / p.ranks, quads = p.cols / 4, units = p.m * quads, step = gridDim.x * blockDim.x;
  const int from = blockIdx.x * blockDim.x + threadIdx.x;
  Patience patience(p, eye);
  if (p.ranks == 1) {
    for (int u = from; u < units; u += step) {
      int row = u / quads, i = 4 * (u % quads);
      write(p.y + (size_t)row * p.ldy, i, each, p.wide, read(p.x + (size_t)row * p.ldx, i, each, p.wide));
    }
  }
  if (p.phases & kSend) {
    for (int u = from; u < units; u += step) {
      int row = u / quads, i = 4 * (u % quads);
      float4 v = sendable(read(p.x + (size_t)row * p.ldx, i, each, p.wide));
      for (int d = 0; d < p.ranks; d++) put(p.inbox[after(p, d)] + half + ((size_t)row * p.ranks + p.rank) * p.cols + i,
          v);
    }
  }
  if (p.phases & kReceive) {
    for (int u = from; u < units; u += step) {
      int row = u / quads, i = 4 * (u % quads);
      float* place = p.inbox[p.rank] + half + (size_t)row * p.ranks * p.cols + i;
      float4 v[kMaxRanks];
#pragma unroll
      for (int r = 0; r < kMaxRanks; r++)
        if (r < p.ranks) v[r] = look(place + r * p.cols);
#pragma unroll
      for (int r = 0; r < kMaxRanks; r++) {
        if (r >= p.ranks) continue;
        while (!there(v[r]) && !patience.gone(r)) v[r] = look(place + r * p.cols);
        empty(place + r * p.cols);
        write(p.y + (size_t)row * p.ldy + r * each, i, each, p.wide, v[r]);
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) ended(p, gridDim.x);
  }
  finish(p.at);
}

// y = the parts of n values each, added in the ranks' order.
extern "C" __global__ void __launch_bounds__(256) sum_parts(const __grid_constant__ SumP p) {
  begin();
  ready(p.at);
  for (long long i = 4ll * (blockIdx.x * blockDim.x + threadIdx.x); i < p.n; i += 4ll * gridDim.x * blockDim.x) {
    float4 sum = *reinterpret_cast<const float4*>(p.parts + i);
    for (int r = 1; r < p.ranks; r++) sum = add(sum, *reinterpret_cast<const float4*>(p.parts + r * p.n + i));
    *reinterpret_cast<float4*>(p.y + i) = sum;
  }
  finish(p.at);
}

// A barrier in memory that all ranks see. A rank's count of barriers is its epoch,
// so nothing is ever reset and a graph can be replayed.
// The kernels behind it start when it has ended, never early: what waits for a
// rank must not hold the multiprocessors that the rank may need on the same GPU.
extern "C" __global__ void barrier(const __grid_constant__ BarrierP p) {
  ready(p.at);
  if (threadIdx.x == 0) {
    u64 want = (*p.epoch += 1) * p.ranks, have = 0, start = globaltimer();
    __threadfence_system();
    atomicAdd_system(p.arrived, 1ull);
    for (int spins = 1;; spins++) {
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(have) : "l"(p.arrived) : "memory");
      if (have >= want) break;
      if (!(spins & 255)) {
        int failed = *(volatile int*)p.failed;
        bool late = globaltimer() - start > p.limit;
        if (!failed && (late || *(volatile const int*)p.stop)) *(volatile int*)p.failed = failed = late ?
            kMaxRanks + 1 : -1;
        if (failed) break;
      }
      __nanosleep(64);
    }
    __threadfence_system();
  }
  finish(p.at);
}
