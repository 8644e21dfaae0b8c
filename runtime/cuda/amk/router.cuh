// Routers: every SM chooses the experts of each token by the scores that all SMs have published, so
// that a choice costs no exchange. What it has chosen stays in shared memory, for the lane that
// streams the weights of experts and for the stages that multiply by them. Needs schedule.h with
// AMK_EXPERTS. Must not know what experts compute.
#pragma once

#include "exchange.cuh"

namespace amk {

static_assert(kTokens == 1, "a pass of several tokens has no routers");

// Numbers that are ordered as scores are: larger ones for larger scores, the same for 0 and -0, the
// least of all for what is not a number. 0 is not one of them.
__device__ __forceinline__ u32 order_of(float score) {
  const u32 bits = score == 0 ? 0 : bits_of(score);
  if (score != score) return 1;
  return bits >> 31 ? ~bits : bits | 1u << 31;
}
__device__ __forceinline__ float score_of(u32 order) {
  if (order == 1) return float_of_bits(0x7fffffff);
  return float_of_bits(order >> 31 ? order & ~(1u << 31) : ~order);
}

// The largest number of all lanes.
__device__ __forceinline__ u32 most_of_warp(u32 v) {
#if AMK_ASYNC_COPY  // from compute capability 8.0 on
  return warp_max(v);
#else
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) v = max(v, shuffle_xor(v, offset));
  return v;
#endif
}

__device__ __forceinline__ float sum_of_warp(float v) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) v += shuffle_xor(v, offset);
  return v;
}

// SOFTMAX, TOPK and RENORMALISE: the experts with the largest scores, of equal ones those with the
// lower numbers. They are weighed by a softmax over all scores or over those of the chosen ones.
// Lane r of the first warp keeps what is chosen in round r.
template <class S, class C>
__device__ __forceinline__ void route(C& c, const Page in) {
  if constexpr (!C::kWaits) return;  // and experts are made up
  static_assert(S::kChosen <= kMostChosen && S::kChosen <= 32 && S::kChosen <= S::kExperts,
                "a lane for each chosen expert");
  await(c);
  consumer_barrier();  // nobody reads what the router before has chosen
  if (c.warp == 0) {
    constexpr int kEach = ceil_div(S::kExperts, 32);
    auto words = word_poll<Fp32, kEach>(page_copy(c, in), [&](int i) {
      const int expert = c.lane + i * 32;
      return expert < S::kExperts ? expert : -1;
    });
    poll_all(c, words);
    u32 orders[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      orders[i] = c.lane + i * 32 < S::kExperts ? order_of(words.value(i)) : 0;
    int expert = 0;
    float score = 0, largest = 0;
#pragma unroll 1
    for (int round = 0; round < S::kChosen; ++round) {
      u32 own = 0;
      int first = 0;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (orders[i] > own) own = orders[i], first = c.lane + i * 32;
      }
      const u32 most = most_of_warp(own);
      const int best = S::kExperts - int(most_of_warp(own == most ? u32(S::kExperts - first) : 0));
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (c.lane + i * 32 == best) orders[i] = 0;
      }
      if (round == 0) largest = score_of(most);
      if (c.lane == round) expert = best, score = score_of(most);
    }
    const bool chosen = c.lane < S::kChosen;
    float share = chosen ? expf(score - largest) : 0.0f;
    if constexpr (S::kOfChosen) {
      share = share / sum_of_warp(share);
    } else {
      float all = 0;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (c.lane + i * 32 < S::kExperts) all += expf(words.value(i) - largest);
      }
      share = share / sum_of_warp(all);
      if constexpr (S::kRenormalised) share = share / sum_of_warp(share);
    }
    if (chosen) {
      c.shared.experts[0][c.lane] = expert;
      c.shared.shares[0][c.lane] = share;
    }
    warp_sync();
    if (c.lane == 0)
      store_shared_release(&c.shared.choices, u32(c.step) * kLayers + u32(c.layer) + 1);
  }
  consumer_barrier();
  lap(c, Did::kExchangeWait);
}

}  // namespace amk
