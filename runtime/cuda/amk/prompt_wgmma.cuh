// The product of a prompt with a matrix of elements as they are, by wgmma: four warps multiply 64
// rows by the tokens of a tile, which they read from shared memory together. On H100s its
// results were those of mma.sync to the bit, on the same operands in the same chains; PTX does not
// promise that, and `check` asks each GPU. Needs schedule.h with AMK_WGMMA.
#pragma once

#include "prompt_gemm.cuh"

namespace amk {

// 64 rows by 64 tokens.
using WideSums = float[kTokenTile / 2];

// The tokens' 16 columns of a half of a block: two groups of eight columns, in each eight bytes'
// worth of columns of every token side by side.
__device__ __forceinline__ WideOperand operand_of_half(const u8* half) {
  return wide_operand<kTokenTile * 16, 8 * 16>(half);
}

// Has operands in their registers before wgmma may read them.
__device__ __forceinline__ void pin(uint4& a, uint4& b) {
  opaque_in_order(a);
  opaque_in_order(b);
}
// Keeps the compiler from reading sums before they are waited for.
__device__ __forceinline__ void pin(WideSums& d) {
#pragma unroll
  for (int i = 0; i < kTokenTile / 2; ++i) opaque_in_order(d[i]);
}

template <class S>
struct WideProduct {
  using Shape = PromptShape<S>;
  static constexpr int kHalfBytes = kTokenTile * 16 * 2, kSubBytes = 2 * kHalfBytes;
  static constexpr int kTail = Shape::kSubs % Shape::kSlabSubs;  // quads of the last slab, if fewer
  static_assert(kLaneSums == kTokenTile / 2, "a lane of four warps has what a lane of one has");

  __device__ static __forceinline__ int token(int n, int lane) {
    return n / 4 * 8 + lane % 4 * 2 + n % 2;
  }
  __device__ static __forceinline__ int row(int n, int lane) { return lane / 4 + n % 4 / 2 * 8; }

  // Goes on with the chains of a part that has n blocks: that of the first half of its columns, and
  // that of the second.
  template <int kCount, bool kBegins>
  __device__ static __forceinline__ void chains(WideSums& low, WideSums& high, SlabOperands<S>& w,
                                                const u8* part) {
    if constexpr (kCount > 0) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) pin(w.low[i], w.high[i]);
      wgmma_begin();
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        WeightElement::wgmma(low, w.low[i], operand_of_half(part + i * kSubBytes),
                             !kBegins || i > 0);
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        WeightElement::wgmma(high, w.high[i], operand_of_half(part + i * kSubBytes + kHalfBytes),
                             !kBegins || i > 0);
      wgmma_commit();
      wgmma_wait<0>();
      pin(low);
      pin(high);
    }
  }
  // Blocks of a part, of two that share a chain the first or the second, where a slab has n quads.
  __host__ __device__ static constexpr int blocks(int quads, int second) {
    constexpr int kMost = Shape::kSlabSubs, kOfChain = Shape::kOfChain;
    if (kOfChain == 1) return quads;
    const int left = quads * kOfChain - second * kMost;
    return left < 0 ? 0 : left < kMost ? left : kMost;
  }

  // Sums that a lane keeps in shared memory: registers are for what is multiplied.
  struct Kept {
    float* of_lane;
    __device__ __forceinline__ void add(const PromptSums& sums, bool is_first) {
#pragma unroll
      for (int k = 0; k < kLaneSums; ++k)
        of_lane[k * 32] = (is_first ? 0.0f : of_lane[k * 32]) + sums[k];
    }
    __device__ __forceinline__ void take(PromptSums& sums) const {
#pragma unroll
      for (int k = 0; k < kLaneSums; ++k) sums[k] = of_lane[k * 32];
    }
  };

  __device__ static __forceinline__ void multiply(Prompt& c, const u8* tile, int stride,
                                                  const bool (&there)[2], const u8* operand,
                                                  PromptSums& sums) {
    // Of all columns; and for chains of a quarter, of those of a warp of a step, and of two
    // quarters of a slab.
    Kept of_all{results_of_warp(c) + c.lane};
    Kept of_member{of_all.of_lane + kTokenTile * kResultStride};
    Kept of_pair{of_member.of_lane + kTokenTile * 16};
    SlabWeights<S> next;
    next.load(tile, stride, there, 0, 0, 0, c.lane);
    Operands<S> operands(c, operand);
    const u8* stage = nullptr;
    // Multiplies a part, of two that follow one another, and loads the weights of the next one.
    auto multiply = [&](auto second, int member, int slab, int part, WideSums& low,
                        WideSums& high) {
      constexpr bool kBegins = Shape::kOfChain == 1 || second == 0;
      if (part % Shape::kStageParts == 0) stage = operands.next();
      SlabOperands<S> now(next);
      const int following = (part + 1) % Shape::kQuarters;
      const bool same = following > 0 || slab + 1 < Shape::kSlabs;
      const int after = same ? member : member + 1;
      if (after < Shape::kMembers) {
        next.load(tile, stride, there, after, following > 0 ? slab : same ? slab + 1 : 0,
                  following, c.lane);
      }
      const u8* at = stage + part % Shape::kStageParts * Shape::kPartBytes;
      if (kTail == 0 || slab + 1 < Shape::kSlabs) {
        chains<blocks(Shape::kSlabSubs, second), kBegins>(low, high, now, at);
      } else {
        chains<blocks(kTail, second), kBegins>(low, high, now, at);
      }
    };
#pragma unroll 1
    for (int member = 0; member < Shape::kMembers; ++member) {
      PromptSums of_warp = {};  // in the order of chains of two quarters
#pragma unroll 1
      for (int slab = 0; slab < Shape::kSlabs; ++slab) {
        PromptSums pair;
#pragma unroll 1
        for (int part = 0; part < Shape::kQuarters; part += 2) {
          WideSums low, high;
          each<2>([&](auto second) {
            multiply(second, member, slab, part + second, low, high);
            if constexpr (Shape::kOfChain == 2 && second == 1) {
#pragma unroll
              for (int k = 0; k < kLaneSums; ++k) of_warp[k] = of_warp[k] + low[k] + high[k];
            } else if constexpr (Shape::kOfChain == 1) {
#pragma unroll
              for (int k = 0; k < kLaneSums; ++k) {
                const float of = low[k] + high[k];
                pair[k] = second == 0 ? of : pair[k] + of;
              }
            }
          });
          if (Shape::kOfChain == 1 && part == 0) of_pair.add(pair, true);
        }
        if constexpr (Shape::kOfChain == 1) {
#pragma unroll
          for (int k = 0; k < kLaneSums; ++k) pair[k] = of_pair.of_lane[k * 32] + pair[k];
          if constexpr (Shape::kSlabs > 1) {
            of_member.add(pair, slab == 0);
            if (slab < Shape::kSlabs - 1) continue;
            of_member.take(pair);
          }
          of_all.add(pair, member == 0);
        }
      }
      if constexpr (Shape::kOfChain == 2) of_all.add(of_warp, member == 0);
    }
    of_all.take(sums);
    operands.done();
  }
};

}  // namespace amk
