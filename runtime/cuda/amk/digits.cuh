// Activations in fixed point, as integers of a matrix multiply them: the largest magnitude of a
// quad becomes 127 * 256, and each activation an integer of 16 bits. Those of fp32 are multiplied
// as they are. Needs model_config.h. Must not know a stage.
#pragma once

#include "weights.cuh"

namespace amk {

constexpr float kLargestDigits = 127 * 256;

// What a quad's activations take in shared memory: two bytes of digits each, and a scale and a sum
// for each quarter, and for each half of one if these are groups. kernel.DigitBytes says the same.
template <class W>
constexpr int kDigitQuadBytes = kQuadColumns * 2 + 4 * 8 + (W::kHalves ? 4 * 4 : 0);

// The largest magnitude of four activations. Floats that are not negative are in the order of their
// bits, and NaN is the largest.
__device__ __forceinline__ u32 magnitude(const float (&v)[4]) {
  const auto bits = [](float x) { return bits_of(x) & 0x7fffffffu; };
  return max(max(bits(v[0]), bits(v[1])), max(bits(v[2]), bits(v[3])));
}

// That of a quad, such that divide_fast divides by it: at least 2^-100. From 2^126 on, infinity and
// NaN among them, it is NaN, and with it all that the quad is part of.
__device__ __forceinline__ float largest_digits(u32 magnitude) {
  if (magnitude >= 0x7e800000u) magnitude = 0x7fffffffu;
  return float_of_bits(max(magnitude, 0x0d800000u));
}

// x * inverse, rounded to nearest: the integer is in the low 16 bits.
__device__ __forceinline__ u32 digits_of(float x, float inverse) {
  return bits_of(fmaf(x, inverse, 0x1.8p23f));
}

// The same plus 128 * 257, which leaves both bytes without a sign: 128 more than their digits.
__device__ __forceinline__ u32 biased_digits_of(float x, float inverse) {
  return bits_of(fmaf(x, inverse, 0x1.8p23f + 128 * 257));
}

// The sum of a quarter: exact in fixed point.
template <bool kDigits>
struct TotalOf {
  using Type = int;
};
template <>
struct TotalOf<false> {
  using Type = float;
};

// Adds what a lane has of a block of integers, without tensor cores: quarter lane % 4 of row
// lane / 4. x gives an activation by its column in the quad. All lanes of a warp call it.
template <class W, class Activations>
__device__ __forceinline__ float add_quarter(float to, const u8* block, int lane,
                                             Activations&& x) {
  constexpr bool kDigits = Element::kBytes == 2;
  float largest = kLargestDigits, inverse = 1;
  if constexpr (kDigits) {
    const float own[4] = {x(lane * 4), x(lane * 4 + 1), x(lane * 4 + 2), x(lane * 4 + 3)};
    u32 most = magnitude(own);
#pragma unroll
    for (int offset = 16; offset; offset >>= 1)
      most = max(most, shuffle_xor(most, offset));
    largest = largest_digits(most);
    inverse = divide_fast(kLargestDigits, largest);
  }
  const int row = lane / 4, quarter = lane % 4;
  using Total = typename TotalOf<kDigits>::Type;
  // A quarter is one group, or two.
  constexpr int kOwn = W::kHalves ? 2 : 1;
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    const auto numbers = W::numbers(block, row, lane * W::kGroups / 4 + k, ReadPlainly());
    Total total = 0, sum = 0;
#pragma unroll 1
    for (int four = 0; four < 8 / kOwn; ++four) {
      const int part = W::kHalves ? four : four / 2, half = W::kHalves ? k : four % 2;
      const int column = quarter * 32 + half * 16 + part * 4;
      int q[4];
      W::integers(q, block, row, column, ReadPlainly());
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (W::kZeros) q[i] -= numbers.zero - (W::kBits == 4 ? 8 : 0);
        const float value = x(column + i);
        if constexpr (kDigits) {
          const int digits = int(short(digits_of(value, inverse)));
          total += q[i] * digits;
          if constexpr (W::kMins) sum += digits;
        } else {
          total = fmaf(float(q[i]), value, total);
          if constexpr (W::kMins) sum += value;
        }
      }
    }
    const float unit = largest * (1.0f / kLargestDigits);
    if constexpr (W::kMins) to += numbers.min() * (float(sum) * unit);
    to = fmaf(float(total), numbers.scale() * unit, to);
  }
  return to;
}

}  // namespace amk
