// Latent attention for BF16 entries of 512 latents and 64 rotary values. A cluster of
// 16 blocks has a row and up to 8 heads; a pair of warps has 32 positions at a time,
// whose entries it copies to shared memory: each warp multiplies half the columns for
// their scores, and sums half the columns. The pairs' sums meet in shared memory, the
// blocks' in that of the blocks that write them out, each in a fixed order.
#include "attention/mla_512_64.cuh"

constexpr int kBlocks = kMlaBf16ClusterBlocks, kPairs = 4, kThreads = kPairs * 64, kTile = 32;
constexpr int kHead = kLatent + 4;      // a head's sums of a pair, padded
constexpr int kSlice = kLatent / kBlocks;
constexpr int kWide = 2 * kWidth;       // bytes of an entry
constexpr int kPitch = kWide + 16;      // rows 4 banks apart, as place wants them

struct AttendShared {
  uint4 q[kSteps * 32];             // A fragments: eight heads, then what BF16 left of them
  float score[kPairs][2][4][64];    // halves of a tile's scores, by groups of eight positions
  float high[kPairs][8];            // of the pairs: their heads' maxima
  float weight[kPairs][8];
  u64 free;                         // mbarriers: of all blocks' q,
  u64 received;                     // of the blocks' sums
};
struct Received {                   // in place of q
  float sum[kBlocks][8][kSlice];
  float2 of[kBlocks][8];            // maximum, weight
};
static_assert(sizeof(Received) <= sizeof(uint4) * kSteps * 32);
static_assert((sizeof(AttendShared) + 127) / 128 * 128 + kPairs * kTile * kPitch <= kMlaBf16ClusterShared &&
    kThreads == kMlaBf16ClusterThreads);

// fetch starts copies of half the tile's entries; zeros where there are none. A row
// is whole turns of the warp, then a rest that it copies of several rows at once.
__device__ __forceinline__ void fetch(char* tile, const void* cache, int slot, int rows, int half, int lane) {
  constexpr int kChunks = kWide / 16, kRest = kChunks % 32, kAtOnce = 32 / kRest;
  auto copy = [&](int row, int chunk) {
    int at = __shfl_sync(~0u, slot, row & 31);
    const char* from = static_cast<const char*>(cache) + (size_t)at * kWide + chunk * 16;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
        ::"r"(shared_of(tile + row * kPitch + chunk * 16)), "l"(from), "r"(row < rows ? 16 : 0) : "memory");
  };
#pragma unroll 4
  for (int r = half * 16; r < half * 16 + 16; r++)
#pragma unroll
    for (int c = 0; c < kChunks / 32; c++) copy(r, c * 32 + lane);
  int mine = lane / kRest, chunk = kChunks - kRest + lane % kRest;
#pragma unroll 2
  for (int r = half * 16; r < half * 16 + 16; r += kAtOnce) {
    // or once more the first: it does no harm
    int row = mine < kAtOnce && r + mine < half * 16 + 16 ? r + mine : half * 16;
    copy(row, chunk);
  }
}

__device__ __forceinline__ void pair_sync(int pair) { asm volatile("barrier.sync %0, 64;" ::"r"(pair + 1) : "memory"); }

// A lane's part of row m's queries: four columns of head lane/4 for each of the
// warp's steps, whose last half of the warps has not.
constexpr int kAllWarps = 2 * kPairs, kEach = (kSteps + kAllWarps - 1) / kAllWarps;
static_assert(kLatent / 16 % kAllWarps == 0 && kEach == kLatent / 16 / kAllWarps + 1);
__device__ __forceinline__ void queries(float4 (&v)[kEach], const AttendP& p, int m, int h0, int warp, int lane) {
  int g = lane >> 2, t = lane & 3;
  const float* q = p.q + (size_t)m * p.ldq + (size_t)(h0 + g) * kWidth;
#pragma unroll
  for (int i = 0; i < kEach; i++) {
    int j = i * kAllWarps + warp, k = j * 16 + t * 4;
    v[i] = h0 + g < p.heads && j < kSteps ? *reinterpret_cast<const float4*>(q + k) : make_float4(0, 0, 0, 0);
  }
}

