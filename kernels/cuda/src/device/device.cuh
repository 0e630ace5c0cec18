// What every kernel of glmbatch's CUDA device is written with.
//
// Conventions: one extern "C" entry a table row, its parameters one struct by
// value. Activations are float32, row-major; ld* are row strides in values.
// A row's bits never depend on how many rows there are: each output is one
// chain of products in ascending k within a warp's slice of k, and the slices
// are added in warp order.
#pragma once
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "device/mbarrier.cuh"
#include "device/params.h"

constexpr int kWarps = 8;  // of a block of a product

__device__ __forceinline__ u64 globaltimer() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

// begin lets the next kernel of the stream start its weight loads. ready waits
// until the kernels before have finished and flushed. Before it a kernel writes
// nothing and reads only what no kernel of the list writes (weights, page tables and
// which of them is a row's), or what the plan found to be there already (plan/fresh.go).
// Its first block stamps the call's start: from there on the call has the GPU, and what
// it did early was in others' time.
__device__ __forceinline__ void begin() { asm volatile("griddepcontrol.launch_dependents;"); }
__device__ __forceinline__ void ready(u64* at, bool first) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (at && threadIdx.x == 0 && first) atomicMin(at, globaltimer());
}
__device__ __forceinline__ void ready(u64* at) { ready(at, blockIdx.x == 0); }
// The blocks that end together leave their ends in kStampEnds places: in one they would
// wait for each other longer than for all else that stamps cost. host_copy
// brings them together.
constexpr int kStampPlane = kMaxStamps * kStampBytes / 8;  // words from one place to the next
__device__ __forceinline__ void stamp_end(u64* at) {
  atomicMax(at + 1 + (blockIdx.x & (kStampEnds - 1)) * kStampPlane, globaltimer());
}
__device__ __forceinline__ void finish(u64* at) {
  if (!at) return;
  __syncthreads();
  if (threadIdx.x == 0) stamp_end(at);
}
// finish_beside is for kernels whose warps all come as far as their last stores
// together: the last warp stamps while the others store.
__device__ __forceinline__ void finish_beside(u64* at) {
  if (at && threadIdx.x == blockDim.x - 32) stamp_end(at);
}

