// What the host asks of a GPU beside the calls of a list: to bring copies and stamps, to
// tell the time, to fail.
#include "device/device.cuh"

// A fault that is asked for, for tests of what happens then: a kernel that does
// not end for so long, or one that writes where nothing is.
extern "C" __global__ void fault(const __grid_constant__ FaultP p) {
  ready(nullptr);  // the list before has ended: nothing but its own list suffers
  for (u64 start = globaltimer(); globaltimer() - start < p.hang;) __nanosleep(1000);
  if (!p.hang) *(volatile int*)16 = 1;
}

// host_copy copies words between the host's memory and the GPU's, and takes a list's
// stamps to the host, one start and one end a call, making their places ready for
// the next list. What comes from the host is read before the kernels in front have
// ended. A kernel does in 5 us less what copies do, with the waits around them.
extern "C" __global__ void __launch_bounds__(256) host_copy(const __grid_constant__ HostCopyP p) {
  const int thread = blockIdx.x * 256 + threadIdx.x, threads = gridDim.x * 256;
  unsigned v[kCopyWords];
  auto take = [&] {
#pragma unroll
    for (int j = 0; j < kCopyWords; j++)
      if (thread + j * threads < p.words) v[j] = *(volatile const unsigned*)(p.from + thread + j * threads);
  };
  if (p.in) take();
  else begin();  // never in front of kernels that may read early what comes in
  ready(nullptr);
  if (!p.in) take();
#pragma unroll
  for (int j = 0; j < kCopyWords; j++)
    if (thread + j * threads < p.words) p.to[thread + j * threads] = v[j];
  for (int i = thread; i < 3 * p.calls; i += threads) {
    u64* at = p.at + i;
    u64 stamp = *at;
    if (i % 3 == 1) {
#pragma unroll
      for (int s = 1; s < kStampEnds; s++) {
        stamp = max(stamp, at[s * kStampPlane]);
        at[s * kStampPlane] = 0;
      }
    }
    *at = i % 3 == 0 ? ~0ull : 0;
    if (p.out) p.out[i] = stamp;
  }
}

// The host asks for the time, round by round, and sees when the answer comes. The
// first round is not asked for: a launch may last until the kernel has ended.
extern "C" __global__ void clock_read(const __grid_constant__ ClockP p) {
  for (unsigned i = 1; i <= p.rounds; i++) {
    u64 since = globaltimer(), now = since;
    while (i > 1 && *(volatile unsigned*)p.ask != p.before + i) {
      now = globaltimer();
      if (now - since > p.limit) return;
    }
    *(volatile u64*)p.time = globaltimer();
    __threadfence_system();
    *(volatile unsigned*)p.answer = p.before + i;
  }
}
