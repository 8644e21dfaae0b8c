// The product of a prompt with a matrix of elements as they are, by wgmma: each of two groups of
// four warps multiplies 64 tokens by the rows of a tile, both of which it reads from the ring's
// slots (prompt_ring.cuh). On H100s and H200s its results were those of mma.sync to the bit, on the
// same operands in the same chains; PTX does not promise that, and `check` asks each GPU. Needs
// schedule.h with AMK_WGMMA.
#pragma once

#include "prompt_pairs.cuh"
#include "prompt_vector.cuh"

namespace amk {

// Keeps the compiler from reading sums before they are waited for.
template <int kSums>
__device__ __forceinline__ void pin(float (&d)[kSums]) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) opaque_in_order(d[i]);
}
template <int kSums>
__device__ __forceinline__ void clear(float (&d)[kSums]) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) d[i] = 0;
}
template <int kSums>
__device__ __forceinline__ void add(float (&to)[kSums], const float (&d)[kSums]) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) to[i] += d[i];
}

// What is copied next is there, and copies of it may begin. All consumers call it after a join.
__device__ __forceinline__ void begin_copies(Prompt& c) {
  ++c.products;
  c.next.begin();
  if (c.tid == 0) store_shared_release(&c.shared.started, c.products);
}

// The two groups alternate: while one multiplies a chain, the other adds up what it has. A group
// lets the other one begin when half of its chain is done.
__device__ __forceinline__ void await_other_group(const Prompt& c) {
  named_barrier_sync<kConsumers>(2 + c.warp / 4);
}
__device__ __forceinline__ void signal_other_group(const Prompt& c) {
  named_barrier_arrive<kConsumers>(3 - c.warp / 4);
}
// Called once by each group, before its first chain: the first group begins.
__device__ __forceinline__ void begin_alternating(const Prompt& c) {
  if (c.warp / 4 == 1) signal_other_group(c);
}

template <class S>
struct WideProduct {
  using Shape = SlotShape<S>;
  static constexpr int kSums = Shape::kRows / 2;  // of a lane
  using Sums = float[kSums];
  static constexpr int kQuarters = Shape::kOfChain, kTail = Shape::kTail;
  static constexpr int kFull = Shape::kSlabs - (kTail > 0 ? 1 : 0);  // slabs with all quads

  // Chains over n quads each, one after another. Each begins with a slot. No branch may come
  // between two of their products: ptxas would wait for the first.
  template <int kQuads, int kCount>
  __device__ static __forceinline__ void chains(Prompt& c, Sums (&d)[kCount]) {
    constexpr int kOfChain = ceil_div(kQuads, Shape::kQuads), kSlots = kCount * kOfChain;
    constexpr int kLength = kQuads * kQuarters, kProducts = kCount * kLength;
    static_assert(kSlots <= kPromptSlots, "what is multiplied at once fits in the ring");
    u32 slots[kSlots];
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
      while (!barrier_try_wait(&c.shared.full[c.next.slot], c.next.phase(), kCopyWarps)) {
      }
      slots[i] = c.next.slot;
      c.next.advance();
    }
    await_other_group(c);
    wgmma_begin();
#pragma unroll
    for (int i = 0; i < kProducts; ++i) {
      const int of = i / kLength, at = i % kLength;  // the chain, and the product in it
      u8* const slot = prompt_slot(slots[of * kOfChain + at / 4]);
      const WideOperand tokens = wide_operand<Shape::kGroupBytes, 8 * 16>(
          slot + c.warp / 4 * kSlotOperand);
      const WideOperand rows = wide_operand<8 * 16, kQuarters * 256>(slot + 2 * kSlotOperand);
      const int quad = at % 4 / kQuarters, quarter = at % kQuarters;
      WeightElement::wgmma(d[of], further(tokens, at % 4 * 2 * Shape::kGroupBytes),
                           further(rows, quad * Shape::kMatrixQuadBytes + quarter * 256), at > 0);
      if (i + 1 == kProducts / 2) wgmma_commit();
    }
    wgmma_commit();
    if constexpr (kProducts > 1) wgmma_wait<1>();
    signal_other_group(c);
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < kCount; ++i) pin(d[i]);
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
      if (c.lane == 0) barrier_arrive(&c.shared.empty[slots[i]], 1);
    }
  }

  // Chains of two quarters: added one after the other to the sum of a warp of a step, and that one
  // to the sum of a row.
  __device__ static __forceinline__ void multiply(Prompt& c, Sums& sums, Number<2>) {
    Sums own[1], of_member[1];
    clear(own[0]);
    clear(of_member[0]);
#pragma unroll 1
    for (int member = 0; member < Shape::kMembers; ++member) {
      if constexpr (kFull > 0) {
        chains<Shape::kSlabSubs>(c, of_member);
#pragma unroll 1
        for (int i = 1; i < kFull * Shape::kChains; ++i) {
          chains<Shape::kSlabSubs>(c, own);
          add(of_member[0], own[0]);
        }
      }
      if constexpr (kTail > 0) {
#pragma unroll 1
        for (int i = 0; i < Shape::kChains; ++i) {
          chains<kTail>(c, own);
          add(of_member[0], own[0]);
        }
      }
      add(sums, of_member[0]);
    }
  }

  // Chains of one quarter, those of both halves together: halves are added, then quarters pair by
  // pair.
  template <int kQuads>
  __device__ static __forceinline__ void add_slab(Prompt& c, Sums& sums) {
    Sums first, second, halves[2];
    clear(first);
    clear(second);
    clear(halves[0]);
    clear(halves[1]);
#pragma unroll 1
    for (int pair = 0; pair < 2; ++pair) {
#pragma unroll
      for (int quarter = 0; quarter < 2; ++quarter) {
        chains<kQuads>(c, halves);
#pragma unroll
        for (int i = 0; i < kSums; ++i) {
          const float of = halves[0][i] + halves[1][i];
          second[i] = quarter == 0 ? of : second[i] + of;
        }
      }
      if (pair == 0) {
#pragma unroll
        for (int i = 0; i < kSums; ++i) first[i] = second[i];
      }
    }
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] += first[i] + second[i];
  }
  __device__ static __forceinline__ void multiply(Prompt& c, Sums& sums, Number<1>) {
#pragma unroll 1
    for (int member = 0; member < Shape::kMembers; ++member) {
      if constexpr (Shape::kSlabs == 1) {
        add_slab<Shape::kSlabSubs>(c, sums);
      } else {
        Sums of_member;
        clear(of_member);
#pragma unroll 1
        for (int slab = 0; slab < kFull; ++slab) add_slab<Shape::kSlabSubs>(c, of_member);
        if constexpr (kTail > 0) add_slab<kTail>(c, of_member);
        add(sums, of_member);
      }
    }
  }

  // Computes a tile.
  template <class Reader, class Finish>
  __device__ static __forceinline__ void tile(Prompt& c, const PromptTile& tile, Finish&& finish) {
    Sums sums;
    clear(sums);
    multiply(c, sums, Number<Shape::kOfChain>());
    finish_pairs<S, Reader>(c, tile, sums, finish);
  }
};

}  // namespace amk
