// Numbers of 8 bits in e4m3 (OCP 8-bit floating point): a sign, 4 bits of exponent with a bias of
// 7, 3 of mantissa; no NaN, which checkpoints are refused for. Numbers of 4 bits in e2m1 (OCP
// Microscaling Formats): a sign, 2 bits of exponent with a bias of 1, 1 of mantissa. Must not know
// where they are in memory.
#pragma once

#include "hw/math.cuh"
#include "weight_format.cuh"

namespace amk {

struct E4m3 {
  static constexpr int kBits = 8;

  // The value of what is in the low kBits bits: these, where a float has them, are its value times
  // 2^-120, subnormals too.
  __device__ __forceinline__ static float to_float(u32 bits) {
    return float_of_bits((bits & 0x80u) << 24 | (bits & 0x7fu) << 20) * 0x1p120f;
  }

  // The byte of a word that number i of four is in.
  __host__ __device__ static constexpr int byte_of(int i) { return i; }

  // Four of them as pairs of fp16: numbers 0 and 1, and 2 and 3. Each is its value over
  // kHalvesUnit, exactly. Numbers of 4 bits are in the low or in the high halves of the bytes.
#if AMK_FP8_CONVERT
  static constexpr float kHalvesUnit = 1;
  __device__ __forceinline__ static uint2 to_halves(u32 four, bool) {
    return e4m3x4_to_halves(four);
  }
#else
  static constexpr float kHalvesUnit = 0x1p8f;  // between the biases of the exponents, 7 and 15
  __device__ __forceinline__ static uint2 to_halves(u32 four, bool) {
    constexpr u32 kSign = 0x80008000u, kRest = 0x3f803f80u;
    const u32 low = byte_perm(four, 0, 0x1404), high = byte_perm(four, 0, 0x3424);
    return make_uint2((low & kSign) | (low >> 1 & kRest), (high & kSign) | (high >> 1 & kRest));
  }
#endif
};

struct E2m1 {
  static constexpr int kBits = 4;

  // As above; bits are the number's times 2^-126.
  __device__ __forceinline__ static float to_float(u32 bits) {
    return float_of_bits((bits & 8u) << 28 | (bits & 7u) << 22) * 0x1p126f;
  }

  // Numbers 1 and 2 change places: so those of a pair of fp16 are each in its half of the word, and
  // shifts take them to their place.
  __host__ __device__ static constexpr int byte_of(int i) { return i % 2 * 2 + i / 2; }

  static constexpr float kHalvesUnit = 0x1p14f;  // between the biases of the exponents, 1 and 15
  __device__ __forceinline__ static uint2 to_halves(u32 four, bool high) {
    return make_uint2(pair(four, high ? 4 : 0), pair(four, high ? 12 : 8));
  }

 private:
  // The pair whose numbers begin with a bit of each half.
  __device__ __forceinline__ static u32 pair(u32 four, int bit) {
    constexpr u32 kSign = 0x80008000u, kRest = 0x0e000e00u;
    const u32 rest = bit > 9 ? four >> (bit - 9) : four << (9 - bit);
    return (four << (12 - bit) & kSign) | (rest & kRest);
  }
};

// The type of the numbers of an element type, void for integers. It has what E4m3 has.
template <ElementType kElement>
struct FloatOf {
  using Type = void;
};
template <>
struct FloatOf<kE4m3> {
  using Type = E4m3;
};
template <>
struct FloatOf<kE2m1> {
  using Type = E2m1;
};

}  // namespace amk