// mma: C[16,8] += A[16,16] B[16,8], BF16 operands, float32 sums.
__device__ __forceinline__ void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32_t bf16x2(float lo, float hi) {
  uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
__device__ __forceinline__ float lowf(uint32_t v) { return __uint_as_float(v << 16); }
__device__ __forceinline__ float highf(uint32_t v) { return __uint_as_float(v & 0xffff0000u); }

// A float32 value as the sum of two BF16 values: 16 bits of precision, so that
// products with BF16 or FP4 weights are as good as float32's for all we test.
struct Split {
  uint32_t hi, lo;
};
__device__ __forceinline__ Split split(float a, float b) {
  Split s;
  s.hi = bf16x2(a, b);
  s.lo = bf16x2(a - lowf(s.hi), b - highf(s.hi));
  return s;
}

// B fragments (k16 x 8 tokens) of the lane's token row at column k.
struct Frag {
  Split b0, b1;
};
__device__ __forceinline__ Frag load_x(const float* x, int k, int kmax) {
  float2 u = {0, 0}, v = {0, 0};
  if (x && k < kmax) u = *reinterpret_cast<const float2*>(x + k);
  if (x && k + 8 < kmax) v = *reinterpret_cast<const float2*>(x + k + 8);
  return {split(u.x, u.y), split(v.x, v.y)};
}
__device__ __forceinline__ void mma_split(float (&c)[4], const uint32_t (&a)[4], const Frag& f) {
  mma(c, a, f.b0.lo, f.b1.lo);
  mma(c, a, f.b0.hi, f.b1.hi);
}

__device__ __forceinline__ float2 e4m3x2(uint16_t v) {
  __half2_raw h = __nv_cvt_fp8x2_to_halfraw2(v, __NV_E4M3);
  return __half22float2(*reinterpret_cast<__half2*>(&h));
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  return v;
}
// block_sum, block_max: every thread gets the result; s holds 32 floats. The order
// is a tree over lanes, then one over warps.
__device__ __forceinline__ float block_sum(float v, float* s) {
  int w = threadIdx.x >> 5, lane = threadIdx.x & 31, n = (blockDim.x + 31) >> 5;
  v = warp_sum(v);
  __syncthreads();
  if (lane == 0) s[w] = v;
  __syncthreads();
  return warp_sum(lane < n ? s[lane] : 0);
}
__device__ __forceinline__ float block_max(float v, float* s) {
  int w = threadIdx.x >> 5, lane = threadIdx.x & 31, n = (blockDim.x + 31) >> 5;
  v = warp_max(v);
  __syncthreads();
  if (lane == 0) s[w] = v;
  __syncthreads();
  return warp_max(lane < n ? s[lane] : -INFINITY);
}
// Blocks of a cluster share one output tile: each has a slice of k.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ int cluster_rank() {
  int r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
// A block's inbox in its shared memory: other blocks of the cluster send values, which
// the block may read when all bytes that it expects have come. Every block opens its
// own; who sends first waits until all are open. There is no fence in global memory.
__device__ __forceinline__ void open_inbox(u64* inbox, int bytes) {
  uint32_t b = shared_of(inbox);
  if (threadIdx.x == 0) mbar_init(b, 1), mbar_ready(), mbar_expect(b, bytes);
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void inboxes_open() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
// send writes v where p, an address in this block's shared memory, is in block rank's.
__device__ __forceinline__ void send(float* p, u64* inbox, int rank, float v) {
  uint32_t a = remote_of(p, rank), b = remote_of(inbox, rank);
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(a),
               "r"(__float_as_uint(v)), "r"(b)
               : "memory");
}
__device__ __forceinline__ void receive(u64* inbox) { mbar_wait(shared_of(inbox), 0); }
// of_block reads p, an address in this block's shared memory, in block rank's.
__device__ __forceinline__ float of_block(const float* p, int rank) {
  float v;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(remote_of(p, rank)) : "memory");
  return v;
}

// Copies of 16 bytes into shared memory, in groups; bytes 0: of zeros. landed waits
// for all but the last N groups of the thread.
__device__ __forceinline__ void copy16(void* dst, const void* src, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_of(dst)), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void landed() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// turn rotates a pair by (cosine, sine); written out, so that it is the same
// everywhere.
__device__ __forceinline__ float2 turn(float2 v, float2 cs) {
  return {fmaf(v.x, cs.x, -__fmul_rn(v.y, cs.y)), fmaf(v.y, cs.x, __fmul_rn(v.x, cs.y))};
}

// rotate copies the rotary values behind x's k columns behind y's n columns, for the
// products of a head: q_absorb's, whose parameters P are.
template <typename P>
__device__ __forceinline__ void rotate(const P& p, int m0, int tokens) {
  int half = p.nrope / 2, head = blockIdx.z;
  for (int i = threadIdx.x; i < tokens * half; i += blockDim.x) {
    int m = m0 + i / half, j = i % half;
    if (m >= p.m) break;
    float2 cs = reinterpret_cast<const float2*>(p.rope)[(size_t)p.pos[m] * half + j];
    const float* x = p.x + (size_t)m * p.ldx + (size_t)head * p.xhead + p.k + 2 * j;
    float* y = p.y + (size_t)m * p.ldy + (size_t)head * p.yhead + p.n + 2 * j;
    float a = x[0], b = x[1];
    float2 v = turn({a, b}, cs);
    y[0] = v.x, y[1] = v.y;
  }
}

__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }

// What only Hopper has instructions for is empty elsewhere: there other kernels are taken.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HOPPER(...) __VA_ARGS__
#else
#define HOPPER(...)
#endif
