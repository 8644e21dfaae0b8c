// Routers: every SM chooses the experts of each token by the scores that all SMs have published, so
// that a choice costs no exchange. What it has chosen stays in shared memory, for the lane that
// streams the weights of experts and for the stages that multiply by them. A warp chooses for a
// token of the pass. Needs schedule.h with AMK_EXPERTS. Must not know what experts compute.
#pragma once

#include "stage.cuh"

namespace amk {

static_assert(kTokens <= kConsumerWarps, "a warp for each token");

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

// What the descriptor of a router may have, besides what all have: its scores become sigmoids; a
// bias is added for the choice alone; experts are of groups, and chosen from some of these; the sum
// of the weights is increased, or has a bound; the weights are multiplied; and one score more
// becomes the gate of the expert that every token has.
template <class S, class = void>
constexpr bool kSigmoid = false;
template <class S>
constexpr bool kSigmoid<S, decltype(void(S::kSigmoid))> = S::kSigmoid;
template <class S, class = void>
constexpr bool kBiased = false;
template <class S>
constexpr bool kBiased<S, decltype(void(S::kBiased))> = S::kBiased;
template <class S, class = void>
constexpr int kGroups = 1;
template <class S>
constexpr int kGroups<S, decltype(void(S::kGroups))> = S::kGroups;
template <class S, class = void>
constexpr int kTopGroups = 1;
template <class S>
constexpr int kTopGroups<S, decltype(void(S::kTopGroups))> = S::kTopGroups;
template <class S, class = void>
constexpr float kExtra = 0;
template <class S>
constexpr float kExtra<S, decltype(void(S::kExtra))> = S::kExtra;
template <class S, class = void>
constexpr float kLeast = 0;
template <class S>
constexpr float kLeast<S, decltype(void(S::kLeast))> = S::kLeast;
template <class S, class = void>
constexpr float kShareScale = 1;
template <class S>
constexpr float kShareScale<S, decltype(void(S::kScale))> = S::kScale;
template <class S, class = void>
constexpr bool kGated = false;
template <class S>
constexpr bool kGated<S, decltype(void(S::kGated))> = S::kGated;

// Scores of a lane: those of experts lane, lane + 32, …
template <class S>
constexpr int kLaneScores = ceil_div(int(S::kExperts), 32);
template <class S>
__device__ __forceinline__ bool is_expert(int expert) { return expert < S::kExperts; }

// Leaves the experts of the best groups: those whose two largest have the largest sums.
template <class S>
__device__ __forceinline__ void keep_groups(int lane, u32 (&orders)[kLaneScores<S>]) {
  constexpr int kSize = S::kExperts / kGroups<S>;
  static_assert(kGroups<S> <= 32 && S::kExperts % kGroups<S> == 0 && kSize > 1,
                "a lane for each group");
  u32 sums = 0;  // that of the group of the lane's number
#pragma unroll 1
  for (int group = 0; group < kGroups<S>; ++group) {
    u32 first = 0, second = 0;  // the largest of the lane
#pragma unroll
    for (int i = 0; i < kLaneScores<S>; ++i) {
      const u32 order = (lane + i * 32) / kSize == group ? orders[i] : 0;
      second = max(second, min(first, order));
      first = max(first, order);
    }
    const u32 best = most_of_warp(first);
    const int owner = find_first(warp_ballot(first == best)) - 1;
    const u32 next = most_of_warp(lane == owner ? second : first);
    if (lane == group) sums = order_of(score_of(best) + score_of(next));
  }
  u32 kept = 0;
#pragma unroll 1
  for (int round = 0; round < kTopGroups<S>; ++round) {
    const int group = find_first(warp_ballot(sums == most_of_warp(sums))) - 1;
    kept |= 1u << group;
    if (lane == group) sums = 0;
  }
#pragma unroll
  for (int i = 0; i < kLaneScores<S>; ++i) {
    if (!(kept >> (lane + i * 32) / kSize % 32 & 1)) orders[i] = 0;
  }
}

// What is added to the scores of a lane's experts for the choice alone.
template <class S>
struct ScoreBiases {
  float of[kLaneScores<S>] = {};