// stage writes them to shared memory as A fragments.
__device__ __forceinline__ void stage(const float4 (&v)[kEach], AttendShared& s, int warp, int lane) {
#pragma unroll
  for (int i = 0; i < kEach; i++) {
    int j = i * kAllWarps + warp;
    if (j >= kSteps) break;
    Split a = split(v[i].x, v[i].y), b = split(v[i].z, v[i].w);
    s.q[j * 32 + lane] = make_uint4(a.hi, a.lo, b.hi, b.lo);
  }
}

// Half the columns' part of the tile's scores: w[n][i] is head lane/4's of column
// 2(lane%4)+i of group n.
__device__ __forceinline__ void wide_scores(float (&w)[4][2], const AttendShared& s, const char* tile, int half,
    int lane) {
  const char* row = tile + place(lane >> 2) * kPitch + (lane & 3) * 8;
  float c[4][2][4] = {};
  const int from = half * (kSteps / 2);
#pragma unroll 2
  for (int j = 0; j < kSteps / 2; j += 2) {
#pragma unroll
    for (int u = 0; u < 2; u++) {
      uint32_t a[4];
      load_a(a, s.q, from + j + u, lane);
#pragma unroll
      for (int n = 0; n < 4; n++) {
        uint2 v = *reinterpret_cast<const uint2*>(row + group(n) * kPitch + (from + j + u) * 32);
        mma(c[n][u], a, v.x, v.y);
      }
    }
  }
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int i = 0; i < 2; i++) w[n][i] = (c[n][0][i] + c[n][1][i]) + (c[n][0][i + 2] + c[n][1][i + 2]);
}

// out[d] = out[d] * keep + Σ positions w · latent, by groups of 32 columns from group from on.
// A lane has columns 16u+2g+i/2 of u = 0, 1; heads 2t+i%2.
__device__ __forceinline__ void weigh(float (&out)[8][2][4], const float (&w)[4][2], const char* tile, int from,
    float keep0, float keep1, int lane) {
  int g = lane >> 2, t = lane & 3;
  const char* row[2];  // of the first group
#pragma unroll
  for (int i = 0; i < 2; i++) row[i] = tile + place(2 * t + i) * kPitch + from * 64 + g * 4;
  Split b[4];
#pragma unroll
  for (int n = 0; n < 4; n++) b[n] = split(w[n][0], w[n][1]);
#pragma unroll
  for (int d = 0; d < 8; d++) {
    float c[2][4] = {}, l[2][4] = {};
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int u = 0; u < 2; u++) {
        uint32_t x[4];
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = *reinterpret_cast<const uint32_t*>(row[i % 2] +
            group(2 * h + i / 2) * kPitch + d * 64 + u * 32);
        uint32_t a[4] = {__byte_perm(x[0], x[1], 0x5410), __byte_perm(x[0], x[1], 0x7632),
            __byte_perm(x[2], x[3], 0x5410), __byte_perm(x[2], x[3], 0x7632)};
        mma(l[u], a, b[2 * h].lo, b[2 * h + 1].lo);
        mma(c[u], a, b[2 * h].hi, b[2 * h + 1].hi);
      }
#pragma unroll
    for (int u = 0; u < 2; u++)
#pragma unroll
      for (int i = 0; i < 4; i++) out[d][u][i] = fmaf(out[d][u][i], i & 1 ? keep1 : keep0, c[u][i] + l[u][i]);
  }
}

// part is what of weights relative to high is left relative to of.
__device__ __forceinline__ float part(float high, float of) { return high == -INFINITY ? 0 : __expf(high - of); }

