// In which order the columns of a prompt's products lie, and are walked. Needs schedule.h with
// AMK_TENSOR_CORES. Must not know what is multiplied.
#pragma once

#include "gemv_mma.cuh"

namespace amk {

constexpr int kTokenTile = 64;  // tokens that a block multiplies at once

// How the columns of a stage are walked. A step adds them up warp after warp, each warp's in slabs
// and each slab in four quarters of its quads (docs/passes.md); so does a warp of a prompt, by
// itself, and the operand lies in that order.
template <class S>
struct PromptShape : GemvShape<S> {
  using G = GemvShape<S>;
  using G::kChunkQuads, G::kChunkSubs, G::kQuads, G::kSlabs, G::kSlabSubs, G::kSubs;
  // Warps that have a quad at all.
  static constexpr int kMembers = kQuads < S::kWarps ? kQuads : int(S::kWarps);
  static constexpr int kQuarters = kQuadColumns / 32;
  // 8 tokens by 32 columns of each quad of a slab, then those of the other tokens of a tile.
  static constexpr int kBlockBytes = 8 * 32 * 2;
  static constexpr int kRowBytes = kSlabSubs * kBlockBytes;
  static constexpr int kQuarterBytes = kTokenTile / 8 * kRowBytes;
  static constexpr int kTileQuarters = kMembers * kSlabs * kQuarters;
  static constexpr size_t kTileBytes = size_t(kTileQuarters) * kQuarterBytes;
  static constexpr int kColumns = int(kTileBytes / kTokenTile / 2);

  // The quad that sub `sub` of a member is, or kQuads if it has none there.
  __host__ __device__ static constexpr int quad_of(int member, int sub) {
    const int in_chunk = sub % kChunkSubs * S::kWarps + member;
    const int quad = sub / kChunkSubs * kChunkQuads + in_chunk;
    return sub < kSubs && in_chunk < kChunkQuads && quad < kQuads ? quad : kQuads;
  }
  // The byte of a quarter of a quad of a token, in the tile of the token: of its first 8 columns.
  __device__ static __forceinline__ size_t place(int member, int sub, int quarter, int token) {
    const int slab = sub / kSlabSubs, in_slab = sub % kSlabSubs;
    const int at = (member * kSlabs + slab) * kQuarters + quarter;
    return size_t(at) * kQuarterBytes + token / 8 * kRowBytes + in_slab * kBlockBytes +
           token % 8 * 64;
  }
};

// Columns of the operand of a stage, for each token; 0 for one that multiplies nothing.
template <class S, class = void>
constexpr int kOperandColumns = 0;
template <class S>
constexpr int kOperandColumns<S, decltype(void(S::kColumns))> =
    PromptShape<S>::kColumns * kSplitK<S>;

// The most columns of an operand, of so many stages.
template <int kStages>
constexpr int most_columns(const int (&of_stages)[kStages]) {
  int most = 0;
  for (int columns : of_stages) most = columns > most ? columns : most;
  return most;
}

}  // namespace amk
