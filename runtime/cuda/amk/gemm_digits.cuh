// How a warp multiplies a quad by the activations of several tokens, of quantised formats: what a
// token gets has the bits of fragments.cuh and fragments_e4m3.cuh. The columns of an mma are those
// of four tokens, two for each: the two digits of a quarter of the quad's columns, or its halves.
// Needs schedule.h with AMK_TENSOR_CORES. Must not know where quads come from, nor what becomes of
// the sums.
#pragma once

#include "fragments_e4m3.cuh"

namespace amk {

// Four tokens are a set. A lane holds activations of token lane / 8 of each set, and sums of row
// lane / 4 and token lane % 4.
struct TokenSets {
  static constexpr int kSetTokens = 4;
  static constexpr int kSets = ceil_div(kTokens, kSetTokens);
  static constexpr int kQuarters = 4;  // of a quad's columns

  __device__ __forceinline__ static int token(int set, int lane) {
    return set * kSetTokens + lane / 8;
  }
  __device__ __forceinline__ static int summed(int set, int lane) {
    return set * kSetTokens + lane % 4;
  }

  // What the lanes with a token's activations have, for the lanes with its sums.
  __device__ __forceinline__ static float of_summed(float value, int lane) {
    return shuffle(value, lane % 4 * 8);
  }
  // What the lanes of a token have of a sum, in the order in which those of gemv_mma add it up.
  __device__ __forceinline__ static float sum_of_lanes(const float (&s)[kQuarters]) {
    float sum = (s[0] + s[2]) + (s[1] + s[3]);
#pragma unroll
    for (int offset = 4; offset; offset >>= 1) sum += shuffle_xor(sum, offset);
    return sum;
  }
};

// How a format W is multiplied: kGoesOn says whether chains of sums go on over all columns, and
// not from the beginning to the end of a slab.
template <class W>
struct TokenFragments;

// What a warp keeps between slabs of the chains of a tile and set: four sums of each lane.
constexpr int kChainBytes = 32 * 16;

// The sums of quarters, which take quad after quad.
struct QuarterSums : TokenSets {
  float sum[kSets][kQuarters] = {};

  // The quarters in the order of a flush.
  __device__ __forceinline__ float total(int set) const {
    return (sum[set][0] + sum[set][1]) + (sum[set][2] + sum[set][3]);
  }
  __device__ __forceinline__ void keep(u8* chains, int lane) const {
#pragma unroll
    for (int set = 0; set < kSets; ++set) {
      const float* s = sum[set];
      *place(chains, set, lane) = make_float4(s[0], s[1], s[2], s[3]);
    }
  }
  __device__ __forceinline__ void recall(u8* chains, int lane) {
#pragma unroll
    for (int set = 0; set < kSets; ++set) {
      const float4 s = *place(chains, set, lane);
      sum[set][0] = s.x, sum[set][1] = s.y, sum[set][2] = s.z, sum[set][3] = s.w;
    }
  }

 private:
  __device__ __forceinline__ static float4* place(u8* chains, int set, int lane) {
    return reinterpret_cast<float4*>(chains + set * kChainBytes) + lane;
  }
};

// Of a quantised format: a lane holds four columns of each quarter.
struct QuantisedTokens : TokenSets {
  static constexpr bool kGoesOn = true;
  __device__ __forceinline__ static int column(int j, int lane) { return j * 32 + lane % 8 * 4; }

  // The largest magnitude of a quad of the lane's token. All lanes of a warp call it.
  __device__ __forceinline__ static u32 largest_of(const float (&v)[kQuarters][4]) {
    u32 most = magnitude(v[0]);
#pragma unroll
    for (int j = 1; j < kQuarters; ++j) most = max(most, magnitude(v[j]));
#pragma unroll
    for (int offset = 4; offset; offset >>= 1)
      most = max(most, shuffle_xor(most, offset));
    return most;
  }
};

// As many bytes as are a power of two, in one load.
template <int kBytes>
struct LoadOf;
template <>
struct LoadOf<1> {
  using Type = u8;
};
template <>
struct LoadOf<2> {
  using Type = u16;
};
template <>
struct LoadOf<4> {
  using Type = u32;
};
template <>
struct LoadOf<8> {
  using Type = uint2;
};
template <>
struct LoadOf<16> {
  using Type = uint4;
};

// Two of the eight columns of an mma.m16n8k32 hold the digits of a token in one quarter:
// 2 * token + digit. Rows 0 to 7 of A are those of a tile in an even quarter of the quad, and rows
// 8 to 15 in the odd one: half of the results are of use. So A is the same for all tokens and both
// quarters; with other rows instead of the wasted ones it would be assembled again for each
// mma.
template <int kBits, int kGroup, class Scale, bool kZeros>
struct TokenFragments<Integers<kBits, kGroup, Scale, kZeros>> : QuantisedTokens {
  using W = Integers<kBits, kGroup, Scale, kZeros>;
  static constexpr bool kNibbles = kBits == 4;
  static constexpr bool kOffset = kNibbles || kZeros;
  using Scales = typename LoadOf<W::kGroups * Scale::kBytes>::Type;
  using ZeroPoints = typename LoadOf<W::kGroups>::Type;
  struct Weights {
    uint4 half[kBits / 4] = {};
    Scales scales = {};  // of this lane's row
    ZeroPoints zeros = {};
  };
  struct Vector {
    uint2 pairs[kQuarters] = {};  // activations, then digits of column lane / 4 of an mma
    float scale = 0;              // of the token that the lane has sums of
    // minus the sums of its digits, times 16 with high nibbles
    int less[kOffset ? kQuarters : 1] = {};
  };

