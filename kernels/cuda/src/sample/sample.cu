// The next token of each row of logits, by the rules of kernels.SampleParams. A cluster
// a row: its blocks steer the logits, each a slice, and look for the best token together;
// the first one does the rest. Likelihoods are summed as 64-bit
// integers, so that every sum is exact in any order.
#include "device/device.cuh"
#include "sample/params.h"

// u in [0, 1): Philox4x32-10 of the counter under the seed, its 53 leading bits.
__device__ double uniform(u64 key, u64 counter) {
  uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0}, k0 = key, k1 = key >> 32;
  for (int i = 0; i < 10; i++) {
    uint32_t h0 = __umulhi(0xd2511f53u, c[0]), l0 = 0xd2511f53u * c[0], h1 = __umulhi(0xcd9e8d57u, c[2]),
             l1 = 0xcd9e8d57u * c[2];
    uint32_t d[4] = {h1 ^ c[1] ^ k0, l1, h0 ^ c[3] ^ k1, l0};
    for (int j = 0; j < 4; j++) c[j] = d[j];
    k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
  }
  return (double)(((u64)c[1] << 32 | c[0]) >> 11) / 9007199254740992.0;
}

__device__ __forceinline__ uint32_t order(float f) {
  if (f != f) return 0;
  uint32_t u = f == 0 ? 0 : __float_as_uint(f);
  return u & 0x80000000u ? ~u : u | 0x80000000u;
}

__device__ __forceinline__ u64 rank_of(float v, int i) { return (u64)order(v) << 32 | (0xffffffffu - i); }

// over is what F makes of all threads' values, in every thread: of a warp's by lanes,
// then of the warps'. In any order it must be the same. zero: what changes nothing.
template <typename F>
__device__ u64 over(u64 v, u64 zero, u64* s, F f) {
  const int lane = threadIdx.x & 31;
  for (int o = 16; o; o >>= 1) v = f(v, __shfl_xor_sync(~0u, v, o));
  __syncthreads();
  if (lane == 0) s[threadIdx.x >> 5] = v;
  __syncthreads();
  v = lane < (blockDim.x + 31) / 32 ? s[lane] : zero;
  for (int o = 16; o; o >>= 1) v = f(v, __shfl_xor_sync(~0u, v, o));
  return v;
}
__device__ u64 block_total(u64 v, u64* s) {
  return over(v, 0, s, [](u64 a, u64 b) { return a + b; });
}

// The best of the block's ranks, as an index.
__device__ int best_of(u64 best, u64* s) {
  return (int)(0xffffffffu - (uint32_t)over(best, 0, s, [](u64 a, u64 b) { return max(a, b); }));
}

// in_front is the sum of the values of the threads in front of this one.
__device__ int in_front(int v, u64* s) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int sum = v;
  for (int o = 1; o < 32; o <<= 1) {
    int u = __shfl_up_sync(~0u, sum, o);
    if (lane >= o) sum += u;
  }
  __syncthreads();
  if (lane == 31) s[warp] = sum;
  __syncthreads();
  return sum - v + __reduce_add_sync(~0u, lane < warp ? (int)s[lane] : 0);
}

__device__ __forceinline__ bool has(const uint32_t* bits, int i) { return bits[i >> 5] >> (i & 31) & 1; }

// The index of the largest value that comes after that of index last in the order
// of values from the top, the lowest of equals; kAll: of all values. -1: no
// such value is above -Inf. kMasked: of values whose bit is set.
template <bool kAll, bool kMasked>
__device__ __forceinline__ int largest(const float* x, int n, int last, u64* s, const uint32_t* bits) {
  float top = -INFINITY, limit = kAll ? INFINITY : x[last];
  int at = -1, whole = (uintptr_t)x & 15 ? 0 : n / 4;
  const float4* x4 = reinterpret_cast<const float4*>(x);
  // A thread's indices ascend, so that > keeps the lowest of equals.
  auto take = [&](float v, int i) {
    if (v > top && (kAll || v < limit || (v == limit && i > last)) && (!kMasked || has(bits, i))) top = v, at = i;
  };
  constexpr int kLoads = 8;  // on their way at once
  int i = threadIdx.x, step = blockDim.x;
  for (; i + (kLoads - 1) * step < whole; i += kLoads * step) {
    float4 v[kLoads];
#pragma unroll
    for (int j = 0; j < kLoads; j++) v[j] = x4[i + j * step];
#pragma unroll
    for (int j = 0; j < kLoads; j++) {
      int k = 4 * (i + j * step);
      take(v[j].x, k), take(v[j].y, k + 1), take(v[j].z, k + 2), take(v[j].w, k + 3);
    }
  }
  for (; i < whole; i += step) {
    float4 v = x4[i];
    take(v.x, 4 * i), take(v.y, 4 * i + 1), take(v.z, 4 * i + 2), take(v.w, 4 * i + 3);
  }
  for (i = 4 * whole + threadIdx.x; i < n; i += step) take(x[i], i);
  int any = __syncthreads_or(at >= 0);
  return any ? best_of(at < 0 ? 0 : rank_of(top, at), s) : -1;
}

