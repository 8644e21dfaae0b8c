// The product of a prompt with a quantised matrix: a quarter of a quad's columns at a time, whose
// sums are scaled and added quad after quad, as a warp of a step does it (fragments.cuh). Needs
// schedule.h with AMK_TENSOR_CORES and AMK_ASYNC_COPY.
#pragma once

#include "prompt_gemm.cuh"

namespace amk {

// The weights of a warp in a part: of each quad a quarter of 8 rows, and of 8 more, with the scales
// and zero points of the lane's rows.
template <class S>
struct PartWeights {
  using Shape = PromptShape<S>;
  using W = typename Shape::W;
  using Bits = typename W::Scale::Bits;
  uint2 of[kPartSubs][2];
  Bits scale[kPartSubs][2];
  int zero[W::kZeros ? kPartSubs : 1][2];

  __device__ __forceinline__ void load(const u8* tile, int stride, const bool (&there)[2],
                                       int member, int quarter, int part, int lane) {
    const int group = lane / 4 * W::kGroups + quarter * W::kGroups / 4;
#pragma unroll
    for (int i = 0; i < kPartSubs; ++i) {
      const int quad = Shape::quad_of(member, part * kPartSubs + i);
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        of[i][t] = make_uint2(0, 0);
        scale[i][t] = 0;
        if constexpr (W::kZeros) zero[i][t] = 0;
        if (quad == Shape::kQuads || !there[t]) continue;
        const u8* block = tile + t * stride + quad * W::kQuadBytes;
        of[i][t] = load_constant_8(block + (W::kBits == 8 ? quarter / 2 * 512 : 0) + lane * 16 +
                                   quarter % 2 * 8);
        scale[i][t] = load_constant(reinterpret_cast<const Bits*>(block + W::kScales) + group);
        if constexpr (W::kZeros) {
          const auto* zeros = reinterpret_cast<const signed char*>(block + W::kZeroPoints);
          zero[i][t] = load_constant(zeros + group);
        }
      }
    }
  }
};

// Adds the products of a quarter of a quad to the sums of a quarter.
template <class W>
struct QuarterProduct {
  static constexpr bool kNibbles = W::kBits == 4, kOffset = kNibbles || W::kZeros;

  // 16 rows by four tokens: a lane has rows lane / 4 and the one 8 further of token lane % 4.
  __device__ static __forceinline__ int token(int n, int lane) { return n / 2 * 4 + lane % 4; }
  __device__ static __forceinline__ int row(int n, int lane) { return lane / 4 + n % 2 * 8; }

  template <class Bits>
  __device__ static __forceinline__ void add(PromptSums& sums, const uint2 (&w)[2],
                                             const Bits (&scale)[2], const int (&zero)[2],
                                             const u8* operand, int quarter, int lane) {
    const u32 mask = !kNibbles ? ~0u : quarter < 2 ? 0x0f0f0f0fu : 0xf0f0f0f0u;
    const u32 a0 = w[0].x & mask, a1 = w[1].x & mask, a2 = w[0].y & mask, a3 = w[1].y & mask;
    const float by[2] = {W::Scale::to_float(scale[0]), W::Scale::to_float(scale[1])};
#pragma unroll
    for (int i = 0; i < kTokenTile / 8; ++i) {
      const uint4 x = *reinterpret_cast<const uint4*>(operand + i * 512 + lane * 16);
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        int d[4] = {};
        const uint2 digits = k == 0 ? make_uint2(x.x, x.y) : make_uint2(x.z, x.w);
        mma_digits<!kNibbles>(d, a0, a1, a2, a3, digits);
        const int token = i * 8 + k * 4 + lane % 4;
        const uint2 of_token = *reinterpret_cast<const uint2*>(
            operand + QuarterFormat<W>::kDigits + token * 8);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          int total = d[2 * r] * 256 + d[2 * r + 1];
          if constexpr (kOffset) total -= W::kZeros ? zero[r] * int(of_token.y) : int(of_token.y);
          float& sum = sums[(i * 2 + k) * 2 + r];
          sum = fmaf(float(total), by[r] * float_of_bits(of_token.x), sum);
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

  template <class Bits>
  __device__ static __forceinline__ void add(PromptSums& sums, const uint2 (&w)[2],
                                             const Bits (&scale)[2], const int (&)[2],
                                             const u8* operand, int quarter, int lane) {
    const auto halves = [quarter](u32 word) {
      return Number::to_halves(W::of_quarter(word, quarter));
    };
    const uint2 a0 = halves(w[0].x), b0 = halves(w[1].x);
    const uint2 a1 = halves(w[0].y), b1 = halves(w[1].y);
    const float by[2] = {Scale::to_float(scale[0]), Scale::to_float(scale[1])};
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
            Quarter::add(own, now.of[i], now.scale[i], now.zero[Matrix<S>::kZeros ? i : 0],
                         stage + i * Format::kBytes, quarter, c.lane);
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
