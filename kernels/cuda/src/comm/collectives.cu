// Collectives of the ranks of one host, of rows that all ranks have: see inbox.cuh.
#include "comm/inbox.cuh"

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
