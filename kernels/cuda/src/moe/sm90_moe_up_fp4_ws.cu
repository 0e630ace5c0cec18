// The gate and up projections of experts with few rows, as in moe_up_fp4.cu, for
// NVFP4 weights with a K of 16 slices of kUnits units.
//
// A block has its part of all (group, 16 outputs). Its warps share k, each a slice.
// Four warps are a team with a ring of kStages stages in shared memory, which a warp of
// its own fills with bulk copies: for each group the team's columns of its rows, which
// the warps then hold in registers, and for each item the team's slices of the gate's
// tile and of the up's. So weights are always on their way, and nobody waits for others
// but for sums: those of an item are added up while the next one is worked on.
#include "moe/moe_few_rows.cuh"
#include "moe/moe_prologue.cuh"
#include "mma/sm90_wgmma.cuh"

constexpr int kUnits = 6, kSlice = kUnits * kFp4Unit;
constexpr int kTeam = 4, kTeams = kUpSlices / kTeam, kStages = 3, kStage = kTeam * kSlice;
constexpr int kRow = kTeam * kUnits * 256, kRowStep = kRow + 64;  // two rows of a stage: apart in banks
constexpr int kBuffers = 3, kThreads = (kUpSlices + kTeams) * 32;

struct UpRing {
  char stages[kTeams][kStages][kStage];
  float4 sums[kBuffers][kUpSlices][32];  // of 16 gates and 16 ups, for up to 4 rows
  u64 full[kTeams][kStages], empty[kTeams][kStages];
  u64 there[kBuffers], added[kBuffers];  // the sums of an item; they have been read
  int list[];
};
static_assert(sizeof(UpRing) == kWsBytes && kThreads == kWsThreads && 16 * kUnits * 64 == kWsK);

// List is a block's part [from, to) of all (group, tile), and its groups.
struct List {
  int *expert, *count, *pair;  // [slots], [slots], [slots, 4]
  int from, to;

  __device__ __forceinline__ List(int* at, int slots) : expert(at), count(at + slots), pair(at + 2 * slots) {}

  __device__ __forceinline__ void share(int items) {
    from = (int)((int64_t)items * blockIdx.x / gridDim.x), to = (int)((int64_t)items * (blockIdx.x + 1) / gridDim.x);
  }

  // make takes scratch memory: a bit a pair [chunks of 32 pairs][experts], which are
  // zeros, then [experts], then [warps].
  __device__ __forceinline__ void make(const MoeP& p, int* scratch, int tiles) {
    int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, pairs = p.m * p.topk, chunks = (pairs + 31) / 32;
    uint32_t* map = reinterpret_cast<uint32_t*>(scratch);
    int *first = scratch + chunks * p.groups, *sums = first + p.groups;
    auto bits = [&](int chunk, int e) { return map[chunk * p.groups + e]; };
    auto place = [&](int i, int e) {  // of pair i among its expert's
      int r = __popc(bits(i >> 5, e) & ((1u << (i & 31)) - 1));
#pragma unroll 8
      for (int c = 0; c < i >> 5; c++) r += __popc(bits(c, e));
      return r;
    };
    int own = tid < pairs ? __ldcg(p.experts + tid) : 0, r = 0, n = 0;
    for (int i = tid; i < pairs; i += kThreads) atomicOr(map + (i >> 5) * p.groups +
        (i == tid ? own : __ldcg(p.experts + i)), 1u << (i & 31));
    __syncthreads();
    if (tid < p.groups) {
#pragma unroll 8
      for (int c = 0; c < chunks; c++) n += __popc(bits(c, tid));
    }
    if (tid < pairs) r = place(tid, own);
    int mine = (n + 3) / 4 + (n > 0 ? 1 << 16 : 0), upto = mine;  // groups, and experts touched
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      int v = __shfl_up_sync(~0u, upto, o);
      if (lane >= o) upto += v;
    }
    if (tid < p.groups) first[tid] = ((upto - mine) & 0xffff) | n << 16;  // the groups before it of its warp; its rows
    if (lane == 31) sums[warp] = upto;
    __syncthreads();
    int all = __reduce_add_sync(~0u, lane < kThreads / 32 ? sums[lane] : 0);
    if (p.at && blockIdx.x == 0 && tid == 0) p.at[2] = all >> 16;
    share((all & 0xffff) * tiles);
    int g0 = from / tiles, g1 = to > from ? (to - 1) / tiles + 1 : g0;
    for (int i = tid; i < pairs; i += kThreads) {
      int e = i == tid ? own : __ldcg(p.experts + i), rows = first[e] >> 16, at = first[e] & 0xffff;
#pragma unroll 8
      for (int w = 0; w < e >> 5; w++) at += sums[w] & 0xffff;
      if (at >= g1 || at + (rows + 3) / 4 <= g0) continue;
      if (i != tid) r = place(i, e);
      int q = at + r / 4 - g0;
      if (q < 0 || q >= g1 - g0) continue;
      pair[q * 4 + r % 4] = i;
      if (r % 4 == 0) expert[q] = e, count[q] = min(4, rows - r);
    }
    __syncthreads();
  }

  // take makes it from an prologue's choices: warp i lists the i'th of each lane's experts,
  // of which a lane has per.
  __device__ __forceinline__ void take(const MoeP& p, Prologue& mem, int per, Divisor tiles, Divisor blocks) {
    int i = threadIdx.x >> 5, lane = threadIdx.x & 31;
    Census c(mem.choices, i);
    int items = c.groups * tiles.d;
    from = blocks(items * blockIdx.x), to = blocks(items * (blockIdx.x + 1));
    int q0 = tiles(from), n = to > from ? tiles(to - 1) + 1 - q0 : 0, first = c.first - q0;
    if (i == 0 && lane == 0) {
      mem.range[0] = from, mem.range[1] = to;
      if (p.at && blockIdx.x == 0) atomicMin(p.at, globaltimer()), p.at[2] = c.touched;
    }
    if (c.rows == 0 || first >= n || first + (c.rows + 3) / 4 <= 0) return;
    c.each(mem.choices, i, [&](int r, int m, int place) {
      int q = first + r / 4;
      if (q < 0 || q >= n) return;
      pair[q * 4 + r % 4] = m * p.topk + place;
      if (r % 4 == 0) expert[q] = lane * per + i, count[q] = min(4, c.rows - r);
    });
  }
};

