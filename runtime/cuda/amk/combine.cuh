// Owners combine the splits of long-context attention: a unit is kWidth elements of one head of a
// token, of every split each, weighted by the splits' maxima and sums. Partials travel in
// fp32; the order of the sum is fixed. Needs schedule.h.
#pragma once

#include "attention.cuh"

namespace amk {

__host__ __device__ constexpr int lanes_for(int splits) {
  return splits <= 1 ? 1 : 2 * lanes_for((splits + 1) / 2);
}

// A poll of kCount times two fp32 words: the i-th two index_of(i) words after the first of a page.
// Those of a thread that is not `active` count as 0.
template <int kCount, class IndexOf>
struct PairPoll {
  const u64* words;
  IndexOf index_of;
  bool active;
  u32 missing = 0;
  ulonglong2 pair[kCount] = {};

  __device__ __forceinline__ PairPoll(const u8* copy, bool active, IndexOf of)
      : words(reinterpret_cast<const u64*>(copy)), index_of(of), active(active) {}
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (active) pair[i] = load_relaxed_2x8(words + index_of(i));
    }
  }
  template <class C>
  __device__ __forceinline__ void check(C& c) {
    missing = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool fresh = is_fresh<Fp32>(c, pair[i].x) && is_fresh<Fp32>(c, pair[i].y);
      if (active && !fresh) missing |= 1u << i;
    }
  }
  __device__ __forceinline__ int first_missing() const { return index_of(__ffs(missing) - 1); }
  // The n-th word of all.
  __device__ __forceinline__ float value(int n) const {
    return WordOf<Fp32>::value(n % 2 ? pair[n / 2].y : pair[n / 2].x);
  }
};

template <int kCount, class IndexOf>
__device__ __forceinline__ PairPoll<kCount, IndexOf> pair_poll(const u8* copy, bool active,
                                                               IndexOf index_of) {
  return {copy, active, index_of};
}

// Elements that a thread takes of one split at a time: two or more, which lie in one unit, so that
// the threads have all that the SM's units are, if it is not too much.
template <class S>
__host__ __device__ constexpr int elements_at_once(int parallel, int n = 2) {
  return n < 8 && S::kWidth % (2 * n) == 0 && n * parallel < ceil_div(S::kUnits, kSMs) * S::kWidth
             ? elements_at_once<S>(parallel, 2 * n)
             : n;
}

template <class S, class C>
__device__ __forceinline__ void combine(C& c, const Page in, const Page out) {
  if (!does(c)) return c.advance(S::kTasks);
  constexpr int kLanes = lanes_for(S::kSplits);  // lanes of a warp that share elements
  constexpr int kParallel = kConsumers / kLanes, kAtOnce = elements_at_once<S>(kParallel);
  static_assert(kLanes <= 32, "a warp holds all splits of an element");
  static_assert(kHeadDim % S::kWidth == 0 && S::kWidth % kAtOnce == 0, "a unit lies in one head");
  const Tiles mine = units_of<S>(c.sm, c.layer);
  if (mine.count() > 0) await(c);
  const int split = c.tid % kLanes;
  const int elements = mine.count() * S::kWidth;
#pragma unroll 1
  for (int base = 0; base < elements; base += kParallel * kAtOnce) {
    const int e = base + c.tid / kLanes * kAtOnce;
    const bool active = e < elements && split < S::kSplits;
    const int element = mine.begin * S::kWidth + e;  // of the tokens' attention vectors
    const int token = kTokens > 1 ? element / kQueryRows : 0;
    const int head = element / kHeadDim - token * kHeads, dim = element % kHeadDim;
    const int kv_head = head / kGroupHeads, in_group = head % kGroupHeads;
    const int row_of_head = kSequences > 1
                                ? (sequence_of(token) * kKVHeads + kv_head) * S::kSplits + split
                                : kv_head * S::kSplits + split;
    const int row = row_of_head * kSequenceRows + row_of(token);
    const int at = (row * kGroupHeads + in_group) * (kHeadDim + 2);
    // The split's maximum and sum, and its accumulators.
    auto partial = pair_poll<kAtOnce / 2 + 1>(page_copy(c, in), active, [&](int i) {
      return at + (i == 0 ? kHeadDim : dim + 2 * (i - 1));
    });
    poll_all(c, partial);
    __syncwarp();
    lap(c, Did::kExchangeWait);
    const float max = active ? partial.value(0) : -INFINITY;
    float top = max;
#pragma unroll
    for (int offset = 1; offset < kLanes; offset <<= 1)
      top = fmaxf(top, __shfl_xor_sync(~0u, top, offset));
    const float scale = partial.value(1) > 0 ? exp2f((max - top) * kLog2e) : 0.0f;
    float sum = scale * partial.value(1), values[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) values[i] = scale * partial.value(2 + i);
#pragma unroll
    for (int offset = 1; offset < kLanes; offset <<= 1) {
      sum += __shfl_xor_sync(~0u, sum, offset);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) values[i] += __shfl_xor_sync(~0u, values[i], offset);
    }
    // Every lane has all sums by now: they share the words out.
#pragma unroll
    for (int first = 0; first < kAtOnce; first += kLanes) {
      const int of_lane = first + split;
      float value = values[first];
#pragma unroll
      for (int i = first + 1; i < kAtOnce && i < first + kLanes; ++i)
        if (i == of_lane) value = values[i];
      if (e < elements && of_lane < kAtOnce)
        publish<Element>(c, out, element + of_lane, divide<Element>(value, sum));
    }
    lap(c, Did::kSignal);
  }
  if (mine.count() > 0) signal(c, mine.count());
  c.advance(S::kTasks);
}

}  // namespace amk
