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

// Quad after quad of each warp of a step: the warps divide the tiles of rows, and the last one
// copies the operand, too. Warps that compute leave few cycles to them, so that each copy takes
// long, and nothing is computed for it that need not be.
template <class S>
struct TileCopies<S, true> {
  using Slots = QuadSlots<S>;
  static constexpr int kEach = ceil_div(Slots::kTiles + 1, int(kCopyWarps));
  static constexpr int kLastWarp = Slots::kTiles - 2 * kEach;  // tiles that it copies
  static_assert(kCopyWarps == 3 && kLastWarp > 0, "each warp has tiles");
  static constexpr u32 kBytes = kEach * Slots::W::kQuadBytes;
  static constexpr u32 kLastBytes = kLastWarp * Slots::W::kQuadBytes + Slots::Operand::kBytes;

  __device__ static __forceinline__ void copy(PromptCopies& c, const PromptTile tile,
                                              const u8* matrix, const TensorMap*) {
    constexpr int kPartBytes = tile_bytes<typename Slots::W>(S::kColumns);
    constexpr int kStride = kPartBytes * Slots::kParts;
    const u8* part = matrix + size_t(tile.matrix) * Slots::kMatrixTiles * kStride +
                     tile.part * kPartBytes;
    // Past the end is the last tile again: what it becomes is not used.
    const int own = int(c.warp) * kEach, first = tile.first_row / kTileRows + own;
    constexpr int kPartTiles = ceil_div(Slots::kPartRows, kTileRows), kLast = kPartTiles - 1;
    const u8* const rows = part + size_t(first) * kStride;
    const u8* operand = c.operand_of<S>() + (size_t(tile.tokens) * Slots::kParts + tile.part) *
                                                Slots::kTileBytes;
    const bool last_warp = c.warp == 2;
#pragma unroll 1
    for (int member = 0; member < Slots::kMembers; ++member) {
#pragma unroll 1
      for (int sub = 0; sub < Slots::kSubs; ++sub) {
        const int quad = Slots::quad_of(member, sub);
        if (!Slots::kEven && quad == Slots::kQuads) continue;
        u8* slot = Slots::slot(c.next.slot);
        u64* full = c.await_slot();
        barrier_arrive_expect(full, last_warp ? kLastBytes : kBytes);
        if (last_warp) {
          copy_bulk(slot, operand + Slots::place(member, sub), Slots::Operand::kBytes, full);
        }
        u8* const to = slot + Slots::Operand::kBytes + own * Slots::kTileStride;
        const u8* const of_quad = rows + quad * Slots::W::kQuadBytes;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
          if (i >= kLastWarp && last_warp) break;
          const int row = kPartTiles % Slots::kTiles > 0 ? min(i, kLast - first) : i;
          copy_bulk(to + i * Slots::kTileStride, of_quad + ptrdiff_t(row) * kStride,
                    Slots::W::kQuadBytes, full);
        }
        c.next.advance<Slots::kSlots>();
      }
    }
  }
};

}  // namespace amk