// open is what comes before the products where the launch has an prologue. Eight warps
// choose and make the list, the next eight do the shared expert's product: not before the
// others have chosen, for whom the multiprocessor is then free.
__device__ __forceinline__ void open(const MoeUpP& u, List& list, Prologue& mem, int tiles) {
  int warp = __shfl_sync(~0u, threadIdx.x >> 5, 0);
  bool write = blockIdx.x == 0;  // which has no more items than others
  constexpr int kListers = kPrologueRows * 32, kShared = kWarps * 32, kOthers = kTeams * 32;
  if (warp < kPrologueRows) {
    Chooser c;
    c.fetch(u.prologue.route);
    Divisor by_tiles(tiles), by_blocks(gridDim.x);
    opened(u.prologue);
    c.choose(u.prologue.route, mem, warp, write);
    meet(kChosenBarrier, kListers + kShared);
    list.take(u.moe, mem, of_lane(u.prologue.route), by_tiles, by_blocks);
    come(kReadyBarrier, kListers + kShared);
    meet(kListBarrier, kListers + kOthers);
  } else if (warp < kPrologueRows + kWarps) {
    SharedDown s;
    bool any = u.prologue.shared.w;
    if (any) s.fetch(u.prologue.shared, warp - kPrologueRows);
    opened(u.prologue);
    if (any) s.load(u.prologue.shared, warp - kPrologueRows);
    meet(kChosenBarrier, kListers + kShared);
    if (any) s.multiply(u.prologue.shared, mem, warp - kPrologueRows, write);
    meet(kReadyBarrier, kListers + kShared);
  } else {
    opened(u.prologue);
    meet(kListBarrier, kListers + kOthers);
  }
  list.from = mem.range[0], list.to = mem.range[1];
  begin();
}

// Walk is a way through a team's ring and the block's items: at item n, of group q.
struct Walk {
  uint32_t full, empty;  // barriers of the ring
  int stage = 0, phase = 0, n = 0, q = 0, tile;
  bool fresh = true;  // the group's rows come first

