// The experts of each token.
#include "moe/moe_route.cuh"

extern "C" __global__ void __launch_bounds__(32) moe_route(const __grid_constant__ RouteP p) {
  __shared__ RouteMemory mem;
  route(p, blockIdx.x, reinterpret_cast<char*>(&mem));
}

// More experts than registers hold.
extern "C" __global__ void __launch_bounds__(32) moe_route_many(const __grid_constant__ RouteP p) {
  extern __shared__ float choice[];  // [n]
  __shared__ Chosen chosen;
  int lane = threadIdx.x, m = blockIdx.x;
  ready(p.at);
  begin();
  const float* x = p.x + (size_t)m * p.ldx;
  for (int e = lane; e < p.n; e += 32) choice[e] = sigmoid(x[e]) + p.bias[e];
  __syncwarp();
  if (p.keep < p.groups) limit(p, choice, chosen.best);
  uint32_t* key = reinterpret_cast<uint32_t*>(choice);
  for (int e = lane; e < p.n; e += 32) key[e] = order_of(choice[e]);
  for (int j = 0; j < p.topk; j++) {
    uint32_t top = 0;
    int at = p.n;
    for (int e = lane; e < p.n; e += 32)
      if (key[e] > top) top = key[e], at = e;
    uint32_t all = __reduce_max_sync(~0u, top);
    at = __reduce_min_sync(~0u, top == all ? at : p.n);
    if (lane == 0) key[at] = 0;
    int place = j;  // ascending: larger ones make room
    if (lane == 0) {
      for (; place > 0 && chosen.expert[place - 1] > at; place--) chosen.expert[place] = chosen.expert[place - 1];
      chosen.expert[place] = at;
    }
    __syncwarp();
  }
  for (int j = lane; j < p.topk; j += 32) chosen.score[j] = sigmoid(x[chosen.expert[j]]);
  __syncwarp();
  write_row(p, m, chosen);
  finish(p.at);
}
