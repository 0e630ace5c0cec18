// Latent attention for entries of 512 latents and 64 rotary values. A cluster of
// 16 blocks has a row and up to 8 heads; a pair of warps has 32 positions at a
// time, whose entries it copies to shared memory as they are: each warp multiplies
// half the columns for their scores, and sums half the columns. FP8 values are
// converted where they are used; their scales multiply sums and weights. The
// pairs' sums meet in shared memory, the blocks' in that of the blocks that write
// them out, each in a fixed order.
#include "attend.cuh"
#include "half.cuh"

constexpr int kBlocks = 16, kPairs = 4, kThreads = kPairs * 64, kTile = 32, kLatent = 512, kRope = 64, kWidth = kLatent + kRope;
constexpr int kSteps = kWidth / 16;     // of 16 columns
constexpr int kHead = kLatent + 4;      // a head's sums of a pair, padded
constexpr int kSlice = kLatent / kBlocks;

// An entry in shared memory: rows 4 banks apart, so that neither the eight
// positions of a score's product nor the four of a sum's collide.
template <int F>
constexpr int kEntry = F == 2 ? kLatent + 16 + 2 * kRope : 2 * kWidth;
template <int F>
constexpr int kPitch = F == 2 ? kEntry<F> : kEntry<F> + 16;

struct AttendShared {
  uint4 q[kSteps * 32];             // A fragments: eight heads, then what BF16 or float16 left of them
  float score[kPairs][2][4][64];    // halves of a tile's scores, by groups of eight positions
  float high[kPairs][8];            // of the pairs: their heads' maxima
  float weight[kPairs][8];
  float most[2 * kPairs][8];        // the largest |q|, by warp
  u64 arrived[kPairs];              // mbarriers: of the pairs' tiles,
  u64 free;                         // of all blocks' q,
  u64 received;                     // of the blocks' sums
};
struct Received {                   // in place of q
  float sum[kBlocks][8][kSlice];
  float2 of[kBlocks][8];            // maximum, weight
};
static_assert(sizeof(Received) <= sizeof(uint4) * kSteps * 32);

// Column g of a tile's n-th group of eight positions is its row place(g) + group(n).
__device__ __forceinline__ int place(int g) { return 2 * (g ^ (g >> 2)); }
__device__ __forceinline__ constexpr int group(int n) { return (n & 1) + 16 * (n >> 1); }

__device__ __forceinline__ uint32_t shared(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

// bulk does as fetch does, with a copy a row: less to issue, but more time to start.
template <int F>
__device__ __forceinline__ void bulk(char* tile, u64* bar, const void* cache, int slot, int rows, int half, int lane) {
  int own = max(0, min(16, rows - half * 16));
  char* row = tile + lane * kPitch<F>;
  if (lane >= rows && lane / 16 == half)
#pragma unroll 1
    for (int i = 0; i < kEntry<F> / 16; i++) *reinterpret_cast<uint4*>(row + i * 16) = make_uint4(0, 0, 0, 0);
  __syncwarp();
  if (lane == 0) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(bar)), "r"(own * kEntry<F>) : "memory");
  __syncwarp();
  if (lane < rows && lane / 16 == half)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared(row)),
                 "l"(static_cast<const char*>(cache) + (size_t)slot * kEntry<F>), "n"(kEntry<F>), "r"(shared(bar))
                 : "memory");
}

// fetch starts copies of half the tile's entries; zeros where there are none. A row
// is whole turns of the warp, then a rest that it copies of several rows at once.
template <int F>
__device__ __forceinline__ void fetch(char* tile, const void* cache, int slot, int rows, int half, int lane) {
  constexpr int kChunks = kEntry<F> / 16, kRest = kChunks % 32, kAtOnce = 32 / kRest;
  auto copy = [&](int row, int chunk) {
    int at = __shfl_sync(~0u, slot, row & 31);
    const char* from = static_cast<const char*>(cache) + (size_t)at * kEntry<F> + chunk * 16;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared(tile + row * kPitch<F> + chunk * 16)), "l"(from), "r"(row < rows ? 16 : 0) : "memory");
  };
