// The layout of a prompt's tokens for products with a quantised matrix. Needs schedule.h with
// AMK_TENSOR_CORES. Must not know the product.
#pragma once

#include "gemv_mma.cuh"

namespace amk {


// A part of an operand has the same quarter of n quads.
constexpr int kPartSubs = 4;

// What the tokens of a tile have of a quarter of a quad. Integers: digits, as operands of two
// groups of four tokens side by side, and then for each token a scale and the sum of the digits, or
// where halves of a quarter are groups, those of the second half after those of the first.
template <class W>
struct QuarterFormat {
  static constexpr bool kNibbles = W::kBits == 4;
  static constexpr int kSums = W::kHalves ? 2 : 1;
  static constexpr int kDigits = kTokenTile * 32 * 2;
  static constexpr int kBytes = kDigits + kSums * kTokenTile * 8;

  // Stores four columns of a token, at the quarter that the lane has them of. A warp calls it.
  __device__ static __forceinline__ void store(u8* at, int token, uint2 x, int lane) {
    const float v[4] = {Element::to_float(u16(x.x)), Element::to_float(u16(x.x >> 16)),
                        Element::to_float(u16(x.y)), Element::to_float(u16(x.y >> 16))};
    const float largest = largest_digits(warp_max(magnitude(v)));
    const float inverse = divide_fast(kLargestDigits, largest);
    u32 n[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) n[i] = biased_digits_of(v[i], inverse);
    const u32 first = byte_perm(n[0], n[1], 0x5410), second = byte_perm(n[2], n[3], 0x5410);
    const u32 low = byte_perm(first, second, 0x6420) ^ 0x80808080u;
    const u32 high = byte_perm(first, second, 0x7531) ^ 0x80808080u;
    // Column 2 * token + digit of an mma; the second register has the columns from 16 on.
    u8* const to = at + token / 8 * 512 + token % 4 * 128 + lane % 4 * 16 + token / 4 % 2 * 8 +
                   lane / 4 % 2 * 4;
    *reinterpret_cast<u32*>(to) = high;
    *reinterpret_cast<u32*>(to + 64) = low;
    constexpr int kOnes = 0x01010101;
    int sum = dot4(int(high), kOnes, 0) * 256 + dot4(int(low), kOnes, 0);
#pragma unroll
    for (int offset = 4 / kSums; offset; offset >>= 1) sum += shuffle_xor(sum, offset);
    // High nibbles are multiplied where they are: 16 times themselves.
    const int half = W::kHalves ? lane / 4 % 2 : 0;
    const bool shifted = kNibbles && (W::kHalves ? half == 1 : lane >= 16);
    const float scale = largest * (shifted ? 0x1p-4f / kLargestDigits : 1.0f / kLargestDigits);
    sum *= (shifted ? 16 : 1) * W::kFactor;
    if constexpr (W::kMins) sum = int(bits_of(float(sum) * scale));
    if (lane % (8 / kSums) == 0)
      *reinterpret_cast<uint2*>(at + kDigits + (half * kTokenTile + token) * 8) =
          make_uint2(bits_of(scale), u32(sum));
  }
};

// Floats: halves, as operands of eight tokens, and then for each token a scale.
template <class Number, int kGroup, class Scale>
struct QuarterFormat<Floats<Number, kGroup, Scale>> {
  static constexpr int kHalves = kTokenTile * 32 * 2;
  static constexpr int kBytes = kHalves + kTokenTile * 4;

  __device__ static __forceinline__ void store(u8* at, int token, uint2 x, int lane) {
    float scale;
    const uint2 four = activations_in_halves(x, scale);
    // Columns up to 16 are those of the first product, and the others those of the second.
    *reinterpret_cast<uint2*>(at + token / 8 * 512 + token % 8 * 64 + lane % 4 * 16 +
                              lane / 4 % 2 * 8) = four;
    if (lane % 8 == 0)
      *reinterpret_cast<float*>(at + kHalves + token * 4) = scale * Number::kHalvesUnit;
  }
};

}  // namespace amk
