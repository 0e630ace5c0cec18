// The indexer's scores by warpgroup products, for keys of 128 values and at most 32
// heads: the bits of index_logits.cu. Keys are one operand, in registers; a row's queries,
// in high and low parts, are 64 rows of the other.
#include "indexer/index_logits.cuh"

constexpr int kPanel = 64 * 128;   // 64 columns of a row's queries
constexpr int kRoom = 2 * kPanel;  // all

template <int F>
constexpr int kRow = F == 2 ? 128 : 256;                          // bytes of a key
template <int F>
constexpr int kPageBytes = kPage * (kRow<F> + (F == 2 ? 4 : 0));  // of a page of the cache

// The shared memory of index_logits_pages: what each of its warpgroups has of pages.
constexpr int kGroups = 4, kStages = 3;
template <int F>
struct Pages {
  alignas(1024) char q[kRoom];
  alignas(128) char page[kGroups][kStages][kPageBytes<F>];
  float hw[32];
  u64 full[kGroups][kStages];
};
// That of index_logits_rows: rows' queries, and their heads' weights.
constexpr int kRooms = 5;
struct Rows {
  alignas(1024) char q[kRooms][kRoom];
  alignas(128) float hw[kRooms][32];
  u64 full[kRooms], free[kRooms];
};
static_assert(sizeof(Pages<1>) == kIndexPagesSharedBf16 && sizeof(Pages<2>) == kIndexPagesSharedFp8 &&
    sizeof(Rows) == kIndexRowsShared);

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
constexpr int kQueries = kRoom + 128;  // bytes of a row's queries and weights
static_assert(kQueries == kIndexQueries);

#define S4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define S16(d, i) S4(d, i), S4(d, i + 4), S4(d, i + 8), S4(d, i + 12)
__device__ __forceinline__ void wgmma_f16(float (&d)[32], const uint32_t (&a)[4], uint64_t x, int more) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %37, 0;\n\t"
          "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, p, 1, 1, 0;\n\t}"
      : S16(d, 0), S16(d, 16)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(x), "r"(more));
}
__device__ __forceinline__ void wgmma_f16(float (&d)[16], const uint32_t (&a)[4], uint64_t x, int more) {
  asm volatile(
      "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %21, 0;\n\t"
          "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
      "{%16,%17,%18,%19}, %20, p, 1, 1, 0;\n\t}"
      : S16(d, 0)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(x), "r"(more));
}
#undef S16
#undef S4

// put writes four values of a head, those of the given block and lane of a quad, as
// fragments' columns have them.
template <int F>
__device__ __forceinline__ void put(char* room, int head, int b, int i, int t, float4 v, float up, uint32_t rounded) {
  Split x = split_query<F>(v.x, v.y, up, rounded), y = split_query<F>(v.z, v.w, up, rounded);
  char* panel = room + b / 2 * kPanel + t * 4;
  int chunk = (b * 2 + i) * 2 % 8;
  *reinterpret_cast<uint32_t*>(panel + panel_at(head, chunk)) = x.hi,
      *reinterpret_cast<uint32_t*>(panel + panel_at(head, chunk + 1)) = y.hi;
  *reinterpret_cast<uint32_t*>(panel + panel_at(head + 32, chunk)) = x.lo,
      *reinterpret_cast<uint32_t*>(panel + panel_at(head + 32, chunk + 1)) = y.lo;
}

// product is 64 positions' products with all heads, high parts then low ones; N 16: high parts alone.
template <int F, int N>
__device__ __forceinline__ void product(float (&d)[N], const uint32_t (&keys)[8][4], uint32_t room) {
  wg_fence();
#pragma unroll
  for (int i = 0; i < 8; i++) {
    uint64_t q = operand(room + i / 4 * kPanel + i % 4 * 32);
    if (F == 2) wgmma_f16(d, keys[i], q, i > 0);
    else wgmma(d, keys[i], q, i > 0);
  }
  wg_commit();
}

// weigh sums a lane's heads, in the order of index_logits.cu; u: of heads h*8 + t*2 and the
// next. across adds the other lanes'.
template <int N>
__device__ __forceinline__ void weigh(float (&sum)[2], const float (&d)[N], const float2 (&u)[4]) {
  auto both = [&](int i) { return N == 32 ? d[i] + d[(N - 16) + i] : d[i]; };
  sum[0] = sum[1] = 0;
#pragma unroll
  for (int h = 0; h < 4; h++)
#pragma unroll
    for (int r = 0; r < 2; r++) {
      sum[r] = fmaf(fmaxf(both(h * 4 + 2 * r), 0), u[h].x, sum[r]);
      sum[r] = fmaf(fmaxf(both(h * 4 + 2 * r + 1), 0), u[h].y, sum[r]);
    }
}
template <int N>
__device__ __forceinline__ void across(float (&sum)[N][2]) {
#pragma unroll
  for (int o = 1; o < 4; o *= 2)
#pragma unroll
    for (int i = 0; i < N; i++) sum[i][0] += __shfl_xor_sync(~0u, sum[i][0], o),
        sum[i][1] += __shfl_xor_sync(~0u, sum[i][1], o);
}