#pragma unroll 4
  for (int r = half * 16; r < half * 16 + 16; r++)
#pragma unroll
    for (int c = 0; c < kChunks / 32; c++) copy(r, c * 32 + lane);
  int mine = lane / kRest, chunk = kChunks - kRest + lane % kRest;
#pragma unroll 2
  for (int r = half * 16; r < half * 16 + 16; r += kAtOnce) {
    int row = mine < kAtOnce && r + mine < half * 16 + 16 ? r + mine : half * 16;  // or once more the first: it does no harm
    copy(row, chunk);
  }
}

// await gives up after about a second, which only a fault of the memory takes.
__device__ __forceinline__ void await(u64* bar, int phase) {
#pragma unroll 1
  for (int i = 0; i < 1 << 20; i++) {
    uint32_t done;
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(done) : "r"(shared(bar)), "r"(phase) : "memory");
    if (done) return;
  }
  __trap();
}
// remote is the address of what p is here in block rank.
__device__ __forceinline__ uint32_t remote(const void* p, int rank) {
  uint32_t b;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(b) : "r"(shared(p)), "r"(rank));
  return b;
}
__device__ __forceinline__ void pair_sync(int pair) { asm volatile("barrier.sync %0, 64;" ::"r"(pair + 1) : "memory"); }

// A lane's part of row m's queries: four columns of head lane/4 for each of the
// warp's steps, whose last half of the warps has not.
constexpr int kAllWarps = 2 * kPairs, kEach = (kSteps + kAllWarps - 1) / kAllWarps;
static_assert(kLatent / 16 % kAllWarps == 0 && kEach == kLatent / 16 / kAllWarps + 1);
template <int F>
__device__ __forceinline__ void queries(float4 (&v)[kEach], const AttendP& p, int m, int h0, int warp, int lane) {
  int g = lane >> 2, t = lane & 3;
  const float* q = p.q + (size_t)m * p.ldq + (size_t)(h0 + g) * kWidth;
#pragma unroll
  for (int i = 0; i < kEach; i++) {
    int j = i * kAllWarps + warp, k = F == 2 && i < kEach - 1 ? j / 2 * 32 + t * 8 + j % 2 * 4 : j * 16 + t * 4;
    v[i] = h0 + g < p.heads && j < kSteps ? *reinterpret_cast<const float4*>(q + k) : make_float4(0, 0, 0, 0);
  }
}

// stage writes them to shared memory as A fragments; FP8's latents scaled by a
// power of two a head, whose inverse is returned for head lane/4.
template <int F>
__device__ __forceinline__ float stage(const float4 (&v)[kEach], AttendShared& s, int warp, int lane) {
  int g = lane >> 2, t = lane & 3;
  float up = 1, down = 1;
  if (F == 2) {
    float most = 0;
#pragma unroll
    for (int i = 0; i < kEach - 1; i++) most = fmaxf(most, fmaxf(fmaxf(fabsf(v[i].x), fabsf(v[i].y)), fmaxf(fabsf(v[i].z), fabsf(v[i].w))));
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
    if (t == 0) s.most[warp][g] = most;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < kAllWarps; w++) most = fmaxf(most, s.most[w][g]);
    int e = exponent(most);
    up = power(264 - e), down = power(e - 10);  // at most 2^11
  }
#pragma unroll
  for (int i = 0; i < kEach; i++) {
    int j = i * kAllWarps + warp;
    if (j >= kSteps) break;
    Split a, b;
    if (F == 2 && i < kEach - 1) a = split_f16(v[i].x * up, v[i].y * up), b = split_f16(v[i].z * up, v[i].w * up);
    else a = split(v[i].x, v[i].y), b = split(v[i].z, v[i].w);
    s.q[j * 32 + lane] = make_uint4(a.hi, a.lo, b.hi, b.lo);
  }
  return down;
}

