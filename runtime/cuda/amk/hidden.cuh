// The last hidden state: the norm that the logits are computed from, once more, for a host that
// asks for it. The first SM computes it from what the last layer has published, before it continues
// with the logits; in other launches the stage is a branch. Values are those that the head
// multiplies, except for the order of summation: with 1/rms, or rounded once where the mean is
// subtracted. Needs schedule.h.
#pragma once

#include "replicated.cuh"

namespace amk {

// Sum over the consumers of a block. All of them call it; it may use what a stage has left in
// scratch.
template <class C>
__device__ __forceinline__ float sum_of_consumers(C& c, float v) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) v += shuffle_xor(v, offset);
  consumer_barrier();  // the sums of the previous stage have been read
  if (c.lane == 0) c.shared.squares[0][c.warp] = v;
  consumer_barrier();
  v = 0;
#pragma unroll
  for (int w = 0; w < kConsumerWarps; ++w) v += c.shared.squares[0][w];
  consumer_barrier();  // and so have these
  return v;
}

// Normalises a vector that the threads of a block have written, each kConsumers-th element of it,
// and each thread the sum of its own.
template <class S, class C>
__device__ __forceinline__ void normalise_hidden(C& c, float* to, float sum, const u8* gain,
                                                 const u8* bias) {
  const float mean = S::kCentred ? sum_of_consumers(c, sum) * (1.0f / kHidden) : 0.0f;
  float squares = 0;
#pragma unroll 1
  for (int column = c.tid; column < kHidden; column += kConsumers) {
    const float x = to[column] - mean;
    squares = fmaf(x, x, squares);
  }
  const float inverse =
      rsqrtf(fmaf(sum_of_consumers(c, squares), 1.0f / kHidden, S::kNormEps));
#pragma unroll 1
  for (int column = c.tid; column < kHidden; column += kConsumers) {
    float x = to[column] - mean;
    if constexpr (S::kCentred) x *= inverse;
    if constexpr (S::kNormWeights > 0) {
      const float weight = load_weight(gain, column);
      x = S::kUnitOffset ? fmaf(x, weight, x) : x * weight;
    }
    if constexpr (S::kNormWeights > 1) x += load_weight(bias, column);
    x = rounded<Element>(x);
    to[column] = S::kCentred ? x : x * inverse;
  }
}

// Of a vector that is published.
template <class S, class C>
__device__ __forceinline__ void keep_hidden(C& c, const Page in, const u8* gain = nullptr,
                                            const u8* bias = nullptr) {
  if (!c.launch.hidden || c.sm != 0) return;
  await(c);
  constexpr int kBatch = 8;  // words a thread polls together
#pragma unroll 1
  for (int token = 0; token < kTokens; ++token) {
    float* to = c.launch.hidden + (size_t(c.step) * kTokens + token) * kHidden;
    float sum = 0;
#pragma unroll 1
    for (int first = c.tid; first < kHidden; first += kConsumers * kBatch) {
      auto words = word_poll<Element, kBatch>(page_copy(c, in), [first, token](int i) {
        const int column = first + i * kConsumers;
        return column < kHidden ? token * kHidden + column : -1;
      });
      poll_all(c, words);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int column = first + i * kConsumers;
        if (column >= kHidden) break;
        to[column] = words.value(i);
        sum += words.value(i);
      }
    }
    normalise_hidden<S>(c, to, sum, gain, bias);
  }
  lap(c, Did::kCompute);
}

// Of the residual, where every SM has all of it.
template <class S, class C>
__device__ __forceinline__ void keep_hidden(C& c, const u8* gain) {
  if (!c.launch.hidden || c.sm != 0) return;
  add_due(c);
  float* to = c.launch.hidden + size_t(c.step) * kHidden;
  float sum = 0;
#pragma unroll 1
  for (int column = c.tid; column < kHidden; column += kConsumers) {
    to[column] = rounded<Element>(c.shared.residual[column]);
    sum += to[column];
  }
  normalise_hidden<S>(c, to, sum, gain, nullptr);
  lap(c, Did::kCompute);
}

}  // namespace amk
