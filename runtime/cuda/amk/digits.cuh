// Activations in fixed point, as integers of a matrix multiply them: the largest magnitude of a
// quad becomes 127 * 256, and each activation an integer of 16 bits. Those of fp32 are multiplied
// as they are. Needs model_config.h. Must not know a stage.
#pragma once

#include "weights.cuh"

namespace amk {

constexpr float kLargestDigits = 127 * 256;

// What a quad's activations take in shared memory: two bytes of digits each, and a scale and a sum
// for each quarter. ir.DigitQuadBytes says the same.
constexpr int kDigitQuadBytes = kQuadColumns * 2 + 4 * 8;

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
  const int row = lane / 4, quarter = lane % 4, group = lane * W::kGroups / 4;
  int zero = W::kBits == 4 ? 8 : 0;
  using Total = typename TotalOf<kDigits>::Type;
  Total total = 0;
  if constexpr (W::kZeros)
    zero = reinterpret_cast<const signed char*>(block + W::kZeroPoints)[group];
#pragma unroll 1
  for (int four = 0; four < 8; ++four) {
    const int part = four / 2, half = four % 2;
    const int place = (row * 4 + part) * 16 + quarter % 2 * 8 + half * 4;
    const int upper = quarter / 2;
    const u8* elements = block + place + (W::kBits == 8 ? 512 * upper : 0);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int q = W::kBits == 8 ? static_cast<signed char>(elements[i])
                                  : elements[i] >> 4 * upper & 15;
      const float value = x(quarter * 32 + half * 16 + part * 4 + i);
      if constexpr (kDigits) {
        total += (q - zero) * int(short(digits_of(value, inverse)));
      } else {
        total = fmaf(float(q - zero), value, total);
      }
    }
  }
  using Bits = typename W::Scale::Bits;
  const Bits scale = reinterpret_cast<const Bits*>(block + W::kScales)[group];
  return fmaf(float(total),
              W::Scale::to_float(scale) * (largest * (1.0f / kLargestDigits)), to);
}

}  // namespace amk