// The functions of log-probabilities are no part of the kernel's own code, which has few
// registers to spare.
__device__ __noinline__ int best_behind(const float* x, int n, int last, u64* s, const uint32_t* mask) {
  return mask ? largest<false, true>(x, n, last, s, mask) : largest<false, false>(x, n, last, s, mask);
}
__device__ __noinline__ int best_allowed(const float* x, int n, u64* s, const uint32_t* mask) {
  return largest<true, true>(x, n, -1, s, mask);
}
__device__ __noinline__ int best_of_all(const float* x, int n, u64* s) {
  return largest<true, false>(x, n, -1, s, nullptr);
}

// best_of_cluster is the largest of the whole row in the cluster's first block, in the
// others -1. The blocks, which have the values [lo, hi), send their best to the first
// one's inbox, which is open.
constexpr int kSlices = kSampleSlices;
__device__ int best_of_cluster(const float* x, int lo, int hi, int slice, u64* best, u64* inbox, u64* s) {
  int found = largest<true, false>(x + lo, hi - lo, -1, s, nullptr);
  if (threadIdx.x == 0) {
    u64 rank = found < 0 ? 0 : rank_of(x[lo + found], lo + found);
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(remote_of(best + slice, 0)),
        "l"(rank), "r"(remote_of(inbox, 0))
        : "memory");
  }
  if (slice) return -1;
  if (threadIdx.x < 32) {
    receive(inbox);
    u64 most = threadIdx.x < kSlices ? best[threadIdx.x] : 0;
    for (int o = kSlices / 2; o; o >>= 1) most = max(most, __shfl_xor_sync(~0u, most, o));
    if (threadIdx.x == 0) best[0] = most;
  }
  __syncthreads();
  u64 most = best[0];
  return most ? (int)(0xffffffffu - (uint32_t)most) : -1;
}

// penalized is the logit of a token that was seen, or not, and generated c times.
__device__ __forceinline__ float penalized(float v, bool seen, int c, const Params& q) {
  if (seen) v = v > 0 ? v / q.repetition : v * q.repetition;
  return c ? __fsub_rn(__fsub_rn(v, __fmul_rn((float)c, q.frequency)), q.presence) : v;
}

// steer writes the logits [lo, hi) that a token is chosen by into w. A token has one
// finite bias at most, and what else is added to it is -Inf: any order gives the same.
__device__ void steer(float* w, const float* x, int lo, int hi, const uint32_t* mask, const SampleP& p, const Params& q,
                      bool repeats, bool counted) {
  const uint32_t* allowed =
      q.allowed >= 0 && q.forced < 0 ? (const uint32_t*)(p.masks + (size_t)q.allowed * p.mask_bytes) : nullptr;
  for (int i = lo + threadIdx.x; i < hi; i += blockDim.x) {
    float v = x[i];
    if ((mask && !has(mask, i)) || (allowed && !has(allowed, i))) v = -INFINITY;
    w[i] = v;
  }
  if (q.biases > 0 && q.forced < 0) {
    __syncthreads();
    for (int j = threadIdx.x; j < q.biases; j += blockDim.x) {
      Entry e = p.entries[q.entries + j];
      if (e.token >= lo && e.token < hi && (e.after < 0 || e.after == q.last)) atomicAdd(w + e.token, e.bias);
    }
  }
  if (repeats || counted) {
    __syncthreads();
    const uint32_t* seen = (const uint32_t*)(p.seen + (size_t)q.seen * p.seen_bytes);
    const uint16_t* counts = (const uint16_t*)(p.counts + (size_t)q.counts * p.count_bytes);
    // A token that is assumed has a thread, which writes it when the others are done with it.
    const Entry* assumed = p.entries + q.entries + max(q.biases, 0) + max(q.labels, 0);
    int own = (int)threadIdx.x < q.assumed ? assumed[threadIdx.x].token : -1;
    float late = 0;
    if (own >= lo && own < hi) {
      int c = counted ? counts[own] : 0;
      for (int j = 0; counted && j < q.assumed; j++) c += assumed[j].token == own;
      late = penalized(w[own], repeats, min(c, 0xffff), q);
    }
    if (q.assumed > 0) __syncthreads();
    for (int i = lo + threadIdx.x; i < hi; i += blockDim.x)
      w[i] = penalized(w[i], repeats && has(seen, i), counted ? counts[i] : 0, q);
    if (q.assumed > 0) {
      __syncthreads();
      if (own >= lo && own < hi) w[own] = late;
    }
  }
}

