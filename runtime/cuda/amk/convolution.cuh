// Gated short convolutions: a unit is a group of channels of a sequence. What its channels convolve
// is kept in float32, one row for each position. Rows of the steps before may be on their way at
// once: all consumers have passed the join of those steps. Needs schedule.h. Must not know what the
// vectors are projected from.
#pragma once

#include "stage.cuh"

namespace amk {

// The rows of a layer: of each group all positions, in whole blocks of 16. They begin at a byte of
// a sequence's part of the cache.
template <class S>
struct Inputs {
  static constexpr int kGroups = S::kUnits / kSequences;
  static constexpr int kChannels = kGroups * S::kWidth;
  static constexpr int kStride = round_up(S::kWidth, 16);
  static constexpr size_t kGroupRows = round_up(kMaxSeq, 16);

  u8* group;  // its first row

  template <class C>
  __device__ __forceinline__ Inputs(C& c, size_t at, int unit) {
    const size_t sequence = kSequences > 1 ? unit / kGroups * kCacheBytes : 0;
    group = c.launch.cache + sequence + at +
            unit % kGroups * kGroupRows * kStride * sizeof(float);
  }
  __device__ __forceinline__ float& at(int position, int channel) const {
    return reinterpret_cast<float*>(group)[size_t(position) * kStride + channel];
  }
};

// B·x convolved by taps, of which a channel's follow one another, plus a bias; times C. B, C and x
// of a token follow one another too. Products are added from the first tap on.
template <class S, bool kBias, class C>
__device__ __forceinline__ void convolve_units(C& c, const Page in, const u8* weights,
                                               const Page out, const u8* bias, size_t at) {
  constexpr int kChannels = Inputs<S>::kChannels, kBefore = S::kTaps - 1;
  static_assert(3 * kSequenceRows <= 32, "the words of a channel are one poll");
  const Tiles mine = units_of<S>(c.sm, c.layer);
#pragma unroll 1
  for (int base = 0; base < mine.count() * S::kWidth; base += kConsumers) {
    const int e = base + c.tid, unit = mine.begin + e / S::kWidth, own = e % S::kWidth;
    const bool valid = unit < mine.end;
    const int sequence = unit / Inputs<S>::kGroups;
    const int channel = unit % Inputs<S>::kGroups * S::kWidth + own;
    const int first = sequence * kSequenceRows;  // of its tokens
    const int position = valid ? c.position_of(first) : 0;
    const Inputs<S> rows(c, at, valid ? unit : 0);
    // Loads of what this step does not change overlap the wait for the vector.
    float taps[S::kTaps], convolved[kBefore + kSequenceRows], shift = 0;
#pragma unroll
    for (int t = 0; t < S::kTaps; ++t)
      taps[t] = valid ? load_weight(weights, channel * S::kTaps + t) : 0.0f;
#pragma unroll
    for (int t = 0; t < kBefore; ++t) {
      const int row = position - kBefore + t;
      convolved[t] = valid && row >= 0 ? rows.at(row, own) : 0.0f;
    }
    if constexpr (kBias) shift = valid ? load_weight(bias, channel) : 0.0f;
    if (base == 0) await(c);
    auto words = word_poll<Element, 3 * kSequenceRows>(page_copy(c, in), [&](int i) {
      return valid ? (first + i / 3) * 3 * kChannels + i % 3 * kChannels + channel : -1;
    });
    poll_all(c, words);
    lap(c, Did::kExchangeWait);
    if (!valid) continue;
    const bool kept = C::kWaits && (kSequences == 1 || is_present(c.launch, sequence));
#pragma unroll
    for (int r = 0; r < kSequenceRows; ++r) {
      const float x = words.value(3 * r + 2) * words.value(3 * r);
      convolved[kBefore + r] = x;
      float sum = 0;
#pragma unroll
      for (int t = 0; t < S::kTaps; ++t) sum += taps[t] * convolved[r + t];
      if constexpr (kBias) sum += shift;
      publish<Element>(c, out, (first + r) * kChannels + channel, sum * words.value(3 * r + 1));
      if (kept) rows.at(position + r, own) = x;
    }
    lap(c, Did::kSignal);
  }
  if (mine.count() > 0) signal(c, mine.count());
  c.advance(S::kTasks);
}
template <class S, class C>
__device__ __forceinline__ void convolve(C& c, const Page in, const u8* weights, const Page out,
                                         const u8* bias, size_t at) {
  convolve_units<S, true>(c, in, weights, out, bias, at);
}
template <class S, class C>
__device__ __forceinline__ void convolve(C& c, const Page in, const u8* weights, const Page out,
                                         size_t at) {
  convolve_units<S, false>(c, in, weights, out, nullptr, at);
}

}  // namespace amk