  __device__ __forceinline__ Walk(UpRing& ring, int team, int tile) : full(shared_of(ring.full[team])),
      empty(shared_of(ring.empty[team])), tile(tile) {}
  __device__ __forceinline__ void landed() const { mbar_wait(full + stage * 8, phase); }
  __device__ __forceinline__ void step() {
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
  __device__ __forceinline__ void next(int tiles) {
    n++, fresh = false;
    if (++tile == tiles) tile = 0, q++, fresh = true;
  }
};

// fetch is what a team's own warp does, its first lane.
__device__ __forceinline__ void fetch(const MoeP& p, UpRing& ring, const List& list, Walk at, int team) {
  int tiles = p.n / 16, kt = kUpSlices * kUnits;
  uint32_t stages = shared_of(ring.stages[team]);
  auto place = [&] { return stages + at.stage * kStage; };
  auto open = [&](int bytes) {
    mbar_wait(at.empty + at.stage * 8, at.phase ^ 1);
    mbar_expect(at.full + at.stage * 8, bytes);
  };
#pragma unroll 1
  for (; at.n < list.to - list.from; at.next(tiles)) {
    if (at.fresh) {
      int count = list.count[at.q];
      const int* pair = list.pair + at.q * 4;
#pragma unroll 1
      for (int c = 0; c < count; c += 2, at.step()) {
        open(min(2, count - c) * kRow);
#pragma unroll 1
        for (int r = c; r < min(count, c + 2); r++) copy_bulk(place() + (r - c) * kRowStep,
            p.x + (size_t)(p.by_pair ? pair[r] : pair[r] / p.topk) * p.ldx + team * (kRow / 4), kRow,
            at.full + at.stage * 8);
      }
    }
    const char* w = p.w + (size_t)list.expert[at.q] * p.wexpert +
        ((size_t)at.tile * kt + team * kTeam * kUnits) * kFp4Unit;
#pragma unroll 1
    for (int up = 0; up < 2; up++, w += (size_t)tiles * kt * kFp4Unit, at.step()) {
      open(kStage);
      copy_once(place(), w, kStage, at.full + at.stage * 8);
    }
  }
}

// Columns is what a lane has of the group's rows, see staged_x: of its warp's slice.
struct Columns {
  uint32_t x[kUnits][8];

  __device__ __forceinline__ void take(const float* slice, uint32_t low) {
    int lane = threadIdx.x & 31;
    const float4* from = reinterpret_cast<const float4*>(slice) + (lane & 3);
#pragma unroll
    for (int i = 0; i < kUnits * 2; i++) {
      float4 u = from[i * 8], v = from[i * 8 + 4];
      uint32_t* to = &x[i / 2][i % 2 * 4];
      to[0] = term(u.x, v.x, low), to[1] = term(u.y, v.y, low), to[2] = term(u.z, v.z, low),
          to[3] = term(u.w, v.w, low);
    }
  }
  // term is what the lane has of a split: the upper terms or the lower ones.
  __device__ __forceinline__ static uint32_t term(float a, float b, uint32_t low) {
    Split s = split(a, b, low);
    return (threadIdx.x & 16) ? s.lo : s.hi;
  }

  // receive takes the columns of a new group from the ring, where two rows are a stage.
  __device__ __forceinline__ void receive(UpRing& ring, Walk& at, int team, int warp, int count, uint32_t low) {
    int lane = threadIdx.x & 31, c = lane >> 2 & 3;
    if (c >= count) c = 0;
    uint32_t first = at.empty + at.stage * 8;
    const char* rows = ring.stages[team][at.stage];
    at.landed();
    at.step();
    if (count > 2) {
      at.landed();
      if (c > 1) rows = ring.stages[team][at.stage];
    }
    take(reinterpret_cast<const float*>(rows + (c & 1) * kRowStep) + warp % kTeam * kUnits * 64, low);
    __syncwarp();
    if (lane == 0) mbar_arrive(first);
    if (count > 2) {
      if (lane == 0) mbar_arrive(at.empty + at.stage * 8);
      at.step();
    }
  }
};

// add_up adds the slices' sums of the n'th item, of 16 gates and ups of up to 4 rows:
// one warp does, in turn.
__device__ __forceinline__ void add_up(const MoeP& p, UpRing& ring, const List& list, int n, int q, int tile) {
  int lane = threadIdx.x & 31, b = n % kBuffers;
  float2 global = p.global[list.expert[q]];
  mbar_wait(shared_of(&ring.there[b]), n / kBuffers & 1);
  float4 v = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < kUpSlices; i++) {
    float4 s = ring.sums[b][i][lane];
    v.x += s.x, v.y += s.y, v.z += s.z, v.w += s.w;
  }
  __syncwarp();
  if (lane == 0) mbar_arrive(shared_of(&ring.added[b]));
  int rows = list.count[q];
#pragma unroll 1
  for (int c = 0; c < rows; c++) {
    float s = (c < 2 ? c ? v.y : v.x : c < 3 ? v.z : v.w) * (lane < 16 ? global.x : global.y),
        up = __shfl_xor_sync(~0u, s, 16);
    if (lane < 16) p.y[(size_t)list.pair[q * 4 + c] * p.n + tile * 16 + lane] = silu(s) * up;
  }
}

