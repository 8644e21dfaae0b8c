// Plain gated delta rules over the states that the megakernel keeps, whose places they work out on
// their own, and gates of what attention makes. Needs model_config.h. Must not include the headers
// of the megakernel's stages.
#pragma once

#include "reference_values.cuh"
#include "reference_weights.cuh"

namespace amk {

__device__ inline float silu_of(float v) { return v / (1 + expf(-v)); }

// A block has a head, and a thread columns of its state. s, z, b and a are what is projected of the
// token: queries, keys and values, a gate, how much is replaced, and how much remains. What a layer
// keeps is in float32: of each head a matrix; the position after the last step, its decay, key, and
// what it adds; and what is convolved, of as many positions as there are taps, in turn.
template <int kHeads, int kKeyHeads, int kKeys, int kValues, int kTaps>
__device__ inline void delta_rule(Bits* out, const Bits* s, const Bits* z, const Bits* b,
                                  const Bits* a, u8* cache, size_t states, size_t pending,
                                  size_t before, int position, Packed taps, Packed log,
                                  Packed bias, Packed gain, float eps) {
  constexpr int kOwn = 2 * kKeys + kValues;
  struct Own;
  auto& own = shared_array<Own, float, kOwn>();
  const int head = block_index(), key_head = head / (kHeads / kKeyHeads);
  auto kept = [&](size_t from, int floats) {
    return reinterpret_cast<float*>(cache + from) + size_t(head) * floats;
  };
  float* const state = kept(states, kKeys * kValues);
  float* const left = kept(pending, 2 + kKeys + kValues);
  float* const inputs = kept(before, kTaps * kOwn);
  float of_query = 0, of_key = 0;  // squares
  for (int i = thread_index(); i < kOwn; i += kReferenceThreads) {
    const int channel = i < kKeys       ? key_head * kKeys + i
                        : i < 2 * kKeys ? (kKeyHeads + key_head) * kKeys + i - kKeys
                                        : (2 * kKeyHeads) * kKeys + head * kValues + i - 2 * kKeys;
    inputs[position % kTaps * kOwn + i] = at(s, channel);
    float sum = 0;
    for (int t = max(0, kTaps - 1 - position); t < kTaps; ++t)
      sum += weight_at(taps, channel * kTaps + t) *
             inputs[(position - (kTaps - 1) + t) % kTaps * kOwn + i];
    const float y = own[i] = silu_of(sum);
    if (i < 2 * kKeys) (i < kKeys ? of_query : of_key) += y * y;
  }
  const int thread = thread_index();
  const float *q = own, *k = own + kKeys, *v = own + 2 * kKeys;
  const float q_scale = 1 / sqrtf((block_sum(of_query) + 1e-6f) * kKeys);
  const float k_scale = 1 / sqrtf(block_sum(of_key) + 1e-6f);
  auto exact = [&](Packed of) { return reinterpret_cast<const float*>(of.buffer)[head]; };
  const float shifted = at(a, head) + exact(bias);
  const float softplus =
      shifted > 0 ? shifted + log1pf(expf(-shifted)) : log1pf(expf(shifted));
  const float decay = expf(-expf(exact(log)) * softplus);
  const float beta = 1 / (1 + expf(-at(b, head)));
  const bool follows = position > 0 && left[0] == float(position);
  float sum = 0;
  for (int j = thread; j < kValues; j += kReferenceThreads) {
    float found = 0, result = 0;
    for (int i = 0; i < kKeys; ++i) {
      float& x = state[i * kValues + j];
      if (position == 0) x = 0;
      if (follows) x = x * left[1] + left[2 + i] * left[2 + kKeys + j];
      found += decay * x * (k[i] * k_scale);
    }
    const float u = beta * (v[j] - found);
    for (int i = 0; i < kKeys; ++i)
      result += (decay * state[i * kValues + j] + k[i] * k_scale * u) * (q[i] * q_scale);
    left[2 + kKeys + j] = u;  // which no other thread reads
    own[2 * kKeys + j] = result;
    sum += result * result;
  }
  const float inverse = 1 / sqrtf(block_sum(sum) / kValues + eps);
  for (int i = thread; i < kKeys; i += kReferenceThreads) left[2 + i] = k[i] * k_scale;
  if (thread == 0) left[0] = float(position + 1), left[1] = decay;
  for (int j = thread; j < kValues; j += kReferenceThreads) {
    const int to = head * kValues + j;
    put(out, to, own[2 * kKeys + j] * inverse * weight_at(gain, j) * silu_of(at(z, to)));
  }
}

// What attention has made, times the sigmoids of gates, an element a thread.
__device__ inline void gated_attention(Bits* out, const Bits* x, const Bits* gates, int n) {
  const int i = grid_index();
  if (i < n) put(out, i, at(x, i) / (1 + expf(-at(gates, i))));
}

}  // namespace amk