__device__ __forceinline__ float high_of(const AttendShared& s, int h) {
  return fmaxf(fmaxf(s.high[0][h], s.high[1][h]), fmaxf(s.high[2][h], s.high[3][h]));
}

// combine adds the pairs' sums, then the blocks', and writes the block's slice.
__device__ __forceinline__ void combine(const AttendP& p, AttendShared& s, const char* tiles, int m, int h0, int block,
    int tid) {
  Received& r = *reinterpret_cast<Received*>(s.q);
  int column = tid % 128;
#pragma unroll 1
  for (int i = 0; i < 4; i++) {
    int h = i * 2 + tid / 128;
    float4 v = {0, 0, 0, 0};
#pragma unroll
    for (int w = 0; w < kPairs; w++) {
      float4 x = *reinterpret_cast<const float4*>(tiles + w * kTile * kPitch + (h * kHead + column * 4) * 4);
      if (s.high[w][h] != -INFINITY) v.x += x.x, v.y += x.y, v.z += x.z, v.w += x.w;
    }
    push(&r.sum[block][h][column % 8 * 4], &s.received, column / 8, v);
  }
  int h = tid / 16 % 8;
  if (tid < 128) {
    float high = high_of(s, h), l = 0;
#pragma unroll
    for (int w = 0; w < kPairs; w++) l = fmaf(part(s.high[w][h], high), s.weight[w][h], l);
    push(&r.of[block][h], &s.received, tid % 16, make_float2(high, l));
  }
  mbar_wait(shared_of(&s.received), 0);
  int lane = tid & 31;
  h = tid / 32;
  float2 of = r.of[lane % kBlocks][h];
  float high = warp_max(of.x), f = part(of.x, high), l = warp_sum(lane < kBlocks ? f * of.y : 0), v = 0;
#pragma unroll
  for (int b = 0; b < kBlocks; b++) v = fmaf(__shfl_sync(~0u, f, b), r.sum[b][h][lane], v);
  if (h0 + h < p.heads) p.y[(size_t)m * p.ldy + (size_t)(h0 + h) * kLatent + block * kSlice + lane] = v / l;
}

