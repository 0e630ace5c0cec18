// Products of NVFP4 weights and NVFP4 activations by tcgen05.mma, compute capability
// 10.0: 128 outputs of up to N rows a block, sums and scales in tensor memory.
// Elsewhere plain loops do what the instructions are documented to do, from the same
// shared memory: slowly, so that only tests launch them.
//
// A unit is 128 rows by 64 columns, 4,608 bytes, as shared memory is to have it: the
// codes as core matrices of 8 rows by 16 bytes, [2 along k][16 along rows]; then the
// scales, row r's four as word r / 32 of 16-byte line r % 32. A matrix is [tiles of
// 128 rows][kt units].
#include "mma/nvfp4_w4a4.cuh"

constexpr int kUnit = 4608, kRows = 128, kLine = 512;  // bytes of a unit, its rows, bytes of 32 rows' scales
constexpr int kStages = 6, kThreads = 128;

extern "C" __global__ void pack_fp4a4_tcgen05(const Pack4 p) {
  size_t units = (size_t)p.tiles * p.kt;
  constexpr int kWords = kUnit / 4;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < units * kWords;
      i += (size_t)gridDim.x * blockDim.x) {
    size_t unit = i / kWords, kt = unit % p.kt, tile = unit / p.kt;
    int at = i % kWords, r;
    uint32_t word;
    if (at < 1024) {
      r = at >> 2 & 127;
      word = p.codes(tile * kRows + r, kt * 64 + (at >> 9) * 32 + (at & 3) * 8);
    } else {
      at -= 1024, r = (at >> 2) + (at & 3) * 32;
      word = p.scales4(tile * kRows + r, kt * 64);
    }
    reinterpret_cast<uint32_t*>(static_cast<char*>(p.out) + unit * kUnit)[i % kWords] = word;
  }
}

template <int N>
struct __align__(128) Stage {
  char a[kUnit];
  char b[N * kCodes];  // like a's codes
  char sb[kLine];      // like a's scales
};


#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
// A descriptor of core matrices in shared memory without swizzle: bytes from one to
// the next along k and along rows.
__device__ __forceinline__ u64 describe(const void* p, int k, int rows) {
  return (u64)(shared_of(p) >> 4 & 0x3fff) | (u64)(k >> 4) << 16 | (u64)(rows >> 4) << 32 | 1ull << 46;
}
#endif

// Tensor is a block's tensor memory: sums of 128 x N, the scales of a unit and those
// of the rows. Only thread 0 issues; every thread may wait.
template <int N>
struct Tensor {
#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
  static constexpr int kColumns = N <= 16 ? 32 : 64;
  // E2M1 by E2M1, scales E4M3, N, 128 rows.
  static constexpr uint32_t kWhat = 1u << 7 | 1u << 10 | (N / 8) << 17 | (kRows / 16) << 24;
  uint32_t at;
  u64* done;  // a barrier a stage
  __device__ __forceinline__ Tensor(u64* barriers, uint32_t* slot) : done(barriers) {
    if (threadIdx.x < 32) {
      asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
          ::"r"(shared_of(slot)), "n"(kColumns) : "memory");
      asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
    if (threadIdx.x == 0) {
      for (int i = 0; i < kStages; i++) mbar_init(shared_of(done + i), 1);
      mbar_ready();
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    at = *slot;
  }
  __device__ __forceinline__ void close() {
    __syncthreads();
    if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;"
        ::"r"(at), "n"(kColumns));
  }
  // staged makes this thread's writes to shared memory visible to the tensor unit.
  __device__ __forceinline__ void staged() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
  // add issues the products of a stage; first: the sums begin with them.
  __device__ __forceinline__ void add(const Stage<N>& s, int stage, bool first) {
    if (threadIdx.x) return;
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(at + N), "l"(describe(s.a + 4096, 128, 128))
        : "memory");
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(at + N + 4), "l"(describe(s.sb, 128, 128))
        : "memory");
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%5], [%6], p;\n\t}"
        ::"r"(at), "l"(describe(s.a, 2048, 128)), "l"(describe(s.b, N * 16, 128)), "r"(kWhat), "r"((uint32_t)!first),
            "r"(at + N), "r"(at + N + 4)
        : "memory");
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
        ::"r"(shared_of(done + stage)) : "memory");
  }
  // wait until the stage's products number use (0, 1, …) have ended.
  __device__ __forceinline__ void wait(int stage, int use) { mbar_wait(shared_of(done + stage), use & 1); }
  // sums of the thread's output for rows [8 j, 8 j + 8).
  __device__ __forceinline__ void read(float (&v)[8], int j) {
    uint32_t r[8];
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
                 : "r"(at + ((threadIdx.x & ~31u) << 16) + 8 * j));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = __uint_as_float(r[i]);
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  }
#else
  float sums[N];
  __device__ __forceinline__ Tensor(u64*, uint32_t*) {}
  __device__ __forceinline__ void close() {}
  __device__ __forceinline__ void staged() {}
  __device__ __forceinline__ void add(const Stage<N>& s, int, bool first) {
    int r = threadIdx.x;
    auto code = [](const char* m, int rows, int r, int chunk, int word) {  // 8 codes of a row
      return *reinterpret_cast<const uint32_t*>(m + chunk * rows * 16 + r * 16 + word * 4);
    };
    for (int n = 0; n < N; n++) {
      float v = first ? 0 : sums[n];
      for (int block = 0; block < 4; block++) {
        uint8_t x = s.a[4096 + r % 32 * 16 + r / 32 * 4 + block], y = s.sb[n % 32 * 16 + n / 32 * 4 + block];
        int dot = 0;
        for (int w = 0; w < 2; w++) dot += dot8(code(s.a, kRows, r, block / 2, block % 2 * 2 + w),
            code(s.b, N, n, block / 2, block % 2 * 2 + w));
        v = fmaf(0.25f * dot, e4m3x2(x).x * e4m3x2(y).x, v);
      }
      sums[n] = v;
    }
    __syncthreads();
  }
  __device__ __forceinline__ void wait(int, int) {}
  __device__ __forceinline__ void read(float (&v)[8], int j) {
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = sums[8 * j + i];
  }
