// Owners combine the splits of long-context attention: a unit is kWidth elements of one head of a
// token, a word of every split each, weighted by the splits' maxima and sums. Partials travel in
// fp32; the order of the sum is fixed. Needs schedule.h.
#pragma once

#include "attention.cuh"

namespace amk {

__host__ __device__ constexpr int lanes_for(int splits) {
  return splits <= 1 ? 1 : 2 * lanes_for((splits + 1) / 2);
}

template <class S, class C>
__device__ __forceinline__ void combine(C& c, const Page in, const Page out) {
  if (!does(c)) return c.advance(S::kTasks);
  constexpr int kLanes = lanes_for(S::kSplits);  // lanes of a warp that share an element
  constexpr int kParallel = kConsumers / kLanes;
  static_assert(kLanes <= 32, "a warp holds all splits of an element");
  static_assert(kHeadDim % S::kWidth == 0, "a unit lies in one head");
  const Tiles mine = units_of<S>(c.sm, c.layer);
  if (mine.count() > 0) await(c);
  const int split = c.tid % kLanes;
  const int elements = mine.count() * S::kWidth;
#pragma unroll 1
  for (int base = 0; base < elements; base += kParallel) {
    const int e = base + c.tid / kLanes;
    const bool active = e < elements && split < S::kSplits;
    const int element = mine.begin * S::kWidth + e;  // of the tokens' attention vectors
    const int token = kTokens > 1 ? element / kQueryRows : 0;
    const int head = element / kHeadDim - token * kHeads, dim = element % kHeadDim;
    const int kv_head = head / kGroupHeads, in_group = head % kGroupHeads;
    const int row = kSequences > 1
                        ? (token * kKVHeads + kv_head) * S::kSplits + split
                        : (kv_head * S::kSplits + split) * kTokens + token;
    const int at = (row * kGroupHeads + in_group) * (kHeadDim + 2);
    // The split's accumulator, maximum and sum.
    auto partial = word_poll<Fp32, 3>(page_copy(c, in), [&](int i) {
      return active ? at + (i == 0 ? dim : kHeadDim + i - 1) : -1;
    });
    poll_all(c, partial);
    __syncwarp();
    lap(c, Did::kExchangeWait);
    const float max = active ? partial.value(1) : -INFINITY;
    float top = max;
#pragma unroll
    for (int offset = 1; offset < kLanes; offset <<= 1)
      top = fmaxf(top, __shfl_xor_sync(~0u, top, offset));
    const float scale = partial.value(2) > 0 ? exp2f((max - top) * kLog2e) : 0.0f;
    float sum = scale * partial.value(2), value = scale * partial.value(0);
#pragma unroll
    for (int offset = 1; offset < kLanes; offset <<= 1) {
      sum += __shfl_xor_sync(~0u, sum, offset);
      value += __shfl_xor_sync(~0u, value, offset);
    }
    if (active && split == 0) publish<Element>(c, out, element, divide<Element>(value, sum));
    lap(c, Did::kSignal);
  }
  if (mine.count() > 0) signal(c, mine.count());
  c.advance(S::kTasks);
}

}  // namespace amk