__device__ __forceinline__ void load_a(uint32_t (&a)[4], const AttendShared& s, int step, int lane) {
  uint4 v = s.q[step * 32 + lane];
  a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
}

// A half of the tile's scores, of half the columns: w[n][i] is head lane/4's of
// column 2(lane%4)+i of group n.
template <int F>
__device__ __forceinline__ void scores(float (&w)[4][2], const AttendShared& s, const char* tile, int half, float down, int lane) {
  int g = lane >> 2, t = lane & 3;
  const char *row = tile + place(g) * kPitch<F> + t * 8, *scales[2] = {tile + place(2 * t) * kPitch<F> + kLatent, tile + place(2 * t + 1) * kPitch<F> + kLatent};
  float c[4][2][4];
  auto clear = [&]() {
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) c[n][0][i] = c[n][1][i] = 0;
  };
  auto sum = [&](int n, int i) { return (c[n][0][i] + c[n][1][i]) + (c[n][0][i + 2] + c[n][1][i + 2]); };
#pragma unroll
  for (int n = 0; n < 4; n++) w[n][0] = w[n][1] = 0;
#pragma unroll 1
  for (int b = half * 2; b < (F == 2 ? half * 2 + 2 : 0); b++) {  // columns with a scale of their own
    clear();
#pragma unroll
    for (int i = 0; i < 4; i++) {
      uint32_t x[4], y[4];
      load_a(x, s, b * 8 + i * 2, lane), load_a(y, s, b * 8 + i * 2 + 1, lane);
      uint2 v[4];
#pragma unroll
      for (int n = 0; n < 4; n++) v[n] = *reinterpret_cast<const uint2*>(row + group(n) * kPitch<F> + b * 128 + i * 32);
#pragma unroll
      for (int n = 0; n < 4; n++) mma_f16(c[n][0], x, half_of(v[n].x), half_of(v[n].x >> 16));
#pragma unroll
      for (int n = 0; n < 4; n++) mma_f16(c[n][1], y, half_of(v[n].y), half_of(v[n].y >> 16));
    }
#pragma unroll
    for (int n = 0; n < 4; n++)
#pragma unroll
      for (int i = 0; i < 2; i++) w[n][i] = fmaf(reinterpret_cast<const float*>(scales[i] + group(n) * kPitch<F>)[b] * down, sum(n, i), w[n][i]);
  }
  if (F == 2 && half == 0) return;
  clear();
  constexpr int kCount = F == 2 ? kRope / 16 : kSteps / 2, kAt = F == 2 ? kLatent + 16 - 2 * kLatent : 0;
  const int from = F == 2 ? kLatent / 16 : half * kCount;
#pragma unroll 2
  for (int j = 0; j < kCount; j += 2) {
#pragma unroll
    for (int u = 0; u < 2; u++) {
      if (j + u >= kCount) break;
      uint32_t a[4];
      load_a(a, s, from + j + u, lane);
#pragma unroll
      for (int n = 0; n < 4; n++) {
        uint2 v = *reinterpret_cast<const uint2*>(row + group(n) * kPitch<F> + kAt + (from + j + u) * 32);
        mma(c[n][u], a, v.x, v.y);
      }
    }
  }
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int i = 0; i < 2; i++) w[n][i] += sum(n, i);
}