  __device__ __forceinline__ ScoreBiases(int lane, const u8* biases) {
    if constexpr (kBiased<S>) {
#pragma unroll
      for (int i = 0; i < kLaneScores<S>; ++i) {
        if (is_expert<S>(lane + i * 32))
          of[i] = load_constant(reinterpret_cast<const float*>(biases) + lane + i * 32);
      }
    }
  }
};

// An expert that is chosen, and how it is weighed.
struct Chosen {
  int expert;
  float share;
};

// Scores that a token has: those of experts, and one that makes the gate.
template <class S>
constexpr int kScores = S::kExperts + kGated<S>;

// The experts with the largest scores, of equal ones those with the lower numbers, and how they are
// weighed: TOPK, with what comes before and after it. score(i) is that of expert lane + i * 32. A
// warp calls it; lane r gets what is chosen in round r. took(expert) is called before they are
// weighed, of the lanes without one too.
template <class S, class Score, class Took>
__device__ __forceinline__ Chosen choose_experts(int lane, const ScoreBiases<S>& bias,
                                                 Score&& score, Took&& took) {
  static_assert(S::kChosen <= kMostChosen && S::kChosen <= 32 && S::kChosen <= S::kExperts,
                "a lane for each chosen expert");
  constexpr int kEach = kLaneScores<S>;
  // A softmax leaves the order as it is, so that the scores decide, and those of the chosen are
  // enough to weigh them.
  constexpr bool kByScores = !kSigmoid<S> && !kBiased<S> && kTopGroups<S> == kGroups<S>;
  float x[kEach];
  u32 orders[kEach];
  auto order = [&] {
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      orders[i] = is_expert<S>(lane + i * 32) ? order_of(x[i] + bias.of[i]) : 0;
  };
  float all = 0;  // Σ exp(score - largest), of the lane
  auto powers = [&](float largest) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (is_expert<S>(lane + i * 32)) all += expf(score(i) - largest);
    }
    return sum_of_warp(all);
  };
#pragma unroll
  for (int i = 0; i < kEach; ++i) x[i] = kSigmoid<S> ? sigmoid(score(i)) : score(i);
  if constexpr (!kByScores && !kSigmoid<S>) {
    u32 most = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (is_expert<S>(lane + i * 32)) most = max(most, order_of(x[i]));
    }
    const float largest = score_of(most_of_warp(most)), sum = powers(largest);
#pragma unroll
    for (int i = 0; i < kEach; ++i) x[i] = expf(x[i] - largest) / sum;
  }
  order();
  if constexpr (kTopGroups<S> < kGroups<S>) keep_groups<S>(lane, orders);
  Chosen chosen = {};
  float own_score = 0, largest = 0;
#pragma unroll 1
  for (int round = 0; round < S::kChosen; ++round) {
    u32 own = 0;
    int first = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (orders[i] > own) own = orders[i], first = lane + i * 32;
    }
    const u32 most = most_of_warp(own);
    const int best = S::kExperts - int(most_of_warp(own == most ? u32(S::kExperts - first) : 0));
    float value = score_of(most);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (lane + i * 32 != best) continue;
      orders[i] = 0;
      if (!kByScores) value = x[i];
    }
    if (!kByScores) value = shuffle(value, best % 32);
    if (round == 0) largest = value;
    if (lane == round) chosen.expert = best, own_score = value;
  }
  took(chosen.expert);
  const bool has = lane < S::kChosen;
  float share = has ? own_score : 0.0f;
  if constexpr (kByScores) {
    share = has ? expf(own_score - largest) : 0.0f;
    share = share / (S::kOfChosen ? sum_of_warp(share) : powers(largest));
  }
  if constexpr (S::kRenormalised) {
    const float sum = sum_of_warp(share) + kExtra<S>;
    share = share / (sum < kLeast<S> ? kLeast<S> : sum);
  }
  chosen.share = share * kShareScale<S>;
  return chosen;
}

// Chooses the experts of each token, a warp those of one. Lane r keeps what is chosen in round r.
template <class S, class C>
__device__ __forceinline__ void route(C& c, const Page in, const u8* biases = nullptr) {
  if constexpr (!C::kWaits) return;  // and experts are made up
  begin_reading<S>(c);
  await(c);
  consumer_barrier();  // nobody reads what the router before has chosen
  // The producer learns the experts of one token before they are weighed, those of several once all
  // warps have chosen.
  const u32 choice = u32(c.step) * kLayers + u32(c.layer) + 1;
  if (const int token = c.warp; token < kTokens) {
    const ScoreBiases<S> bias(c.lane, biases);
    auto words = word_poll<Fp32, ceil_div(kScores<S>, 32)>(page_copy(c, in), [&](int i) {
      const int score = c.lane + i * 32;
      return score < kScores<S> ? token * kScores<S> + score : -1;
    });
    poll_all(c, words);
    const auto score = [&](int i) { return words.value(i); };
    const auto took = [&](int expert) {
      if (c.lane < S::kChosen) c.shared.experts[token][c.lane] = expert;
      if constexpr (kTokens == 1) {
        warp_sync();
        if (c.tid == 0) store_shared_release(&c.shared.choices, choice);
      }
    };
    const Chosen chosen = choose_experts<S>(c.lane, bias, score, took);
    if (c.lane < S::kChosen) c.shared.shares[token][c.lane] = chosen.share;
    if constexpr (kGated<S>) {
      if (c.lane == S::kExperts % 32)
        c.shared.gates[token] = sigmoid(words.value(S::kExperts / 32));
    }
  }
  consumer_barrier();
  if constexpr (kTokens > 1) {
    if (c.tid == 0) store_shared_release(&c.shared.choices, choice);
  }
  end_reading<S>(c);
  lap(c, Did::kExchangeWait);
}

}  // namespace amk
