// The layout of a prompt's tokens for products with a quantised matrix by wgmma: fp16, which has
// every quantised weight. Needs schedule.h with AMK_WGMMA. Must not know the product.
#pragma once

#include "prompt_digits.cuh"

namespace amk {

// Of four words of each of four lanes side by side, those with the number of the lane among them.
__device__ __forceinline__ uint4 transposed(const u32 (&words)[4], int lane) {
  const bool odd = lane & 1, high = lane & 2;
  const u32 a = shuffle_xor(odd ? words[0] : words[1], 1);
  const u32 b = shuffle_xor(odd ? words[2] : words[3], 1);
  const u32 first[2] = {odd ? a : words[0], odd ? words[1] : a};
  const u32 second[2] = {odd ? b : words[2], odd ? words[3] : b};
  const u32 c = shuffle_xor(high ? first[0] : second[0], 2);
  const u32 d = shuffle_xor(high ? first[1] : second[1], 2);
  return high ? make_uint4(c, d, second[0], second[1]) : make_uint4(first[0], first[1], c, d);
}

// Whether wgmma multiplies a matrix: elements as they are, and what fp16 has.
template <class W>
constexpr bool kWideMatrix = false;
template <class E>
constexpr bool kWideMatrix<Elements<E>> = true;
template <int kBits, int kGroup, class Scale, bool kZeros>
constexpr bool kWideMatrix<Integers<kBits, kGroup, Scale, kZeros>> =
    (kBits == 4 || kBits == 8) && kGroup >= 32;
template <class Number, int kGroup, class Scale>
constexpr bool kWideMatrix<Floats<Number, kGroup, Scale>> = true;

// Half of a quarter of a quad of all tokens of a tile: two groups of eight columns, and in each 16
// bytes of every token.
constexpr int kHalfBytes = kTokenTile * 16 * 2;

// What the tokens of a tile have of a quad: scales of each token, then quarter after quarter, in
// each part after part of the activations, and in each the two halves.
template <int kPartsOf, int kScalesOf>
struct QuadPlaces {
  static constexpr int kParts = kPartsOf;    // of an activation
  static constexpr int kScales = kScalesOf;  // of the first quarters, and of those from 2 on
  static constexpr int kScaleBytes = kTokenTile * 4;
  static constexpr int kQuarterBytes = kParts * 2 * kHalfBytes;
  static constexpr int kTogether = 4;  // tokens that are stored at once
  static constexpr int kBytes = kScales * kScaleBytes + 4 * kQuarterBytes;

  // The byte of the first eight columns of the first token.
  __host__ __device__ static constexpr int place(int quarter, int part, int half) {
    return kScales * kScaleBytes + quarter * kQuarterBytes + (part * 2 + half) * kHalfBytes;
  }
  // Where the scale of a token is for a quarter: of two tokens of eight, and of the same two of the
  // next eight, they are side by side, as a lane of wgmma has them.
  __host__ __device__ static constexpr int scale_place(int quarter, int token) {
    return (kScales == 2 ? quarter / 2 : 0) * kScaleBytes +
           (token / 16 * 16 + token % 8 / 2 * 4 + token / 8 % 2 * 2 + token % 2) * 4;
  }

 protected:
  // Stores four columns of a part of four tokens where a lane has them, in two words of each.
  __device__ static __forceinline__ void store_part(u8* at, int part, int token,
                                                    const u32 (&first)[kTogether],
                                                    const u32 (&second)[kTogether], int lane) {
    u8* const to = at + place(lane / 8, part, lane / 4 % 2) + (token + lane % 4) * 16;
    *reinterpret_cast<uint4*>(to) = transposed(first, lane);
    *reinterpret_cast<uint4*>(to + kTokenTile * 16) = transposed(second, lane);
  }
};

// Integers are multiplied by both digits of an activation (digits.cuh): 256 times the high one, and
// the low one. High nibbles are multiplied where they are: 16 times themselves, and so they have a
// scale of their own.
template <class W>
struct QuadOperand : QuadPlaces<2, W::kBits == 4 ? 2 : 1> {
  using Places = QuadPlaces<2, W::kBits == 4 ? 2 : 1>;

  // Stores four columns of some tokens, of the quarter that the lane has them of. A warp calls it.
  __device__ static __forceinline__ void store(u8* at, int token, const uint2 (&x)[4], int lane) {
    u32 words[4][4];  // the high digits of two columns each, then the low ones
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      float v[4];
      to_floats(v, x[t]);
      const float largest = largest_digits(warp_max(magnitude(v)));
      const float inverse = divide_fast(kLargestDigits, largest);
      u32 n[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) n[i] = biased_digits_of(v[i], inverse);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const u32 two = byte_perm(n[i * 2], n[i * 2 + 1], 0x5410);
        words[i][t] = mul2_fp16(digits<0x4341>(two), 0x5c005c00u);  // 256 times
        words[i + 2][t] = digits<0x4240>(two);
      }
      if (lane < Places::kScales) {
        const float by = lane > 0 ? 0x1p-4f / kLargestDigits : 1.0f / kLargestDigits;
        *reinterpret_cast<float*>(at + Places::scale_place(lane * 2, token + t)) = largest * by;
      }
    }
    Places::store_part(at, 0, token, words[0], words[1], lane);
    Places::store_part(at, 1, token, words[2], words[3], lane);
  }

 private:
  // Two digits: below the high byte of 1024 in fp16, a byte is 1024 more than itself, and it is 128
  // more than its digit.
  template <u32 kSelector>
  __device__ static __forceinline__ u32 digits(u32 bytes) {
    return sub2_fp16(byte_perm(bytes, 0x64646464u, kSelector), 0x64806480u);
  }
};

// Floats are multiplied by the activations as halves.
template <class Number, int kGroup, class Scale>
struct QuadOperand<Floats<Number, kGroup, Scale>> : QuadPlaces<1, 1> {
  __device__ static __forceinline__ void store(u8* at, int token, const uint2 (&x)[4], int lane) {
    u32 first[4], second[4];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      float scale;
      const uint2 four = activations_in_halves(x[t], scale);
      first[t] = four.x, second[t] = four.y;
      if (lane == 0)
        *reinterpret_cast<float*>(at + scale_place(0, token + t)) = scale * Number::kHalvesUnit;
    }
    store_part(at, 0, token, first, second, lane);
  }
};

}  // namespace amk