// Heads of a row, 4·W threads a head: read, then rotated and put into a room.
template <int F, int W>
struct Heads {
  float4 v[4 / W][2], cs[4 / W][2];
  float w;
  int head, t, part;

  __device__ __forceinline__ int column(int b, int i) const { return (b * W + part) * 32 + t * 8 + i * 4; }
  __device__ __forceinline__ void angles(const IndexP& p, int pos) {
#pragma unroll
    for (int b = 0; b < 4 / W; b++)
#pragma unroll
      for (int i = 0; i < 2; i++) cs[b][i] = column(b, i) < p.nrope ?
          *reinterpret_cast<const float4*>(p.rope + (size_t)pos * p.nrope + column(b, i)) : make_float4(1, 0, 1, 0);
  }
  __device__ __forceinline__ void load(const IndexP& p, int m) {
    head = threadIdx.x / (4 * W), t = threadIdx.x & 3, part = threadIdx.x % (4 * W) >> 2;
    const float* q = p.q + (size_t)m * p.ldq + (size_t)head * p.k;
    w = head < p.heads ? p.hw[(size_t)m * p.ldhw + head] : 0;
#pragma unroll
    for (int b = 0; b < 4 / W; b++)
#pragma unroll
      for (int i = 0; i < 2; i++) v[b][i] = head < p.heads ? *reinterpret_cast<const float4*>(q + column(b, i)) :
          make_float4(0, 0, 0, 0);
  }
  __device__ __forceinline__ void store(char* room, float* weights, float scale, uint32_t rounded) {
    float most = 0, up = 1, down = 1;
#pragma unroll
    for (int b = 0; b < 4 / W; b++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        v[b][i] = turn(v[b][i], cs[b][i]);
        most = most_of(most, v[b][i]);
      }
    if (F == 2) {
#pragma unroll
      for (int o = 1; o < 4 * W; o *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
      int e = exponent(most);
      up = power(264 - e), down = power(e - 10);
    }
#pragma unroll
    for (int b = 0; b < 4 / W; b++)
#pragma unroll
      for (int i = 0; i < 2; i++) put<F>(room, head, b * W + part, i, t, v[b][i], up, rounded);
    if (threadIdx.x % (4 * W) == 0) weights[head] = w * scale * down;
  }
};

// fragments are of 16 positions of a page in shared memory. Lanes of different rows
// read their blocks in different orders, for the banks' sake.
template <int F>
__device__ __forceinline__ void fragments(uint32_t (&keys)[8][4], const char* rows, int g, int t) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const char* row = rows + (g + 8 * r) * kRow<F>;
    if (F == 2) {
      uint2 v[4];
#pragma unroll
      for (int j = 0; j < 4; j++) v[j] = *reinterpret_cast<const uint2*>(row + (j ^ (g & 3)) * 32 + t * 8);
#pragma unroll
      for (int o = 1; o < 4; o *= 2)
#pragma unroll
        for (int j = 0; j < 4; j++)
          if (!(j & o)) {
            uint2 a = v[j], b = v[j | o];
            v[j] = g & o ? b : a, v[j | o] = g & o ? a : b;
          }
#pragma unroll
      for (int j = 0; j < 4; j++) {
        keys[2 * j][r] = half_of(v[j].x), keys[2 * j][r + 2] = half_high(v[j].x);
        keys[2 * j + 1][r] = half_of(v[j].y), keys[2 * j + 1][r + 2] = half_high(v[j].y);
      }
    } else {
      uint4 v[4];
#pragma unroll
      for (int j = 0; j < 4; j++) v[j] = *reinterpret_cast<const uint4*>(row + (j ^ (g & 1)) * 64 + t * 16);
#pragma unroll
      for (int j = 0; j < 4; j += 2) {
        uint4 a = v[j], b = v[j + 1];
        v[j] = g & 1 ? b : a, v[j + 1] = g & 1 ? a : b;
      }
#pragma unroll
      for (int j = 0; j < 4; j++) {
        keys[2 * j][r] = v[j].x, keys[2 * j][r + 2] = v[j].y;
        keys[2 * j + 1][r] = v[j].z, keys[2 * j + 1][r + 2] = v[j].w;
      }
    }
  }
}