// out[d] = out[d] * keep + Σ positions w · latent, by groups of 32 columns from group from on.
// FP8: a lane has columns 4g+2u+i/2 of u = 0, 1, BF16: 16u+2g+i/2; heads 2t+i%2.
template <int F>
__device__ __forceinline__ void weigh(float (&out)[8][2][4], const float (&w)[4][2], const char* tile, int from, float keep0, float keep1, int lane) {
  int g = lane >> 2, t = lane & 3;
  const char* row[2];  // of the first group
#pragma unroll
  for (int i = 0; i < 2; i++) row[i] = tile + place(2 * t + i) * kPitch<F> + from * (F == 2 ? 32 : 64) + g * 4;
  int scales = kLatent - g * 4 - from * 31;  // from a row to its scale of column group from, whose next is 4 bytes on for 4 groups
  Split b[4];
  if (F == 1)
#pragma unroll
    for (int n = 0; n < 4; n++) b[n] = split(w[n][0], w[n][1]);
  float down = 1;
#pragma unroll
  for (int d = 0; d < 8; d++) {
    if (F == 2 && d % 4 == 0) {
      float sc[4][2], most = 0;
#pragma unroll
      for (int n = 0; n < 4; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) sc[n][i] = *reinterpret_cast<const float*>(row[i] + group(n) * kPitch<F> + scales + d), most = fmaxf(most, sc[n][i]);
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
      int e = exponent(most);
      float up = power(267 - e);  // weights of at most 2^14
      down = power(e - 13);
#pragma unroll
      for (int n = 0; n < 4; n++) b[n] = split_f16(w[n][0] * (sc[n][0] * up), w[n][1] * (sc[n][1] * up));
    }
    float c[2][4] = {}, l[2][4] = {};
    if (F == 2) {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        uint32_t x[4];
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = *reinterpret_cast<const uint32_t*>(row[i % 2] + group(2 * h + i / 2) * kPitch<F> + d * 32);
        uint32_t p0 = __byte_perm(x[0], x[1], 0x5140), p1 = __byte_perm(x[2], x[3], 0x5140);
        uint32_t q0 = __byte_perm(x[0], x[1], 0x7362), q1 = __byte_perm(x[2], x[3], 0x7362);
        uint32_t u[4] = {half_of(p0), half_of(p0 >> 16), half_of(p1), half_of(p1 >> 16)};
        uint32_t v[4] = {half_of(q0), half_of(q0 >> 16), half_of(q1), half_of(q1 >> 16)};
        mma_f16(l[0], u, b[2 * h].lo, b[2 * h + 1].lo);
        mma_f16(l[1], v, b[2 * h].lo, b[2 * h + 1].lo);
        mma_f16(c[0], u, b[2 * h].hi, b[2 * h + 1].hi);
        mma_f16(c[1], v, b[2 * h].hi, b[2 * h + 1].hi);
      }
    } else {
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int u = 0; u < 2; u++) {
          uint32_t x[4];
#pragma unroll
          for (int i = 0; i < 4; i++) x[i] = *reinterpret_cast<const uint32_t*>(row[i % 2] + group(2 * h + i / 2) * kPitch<F> + d * 64 + u * 32);
          uint32_t a[4] = {__byte_perm(x[0], x[1], 0x5410), __byte_perm(x[0], x[1], 0x7632), __byte_perm(x[2], x[3], 0x5410), __byte_perm(x[2], x[3], 0x7632)};
          mma(l[u], a, b[2 * h].lo, b[2 * h + 1].lo);
          mma(c[u], a, b[2 * h].hi, b[2 * h + 1].hi);
        }
    }
#pragma unroll
    for (int u = 0; u < 2; u++)
#pragma unroll
      for (int i = 0; i < 4; i++) out[d][u][i] = fmaf(c[u][i] + l[u][i], down, out[d][u][i] * (i & 1 ? keep1 : keep0));
  }
}

// push writes v to where p is in block rank's shared memory, and counts it there.
__device__ __forceinline__ void push(void* p, u64* bar, int rank, float4 v) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1,%2,%3,%4}, [%5];" ::"r"(remote(p, rank)), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(remote(bar, rank)) : "memory");
}
__device__ __forceinline__ void push(void* p, u64* bar, int rank, float2 v) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1,%2}, [%3];" ::"r"(remote(p, rank)), "f"(v.x), "f"(v.y), "r"(remote(bar, rank)) : "memory");
}

