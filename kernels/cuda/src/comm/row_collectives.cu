// Collectives of ranks that have rows of their own: see inbox.cuh. to says which of the rows of
// all a rank's row is, -1: none. A row that is none does not travel, but for the first of a
// launch: so each rank has had a value of every other in each collective.
#include "comm/inbox.cuh"

__device__ __forceinline__ int place_of(const CommP& p, int row, int rank) { return p.to[row * p.ranks + rank]; }
__device__ __forceinline__ bool travels(int to, int row) { return to >= 0 || row == 0; }

// y = the rows of all ranks, of n values.
extern "C" __global__ void __launch_bounds__(256, 2) all_gather_rows(const __grid_constant__ CommP p) {
  __shared__ Watch eye;
  if (p.early) begin();
  watch(eye);
  ready(p.at);
  const size_t half = (*(volatile unsigned*)p.epoch & 1) * p.half;
  const int quads = p.cols / 4, units = p.m * quads, step = gridDim.x * blockDim.x;
  const int from = blockIdx.x * blockDim.x + threadIdx.x;
  Patience patience(p, eye);
  auto place = [&](int row, int rank, int i) { return half + ((size_t)row * p.ranks + rank) * p.cols + i; };
  if (p.phases & kSend) {
    for (int u = from; u < units; u += step) {
      int row = u / quads, i = 4 * (u % quads);
      if (!travels(place_of(p, row, p.rank), row)) continue;
      float4 v = sendable(read(p.x + (size_t)row * p.ldx, i, p.n, p.wide));
      for (int d = 1; d < p.ranks; d++) put(p.inbox[after(p, d)] + place(row, p.rank, i), v);
    }
  }
  if (p.phases & kReceive) {
    for (int u = from; u < units; u += step) {
      int row = u / quads, i = 4 * (u % quads);
      float* inbox = p.inbox[p.rank];
      float4 v[kMaxRanks];
      int to[kMaxRanks];
#pragma unroll
      for (int r = 0; r < kMaxRanks; r++) {
        if (r >= p.ranks) continue;
        to[r] = place_of(p, row, r);
        if (r == p.rank) v[r] = read(p.x + (size_t)row * p.ldx, i, p.n, p.wide);
        else if (travels(to[r], row)) v[r] = look(inbox + place(row, r, i));
      }
#pragma unroll
      for (int r = 0; r < kMaxRanks; r++) {
        if (r >= p.ranks || !travels(to[r], row)) continue;
        if (r != p.rank) {
          while (!there(v[r]) && !patience.gone(r)) v[r] = look(inbox + place(row, r, i));
          empty(inbox + place(row, r, i));
        }
        if (to[r] >= 0) write(p.y + (size_t)to[r] * p.ldy, i, p.n, p.wide, v[r]);
      }
    }
    if (p.ranks > 1) {
      __syncthreads();
      if (threadIdx.x == 0) ended(p, gridDim.x);
    }
  }
  finish(p.at);
}

// res += the sums of the rank's own rows of x, y = norm of res: as reduce_norm, a cluster a row.
extern "C" __global__ void __cluster_dims__(kParts, 1, 1) __launch_bounds__(256, 2)
    reduce_scatter_norm(const __grid_constant__ CommP p) {
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
  // place is where a rank's values are in the inbox of the rank whose row it is.
  auto place = [&](int row, int rank) { return half.at + ((size_t)row * p.ranks + rank) * (kParts * p.cols) + i; };
  auto value = [&](int to) {
    float4 v = {0, 0, 0, 0};
    if (to >= 0) v = read(p.x + (size_t)to * p.ldx, i, p.n, wide);
    return v;
  };

  if (on && (p.phases & kSend)) {
    for (int row = first; row < p.m; row += step) {
      for (int d = 1; d < p.ranks; d++) {
        int r = after(p, d), to = place_of(p, row, r);
        if (travels(to, row)) put(p.inbox[r] + place(row, p.rank), sendable(value(to)));
      }
    }
  }
  if (p.phases & kReceive) {
    for (int row = first, turn = 0; row < p.m; row += step, turn ^= 1) {
      const int to = place_of(p, row, p.rank);
      float4 v = {0, 0, 0, 0};
      if (on && travels(to, row)) {
        float4 sum = total(p.inbox[p.rank] + place(row, 0), kParts * p.cols, value(to), p, patience);
        if (to >= 0) {
          float* res = p.res + (size_t)row * p.ldr;
          v = add(read(res, i, p.n, wide), sum);
          write(res, i, p.n, wide, v);
        }
      }
      float ss = block_sum(square(v), s);
      if (threadIdx.x < kParts) send(&squares[turn][part], &inbox, threadIdx.x, ss);
      come(&inbox, turn);
      int lane = threadIdx.x & 31;
      float r = rsqrtf(warp_sum(lane < kParts ? squares[turn][lane] : 0) / p.n + p.eps);
      if (on && to >= 0) {
        v = normed(v, r, w);
        write(p.y + (size_t)row * p.ldy, i, p.n, wide, v);
        if (p.panels) store_panels(p.panels, p.row0 + row, i, p.n, v);
      }
    }
    if (p.ranks > 1 && part == 0 && threadIdx.x == 0) ended(p, step);  // as all parts have come
  }
  finish(p.at);
}
