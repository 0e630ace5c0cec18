// Products of at most 8 rows whose tiles are many more than the GPU has room for at a
// time, y[m, n] = x[m, k] w[n, k]ᵀ: a block has several tiles, for which it reads x
// once. See gemv.cuh, whose bits these are.
#include "mma/fragments.cuh"
#include "gemm/params.h"

// A warp has a slice of the k of a block's tiles. It copies their weights into shared
// memory, each lane what it will use itself, in pieces of kGroup steps of 512 bytes
// for each of kSide tiles, where steps that the slice lacks are zero: as many as
// there is room for before x is ready. The slices and the order of sums follow from n
// and k alone.
constexpr int kGroup = 4, kSide = 3, kWidth = kMultiTileWidth, kSlots = kMultiTileSlots;
static_assert(kWidth == 2 * kSide);
constexpr int kColumns = 256;  // of x that a warp has at a time
constexpr int kInbox = kMultiTileInbox;

// A lane's part of a warp's columns: of row g the pairs t and t+4 of each eight.
struct Columns {
  const char* at;  // the first pair
  int left;        // columns from there on that count
  __device__ __forceinline__ float2 pair(int column) const { return column < left ?
      *reinterpret_cast<const float2*>(at + column * 4) : float2{0, 0}; }
};

// add_piece adds a piece of T tiles: a, the lane's weights, times the columns from c on.
template <typename W, int T>
__device__ __forceinline__ void add_piece(float (&acc)[kSide][4], const char* a, const Columns& x, int c,
                                          uint32_t low) {
  constexpr int F = W::kFrags;
#pragma unroll
  for (int u = 0; u < kGroup; u++) {
    Frag b[F];
#pragma unroll
    for (int j = 0; j < F; j++) {
      float2 v = x.pair(c + (u * F + j) * 16), w = x.pair(c + (u * F + j) * 16 + 8);
      b[j] = {split(v.x, v.y, low), split(w.x, w.y, low)};
    }
#pragma unroll
    for (int i = 0; i < T; i++) {
      uint32_t f[F][4];
      W::frags(f, *reinterpret_cast<const uint4*>(a + (i * kGroup + u) * 512));
#pragma unroll
      for (int j = 0; j < F; j++) mma_split(acc[i], f[j], b[j]);
    }
  }
}

