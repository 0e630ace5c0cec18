// Barriers in shared memory, which count arrivals and the bytes of copies that come,
// also from other blocks of a cluster.
#pragma once
#include <cstdint>

// shared_of is the address of p, which is in shared memory, and remote_of that of the
// same place in block rank's.
__device__ __forceinline__ uint32_t shared_of(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ uint32_t remote_of(const void* p, int rank) {
  uint32_t a;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(shared_of(p)), "r"(rank));
  return a;
}

__device__ __forceinline__ void mbar_init(uint32_t bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
// mbar_ready lets copies and other blocks see barriers that this thread has made.
__device__ __forceinline__ void mbar_ready() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void mbar_arrive(uint32_t bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
// mbar_expect arrives, and says how many bytes are to come.
__device__ __forceinline__ void mbar_expect(uint32_t bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

// mbar_wait waits at a barrier of this block for the end of the phase of this parity,
// and gives up after about a second, which only a fault of the memory takes. Lanes of
// a warp may get different answers at one time, which the compiler does not expect:
// by the vote, lanes that wait together go on together. kIdle: who waits long leaves
// the others their turns.
template <bool kIdle = false>
__device__ __forceinline__ void mbar_wait(uint32_t bar, int parity) {
  unsigned lanes = __activemask();
#pragma unroll 1
  for (int i = 0; i < 1 << 20; i++) {
    uint32_t done;
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.b32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(bar), "r"(parity)
        : "memory");
    if (__all_sync(lanes, done)) return;
    if (kIdle) __nanosleep(100);
  }
  __trap();
}

// copy_bulk copies bytes, a multiple of 16, which count at bar.
__device__ __forceinline__ void copy_bulk(uint32_t dst, const void* src, int bytes, uint32_t bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
               "l"(src), "r"(bytes), "r"(bar)
               : "memory");
}
// copy_once is copy_bulk of what is read once in a step: it leaves the L2 cache to others.
__device__ __forceinline__ void copy_once(uint32_t dst, const void* src, int bytes, uint32_t bar) {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
               " [%0], [%1], %2, [%3], %4;" ::"r"(dst), "l"(src), "r"(bytes), "r"(bar), "l"(policy)
               : "memory");
}

// meet waits until so many threads of the block have come to one of its barriers, from 1
// on; come does not wait. 0 is __syncthreads'.
__device__ __forceinline__ void meet(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void come(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// expect_one and copy_one are mbar_expect and copy_bulk by one of a warp's lanes, which
// all call them with the same. So the compiler knows that there is one copy to make: a
// lane's own goes through a loop over lanes, at some 70 cycles each.
__device__ __forceinline__ void expect_one(uint32_t bar, int bytes) {
  asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\t"
               "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n\t}" ::"r"(bar), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void copy_one(uint32_t dst, const void* src, int bytes, uint32_t bar) {
  asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\t"
               "@p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n\t}"
               ::"r"(dst), "l"(src), "r"(bytes), "r"(bar)
               : "memory");
}
