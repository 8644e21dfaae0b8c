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
template <class W, int kOfChain = 1>
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

// Two of the eight columns of an mma.m16n8k32 hold the digits of a token in one quarter:
// 2 * token + digit. Rows 0 to 7 of A are those of a tile in an even quarter of the quad, and rows
// 8 to 15 in the odd one: half of the results are of use. So A is the same for all tokens and both
// quarters; with other rows instead of the wasted ones it would be assembled again for each
// mma.
template <int kBits, int kGroup, class Scale, bool kZeros, bool kMins, bool kSteps>
struct TokenFragments<Integers<kBits, kGroup, Scale, kZeros, kMins, kSteps>> : QuantisedTokens {
  using W = Integers<kBits, kGroup, Scale, kZeros, kMins, kSteps>;
  static constexpr bool kNibbles = kBits == 4;
  static constexpr bool kOffset = W::kUnsigned || kZeros;
  static constexpr int kSums = W::kHalves ? 2 : 1;  // of a quarter
  struct Weights {
    uint4 half[kBits == 8 ? 2 : 1] = {};
    typename W::Above above = {};
    typename W::Numbers of[W::kGroups];  // of this lane's row
  };
  struct Vector {
    uint2 pairs[kQuarters] = {};  // activations, then digits of column lane / 4 of an mma
    float scale = 0;              // of the token that the lane has sums of
    // Minus the sums of its digits: times 16 with high nibbles, and times the offset if that is a
    // constant; with minima the sums in floats times the scale.
    int less[kOffset ? kQuarters : 1][kSums] = {};
  };

  __device__ __forceinline__ static void load(Weights& w, const u8* quad, int lane, int) {
#pragma unroll
    for (int j = 0; j < (kBits == 8 ? 2 : 1); ++j)
      w.half[j] = *reinterpret_cast<const uint4*>(quad + j * 512 + lane * 16);
    if constexpr (W::kHasAbove)
      w.above = reinterpret_cast<const typename W::Above*>(quad + W::kAbove)[lane];
    W::numbers_of_row(w.of, quad, lane / 4);
  }

  // All lanes of a warp call it.
  __device__ __forceinline__ static Vector vector(const uint2 (&x)[kQuarters], int lane) {
    float v[kQuarters][4];
#pragma unroll
    for (int j = 0; j < kQuarters; ++j) to_floats(v[j], x[j]);
    const float largest = largest_digits(largest_of(v));
    const float inverse = divide_fast(kLargestDigits, largest);
    Vector to;
    to.scale = of_summed(largest * (1.0f / kLargestDigits), lane);
#pragma unroll
    for (int j = 0; j < kQuarters; ++j) {
      to.pairs[j] = digit_operand(v[j], inverse, lane);
      if constexpr (kOffset) {
#pragma unroll
        for (int k = 0; k < kSums; ++k) {
          constexpr u32 kOnes = 0x01010101u;
          int d[4] = {};
          mma_digits<false>(d, kOnes, kOnes, kOnes, kOnes, half_of(to.pairs[j], k));
          const int sum = d[0] * 256 + d[1];
          to.less[j][k] = kMins ? int(bits_of(float(sum) * to.scale))
                                : sum * (shifted(j, k) ? -16 : -1) * W::kFactor;
        }
      }
    }
    return to;
  }

  // High nibbles are multiplied where they are: 16 times themselves.
  __device__ __forceinline__ static constexpr bool shifted(int quarter, int k) {
    return kNibbles && (W::kHalves ? k == 1 : quarter >= 2);
  }
  // The digits of a quarter, or of half of it.
  __device__ __forceinline__ static uint2 half_of(uint2 pairs, int k) {
    if constexpr (!W::kHalves) return pairs;
    return k == 0 ? make_uint2(pairs.x, 0) : make_uint2(0, pairs.y);
  }

  struct Sums : QuarterSums {
    __device__ __forceinline__ void multiply(const Weights& w, const Vector (&x)[kSets]) {
      float scale[W::kGroups], least[kMins ? W::kGroups : 1];
#pragma unroll
      for (int g = 0; g < W::kGroups; ++g) {
        scale[g] = w.of[g].scale();
        if constexpr (kMins) least[g] = w.of[g].min();
      }
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        u32 a[kSums][4];  // rows of the pair's even quarter are the first of each two
#pragma unroll
        for (int k = 0; k < kSums; ++k) operands(a[k], w, pair, k);
#pragma unroll
        for (int set = 0; set < kSets; ++set) {
#pragma unroll
          for (int odd = 0; odd < 2; ++odd) {
            const int j = 2 * pair + odd;
#pragma unroll
            for (int k = 0; k < kSums; ++k) {
              const int g = j * W::kGroups / 4 + k;
              int d[4] = {};
              const uint2 digits = half_of(x[set].pairs[j], k);
              mma_digits<!W::kUnsigned>(d, a[k][0], a[k][1], a[k][2], a[k][3], digits);
              int product = d[2 * odd] * 256 + d[2 * odd + 1];
              const float unit = shifted(j, k) ? x[set].scale * 0x1p-4f : x[set].scale;
              float& to = sum[set][j];
              if constexpr (kMins) {
                to += least[g] * float_of_bits(u32(x[set].less[j][k]));
              } else if constexpr (kOffset) {
                product += (kZeros ? w.of[g].zero : 1) * x[set].less[j][k];
              }
              to = fmaf(float(product), scale[g] * unit, to);
            }
          }
        }
      }
    }

   private:
    // The operand of two quarters. Halves of these are in two words each, of the first mma and of
    // the second: what is not of a half is multiplied by zeros.
    __device__ __forceinline__ static void operands(u32 (&a)[4], const Weights& w, int pair,
                                                    int k) {
      const int second = W::kHalves ? k : pair;
      const uint4 four = w.half[kBits == 8 ? second : 0];
      const auto word = [&](u32 stored, int i) {
        return W::elements(stored, w.above, second, i);
      };
      if constexpr (W::kHalves) {
        const u32 even = pair ? word(four.z, 2) : word(four.x, 0);
        const u32 odd = pair ? word(four.w, 3) : word(four.y, 1);
        a[0] = a[2] = even, a[1] = a[3] = odd;
      } else {
        a[0] = word(four.x, 0), a[1] = word(four.z, 2);
        a[2] = word(four.y, 1), a[3] = word(four.w, 3);
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