// A likelihood relative to the best token's, in 2^-40.
__device__ __forceinline__ u64 mass(float x, float top, float inv) {
  float e = __fmul_rn(__fsub_rn(x, top), inv);
  return e != e ? 0 : (u64)(exp((double)e) * 1099511627776.0 + 0.5);
}

struct Cut {
  uint32_t key;  // the smallest key kept
  u64 before;    // what stands above that key
};

// pour adds the lanes' values to their places in a table, those for one place at once:
// of many values' leading bits most are alike.
template <bool kMass>
__device__ __forceinline__ void pour(u64* table, bool on, uint32_t place, u64 v) {
  for (uint32_t left = __ballot_sync(~0u, on); left;) {
    uint32_t at = __shfl_sync(~0u, place, __ffs(left) - 1), same = __ballot_sync(~0u, on && place == at);
    u64 sum = kMass ? on && place == at ? v : 0 : __popc(same);
    if (kMass)
      for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if ((threadIdx.x & 31) == 0) atomicAdd(table + at, sum);
    left &= ~same;
  }
}

// descend finds the largest key k with what(keys >= k) >= want, where what sums
// count (each 1) or mass. One block; table: 256 values.
template <bool kMass>
__device__ Cut descend(const float* x, int n, uint32_t floor_key, float top, float inv, u64 want, u64* table,
                       Cut* out) {
  uint32_t prefix = 0;
  u64 before = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < 256; i += blockDim.x) table[i] = 0;
    __syncthreads();
    for (int from = 0; from < n; from += blockDim.x) {
      int i = from + threadIdx.x;
      uint32_t k = i < n ? order(x[i]) : 0;
      bool on = i < n && k >= floor_key && (shift == 24 || k >> (shift + 8) == prefix >> (shift + 8));
      pour<kMass>(table, on, (k >> shift) & 255, kMass && on ? mass(x[i], top, inv) : 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int b = 255;
      while (b > 0 && before + table[b] < want) before += table[b--];
      out->key = prefix | (uint32_t)b << shift, out->before = before;
    }
    __syncthreads();
    prefix = out->key, before = out->before;
    __syncthreads();
  }
  return *out;
}

