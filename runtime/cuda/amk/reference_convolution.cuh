// Plain gated short convolutions over the rows that the megakernel keeps, whose places they work
// out on their own. Needs model_config.h. Must not include the headers of the megakernel's stages.
#pragma once

#include "reference_values.cuh"
#include "reference_weights.cuh"

namespace amk {

// What a layer keeps of a channel at a position, in float32: groups of channels, each with all
// positions in blocks of 16.
template <int kGroups, int kChannels>
__device__ inline float& kept_at(u8* cache, size_t layer, int channel, int position) {
  const size_t rows = round_up(kMaxSeq, 16), stride = round_up(kChannels, 16);
  const size_t row = channel / kChannels * rows + position;
  return reinterpret_cast<float*>(cache + layer)[row * stride + channel % kChannels];
}

// What the cache has for this position, followed by what it should have.
template <int kGroups, int kChannels>
__device__ inline void conv_row(float* out, const Bits* x, const Bits* b, u8* cache, size_t layer,
                                int position) {
  const int i = grid_index();
  if (i >= kGroups * kChannels) return;
  out[i] = kept_at<kGroups, kChannels>(cache, layer, i, position);
  out[kGroups * kChannels + i] = at(x, i) * at(b, i);
}

// y = c · (bias + Σ taps[t] · (x·b) of the position taps-1-t before), an element a thread. Keeps
// x·b of this position.
template <int kGroups, int kChannels>
__device__ inline void short_conv(Bits* y, const Bits* c, const Bits* x, const Bits* b, u8* cache,
                                  size_t layer, int position, Packed weights, int taps,
                                  Packed bias = {}) {
  const int i = grid_index();
  if (i >= kGroups * kChannels) return;
  kept_at<kGroups, kChannels>(cache, layer, i, position) = at(x, i) * at(b, i);
  float sum = 0;
  for (int t = max(0, taps - 1 - position); t < taps; ++t) {
    sum += weight_at(weights, i * taps + t) *
           kept_at<kGroups, kChannels>(cache, layer, i, position - (taps - 1) + t);
  }
  if (bias.buffer) sum += weight_at(bias, i);
  put(y, i, at(c, i) * sum);
}

}  // namespace amk
