// How a quantised matrix passes through the ring of a prompt's products: a slot has a quad of 128
// rows and the operand of 64 tokens. Needs schedule.h with AMK_WGMMA. Must not know what a stage
// computes.
#pragma once

#include "prompt_ring.cuh"

namespace amk {

// The slots of a stage. After them are the sums of a tile.
template <class S>
struct QuadSlots : RowShape<S> {
  using Shape = PromptShape<S>;
  using W = typename Shape::W;
  using Operand = typename Shape::Operand;
  static constexpr int kTiles = Shape::kRows / kTileRows;
  // 64 bytes more than a multiple of 128: the same rows of two tiles are in different banks.
  static constexpr int kTileStride = round_up(W::kQuadBytes + 64, 128) - 64;
  static constexpr int kBytes = round_up(Operand::kBytes + kTiles * kTileStride, 128);
  static constexpr int kSumBytes = Shape::kRows * Shape::kTileTokens * 4;
  static constexpr int kFit = (kPromptSlots * kPromptSlotBytes - kSumBytes) / kBytes;
  static constexpr int kSlots = kFit < kPromptSlots ? kFit : kPromptSlots;
  static_assert(kSlots >= 2, "one is copied while another is multiplied");

  __device__ static __forceinline__ u8* slot(u32 number) { return block_ring() + number * kBytes; }
  __device__ static __forceinline__ float4* sums() {
    return reinterpret_cast<float4*>(block_ring() + kPromptSlots * kPromptSlotBytes - kSumBytes);
  }
};

// Quad after quad of each warp of a step: two warps copy the matrix, eight tiles of rows each, and
// one the operand.
template <class S>
struct TileCopies<S, true> {
  using Slots = QuadSlots<S>;

  __device__ static __forceinline__ void copy(PromptCopies& c, const PromptTile tile,
                                              const u8* matrix, const TensorMap*) {
    constexpr int kPartBytes = tile_bytes<typename Slots::W>(S::kColumns);
    constexpr int kStride = kPartBytes * Slots::kParts, kEach = Slots::kTiles / 2;
    const u8* part = matrix + size_t(tile.matrix) * Slots::kMatrixTiles * kStride +
                     tile.part * kPartBytes;
    // Past the end is the last tile again: what it becomes is not used.
    const int first = tile.first_row / kTileRows + int(c.warp) * kEach;
    constexpr int kLast = ceil_div(Slots::kPartRows, kTileRows) - 1;
    const u8* operand = c.operand_of<S>() + (size_t(tile.tokens) * Slots::kParts + tile.part) *
                                                Slots::kTileBytes;
#pragma unroll 1
    for (int member = 0; member < Slots::kMembers; ++member) {
#pragma unroll 1
      for (int sub = 0; sub < Slots::kSubs; ++sub) {
        const int quad = Slots::quad_of(member, sub);
        if (!Slots::kEven && quad == Slots::kQuads) continue;
        u64* full = c.await_slot();
        u8* to = Slots::slot(c.next.slot);
        if (c.warp == 2) {
          barrier_arrive_expect(full, Slots::Operand::kBytes);
          copy_bulk(to, operand + Slots::place(member, sub), Slots::Operand::kBytes, full);
        } else {
          barrier_arrive_expect(full, kEach * Slots::W::kQuadBytes);
          to += Slots::Operand::kBytes + int(c.warp) * kEach * Slots::kTileStride;
#pragma unroll 1
          for (int i = 0; i < kEach; ++i) {
            copy_bulk(to + i * Slots::kTileStride,
                      part + size_t(min(first + i, kLast)) * kStride + quad * Slots::W::kQuadBytes,
                      Slots::W::kQuadBytes, full);
          }
        }
        c.next.advance<Slots::kSlots>();
      }
    }
  }
};

}  // namespace amk