  __device__ __forceinline__ static void load(Weights& w, const u8* quad, int lane, int) {
#pragma unroll
    for (int j = 0; j < kBits / 4; ++j)
      w.half[j] = *reinterpret_cast<const uint4*>(quad + j * 512 + lane * 16);
    w.scales = reinterpret_cast<const Scales*>(quad + W::kScales)[lane / 4];
    if constexpr (kZeros)
      w.zeros = reinterpret_cast<const ZeroPoints*>(quad + W::kZeroPoints)[lane / 4];
  }

  // All lanes of a warp call it.
  __device__ __forceinline__ static Vector vector(const uint2 (&x)[kQuarters], int lane) {
    float v[kQuarters][4];
#pragma unroll
    for (int j = 0; j < kQuarters; ++j) to_floats(v[j], x[j]);
    const float largest = largest_digits(largest_of(v));
    const float inverse = divide_fast(kLargestDigits, largest);
    Vector to;
#pragma unroll
    for (int j = 0; j < kQuarters; ++j) {
      to.pairs[j] = digit_operand(v[j], inverse, lane);
      if constexpr (kOffset) {
        constexpr u32 kOnes = 0x01010101u;
        int d[4] = {};
        mma_digits<false>(d, kOnes, kOnes, kOnes, kOnes, to.pairs[j]);
        to.less[j] = (d[0] * 256 + d[1]) * (shifted(j) ? -16 : -1);
      }
    }
    to.scale = of_summed(largest * (1.0f / kLargestDigits), lane);
    return to;
  }

  // High nibbles are multiplied where they are: 16 times themselves.
  __device__ __forceinline__ static constexpr bool shifted(int quarter) {
    return kNibbles && quarter >= 2;
  }

  struct Sums : QuarterSums {
    __device__ __forceinline__ void multiply(const Weights& w, const Vector (&x)[kSets]) {
      float scale[W::kGroups];
      int zero[W::kGroups];
#pragma unroll
      for (int g = 0; g < W::kGroups; ++g) {
        typename Scale::Bits bits;
        memcpy(&bits, reinterpret_cast<const u8*>(&w.scales) + g * Scale::kBytes, sizeof bits);
        scale[g] = Scale::to_float(bits);
        signed char point = 8;
        if constexpr (kZeros) memcpy(&point, reinterpret_cast<const u8*>(&w.zeros) + g, 1);
        zero[g] = point;
      }
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const uint4 half = w.half[kNibbles ? 0 : pair];
        const u32 mask = !kNibbles ? ~0u : pair ? 0xf0f0f0f0u : 0x0f0f0f0fu;
        const u32 a[4] = {half.x & mask, half.z & mask, half.y & mask, half.w & mask};
#pragma unroll
        for (int set = 0; set < kSets; ++set) {
#pragma unroll
          for (int odd = 0; odd < 2; ++odd) {
            const int j = 2 * pair + odd, g = j * W::kGroups / 4;
            int d[4] = {};
            mma_digits<!kNibbles>(d, a[0], a[1], a[2], a[3], x[set].pairs[j]);
            int product = d[2 * odd] * 256 + d[2 * odd + 1];
            if constexpr (kOffset) product += zero[g] * x[set].less[j];
            const float by = scale[g] * (shifted(j) ? x[set].scale * 0x1p-4f : x[set].scale);
            sum[set][j] = fmaf(float(product), by, sum[set][j]);
          }
        }
      }
    }
  };
};

// The halves of a token's quarter are two columns of an mma.m16n8k16: 2 * token + half.
template <class Number, int kGroup, class Scale>
struct TokenFragments<Floats<Number, kGroup, Scale>> : QuantisedTokens {
  using One = Fragments<Floats<Number, kGroup, Scale>>;
  using Weights = typename One::Weights;
  struct Vector {
    uint2 pairs[kQuarters] = {};  // activations, then halves
    float scale = 0;              // of the token that the lane has sums of
  };

  __device__ __forceinline__ static void load(Weights& w, const u8* quad, int lane, int blocks) {
    One::load(w, quad, lane, blocks);
  }

  // All lanes of a warp call it.
  __device__ __forceinline__ static Vector vector(const uint2 (&x)[kQuarters], int lane) {
    Vector to;
    if constexpr (kSame<Element, Fp16>) {
#pragma unroll
      for (int j = 0; j < kQuarters; ++j) to.pairs[j] = x[j];
      to.scale = Number::kHalvesUnit;
    } else {
      float v[kQuarters][4], scale = 0;
#pragma unroll
      for (int j = 0; j < kQuarters; ++j) to_floats(v[j], x[j]);
      const u32 largest = largest_of(v);
#pragma unroll
      for (int j = 0; j < kQuarters; ++j) to.pairs[j] = halves_of_quad(v[j], largest, scale);
      to.scale = of_summed(scale * Number::kHalvesUnit, lane);
    }
    return to;
  }

  struct Sums : QuarterSums {
    __device__ __forceinline__ void multiply(const Weights& w, const Vector (&x)[kSets]) {
#pragma unroll
      for (int j = 0; j < kQuarters; ++j) {
        const uint4 a = w.operand(j);
#pragma unroll
        for (int set = 0; set < kSets; ++set) {
          float d[4] = {};
          Fp16::mma(d, a.x, a.y, a.z, a.w, x[set].pairs[j].x, x[set].pairs[j].y);
          sum[set][j] = fmaf(d[0] + d[3], w.scale_of(j) * x[set].scale, sum[set][j]);
        }
      }
    }
  };
};

}  // namespace amk