// Rows with keys of their own: a block has p.span pages of a row, its
// warpgroups take them by turns, each through shared memory of its own.
template <int F>
__device__ __forceinline__ void index_logits_pages(const IndexP& p) {
  constexpr int W = kGroups, S = kStages;
  extern __shared__ __align__(1024) char smem[];
  Pages<F>& s = *reinterpret_cast<Pages<F>*>(smem);
  int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, group = warp >> 2, m = blockIdx.y,
      first = blockIdx.x * p.span;
  const int* pages = p.pages + (size_t)p.seq[m] * p.pages_ld;
  bool leads = (threadIdx.x & 127) == 0;
  int id[S];  // of the pages after those on their way
  auto page_of = [&](int i) { return pages[min(first + group + i * W, p.pages_ld - 1)]; };
  auto fetch = [&](int i, int id) {
    uint32_t bar = shared_of(&s.full[group][i]);
    mbar_expect(bar, kPageBytes<F>);
    copy_bulk(shared_of(s.page[group][i]), static_cast<const char*>(p.cache) + (size_t)id * kPageBytes<F>,
        kPageBytes<F>, bar);
  };
  if (leads) {
#pragma unroll
    for (int i = 0; i < S; i++) mbar_init(shared_of(&s.full[group][i]), 1), id[i] = page_of(i);
    mbar_ready();
  }
  int pos = p.early ? p.pos[m] : 0;
  ready(p.at);
  begin();  // what comes next may count on all before this
  // Pages come last: what is asked for after them comes after them.
  Heads<F, W> heads;
  heads.load(p, m);
  if (!p.early) pos = p.pos[m];
  heads.angles(p, pos);
  int n = pos + 1, count = min(p.span, (n + kPage - 1) / kPage - first), turns = (count - group + W - 1) / W;
  if (count <= 0) return finish(p.at);
  if (leads)
#pragma unroll
    for (int i = 0; i < S; i++) {
      if (i < turns) fetch(i, id[i]);
      id[i] = page_of(i + S);
    }
  heads.store(s.q, s.hw, p.scale, p.rounded);
  written();
  __syncthreads();
  int g = lane >> 2, t = lane & 3, own = 16 * (warp & 3);
  float2 u[4];
#pragma unroll
  for (int h = 0; h < 4; h++) u[h] = *reinterpret_cast<const float2*>(s.hw + h * 8 + t * 2);
  uint32_t room = shared_of(s.q);
  float* out = p.scores + (size_t)m * p.lds;
#pragma unroll 1
  for (int i = 0; i < turns; i += S)
#pragma unroll
    for (int k = 0; k < S; k++) {
      if (i + k >= turns) break;
      const char* page = s.page[group][k];
      mbar_wait(shared_of(&s.full[group][k]), i / S & 1);
      uint32_t keys[8][4];
      float scale[2] = {1, 1}, d[32], sum[1][2];
      fragments<F>(keys, page + own * kRow<F>, g, t);
      if (F == 2) scale[0] = reinterpret_cast<const float*>(page + kPage * kRow<F>)[own + g],
          scale[1] = reinterpret_cast<const float*>(page + kPage * kRow<F>)[own + g + 8];
      asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
      product<F>(d, keys, room);
      if (leads) {
        if (i + k + S < turns) fetch(k, id[k]);
        id[k] = page_of(i + k + 2 * S);
      }
      wg_wait<0>();
      weigh(sum[0], d, u), across(sum);
      int at = (first + group + (i + k) * W) * kPage + own + g;
#pragma unroll
      for (int r = 0; r < 2; r++)
        if (t == 0 && at + 8 * r < n) out[at + 8 * r] = sum[0][r] * scale[r];
    }
  finish(p.at);
}

