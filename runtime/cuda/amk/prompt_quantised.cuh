// The product of a prompt with a quantised matrix: a quarter of a quad's columns at a time, whose
// sums are scaled and added quad after quad, as a warp of a step does it (fragments.cuh). Needs
// schedule.h with AMK_TENSOR_CORES and AMK_ASYNC_COPY.
#pragma once

#include "prompt_gemm.cuh"

namespace amk {

// What a lane has of a quarter of a quad: two words of elements of a row, with the scale of the
// quarter, or those of its halves.
template <class W>
struct StoredQuarter {
  uint2 of = {};
  typename W::Above above = {};
  typename W::Numbers numbers[W::kHalves ? 2 : 1];

  __device__ __forceinline__ void load(const u8* block, int quarter, int lane) {
    const ReadConstant read;
    if constexpr (W::kHalves) {
      const auto* words = reinterpret_cast<const u32*>(block + lane * 16) + quarter;
      of.x = read(words);
      if constexpr (W::kBits == 8) of.y = read(words + 128);
    } else {
      of = load_constant_8(block + (W::kBits == 8 ? quarter / 2 * 512 : 0) + lane * 16 +
                           quarter % 2 * 8);
    }
    if constexpr (W::kHasAbove)
      above = read(reinterpret_cast<const typename W::Above*>(block + W::kAbove) + lane);
    const int group = lane / 4 * W::kGroups + quarter * W::kGroups / 4;
#pragma unroll
    for (int k = 0; k < (W::kHalves ? 2 : 1); ++k)
      numbers[k] = W::numbers(block, lane / 4, group + k, read);
  }

  // The operand of half of its columns.
  __device__ __forceinline__ u32 elements(int quarter, int half) const {
    const int column = quarter * 32 + half * 16;
    const u32 stored = half && !(W::kHalves && W::kUnsigned) ? of.y : of.x;
    return W::elements(stored, above, W::second(column), W::word(column));
  }
};

// The weights of a warp in a part: of each quad a quarter of 8 rows, and of 8 more.
template <class S>
struct PartWeights {
  using Shape = PromptShape<S>;
  using Quarter = StoredQuarter<typename Shape::W>;
  Quarter of[kPartSubs][2];

  __device__ __forceinline__ void load(const u8* tile, int stride, const bool (&there)[2],
                                       int member, int quarter, int part, int lane) {
#pragma unroll
    for (int i = 0; i < kPartSubs; ++i) {
      const int quad = Shape::quad_of(member, part * kPartSubs + i);
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        of[i][t] = {};
        if (quad == Shape::kQuads || !there[t]) continue;
        of[i][t].load(tile + t * stride + quad * Shape::W::kQuadBytes, quarter, lane);
      }
    }
  }
};

// Adds the products of a quarter of a quad to the sums of a quarter.
template <class W>
struct QuarterProduct {
  static constexpr bool kOffset = W::kUnsigned || W::kZeros;
  static constexpr int kSums = W::kHalves ? 2 : 1;

  // 16 rows by four tokens: a lane has rows lane / 4 and the one 8 further of token lane % 4.
  __device__ static __forceinline__ int token(int n, int lane) { return n / 2 * 4 + lane % 4; }
  __device__ static __forceinline__ int row(int n, int lane) { return lane / 4 + n % 2 * 8; }

  __device__ static __forceinline__ void add(PromptSums& sums, const StoredQuarter<W> (&w)[2],
                                             const u8* operand, int quarter, int lane) {
    const u32 a0 = w[0].elements(quarter, 0), a1 = w[1].elements(quarter, 0);
    const u32 a2 = w[0].elements(quarter, 1), a3 = w[1].elements(quarter, 1);
    float by[2][kSums], least[2][kSums];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int k = 0; k < kSums; ++k) {
        by[r][k] = w[r].numbers[k].scale();
        if constexpr (W::kMins) least[r][k] = w[r].numbers[k].min();
      }
    }