extern "C" __global__ void __cluster_dims__(kSlices, 1, 1) __launch_bounds__(1024)
    sample(const __grid_constant__ SampleP p) {
  __shared__ u64 table[256];
  __shared__ u64 red[32];
  __shared__ double dred[32];
  __shared__ Cut cut;
  __shared__ int chosen;
  __shared__ int ids[kAlternatives];
  __shared__ u64 runs[1024];
  __shared__ int equals[1024];
  __shared__ u64 bests[kSlices], inbox;
  begin();
  open_inbox(&inbox, sizeof(bests));
  inboxes_open();
  ready(p.at);
  int m = blockIdx.x / kSlices, slice = blockIdx.x % kSlices, n = p.n, tid = threadIdx.x;
  const float* raw = p.logits + (size_t)m * p.ld;
  const float* x = raw;
  Params q = p.params[m];
  const uint32_t* mask = q.mask >= 0 && p.masks ? (const uint32_t*)(p.masks + (size_t)q.mask * p.mask_bytes) : nullptr;
  bool repeats = q.repetition > 0 && q.repetition != 1 && q.seen >= 0 && p.seen && q.forced < 0;
  bool counted = (q.presence != 0 || q.frequency != 0) && q.counts >= 0 && p.counts && q.forced < 0;
  bool steered = mask || repeats || counted || ((q.allowed >= 0 || q.biases > 0) && q.forced < 0);
  int per = (n + 4 * kSlices - 1) / (4 * kSlices) * 4, lo = min(n, slice * per), hi = min(n, lo + per);
  if (steered) {
    float* w = p.work + (size_t)m * ((n + 3) & ~3);
    steer(w, raw, lo, hi, mask, p, q, repeats, counted);
    x = w;
    __threadfence();  // the first block reads the others' slices
    __syncthreads();
  }
  int best = best_of_cluster(x, lo, hi, slice, bests, &inbox, red), token = best;
  if (slice) return finish(p.at);
  if (steered) __threadfence();
  if (best < 0) {  // nothing to choose from
    if (tid == 0) {
      Sampled* y = p.y + m;
      y->token = -1, y->logprob = 0;
      for (int j = 0; j < kAlternatives; j++) y->ids[j] = -1, y->logps[j] = 0;
    }
    return finish(p.at);
  }
  float top = x[best];
  if (q.forced >= 0 && q.forced < n) {
    token = q.forced;
  } else if (q.temperature > 0 && q.top_k != 1 && top < INFINITY) {
    float inv = 1.0f / q.temperature;
    uint32_t keep = 1;  // everything that is a number
    int ties = n;       // how many of the tokens with the smallest kept key stay
    if (q.top_k > 0 && q.top_k < n) {
      Cut c = descend<false>(x, n, keep, top, inv, q.top_k, table, &cut);
      keep = c.key, ties = q.top_k - (int)c.before;
    }
    // The kept: keys above keep, and the first ties of those equal to it.
    auto total_of = [&](uint32_t k, int t) {
      u64 v = 0, equal = 0;
      float xe = 0;
      int have = 0;
      for (int i = tid; i < n; i += blockDim.x) {
        uint32_t o = order(x[i]);
        if (o > k) v += mass(x[i], top, inv);
        else if (o == k) equal++, xe = x[i], have = 1;
      }
      v = block_total(v, red);
      equal = block_total(equal, red);
      if (have) table[0] = mass(xe, top, inv);
      __syncthreads();
      u64 r = equal ? v + min(equal, (u64)t) * table[0] : v;
      __syncthreads();
      return r;
    };
    u64 total = total_of(keep, ties);
    if (q.top_p > 0 && q.top_p < 1) {
      u64 want = (u64)((double)q.top_p * (double)total);
      Cut c = descend<true>(x, n, keep, top, inv, max(want, (u64)1), table, &cut);
      u64 each = 0;
      for (int i = tid; i < n; i += blockDim.x)
        if (order(x[i]) == c.key) table[0] = mass(x[i], top, inv);
      __syncthreads();
      each = table[0];
      __syncthreads();
      int need = each ? (int)min((u64)n, (want - min(want, c.before) + each - 1) / each) : n;
      if (c.key > keep || need < ties) keep = c.key, ties = max(1, need);
    }
    if (q.min_p > 0) {
      // e >= log(min_p): the smallest key that passes.
      float least = top + logf(q.min_p) * q.temperature;
      uint32_t k = order(least);
      if (k > keep) keep = k, ties = n;
    }
    total = total_of(keep, ties);
    u64 want = (u64)(uniform(q.seed, q.counter) * (double)total);
    // By index: each thread has a run of tokens, thread 0 finds the run and the token in it.
    int per = (n + blockDim.x - 1) / blockDim.x, lo = min(n, tid * per), hi = min(n, lo + per);
    u64 v = 0;
    int equal = 0;
    for (int i = lo; i < hi; i++) equal += order(x[i]) == keep;
    equals[tid] = equal;
    for (int i = lo, rank = in_front(equal, red); i < hi; i++) {
      uint32_t k = order(x[i]);
      if (k > keep || (k == keep && rank++ < ties)) v += mass(x[i], top, inv);
    }
    runs[tid] = v;
    __syncthreads();
    if (tid == 0) {
      u64 acc = 0;
      int r = 0, last = best, rank = 0;
      while (r < (int)blockDim.x - 1 && acc + runs[r] <= want) rank += equals[r], acc += runs[r++];
      for (int i = r * per; i < min(n, (r + 1) * per); i++) {
        uint32_t k = order(x[i]);
        if (!(k > keep || (k == keep && rank++ < ties))) continue;
        u64 e = mass(x[i], top, inv);
        if (e) last = i;
        if ((acc += e) > want) break;
      }
      chosen = last;
    }
    __syncthreads();
    token = chosen;
  }
  Sampled* y = p.y + m;
  if (q.logprobs >= 0) {
    int wanted = min(min(q.logprobs, n), kAlternatives);
    int first = !steered ? best : mask ? best_allowed(raw, n, red, mask) : best_of_all(raw, n, red);
    float hi = raw[first];
    double sum = 0;
    for (int i = tid; i < n; i += blockDim.x) {
      float v = raw[i];
      if (v == v && (!mask || has(mask, i))) sum += exp((double)(v - hi));
    }
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    __syncthreads();
    if ((tid & 31) == 0) dred[tid >> 5] = sum;
    __syncthreads();
    for (int j = 0; j < wanted; j++) {
      int before = j ? ids[j - 1] : -1, id = j == 0 ? first : before < 0 ? -1 : best_behind(raw, n, before, red, mask);
      if (tid == 0) ids[j] = id;
      __syncthreads();
    }
    if (tid == 0) {
      sum = 0;
      for (int i = 0; i < (int)(blockDim.x + 31) / 32; i++) sum += dred[i];
      double norm = (double)hi + log(sum);
      auto of = [&](int i) { return mask && !has(mask, i) ? -INFINITY : (float)((double)raw[i] - norm); };
      y->logprob = of(token);
      for (int j = 0; j < kAlternatives; j++) {
        int label = j - wanted, id = -1;
        if (j < wanted) id = ids[j];
        else if (label < q.labels) id = p.entries[q.entries + max(q.biases, 0) + label].token;
        y->ids[j] = id;
        y->logps[j] = id < 0 ? 0 : of(id);
      }
    }
  } else if (tid == 0) {
    y->logprob = 0;
    for (int j = 0; j < kAlternatives; j++) y->ids[j] = -1, y->logps[j] = 0;
  }
  if (tid == 0) y->token = token;
  finish(p.at);
}