// Rows that share keys. split writes a row's queries, rotated, as panels, and its
// heads' weights after them.
template <int F>
__device__ __forceinline__ void index_pack(const IndexP& p) {
  begin();
  ready(p.at);
  Heads<F, 2> heads;
  char* room = p.split + (size_t)blockIdx.x * kQueries;
  heads.load(p, blockIdx.x), heads.angles(p, p.pos[blockIdx.x]),
      heads.store(room, reinterpret_cast<float*>(room + kRoom), p.scale, p.rounded);
}
// A block has 512 positions of p.span rows: two warpgroups keep the keys of 256 each
// while rows are of one sequence; a thread of its own copies the queries. A product
// is under way while the one before is summed. TERMS: of queries.
template <int F, int TERMS>
__device__ __forceinline__ void index_logits_rows(const IndexP& p) {
  constexpr int T = 4, W = 2, kPart = kPanel / 2 * TERMS;  // bytes of a panel that are read
  extern __shared__ __align__(1024) char smem[];
  Rows& s = *reinterpret_cast<Rows*>(smem);
  int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0), lane = threadIdx.x & 31, base = blockIdx.x * 64 * T * W,
      m = blockIdx.y * p.span, end = min(p.m, m + p.span);
  if (threadIdx.x < kRooms) mbar_init(shared_of(&s.full[threadIdx.x]), 1),
      mbar_init(shared_of(&s.free[threadIdx.x]), 4 * W);
  mbar_ready();
  __syncthreads();
  ready(p.at);
  begin();  // what comes next may count on all before this
  auto past = [&](int i) {  // the next row that has positions here
    while (i < end && p.pos[i] < base) i++;
    return i;
  };
  int slot = 0, parity = 0;
  if (warp >= 4 * W) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 128 * W)
      for (m = past(m); m < end; m = past(m + 1)) {
        mbar_wait(shared_of(&s.free[slot]), parity ^ 1);
        uint32_t bar = shared_of(&s.full[slot]);
        const char* from = p.split + (size_t)m * kQueries;
        mbar_expect(bar, 2 * kPart + 128);
#pragma unroll
        for (int i = 0; i < 3 - TERMS; i++) copy_bulk(shared_of(s.q[slot]) + i * kPanel, from + i * kPanel,
            2 * kPart / (3 - TERMS), bar);
        copy_bulk(shared_of(s.hw[slot]), from + kRoom, 128, bar);
        if (++slot == kRooms) slot = 0, parity ^= 1;
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    int g = lane >> 2, t = lane & 3;
    const int own = base + warp / 4 * 64 * T + (warp & 3) * 16;
    uint32_t keys[T][8][4];
    float scale[2];  // of tile t's keys
    float d[2][16 * TERMS];
    m = past(m);
    while (m < end) {  // rows of one sequence
      int seq = p.seq[m];
#pragma unroll
      for (int j = 0; j < T; j++) {
        Loaded<F> loaded;
        Keys<F> k;
        loaded.load(p, p.pages + (size_t)seq * p.pages_ld, own + 64 * j, lane), k.from(loaded);
#pragma unroll
        for (int i = 0; i < 8; i++) k.part(keys[j][i], i / 2, i % 2);
        if (j == 0 || j == t) scale[0] = k.scale[0], scale[1] = k.scale[1];
      }
      mbar_wait(shared_of(&s.full[slot]), parity);
      product<F>(d[0], keys[0], shared_of(s.q[slot]));
      for (bool more = true; more;) {
        int n = p.pos[m] + 1, next = past(m + 1), then = slot + 1 == kRooms ? 0 : slot + 1;
        more = next < end && p.seq[next] == seq;
        uint32_t room = shared_of(s.q[slot]), weights = shared_of(s.hw[slot] + t * 2);
        float sum[T][2];
#pragma unroll
        for (int j = 0; j < T; j++) {
          if (j == T - 1 && more) mbar_wait(shared_of(&s.full[then]), parity ^ (then == 0));
          product<F>(d[(j + 1) & 1], keys[(j + 1) % T], j + 1 < T ? room : shared_of(s.q[more ? then : slot]));
          float2 u[4];  // read again each time: there are not enough registers
#pragma unroll
          for (int h = 0; h < 4; h++) asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(u[h].x), "=f"(u[h].y)
              : "r"(weights + h * 32));
          wg_wait<1>();
          if (j == T - 1) {
            __syncwarp();
            if (lane == 0) mbar_arrive(shared_of(&s.free[slot]));
          }
          weigh(sum[j], d[j & 1], u);
        }
        across(sum);
        int at = own + 64 * t + g;
        float* out = p.scores + (size_t)m * p.lds + at;
#pragma unroll
        for (int r = 0; r < 2; r++) {
          float mine = t & 2 ? (t & 1 ? sum[3][r] : sum[2][r]) : (t & 1 ? sum[1][r] : sum[0][r]);
          if (at + 8 * r < n) out[8 * r] = mine * scale[r];
        }
        m = next, slot = then, parity ^= then == 0;
      }
      wg_wait<0>();
    }
  }
  finish(p.at);
}
#endif
#define INDEX_GLM(NAME, F) \
  extern "C" __global__ void __launch_bounds__(128 * kGroups, 1) \
      index_logits_pages_##NAME(const __grid_constant__ IndexP p) { \
    HOPPER((index_logits_pages<F>(p));) \
  } \
  extern "C" __global__ void __launch_bounds__(256) index_pack_##NAME(const __grid_constant__ IndexP p) { \
    HOPPER((index_pack<F>(p));) \
  } \
  extern "C" __global__ void __launch_bounds__(384, 1) index_logits_rows_##NAME(const __grid_constant__ IndexP p) { \
    HOPPER((index_logits_rows<F, 2>(p));) \
  } \
  extern "C" __global__ void __launch_bounds__(384, 1) \
      index_logits_rows_rounded_##NAME(const __grid_constant__ IndexP p) { \
    HOPPER((index_logits_rows<F, 1>(p));) \
  }
INDEX_GLM(bf16, 1)
INDEX_GLM(fp8, 2)
