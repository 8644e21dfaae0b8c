// The layout of the columns of a prompt's products, and the order of the walk over them. Needs
// schedule.h with AMK_TENSOR_CORES. Must not know what is multiplied.
#pragma once

#include "prompt_digits.cuh"

namespace amk {

// How the columns of a stage are walked. A step adds them up warp after warp, each warp's in slabs
// and each slab in chains of its quads' quarters (docs/passes.md); so does a warp of a prompt, on
// its own, and the operand is in that order: for the tokens of a tile a block for each part, which
// has a quarter of a few quads.
template <class S>
struct PromptColumns : GemvShape<S> {
  using G = GemvShape<S>;
  using G::kChunkQuads, G::kChunkSubs, G::kQuads, G::kSubs;
  // Warps that have a quad at all.
  static constexpr int kMembers = kQuads < S::kWarps ? kQuads : int(S::kWarps);
  static constexpr int kQuarters = kQuadColumns / 32;

  // The quad that sub `sub` of a member is, or kQuads if it has none there.
  __host__ __device__ static constexpr int quad_of(int member, int sub) {
    const int in_chunk = sub % kChunkSubs * S::kWarps + member;
    const int quad = sub / kChunkSubs * kChunkQuads + in_chunk;
    return sub < kSubs && in_chunk < kChunkQuads && quad < kQuads ? quad : kQuads;
  }
};

template <class S, bool kQuantised>
struct PromptShapeOf;

// Of elements as they are: slab after slab, and in each a chain after the other. A slab has four
// parts, each of as many blocks of 32 columns as it has quads: a chain is one of them, or two.
template <class S>
struct PromptShapeOf<S, false> : PromptColumns<S> {
  using C = PromptColumns<S>;
  using C::kSlabs, C::kSlabSubs, C::kQuarters, C::kMembers;
  static constexpr int kOfChain = kChainQuarters<S>;
  // Whether wgmma multiplies: each warp of a step has as many quads as the others.
  static constexpr bool kWide = AMK_WGMMA && C::kEven;
  // Of each quad of a slab 8 tokens by 32 columns, then those of the other tokens of a tile; or for
  // wgmma all tokens of a tile (prompt_wgmma.cuh), quad after quad.
  static constexpr int kBlockBytes = 8 * 32 * 2;
  static constexpr int kRowBytes = kSlabSubs * kBlockBytes;
  static constexpr int kPartBytes = kTokenTile / 8 * kRowBytes;
  static constexpr int kTileParts = kMembers * kSlabs * kQuarters;
  static constexpr size_t kTileBytes = size_t(kTileParts) * kPartBytes;
  // Parts that pass through shared memory together.
  static constexpr int kStageParts = kSlabSubs > 2 ? 1 : kSlabSubs == 2 ? 2 : 4;

  // Of which quad of its slab block i of a part is a quarter, and which quarter.
  __host__ __device__ static constexpr int sub_of(int part, int i) {
    return (part % kOfChain * kSlabSubs + i) / kOfChain;
  }
  __host__ __device__ static constexpr int quarter_of(int part, int i) {
    return part - part % kOfChain + (part % kOfChain * kSlabSubs + i) % kOfChain;
  }
  // Where a quarter of a quad is in a tile of the operand: the byte of its part, and which block.
  struct Place {
    size_t part;
    int block;
  };
  __device__ static __forceinline__ Place place(int member, int sub, int quarter) {
    const int in_chain = sub % kSlabSubs * kOfChain + quarter % kOfChain;
    const int part = quarter - quarter % kOfChain + in_chain / kSlabSubs;
    const int parts = (member * kSlabs + sub / kSlabSubs) * kQuarters + part;
    return {size_t(parts) * kPartBytes, in_chain % kSlabSubs};
  }

  // Stores four columns of a quad of a token where the lane has them. A warp calls it.
  __device__ static __forceinline__ void store(u8* tile, int member, int sub, int token, uint2 four,
                                               int lane) {
    const int quarter = lane / 8, eight = lane & 3, half = (lane >> 2) & 1;
    const Place to = place(member, sub, quarter);
    if constexpr (kWide) {
      u8* at = tile + to.part + to.block * kTokenTile * 64 + token * 16 + half * kTokenTile * 32 +
               eight * 4;
      *reinterpret_cast<u32*>(at) = four.x;
      *reinterpret_cast<u32*>(at + kTokenTile * 16) = four.y;
    } else {
      u8* at = tile + to.part + token / 8 * kRowBytes + to.block * kBlockBytes + token % 8 * 64 +
               eight * 16 + half * 8;
      *reinterpret_cast<uint2*>(at) = four;
    }
  }
};

// The columns of a quantised matrix: of each warp a quarter after the other, each over all quads.
template <class S>
struct PromptShapeOf<S, true> : PromptColumns<S> {
  using C = PromptColumns<S>;
  using C::kSubs, C::kQuarters, C::kMembers;
  using Quarter = QuarterFormat<Matrix<S>>;
  static constexpr int kQuarterParts = ceil_div(kSubs, kPartSubs);
  static constexpr int kPartBytes = kPartSubs * Quarter::kBytes;
  static constexpr int kTileParts = kMembers * kQuarters * kQuarterParts;
  static constexpr size_t kTileBytes = size_t(kTileParts) * kPartBytes;
  static constexpr int kStageParts = 1;

  __device__ static __forceinline__ void store(u8* tile, int member, int sub, int token, uint2 four,
                                               int lane) {
    const int part = (member * kQuarters + lane / 8) * kQuarterParts + sub / kPartSubs;
    Quarter::store(tile + size_t(part) * kPartBytes + sub % kPartSubs * Quarter::kBytes, token,
                   four, lane);
  }
};

template <class S>
using PromptShape = PromptShapeOf<S, Matrix<S>::kQuantised>;

// Columns of the operand of a stage, for each token; 0 for one that multiplies nothing.
template <class S, class = void>
constexpr int kOperandColumns = 0;
template <class S>
constexpr int kOperandColumns<S, decltype(void(S::kColumns))> =
    int(PromptShape<S>::kTileBytes / kTokenTile / 2) * kSplitK<S>;

// The most columns of an operand, of n stages.
template <int kStages>
constexpr int most_columns(const int (&of_stages)[kStages]) {
  int most = 0;
  for (int columns : of_stages) most = columns > most ? columns : most;
  return most;
}

}  // namespace amk