__device__ __forceinline__ float share(float high, float of) { return high == -INFINITY ? 0 : __expf(high - of); }

__device__ __forceinline__ float high_of(const AttendShared& s, int h) { return fmaxf(fmaxf(s.high[0][h], s.high[1][h]), fmaxf(s.high[2][h], s.high[3][h])); }

// combine adds the pairs' sums, then the blocks', and writes the block's slice.
template <int F>
__device__ __forceinline__ void combine(const AttendP& p, AttendShared& s, const char* tiles, int m, int h0, int block, int tid) {
  Received& r = *reinterpret_cast<Received*>(s.q);
  int column = tid % 128;
#pragma unroll 1
  for (int i = 0; i < 4; i++) {
    int h = i * 2 + tid / 128;
    float4 v = {0, 0, 0, 0};
#pragma unroll
    for (int w = 0; w < kPairs; w++) {
      float4 x = *reinterpret_cast<const float4*>(tiles + w * kTile * kPitch<F> + (h * kHead + column * 4) * 4);
      if (s.high[w][h] != -INFINITY) v.x += x.x, v.y += x.y, v.z += x.z, v.w += x.w;
    }
    push(&r.sum[block][h][column % 8 * 4], &s.received, column / 8, v);
  }
  int h = tid / 16 % 8;
  if (tid < 128) {
    float high = high_of(s, h), l = 0;
#pragma unroll
    for (int w = 0; w < kPairs; w++) l = fmaf(share(s.high[w][h], high), s.weight[w][h], l);
    push(&r.of[block][h], &s.received, tid % 16, make_float2(high, l));
  }
  await(&s.received, 0);
  int lane = tid & 31;
  h = tid / 32;
  float2 of = r.of[lane % kBlocks][h];
  float high = warp_max(of.x), f = share(of.x, high), l = warp_sum(lane < kBlocks ? f * of.y : 0), v = 0;
#pragma unroll
  for (int b = 0; b < kBlocks; b++) v = fmaf(__shfl_sync(~0u, f, b), r.sum[b][h][lane], v);
  if (h0 + h < p.heads) p.y[(size_t)m * p.ldy + (size_t)(h0 + h) * kLatent + block * kSlice + lane] = v / l;
}

// F: 1 BF16, 2 FP8; kBulk: how entries are copied. grid (16, m, heads/8)
template <int F, bool kBulk>
__device__ __forceinline__ void attend(const AttendP& p) {
  extern __shared__ __align__(128) char smem[];
  begin();
  AttendShared& s = *reinterpret_cast<AttendShared*>(smem);
  char* tiles = smem + (sizeof(AttendShared) + 127) / 128 * 128;
  int tid = threadIdx.x, warp = __shfl_sync(~0u, tid >> 5, 0), lane = tid & 31, block = blockIdx.x, m = blockIdx.y, h0 = blockIdx.z * 8, g = lane >> 2, t = lane & 3;
  int pair = warp >> 1, half = warp & 1, first = (pair * kBlocks + block) * kTile;
  char* tile = tiles + pair * kTile * kPitch<F>;
  if (tid < kPairs && kBulk) asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(shared(&s.arrived[tid])) : "memory");
  if (tid == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(&s.free)), "r"(kBlocks * kAllWarps) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(&s.received)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(&s.received)), "r"((uint32_t)sizeof(Received)) : "memory");
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
  queries<F>(v, p, m, h0, warp, lane);
  int rows = __popc(__ballot_sync(~0u, pos >= 0));
  auto copy = [&](int slot, int rows) {
    if (kBulk) bulk<F>(tile, &s.arrived[pair], p.cache, slot, rows, half, lane);
    else fetch<F>(tile, p.cache, slot, rows, half, lane);
  };
  if (rows) copy(pages[max(pos, 0) / kPage] * kPage + max(pos, 0) % kPage, rows);
  float down = stage<F>(v, s, warp, lane);
  __syncthreads();
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");  // the others' mbarriers are there
  auto done = [&]() {  // with q
    if (lane < kBlocks) asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(remote(&s.free, lane)) : "memory");
  };
  float out[8][2][4], high = -INFINITY, weight = 0;