// grid (16, m, heads/8)
__device__ __forceinline__ void attend_wide(const AttendP& p) {
  extern __shared__ __align__(128) char smem[];
  begin();
  AttendShared& s = *reinterpret_cast<AttendShared*>(smem);
  char* tiles = smem + (sizeof(AttendShared) + 127) / 128 * 128;
  int tid = threadIdx.x, warp = __shfl_sync(~0u, tid >> 5, 0), lane = tid & 31, block = blockIdx.x, m = blockIdx.y,
      h0 = blockIdx.z * 8, g = lane >> 2, t = lane & 3;
  int pair = warp >> 1, half = warp & 1, first = (pair * kBlocks + block) * kTile;
  char* tile = tiles + pair * kTile * kPitch;
  if (tid == 0) {
    mbar_init(shared_of(&s.free), kBlocks * kAllWarps), mbar_init(shared_of(&s.received), 1);
    mbar_expect(shared_of(&s.received), sizeof(Received));
  }
  asm volatile("fence.mbarrier_init.release.cluster;\n\tbarrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  __syncthreads();
  if (tid == 0) warm(p.pos + m);
  if (p.sel && lane == 0 && first < p.topk) warm(p.sel + (size_t)m * p.topk + first);
  if (tid * 16 < min(8, p.heads - h0) * kWidth) warm(p.q + (size_t)m * p.ldq + (size_t)h0 * kWidth + tid * 16);
  // The page table is written by no kernel before this one.
  const int* pages = p.pages + (size_t)p.seq[m] * p.pages_ld;
  if (tid * 32 < p.pages_ld) asm volatile("prefetch.global.L1 [%0];" ::"l"(pages + tid * 32));
  ready(p.at);
  // What does not wait for another load comes first.
  int n = positions(p, m), pos = first + lane;
  if (p.sel) pos = pos < p.topk ? p.sel[(size_t)m * p.topk + pos] : -1;
  else if (pos >= n) pos = -1;
  float4 v[kEach];
  queries(v, p, m, h0, warp, lane);
  int rows = __popc(__ballot_sync(~0u, pos >= 0));
  if (rows) fetch(tile, p.cache, pages[max(pos, 0) / kPage] * kPage + max(pos, 0) % kPage, rows, half, lane);
  stage(v, s, warp, lane);
  __syncthreads();
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");  // the others' mbarriers are there
  auto done = [&]() {  // with q
    if (lane < kBlocks) asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(remote_of(&s.free, lane))
        : "memory");
  };
  float out[8][2][4], high = -INFINITY, weight = 0;
#pragma unroll
  for (int i = 0; i < 64; i++) out[i / 8][i / 4 % 2][i % 4] = 0;
  // turn adds the pair's tile at first, which is on its way; the sums so far are
  // kept where there are any.
  auto turn = [&](bool more) {
    float w[4][2], top = high;
    asm volatile("cp.async.wait_all;" ::: "memory");
    pair_sync(pair);
    wide_scores(w, s, tile, half, lane);
#pragma unroll
    for (int j = 0; j < 4; j++) *reinterpret_cast<float2*>(&s.score[pair][half][j][lane * 2]) =
        make_float2(w[j][0], w[j][1]);
    pair_sync(pair);
    if (!more) done();
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 x = *reinterpret_cast<const float2*>(&s.score[pair][0][j][lane * 2]),
          y = *reinterpret_cast<const float2*>(&s.score[pair][1][j][lane * 2]);
      w[j][0] = first + group(j) + place(2 * t) < n ? (x.x + y.x) * p.scale : -INFINITY;
      w[j][1] = first + group(j) + place(2 * t + 1) < n ? (x.y + y.y) * p.scale : -INFINITY;
      top = fmaxf(top, fmaxf(w[j][0], w[j][1]));
    }
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
    float keep = part(high, top), sum = 0;
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int i = 0; i < 2; i++) w[j][i] = __expf(w[j][i] - top), sum += w[j][i];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    weight = fmaf(weight, keep, sum), high = top;
    weigh(out, w, tile, half * 8, __shfl_sync(~0u, keep, t * 8), __shfl_sync(~0u, keep, t * 8 + 4), lane);
  };
  constexpr int kStride = kBlocks * kPairs * kTile;
  if (rows && first < n) {
    turn(first + kStride < n);
#pragma unroll 1
    while ((first += kStride) < n) {
      pair_sync(pair);
      fetch(tile, p.cache, slot_of(p, m, min(first + lane, n - 1)), min(kTile, n - first), half, lane);
      turn(first + kStride < n);
    }
  } else {
    done();
  }
  if (t == 0 && half == 0) s.high[pair][g] = high, s.weight[pair][g] = weight;
  __syncthreads();
  if (rows) {  // what the pair adds to the block's sums
    float f[2] = {part(s.high[pair][2 * t], high_of(s, 2 * t)), part(s.high[pair][2 * t + 1], high_of(s, 2 * t + 1))};
#pragma unroll
    for (int d = 0; d < 8; d++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float* o = reinterpret_cast<float*>(tile) + (2 * t + h) * kHead + (half * 8 + d) * 32;
#pragma unroll
        for (int u = 0; u < 2; u++) *reinterpret_cast<float2*>(o + u * 16 + g * 2) =
            make_float2(f[h] * out[d][u][h], f[h] * out[d][u][h + 2]);
      }
  }
  __syncthreads();
  mbar_wait(shared_of(&s.free), 0);
  combine(p, s, tiles, m, h0, block, tid);
  finish(p.at);
}

extern "C" __global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads, 1)
    mla_attend_bf16_cluster_16(const __grid_constant__ AttendP p) {
  LATENT(attend_wide(p));
}