// multiply is what the other warps do. Each thing is there once: instructions come from
// as far as weights do, and later than those.
__device__ __forceinline__ void multiply(const MoeP& p, UpRing& ring, const List& list, Walk at, int team, int warp) {
  int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, q = 0, tile = 0;  // q, tile: of the item before
  Columns x;
  bool more = list.from < list.to;
#pragma unroll 1
  for (;;) {
    if (more) {
      if (at.fresh) x.receive(ring, at, team, warp, list.count[at.q], low_of(p.rounded));
      float gate[4], up[4] = {};
#pragma unroll 1
      for (int i = 0; i < 2; i++) {
        float acc[1][4] = {};
        at.landed();
        const char* unit = ring.stages[team][at.stage] + warp % kTeam * kSlice;
#pragma unroll
        for (int j = 0; j < kUnits; j++, unit += kFp4Unit) {
          Fp4 u[1] = {{*fp4_codes(unit, lane), *fp4_scales(unit, lane)}};
          add<1>(acc, u, x.x[j]);
        }
        __syncwarp();
        if (lane == 0) mbar_arrive(at.empty + at.stage * 8);
        at.step();
#pragma unroll
        for (int j = 0; j < 4; j++) gate[j] = up[j], up[j] = acc[0][j];
      }
      // Lanes with upper terms get the gate's sum, those with lower ones the up's.
      float s[4];
#pragma unroll
      for (int j = 0; j < 4; j++) s[j] = (t < 2 ? gate[j] : up[j]) + __shfl_xor_sync(~0u, t < 2 ? up[j] : gate[j], 2);
      int b = at.n % kBuffers;
      if (at.n >= kBuffers) mbar_wait(shared_of(&ring.added[b]), (at.n / kBuffers - 1) & 1);
      float2* to = reinterpret_cast<float2*>(&ring.sums[b][warp][t / 2 * 16 + g]) + t % 2;
      to[0] = {s[0], s[1]}, to[16] = {s[2], s[3]};
      __syncwarp();
      if (lane == 0) mbar_arrive(shared_of(&ring.there[b]));
    }
    if (at.n > 0 && (at.n - 1) % kUpSlices == warp) add_up(p, ring, list, at.n - 1, q, tile);
    if (!more) break;
    q = at.q, tile = at.tile;
    at.next(p.n / 16);
    more = at.n < list.to - list.from;
  }
}

// y[pair, n] = silu(gate x) (up x).
__device__ __forceinline__ void moe_up_ws(const MoeUpP& u) {
  const MoeP& p = u.moe;
  extern __shared__ __align__(128) char smem[];
  UpRing& ring = *reinterpret_cast<UpRing*>(smem);
  int tid = threadIdx.x, warp = __shfl_sync(~0u, tid >> 5, 0), tiles = p.n / 16, chunks = (p.m * p.topk + 31) / 32;
  int team = warp < kUpSlices ? warp / kTeam : warp - kUpSlices;
  List list(ring.list, p.slots);
  int* scratch = list.pair + 4 * p.slots;  // multiples of 16 bytes
  bool prologue = u.prologue.route.x;
  if (tid < kTeams * kStages) mbar_init(shared_of(&ring.full[0][tid]), 1),
      mbar_init(shared_of(&ring.empty[0][tid]), kTeam);
  if (tid < kBuffers) mbar_init(shared_of(&ring.there[tid]), kUpSlices), mbar_init(shared_of(&ring.added[tid]), 1);
  mbar_ready();
  if (!prologue)
    for (int i = tid; i < chunks * p.groups; i += kThreads) scratch[i] = 0;
  __syncthreads();
  if (prologue) open(u, list, *reinterpret_cast<Prologue*>(scratch), tiles);
  else {
    ready(p.at);
    begin();  // moe_down may start: the experts are known
    list.make(p, scratch, tiles);
  }
  Walk at(ring, team, list.from % tiles);
  if (warp < kUpSlices) multiply(p, ring, list, at, team, warp);
  else if ((tid & 31) == 0) fetch(p, ring, list, at, team);
  finish(p.at);
}

extern "C" __global__ void __launch_bounds__(kThreads, 1) moe_up_fp4_ws_6144(const __grid_constant__ MoeUpP p) {
  HOPPER(moe_up_ws(p);)
}
