// Ranks of one host: a barrier in memory that all of them see. A rank's count of
// barriers is its epoch, so nothing is ever reset and a graph can be replayed.
#include "device.cuh"

struct BarrierP {
  u64* arrived;   // of all ranks
  u64* epoch;     // of this rank
  int* failed;    // set when a rank did not come in time
  u64* at;
  u64 limit;      // ns
  int ranks;
};
// The kernels behind it start when it has ended, never early: what waits for a
// rank must not hold the multiprocessors that the rank may need on the same GPU.
extern "C" __global__ void barrier(const __grid_constant__ BarrierP p) {
  ready(p.at);
  if (threadIdx.x == 0) {
    u64 want = (*p.epoch += 1) * p.ranks, have = 0, start = globaltimer();
    __threadfence_system();
    atomicAdd_system(p.arrived, 1ull);
    do {
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(have) : "l"(p.arrived) : "memory");
      if (have >= want) break;
      if (globaltimer() - start > p.limit || *(volatile int*)p.failed) {
        *(volatile int*)p.failed = 1;
        break;
      }
      __nanosleep(64);
    } while (true);
    __threadfence_system();
  }
  finish(p.at);
}

// Start and end of a step's stamps, and the clock for the host.
struct StampP {
  u64* at;  // [calls][3]
  int calls;
};
extern "C" __global__ void stamps_clear(const __grid_constant__ StampP p) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < p.calls; i += gridDim.x * blockDim.x) {
    p.at[3 * i] = ~0ull;
    p.at[3 * i + 1] = 0;
    p.at[3 * i + 2] = 0;
  }
}
extern "C" __global__ void clock_read(const __grid_constant__ StampP p) { *p.at = globaltimer(); }