#pragma unroll
    for (int i = 0; i < kTokenTile / 8; ++i) {
      const uint4 x = *reinterpret_cast<const uint4*>(operand + i * 512 + lane * 16);
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const uint2 digits = k == 0 ? make_uint2(x.x, x.y) : make_uint2(x.z, x.w);
        const int token = i * 8 + k * 4 + lane % 4;
#pragma unroll
        for (int h = 0; h < kSums; ++h) {
          int d[4] = {};
          const uint2 of = kSums == 1 ? digits
                           : h == 0   ? make_uint2(digits.x, 0)
                                      : make_uint2(0, digits.y);
          mma_digits<!W::kUnsigned>(d, a0, a1, a2, a3, of);
          const uint2 of_token = *reinterpret_cast<const uint2*>(
              operand + QuarterFormat<W>::kDigits + (h * kTokenTile + token) * 8);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            int total = d[2 * r] * 256 + d[2 * r + 1];
            float& sum = sums[(i * 2 + k) * 2 + r];
            if constexpr (W::kMins) {
              sum += least[r][h] * float_of_bits(of_token.y);
            } else if constexpr (kOffset) {
              total -= (W::kZeros ? w[r].numbers[h].zero : 1) * int(of_token.y);
            }
            sum = fmaf(float(total), by[r][h] * float_of_bits(of_token.x), sum);
          }
        }
      }
    }
  }
};

template <class Number, int kGroup, class Scale>
struct QuarterProduct<Floats<Number, kGroup, Scale>> {
  using W = Floats<Number, kGroup, Scale>;

  __device__ static __forceinline__ int token(int n, int lane) {
    return n / 4 * 8 + lane % 4 * 2 + n % 2;
  }
  __device__ static __forceinline__ int row(int n, int lane) { return lane / 4 + n % 4 / 2 * 8; }

  __device__ static __forceinline__ void add(PromptSums& sums, const StoredQuarter<W> (&w)[2],
                                             const u8* operand, int quarter, int lane) {
    const auto halves = [quarter](u32 word) { return W::to_halves(word, quarter); };
    const uint2 a0 = halves(w[0].of.x), b0 = halves(w[1].of.x);
    const uint2 a1 = halves(w[0].of.y), b1 = halves(w[1].of.y);
    const float by[2] = {w[0].numbers[0].scale(), w[1].numbers[0].scale()};
#pragma unroll
    for (int i = 0; i < kTokenTile / 8; ++i) {
      const uint4 x = *reinterpret_cast<const uint4*>(operand + i * 512 + lane * 16);
      const float2 of_tokens = *reinterpret_cast<const float2*>(
          operand + QuarterFormat<W>::kHalves + (i * 8 + lane % 4 * 2) * 4);
      float low[4] = {}, high[4] = {};
      Fp16::mma(low, a0.x, b0.x, a0.y, b0.y, x.x, x.y);
      Fp16::mma(high, a1.x, b1.x, a1.y, b1.y, x.z, x.w);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float& sum = sums[i * 4 + k];
        sum = fmaf(low[k] + high[k], by[k / 2] * (k % 2 ? of_tokens.y : of_tokens.x), sum);
      }
    }
  }
};

// How quantised matrices are multiplied.
template <class S>
struct QuantisedProduct : QuarterProduct<Matrix<S>> {
  using Shape = PromptShape<S>;
  using Quarter = QuarterProduct<Matrix<S>>;
  using Format = QuarterFormat<Matrix<S>>;

  __device__ static __forceinline__ void multiply(Prompt& c, const u8* tile, int stride,
                                                  const bool (&there)[2], const u8* operand,
                                                  PromptSums& sums) {
    PartWeights<S> next;
    next.load(tile, stride, there, 0, 0, 0, c.lane);
    Operands<S> operands(c, operand);
#pragma unroll 1
    for (int member = 0; member < Shape::kMembers; ++member) {
      PromptSums first, second;  // of the first two quarters, and of the others
#pragma unroll
      for (int quarter = 0; quarter < Shape::kQuarters; ++quarter) {
        PromptSums own = {};
#pragma unroll 1
        for (int part = 0; part < Shape::kQuarterParts; ++part) {
          const u8* stage = operands.next();
          const PartWeights<S> now = next;
          const bool same = part + 1 < Shape::kQuarterParts;
          const int after = same ? quarter : quarter + 1;
          if (after < Shape::kQuarters || member + 1 < Shape::kMembers) {
            next.load(tile, stride, there, after < Shape::kQuarters ? member : member + 1,
                      after % Shape::kQuarters, same ? part + 1 : 0, c.lane);
          }
#pragma unroll
          for (int i = 0; i < kPartSubs; ++i) {
            if (Shape::quad_of(member, part * kPartSubs + i) == Shape::kQuads) continue;
            Quarter::add(own, now.of[i], stage + i * Format::kBytes, quarter, c.lane);
          }
        }
#pragma unroll
        for (int k = 0; k < kLaneSums; ++k) {
          if (quarter == 0) first[k] = own[k];
          if (quarter == 1) first[k] += own[k];
          if (quarter == 2) second[k] = own[k];
          if (quarter == 3) sums[k] += first[k] + (second[k] + own[k]);
        }
      }
    }
    operands.done();
  }
};

}  // namespace amk
