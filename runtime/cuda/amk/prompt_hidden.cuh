// The last hidden states of all tokens of a pass over a prompt (hidden.cuh): a block has one token
// at a time. Needs schedule.h.
#pragma once

#include "hidden.cuh"
#include "prompt_vector.cuh"

namespace amk {

__device__ __forceinline__ float sum_of_consumers(Prompt& c, float v) {
  float2 own[1] = {{0, v}};
  sum_of_members<kConsumerWarps>(c, 0, own);
  return own[0].y;
}

// Of tokens whose elements x gives by token and column.
template <class S, class X>
__device__ __forceinline__ void keep_all_hidden(Prompt& c, X&& x, const u8* gain,
                                                const u8* bias) {
#pragma unroll 1
  for (int token = c.sm; token < c.tokens; token += kSMs) {
    float* to = c.launch.hidden + size_t(token) * kHidden;
    float sum = 0;
#pragma unroll 1
    for (int column = c.tid; column < kHidden; column += kConsumers) {
      to[column] = x(token, column);
      sum += to[column];
    }
    normalise_hidden<S>(c, to, sum, gain, bias);
  }
}

template <class S>
__device__ __forceinline__ void keep_hidden(Prompt& c, const Page in, const u8* gain = nullptr,
                                            const u8* bias = nullptr) {
  if (!c.launch.hidden) return;
  const u16* values = c.values<Element>(in);
  keep_all_hidden<S>(
      c,
      [values](int token, int column) {
        return Element::to_float(values[size_t(token) * kHidden + column]);
      },
      gain, bias);
}

template <class S>
__device__ __forceinline__ void keep_hidden(Prompt& c, const u8* gain) {
  if (!c.launch.hidden) return;
  add_due(c);
  keep_all_hidden<S>(
      c, [&c](int token, int column) { return rounded<Element>(c.residual(token)[column]); }, gain,
      nullptr);
}

}  // namespace amk