// The samples of the list before become inputs of this one. A thread a row of logits.
extern "C" __global__ void __launch_bounds__(128) feed(const __grid_constant__ FeedP p) {
  begin();
  ready(p.at);
  int m = blockIdx.x * blockDim.x + threadIdx.x;
  int from = m < p.m ? p.from[m] : -1;
  if (from >= 0) {
    int r = p.rows[m], token = p.last[from].token, pos = p.pos[r] + 1;
    p.tokens[r] = max(token, 0);
    p.pos[r] = pos;
    p.slots[r] = p.pages[(size_t)p.seq[r] * p.pages_ld + pos / kPageTokens] * kPageTokens + pos % kPageTokens;
    Params* q = p.params + m;
    q->counter++;
    q->last = token;
    if (q->counts >= 0 && p.counts && token >= 0 && token < p.n) {
      uint16_t* c = (uint16_t*)(p.counts + (size_t)q->counts * p.count_bytes) + token;
      if (*c < 0xffff) ++*c;
    }
    if (q->seen >= 0 && p.seen && token >= 0 && token < p.n)
      p.seen[(size_t)q->seen * p.seen_bytes + (token >> 3)] |= 1 << (token & 7);
  }
  finish(p.at);
}

// The samples of a step say which drafts were right, and where each sequence goes on from.
// A thread a tip, and a row of logits for what comes behind it.
extern "C" __global__ void __launch_bounds__(128) accept(const __grid_constant__ AcceptP p) {
  begin();
  ready(p.at);
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread < p.n) p.next[p.rows[thread]] = max(p.sampled[thread].token, 0);
  if (thread < p.m) {
    int l = p.tips[2 * thread], end = l + p.tips[2 * thread + 1];
    while (l + 1 < end && p.sampled[l].token == p.tokens[p.rows[l + 1]]) l++;
    const int r = p.rows[l];
    p.from[thread] = r;
    p.at_pos[thread] = p.pos[r];
    p.at_seq[thread] = p.seq[r];
    p.at_slots[thread] = p.slots[r];
    Params q = p.params[l];
    q.logprobs = q.mask = q.forced = -1;
    q.last = p.sampled[l].token;
    q.counter++;
    p.at_params[thread] = q;
  }
  finish(p.at);
}
