// Which layers are of a kind, by the list in schedule.h, where layers are of several. Needs
// schedule.h with kLayerKinds. Must not know what the kinds do.
#pragma once

#include "platform.cuh"

namespace amk {

constexpr int kListedKinds = sizeof(kLayerKinds) / sizeof(kLayerKinds[0]);
static_assert(kListedKinds <= 128, "two words of bits");

// A bit for each of 64 entries of the list, from one on, that is of a kind.
__host__ __device__ constexpr unsigned long long kind_bits(int kind, int from) {
  unsigned long long bits = 0;
  for (int i = from; i < kListedKinds && i < from + 64; ++i) {
    if (kLayerKinds[i] == kind) bits |= 1ull << (i - from);
  }
  return bits;
}

template <int kKind>
__device__ __forceinline__ bool of_kind(int layer) {
  constexpr unsigned long long kLow = kind_bits(kKind, 0), kHigh = kind_bits(kKind, 64);
  const int at = layer % kListedKinds;
  if constexpr (kListedKinds <= 64) {
    return kLow >> at & 1;
  } else {
    return (at < 64 ? kLow >> at : kHigh >> (at - 64)) & 1;
  }
}

}  // namespace amk
