// What products of many rows use of Hopper: warpgroup products with the weights
// in registers and the activations in shared memory, and copies that come meanwhile.
//
// A warpgroup's A fragments are m16n8k16's, one 16-row tile a warp, so weights are
// read as they are packed for few rows; and D[64, N] sums as m16n8k16 does, which
// keeps the bits.
#pragma once
#include <type_traits>

#include "mma/panels.cuh"
#include "mma/rounding.cuh"

__device__ __forceinline__ void prefetch(const void* p, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(p), "r"(bytes) : "memory");
}
// copy16 copies 16 bytes, or zeros where off.
__device__ __forceinline__ void copy16(uint32_t dst, const void* src, bool on) {
  int n = on ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(n) : "memory");
}
// copies_arrive arrives at a barrier when this thread's copies so far are there.
__device__ __forceinline__ void copies_arrive(uint32_t bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
// written: what this thread stored in shared memory can be read by warpgroup products after a barrier.
__device__ __forceinline__ void written() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// operand describes 16 columns of a panel at addr; the next 16 are 2 further on.
__device__ __forceinline__ uint64_t operand(uint32_t addr) {
  return (uint64_t)((addr & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

// Activations as panels: 8 columns u, v of a row, as the weights' fragments want them:
// in order, or as nvfp4.cuh says, where u and v are 16 columns apart.
struct Chunk {
  Split a, b, c, d;
};
__device__ __forceinline__ Chunk chunk_of(float4 u, float4 v, uint32_t low = ~0u) {
  return {split(u.x, u.y, low), split(u.z, u.w, low), split(v.x, v.y, low), split(v.z, v.w, low)};
}

// quarter swaps words among the four lanes of a group: lane t, which has word t of
// each of four chunks, gets all of chunk t.
__device__ __forceinline__ uint4 quarter(uint32_t (&v)[4]) {
  int t = threadIdx.x & 3;
#pragma unroll
  for (int o = 1; o < 4; o *= 2)
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (!(j & o)) {
        uint32_t give = t & o ? v[j] : v[j | o], got = __shfl_xor_sync(~0u, give, o);
        if (t & o) v[j] = got;
        else v[j | o] = got;
      }
  return make_uint4(v[0], v[1], v[2], v[3]);
}

__device__ __forceinline__ void wg_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wg_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void wg_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

#define F8(d, i)                                                                                              \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define F16(d, i) F8(d, i), F8(d, i + 8)
#define F32(d, i) F16(d, i), F16(d, i + 16)
#define L8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define L16 L8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define L24 L16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define L32 L24 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define L40 L32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define L48 L40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define L56 L48 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define L64                                                            \
  L32                                                                  \
      ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47" \
      ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define L96 L64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
  "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
// wgmma: D[64, N] += A[64, 16] B[16, N]. more 0: D was nothing.
#define WGMMA(n, regs, list, a0, a1, a2, a3, b, s, ...)                                                   \
  __device__ __forceinline__ void wgmma(float (&d)[regs], const uint32_t (&a)[4], uint64_t x, int more) { \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " s ", 0;\n\twgmma.mma_async.sync.aligned.m64n" #n \
                 "k16.f32.bf16.bf16 {" list "}, {" a0 "," a1 "," a2 "," a3 "}, " b ", p, 1, 1, 0;\n\t}"   \
                 : __VA_ARGS__                                                                            \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(x), "r"(more));                        \
  }
WGMMA(16, 8, L8, "%8", "%9", "%10", "%11", "%12", "%13", F8(d, 0))
WGMMA(32, 16, L16, "%16", "%17", "%18", "%19", "%20", "%21", F16(d, 0))
WGMMA(48, 24, L24, "%24", "%25", "%26", "%27", "%28", "%29", F16(d, 0), F8(d, 16))
WGMMA(64, 32, L32, "%32", "%33", "%34", "%35", "%36", "%37", F32(d, 0))
WGMMA(80, 40, L40, "%40", "%41", "%42", "%43", "%44", "%45", F32(d, 0), F8(d, 32))
WGMMA(96, 48, L48, "%48", "%49", "%50", "%51", "%52", "%53", F32(d, 0), F16(d, 32))
WGMMA(112, 56, L56, "%56", "%57", "%58", "%59", "%60", "%61", F32(d, 0), F16(d, 32), F8(d, 48))
WGMMA(128, 64, L64, "%64", "%65", "%66", "%67", "%68", "%69", F32(d, 0), F32(d, 32))
WGMMA(192, 96, L96, "%96", "%97", "%98", "%99", "%100", "%101", F32(d, 0), F32(d, 32), F32(d, 64))
#undef WGMMA
#undef F8
#undef F16
#undef F32
#undef L8
#undef L16
#undef L24
#undef L32
#undef L40
#undef L48
#undef L56
#undef L64
#undef L96

// Operand is what operand describes; its upper half is the same for all, so that there
// is less to compute.
struct Operand {
  uint32_t low;
  __device__ __forceinline__ explicit Operand(uint32_t addr) : low((uint32_t)operand(addr)) {}
  __device__ __forceinline__ Operand operator+(int n) const {
    Operand o = *this;
    o.low += n;
    return o;
  }
};
template <int N>
__device__ __forceinline__ void wgmma(float (&d)[N], const uint32_t (&a)[4], Operand x, int more) {
  wgmma(d, a, (uint64_t)(1024 >> 4 | 1u << 30) << 32 | x.low, more);
}

template <int N>
__device__ __forceinline__ void add_to(float (&sum)[N], const float (&v)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) sum[i] += v[i];
}