#endif
};

__device__ __forceinline__ void copy16(void* dst, const void* src, bool some) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_of(dst)), "l"(src), "r"(some ? 16 : 0));
}
__device__ __forceinline__ void copy4(void* dst, const void* src, bool some) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_of(dst)), "l"(src), "r"(some ? 4 : 0));
}

// y[row, n] = w x of the rows' expert. grid (tiles, groups, or rows, or 1; chunks)
template <int N>
__device__ __forceinline__ void fp4_tensor(const Fp4P& p) {
  __shared__ Stage<N> stages[kStages];
  __shared__ __align__(8) u64 barriers[kStages];
  __shared__ uint32_t slot;
  begin();
  ready(p.at);
  Group group(p);
  int tid = threadIdx.x, used = 0;  // stages filled so far
  for (int i = tid; i < kStages * kLine / 4;
      i += kThreads) reinterpret_cast<uint32_t*>(stages[i / (kLine / 4)].sb)[i % (kLine / 4)] = 0;
  Tensor<N> tensor(barriers, &slot);
  const char* w = p.w + group.e * p.wexpert + (size_t)blockIdx.x * p.kt * kUnit;
  float2 global = p.globals[group.e];
  for (int base = blockIdx.z * N; base < group.count; base += gridDim.z * N) {
    auto fill = [&](int i) {
      if (i < p.kt) {
        Stage<N>& s = stages[(used + i) % kStages];
        for (int c = tid; c < kUnit / 16; c += kThreads) copy16(s.a + c * 16, w + (size_t)i * kUnit + c * 16, true);
        if (tid < 2 * N) {
          int n = tid >> 1, half = tid & 1, row = group.row(p, base + n);
          size_t at = (size_t)max(row, 0) * p.kt + i;
          copy16(s.b + half * N * 16 + n * 16, p.codes + at * kCodes + half * 16, row >= 0);
          if (half == 0) copy4(s.sb + n % 32 * 16 + n / 32 * 4, p.scales + at * 4, row >= 0);
        }
      }
      asm volatile("cp.async.commit_group;");
    };
    for (int i = 0; i < kStages - 1; i++) {
      if (used + i >= kStages && i < p.kt) tensor.wait((used + i) % kStages, (used + i) / kStages - 1);
      fill(i);
    }
    for (int i = 0; i < p.kt; i++) {
      asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
      tensor.staged();
      __syncthreads();
      tensor.add(stages[(used + i) % kStages], (used + i) % kStages, i == 0);
      int next = used + i + kStages - 1;
      if (next >= kStages && i + kStages - 1 < p.kt) tensor.wait(next % kStages, next / kStages - 1);
      fill(i + kStages - 1);
    }
    used += p.kt;
    tensor.wait((used - 1) % kStages, (used - 1) / kStages);
    int o = blockIdx.x * kRows + tid;
#pragma unroll
    for (int j = 0; j < N / 8; j++) {
      float v[8];
      tensor.read(v, j);
#pragma unroll
      for (int i = 0; i < 8; i++) {
        int row = group.row(p, base + j * 8 + i);
        if (row >= 0 && o < p.n) p.y[(size_t)row * p.ldy + o] = v[i] * (o < p.n / 2 ? global.x : global.y);
      }
    }
    __syncthreads();
  }
  tensor.close();
  touched(p);
  finish(p.at);
}

extern "C" __global__ void __launch_bounds__(kThreads) fp4a4_tcgen05_16(const __grid_constant__ Fp4P p) {
  fp4_tensor<16>(p);
}
extern "C" __global__ void __launch_bounds__(kThreads) fp4a4_tcgen05_32(const __grid_constant__ Fp4P p) {
  fp4_tensor<32>(p);
}