#pragma unroll
  for (int i = 0; i < 64; i++) out[i / 8][i / 4 % 2][i % 4] = 0;
  // turn adds the pair's tile at first, which is on its way; the sums so far are
  // kept where there are any.
  auto turn = [&](int phase, bool more) {
    float w[4][2], top = high;
    if (kBulk) {
      await(&s.arrived[pair], phase);
    } else {
      asm volatile("cp.async.wait_all;" ::: "memory");
      pair_sync(pair);
    }
    scores<F>(w, s, tile, half, down, lane);
#pragma unroll
    for (int j = 0; j < 4; j++) *reinterpret_cast<float2*>(&s.score[pair][half][j][lane * 2]) = make_float2(w[j][0], w[j][1]);
    pair_sync(pair);
    if (!more) done();
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 x = *reinterpret_cast<const float2*>(&s.score[pair][0][j][lane * 2]), y = *reinterpret_cast<const float2*>(&s.score[pair][1][j][lane * 2]);
      w[j][0] = first + group(j) + place(2 * t) < n ? (x.x + y.x) * p.scale : -INFINITY;
      w[j][1] = first + group(j) + place(2 * t + 1) < n ? (x.y + y.y) * p.scale : -INFINITY;
      top = fmaxf(top, fmaxf(w[j][0], w[j][1]));
    }
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
    float keep = share(high, top), sum = 0;
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int i = 0; i < 2; i++) w[j][i] = __expf(w[j][i] - top), sum += w[j][i];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    weight = fmaf(weight, keep, sum), high = top;
    weigh<F>(out, w, tile, half * 8, __shfl_sync(~0u, keep, t * 8), __shfl_sync(~0u, keep, t * 8 + 4), lane);
  };
  constexpr int kStride = kBlocks * kPairs * kTile;
  if (rows && first < n) {
    turn(0, first + kStride < n);
#pragma unroll 1
    for (int phase = 1; (first += kStride) < n; phase ^= 1) {
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      pair_sync(pair);
      copy(slot_of(p, m, min(first + lane, n - 1)), min(kTile, n - first));
      turn(phase, first + kStride < n);
    }
  } else {
    done();
  }
  if (t == 0 && half == 0) s.high[pair][g] = high, s.weight[pair][g] = weight;
  __syncthreads();
  if (rows) {  // what the pair adds to the block's sums
    float f[2] = {share(s.high[pair][2 * t], high_of(s, 2 * t)), share(s.high[pair][2 * t + 1], high_of(s, 2 * t + 1))};
#pragma unroll
    for (int d = 0; d < 8; d++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float* o = reinterpret_cast<float*>(tile) + (2 * t + h) * kHead + (half * 8 + d) * 32;
        if (F == 2) *reinterpret_cast<float4*>(o + g * 4) = make_float4(f[h] * out[d][0][h], f[h] * out[d][0][h + 2], f[h] * out[d][1][h], f[h] * out[d][1][h + 2]);
        else
#pragma unroll
          for (int u = 0; u < 2; u++) *reinterpret_cast<float2*>(o + u * 16 + g * 2) = make_float2(f[h] * out[d][u][h], f[h] * out[d][u][h + 2]);
      }
  }
  __syncthreads();
  await(&s.free, 0);
  combine<F>(p, s, tiles, m, h0, block, tid);
  finish(p.at);
}

#define MLA_ATTEND(NAME, F, BULK, MIN) \
  extern "C" __global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads, MIN) mla_attend_glm_##NAME(const __grid_constant__ AttendP p) { attend<F, BULK>(p); }
MLA_ATTEND(bf16, 1, false, 1)
MLA_ATTEND(fp8, 2, true, 2)
MLA_ATTEND(fp8_few, 2, false, 1)
