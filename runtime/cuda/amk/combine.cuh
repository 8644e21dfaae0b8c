// Owners combine the splits of long-context attention: a unit is kWidth elements of one head of a
// token, of every split each. Splits travel in fp32, and are shares that join in their order. Needs
// schedule.h.
#pragma once

#include "attention.cuh"

namespace amk {

// Lanes of a warp that poll the splits of an element: a power of two, and as few as have registers
// for eight splits each.
__host__ __device__ constexpr int lanes_for(int splits) {
  return splits <= 8 ? 1 : splits > 128 ? 32 : 2 * lanes_for((splits + 1) / 2);
}

// A poll of kCount pairs of fp32 words: the i-th pair is index_of(i) words after the first of a
// page. Pairs that the thread does not need read as 0.
template <int kCount, class IndexOf, class Needs>
struct PairPoll {
  const u64* words;
  IndexOf index_of;
  Needs needs;
  u32 missing = 0;
  ulonglong2 pair[kCount] = {};

  __device__ __forceinline__ PairPoll(const u8* copy, IndexOf of, Needs needs)
      : words(reinterpret_cast<const u64*>(copy)), index_of(of), needs(needs) {}
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (needs(i)) pair[i] = load_relaxed_2x8(words + index_of(i));
    }
  }
  template <class C>
  __device__ __forceinline__ void check(C& c) {
    missing = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool fresh = is_fresh<Fp32>(c, pair[i].x) && is_fresh<Fp32>(c, pair[i].y);
      if (needs(i) && !fresh) missing |= 1u << i;
    }
  }
  __device__ __forceinline__ int first_missing() const { return index_of(find_first(missing) - 1); }
  // The n-th word of all.
  __device__ __forceinline__ float value(int n) const {
    return WordOf<Fp32>::value(n % 2 ? pair[n / 2].y : pair[n / 2].x);
  }
};

template <int kCount, class IndexOf, class Needs>
__device__ __forceinline__ PairPoll<kCount, IndexOf, Needs> pair_poll(const u8* copy,
                                                                      IndexOf index_of,
                                                                      Needs needs) {
  return {copy, index_of, needs};
}

// Elements that a thread takes of a split at a time: two or more, which are in one unit, so that
// the threads cover all units of the SM if possible. A thread that takes several splits takes
// fewer.
template <class S>
__host__ __device__ constexpr int elements_at_once(int parallel, int splits, int n = 2) {
  return n < 8 && (splits == 1 || n * splits < 8) && S::kWidth % (2 * n) == 0 &&
                 n * parallel < ceil_div(S::kUnits, kSMs) * S::kWidth
             ? elements_at_once<S>(parallel, splits, 2 * n)
             : n;
}

template <class S, class C>
__device__ __forceinline__ void combine(C& c, const Page in, const Page out) {
  using H = HeadsOf<S>;
  constexpr int kLanes = lanes_for(S::kSplits);  // lanes of a warp that share elements
  constexpr int kOfLane = ceil_div(S::kSplits, kLanes);  // splits in a row that a lane has
  constexpr int kParallel = kConsumers / kLanes;
  constexpr int kAtOnce = elements_at_once<S>(kParallel, kOfLane);
  constexpr int kPairs = kAtOnce / 2 + 1;  // of a split
  static_assert(kPairs * kOfLane <= 32, "what is missing is bits of a word");
  static_assert(H::kHeadDim % S::kWidth == 0 && S::kWidth % kAtOnce == 0,
                "a unit is within one head");
  const Tiles mine = units_of<S>(c.sm, c.layer);
  if (mine.count() > 0) await(c);
  const int lane = c.tid % kLanes;
  const int elements = mine.count() * S::kWidth;
#pragma unroll 1
  for (int base = 0; base < elements; base += kParallel * kAtOnce) {
    const int e = base + c.tid / kLanes * kAtOnce;
    const int element = mine.begin * S::kWidth + e;  // of the tokens' attention vectors
    const int token = kTokens > 1 ? element / H::kQueryRows : 0;
    const int head = element / H::kHeadDim - token * H::kHeads, dim = element % H::kHeadDim;
    const int kv_head = head / H::kGroupHeads, in_group = head % H::kGroupHeads;
    auto has = [&](int s) { return e < elements && lane * kOfLane + s < S::kSplits; };
    // Of the lane's s-th split.
    auto at = [&](int s) {
      const int split = lane * kOfLane + s;
      const int of_sequence =
          kSequences > 1 ? sequence_of(token) * H::kKVHeads + kv_head : kv_head;
      const int row_of_head = of_sequence * S::kSplits + split;
      const int row = row_of_head * kSequenceRows + row_of(token);
      return (row * H::kGroupHeads + in_group) * (H::kHeadDim + 2);
    };
    // A split's maximum and sum, and its accumulators.
    auto partial = pair_poll<kPairs * kOfLane>(
        page_copy(c, in),
        [&](int i) {
          const int of_split = i % kPairs;
          return at(i / kPairs) + (of_split == 0 ? H::kHeadDim : dim + 2 * (of_split - 1));
        },
        [&](int i) { return has(i / kPairs); });
    poll_all(c, partial);
    warp_sync();
    lap(c, Did::kExchangeWait);
    // A lane joins its splits after those of the lanes before it: of the scores first, on which
    // everything else depends.
    float before = kNoScore, own = kNoScore;
#pragma unroll
    for (int s = 0; s < kOfLane; ++s)
      if (has(s)) own = fmaxf(own, partial.value(2 * s * kPairs));
#pragma unroll
    for (int from = 0; from + 1 < kLanes; ++from) {
      const float other = shuffle(own, c.lane - lane + from);
      if (from < lane) before = fmaxf(before, other);
    }
    float keep[kOfLane], scale[kOfLane];
#pragma unroll
    for (int s = 0; s < kOfLane; ++s) {
      const Joining both(before, has(s) ? partial.value(2 * s * kPairs) : kNoScore, kLog2e);
      before = both.base;
      keep[s] = both.keep;
      scale[s] = has(s) ? both.scale : 0.0f;
    }
    float sum = 0, values[kAtOnce] = {};
#pragma unroll
    for (int turn = 0; turn < kLanes; ++turn) {
#pragma unroll
      for (int s = 0; s < kOfLane; ++s) {
        const int first = 2 * s * kPairs;
        sum = fmaf(scale[s], partial.value(first + 1), sum * keep[s]);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          values[i] = fmaf(scale[s], partial.value(first + 2 + i), values[i] * keep[s]);
      }
      if constexpr (kLanes > 1) {
        sum = shuffle(sum, c.lane - lane + turn);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) values[i] = shuffle(values[i], c.lane - lane + turn);
      }
    }
    // Every lane has all sums by now: lanes divide the words among themselves.
#pragma unroll
    for (int first = 0; first < kAtOnce; first += kLanes) {
      const int of_lane = first + lane;
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