template <typename W>
__device__ __forceinline__ void gemv_multi_tile(const MultiTileP& p) {
  constexpr int F = W::kFrags, kPieces = kColumns / (16 * F * kGroup);  // of kColumns
  extern __shared__ __align__(128) char memory[];
  u64& inbox = *reinterpret_cast<u64*>(memory);
  char* smem = memory + kInbox;  // weights, x, sums of the cluster's blocks
  begin();
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  int part = blockIdx.x % p.share, tile = blockIdx.x / p.share * p.width;
  int width = min(p.width, p.tiles - tile), sides = width > kSide ? 2 : 1, outputs = width * p.m * 16;
  int steps = (p.k + 16 * F - 1) / (16 * F), per = (steps + p.share * kWarps - 1) / (p.share * kWarps);
  int lo = min(steps, (part * kWarps + warp) * per), n = min(per, steps - lo), groups = (n + kGroup - 1) / kGroup;
  if (p.share > 1) open_inbox(&inbox, (p.share - 1) * outputs * 4);
  int place = min(p.width, kSide) * kGroup * 512, room = max(p.slots * place, p.width * 576);
  int pitch = min(per * 16 * F, kColumns) * 4 + 32;  // of rows of x, spread over banks
  char *ring = smem + warp * room, *xs = smem + kWarps * room + warp * p.m * pitch;
  float* parts = reinterpret_cast<float*>(smem + kWarps * (room + p.m * pitch));  // [share][outputs]
  const char* w = static_cast<const char*>(p.w) + ((size_t)tile * steps + lo) * 512 + lane * 16;
  auto fill = [&](int piece, int slot) {
    int group = sides > 1 ? piece >> 1 : piece, first = sides > 1 && (piece & 1) ? kSide : 0;
    if (group < groups) {
      int left = n - group * kGroup, tiles = min(kSide, width - first);
      const char* from = w + ((size_t)first * steps + group * kGroup) * 512;
      char* to = ring + slot * place + lane * 16;
#pragma unroll
      for (int i = 0; i < kSide; i++, from += (size_t)steps * 512)
        if (i < tiles)
#pragma unroll
          for (int u = 0; u < kGroup; u++) copy16(to + (i * kGroup + u) * 512, from + u * 512, u < left ? 16 : 0);
    }
    commit();
  };
  // A piece or two at a time: the kernels in front still need the memory system, and
  // are short where there is one row.
#pragma unroll 1
  for (int i = 0; i < p.slots; i++) {
    fill(i, i);
    if (p.m > 1) landed<1>();
    else landed<0>();
  }
  ready(p.at);
  int row = min(g, p.m - 1), end = min(p.k, (lo + n) * 16 * F);  // columns of fragments without a row are not used
  Columns x = {xs + row * pitch + t * 8, 0};
  auto window = [&](int k) {  // the first column
    int left = end - k - lane * 4;
    const float* from = p.x + k + lane * 4;
    char* to = xs + lane * 16;
    for (int i = 0; i < p.m; i++, from += p.ldx, to += pitch) {
      if (left > 0) copy16(to, from, 16);
      if (left > 128) copy16(to + 512, from + 128, 16);
    }
    commit();
    landed<0>();
    __syncwarp();
    x.left = end - k - t * 2;
  };
  const uint32_t low = low_of(p.rounded);
  float acc[2][kSide][4] = {};
  int slot = 0, ahead = p.slots;
  auto piece = [&](auto work) {
    if (p.slots == kSlots) landed<kSlots - 1>();
    else if (p.slots == 3) landed<2>();
    else if (p.slots == 2) landed<1>();
    else landed<0>();
    work(ring + slot * place + lane * 16);
    fill(ahead++, slot);
    if (++slot == p.slots) slot = 0;
  };
#pragma unroll 1
  for (int i = 0, c = 0; i < groups; i++, c += kGroup * F * 16) {
    if (i % kPieces == 0) {
      __syncwarp();
      c = 0, window((lo + i * kGroup) * 16 * F);
    }
    piece([&](const char* a) {
      if (width == 1) add_piece<W, 1>(acc[0], a, x, c, low);
      else if (width == 2) add_piece<W, 2>(acc[0], a, x, c, low);
      else add_piece<W, kSide>(acc[0], a, x, c, low);
    });
    // A side that lacks tiles has what was there before: such sums are not used.
    if (sides > 1) piece([&](const char* a) { add_piece<W, kSide>(acc[1], a, x, c, low); });
  }
  // The warps' sums, each where its weights were, in warp order; then the blocks'.
  __syncwarp();
  float* sums = reinterpret_cast<float*>(ring);
#pragma unroll
  for (int j = 0; j < kWidth; j++)
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (j < width && t * 2 + (i & 1) < p.m) sums[j * 144 + (g + (i >> 1) * 8) * 9 + t * 2 + (i & 1)] =
          acc[j / kSide][j % kSide][i];
  __syncthreads();
  auto outside = [&](auto f) {
    for (int o = threadIdx.x; o < outputs; o += kWarps * 32) {
      int j = (o >> 4) / p.m, m = (o >> 4) - j * p.m;
      float sum = 0;
#pragma unroll
      for (int i = 0; i < kWarps; i++) sum += reinterpret_cast<float*>(smem + i * room)[j * 144 + (o & 15) * 9 + m];
      f(o, sum, (tile + j) * 16 + (o & 15), m);
    }
  };
  if (p.share > 1) {
    inboxes_open();
    if (part) return outside([&](int o, float sum, int,
        int) { send(&parts[part * outputs + o], &inbox, cluster_rank() - part, sum); });
    receive(&inbox);
  }
  outside([&](int o, float sum, int r, int m) {
    for (int i = 1; i < p.share; i++) sum += parts[i * outputs + o];
    if (r < p.n) p.y[(size_t)m * p.ldy + r] = sum * p.global;
  });
  finish_beside(p.at);
}

extern "C" __global__ void __launch_bounds__(256, 1) gemv_multi_tile_bf16(const __grid_constant__ MultiTileP p) {
  gemv_multi_tile<Bf16Step>(p);
}
extern "C" __global__ void __launch_bounds__(256, 1) gemv_multi_tile_fp8(const __grid_constant__ MultiTileP p) {
  gemv_multi_tile<Fp8Step>(p);
}
