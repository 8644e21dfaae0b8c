// LAYERNORM of a vector that the warps of a tile have in registers. Every group of warps that share
// a tile has all of it. Sums and squares are accumulated in fp32 in one pass: the error of their
// difference in the variance is far below that of the vector's 16 bits. Needs schedule.h with
// AMK_TENSOR_CORES.
#pragma once

#include "exchange_quads.cuh"

namespace amk {

// What is subtracted from an element, and what the rest is multiplied by.
struct Centre {
  float mean, inverse;
};

// From the sums of a vector and of its squares. The mean is rounded before it is subtracted from
// anything.
template <class S>
__device__ __forceinline__ Centre centre_of_sums(float sum, float squares, float eps) {
  constexpr float kShare = 1.0f / S::kColumns;
  const float mean = sum * kShare;
  const float variance = fmaxf(sum_of_products(squares, kShare, -mean, mean), 0.0f);
  return {mean, rsqrtf(variance + eps)};
}

// From the sums of the warps of a group for a token, in order.
template <class S, class C, class Reader>
__device__ __forceinline__ Centre centre_of_warps(C& c, const Reader& in, int group,
                                                  int token = 0) {
  float sum = 0, squares = 0;
#pragma unroll
  for (int w = 0; w < S::kWarps; ++w) {
    const int warp = token * kConsumerWarps + group * S::kWarps + w;
    sum += c.shared.squares[0][warp];
    squares += c.shared.squares[1][warp];
  }
  return centre_of_sums<S>(sum, squares, in.eps);
}

// Of a group's vector, from each thread's share of it. All threads of a block call it, in a stage
// with tiles: the block barriers of its flushes separate one call from the next.
template <class S, class C, class Reader>
__device__ __forceinline__ Centre centre_of(C& c, const Reader& in, int group, float sum,
                                            float squares) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) {
    sum += shuffle_xor(sum, offset);
    squares += shuffle_xor(squares, offset);
  }
  if (c.lane == 0) {
    c.shared.squares[0][c.warp] = sum;
    c.shared.squares[1][c.warp] = squares;
  }
  consumer_barrier();
  return centre_of_warps<S>(c, in, group);
}

// One element, with the weight and the bias of its column.
template <class Reader>
__device__ __forceinline__ float centred(const Centre& by, float x, float weight, float bias) {
  float factor = by.inverse;
  if constexpr (Reader::kGain) factor *= Reader::kUnitOffset ? 1.0f + weight : weight;
  x -= by.mean;
  return Reader::kShift ? fmaf(x, factor, bias) : x * factor;
}

// Four of them.
template <class Reader>
__device__ __forceinline__ uint2 centred(const Centre& by, uint2 x, uint2 weight, uint2 bias) {
  const auto two = [&](u32 x, u32 w, u32 b) {
    const auto low = [](u32 v) { return Element::to_float(u16(v)); };
    const auto high = [](u32 v) { return Element::to_float(u16(v >> 16)); };
    return pack2(centred<Reader>(by, low(x), low(w), low(b)),
                 centred<Reader>(by, high(x), high(w), high(b)));
  };
  return make_uint2(two(x.x, weight.x, bias.x), two(x.y, weight.y, bias.y));
}

}  // namespace amk
