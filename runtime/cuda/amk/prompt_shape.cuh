// The layout of the columns of a prompt's products, and the order of the walk over them. Needs
// schedule.h with AMK_TENSOR_CORES. Must not know what is multiplied.
#pragma once

#include "heads.cuh"
#include "prompt_halves.cuh"
#include "prompt_walk.cuh"

namespace amk {

// How the columns of a stage are walked. A step adds them up warp after warp, each warp's in slabs
// and each slab in chains of its quads' quarters (docs/passes.md); so does a warp of a prompt, on
// its own, and the operand is in that order: for the tokens of a tile a block for each part, which
// has a quarter of a few quads.
template <class S>
struct PromptColumns : GemvShape<S> {
  using G = GemvShape<S>;
  using G::kChunkQuads, G::kChunkSubs, G::kQuads;
  static constexpr int kSubs = G::kMatrixSubs;  // of one matrix, if a row is the sum over several
  // Warps that have a quad at all.
  static constexpr int kMembers = kQuads < S::kWarps ? kQuads : int(S::kWarps);
  static constexpr int kQuarters = kQuadColumns / 32;
  // Whether each of them has a quad in every sub.
  static constexpr bool kEven = kQuads == kMembers * kSubs;

  // The quad that sub `sub` of a member is, or kQuads if it has none there.
  __host__ __device__ static constexpr int quad_of(int member, int sub) {
    const int in_chunk = sub % kChunkSubs * S::kWarps + member;
    const int quad = sub / kChunkSubs * kChunkQuads + in_chunk;
    return sub < kSubs && in_chunk < kChunkQuads && quad < kQuads ? quad : kQuads;
  }
  // The other way round: the member that has a quad, and the quad's number among its own.
  __host__ __device__ static constexpr int member_with(int quad) {
    return quad % kChunkQuads % S::kWarps;
  }
  __host__ __device__ static constexpr int sub_with(int quad) {
    return quad / kChunkQuads * kChunkSubs + quad % kChunkQuads / S::kWarps;
  }
};

template <class S, bool kQuantised, bool kWide>
struct PromptShapeOf;

// Of elements as they are: slab after slab, and in each a chain after the other. A slab has four
// parts, each of as many blocks of 32 columns as the slab has quads: a chain is one or two of them.
template <class S>
struct PromptShapeOf<S, false, false> : PromptColumns<S> {
  using C = PromptColumns<S>;
  using C::kSlabs, C::kSlabSubs, C::kQuarters, C::kMembers;
  static constexpr bool kWhole = false;  // places that no quad is in are left alone
  static constexpr int kTogether = 1;  // tokens that are stored at once
  static constexpr int kOfChain = kChainQuarters<S>;
  // Of each quad of a slab 8 tokens by 32 columns, then those of the other tokens of a tile.
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
  __device__ static __forceinline__ void store(u8* tile, int member, int sub, int token,
                                               const uint2 (&four)[kTogether], int lane) {
    const Place to = place(member, sub, lane / 8);
    u8* at = tile + to.part + token / 8 * kRowBytes + to.block * kBlockBytes + token % 8 * 64 +
             (lane & 3) * 16 + (lane >> 2 & 1) * 8;
    *reinterpret_cast<uint2*>(at) = four[0];
  }
};

// The same for wgmma (prompt_wgmma.cuh): chain after chain of a slab, and in each quad after quad.
// Of a quad a chain has half of the columns of one quarter or two, in groups of eight columns, and
// of a group 16 bytes of every token of a tile.
template <class S>
struct PromptShapeOf<S, false, true> : PromptColumns<S> {
  using C = PromptColumns<S>;
  using C::kSubs, C::kSlabs, C::kSlabSubs, C::kQuarters, C::kMembers;
  static constexpr bool kWhole = true;  // places that no quad is in are zeros
  static constexpr int kTogether = 4;
  static constexpr int kOfChain = kChainQuarters<S>;
  static constexpr int kChains = 2 * kQuarters / kOfChain;  // of a slab
  static constexpr int kTail = kSubs % kSlabSubs;  // quads of the last slab, if fewer
  static constexpr int kGroupBytes = kTokenTile * 16;
  static constexpr int kQuadBytes = kOfChain * 2 * kGroupBytes;  // of a chain
  static constexpr int kSubBytes = kChains * kQuadBytes;
  static constexpr size_t kTileBytes = size_t(kMembers) * kSubs * kSubBytes;
  // Rows that are multiplied at once: what is kept of each element decides. Each group of warps has
  // a tile of the operand.
  static constexpr int kRows = kOfChain == 2 ? 128 : 64, kTileTokens = 2 * kTokenTile;

  // Quads of a slab.
  __host__ __device__ static constexpr int quads_of(int slab) {
    return kTail > 0 && slab == kSlabs - 1 ? kTail : kSlabSubs;
  }

  // Whether every place has columns.
  static constexpr bool kFilled = S::kColumns == C::kQuads * kQuadColumns && C::kEven;

  // The byte of the first eight columns of a half of a quarter of a quad in a tile.
  __device__ static __forceinline__ size_t place(int member, int sub, int quarter, int half,
                                                 int token) {
    const int slab = sub / kSlabSubs, chain = quarter / kOfChain * 2 + half;
    return size_t(member * kSubs + slab * kSlabSubs) * kSubBytes +
           (chain * quads_of(slab) + sub % kSlabSubs) * kQuadBytes +
           quarter % kOfChain * 2 * kGroupBytes + token * 16;
  }
  // Stores four columns of a quad of four tokens where the lane has them. A warp calls it. Of a
  // token a group of eight columns is spread over four lanes, which exchange tokens for columns.
  __device__ static __forceinline__ void store(u8* tile, int member, int sub, int token,
                                               const uint2 (&four)[kTogether], int lane) {
    const u32 first[kTogether] = {four[0].x, four[1].x, four[2].x, four[3].x};
    const u32 second[kTogether] = {four[0].y, four[1].y, four[2].y, four[3].y};
    u8* at = tile + place(member, sub, lane / 8, lane >> 2 & 1, token + (lane & 3));
    *reinterpret_cast<uint4*>(at) = transposed(first, lane);
    *reinterpret_cast<uint4*>(at + kGroupBytes) = transposed(second, lane);
  }
};

// The columns of a quantised matrix: of each warp a quarter after the other, each over all quads.
template <class S>
struct PromptShapeOf<S, true, false> : PromptColumns<S> {
  using C = PromptColumns<S>;
  using C::kSubs, C::kQuarters, C::kMembers;
  using Quarter = QuarterFormat<Matrix<S>>;
  static constexpr int kQuarterParts = ceil_div(kSubs, kPartSubs);
  static constexpr int kPartBytes = kPartSubs * Quarter::kBytes;
  static constexpr int kTileParts = kMembers * kQuarters * kQuarterParts;
  static constexpr size_t kTileBytes = size_t(kTileParts) * kPartBytes;
  static constexpr int kStageParts = 1;
  static constexpr bool kWhole = false;
  static constexpr int kTogether = 1;

  __device__ static __forceinline__ void store(u8* tile, int member, int sub, int token,
                                               const uint2 (&four)[kTogether], int lane) {
    const int part = (member * kQuarters + lane / 8) * kQuarterParts + sub / kPartSubs;
    Quarter::store(tile + size_t(part) * kPartBytes + sub % kPartSubs * Quarter::kBytes, token,
                   four[0], lane);
  }
};

// The same for wgmma (prompt_wgmma_quantised.cuh): of each warp quad after quad.
template <class S>
struct PromptShapeOf<S, true, true> : PromptColumns<S> {
  using C = PromptColumns<S>;
  using C::kSubs, C::kMembers;
  using Operand = QuadOperand<Matrix<S>>;
  static constexpr bool kWhole = false;
  static constexpr int kTogether = Operand::kTogether;
  static constexpr int kRows = 128, kTileTokens = kTokenTile;
  static constexpr size_t kTileBytes = size_t(kMembers) * kSubs * Operand::kBytes;

  __host__ __device__ static constexpr size_t place(int member, int sub) {
    return size_t(member * kSubs + sub) * Operand::kBytes;
  }
  __device__ static __forceinline__ void store(u8* tile, int member, int sub, int token,
                                               const uint2 (&four)[kTogether], int lane) {
    Operand::store(tile + place(member, sub), token, four, lane);
  }
};

template <class S>
constexpr bool kByWgmma = AMK_WGMMA && kWideMatrix<Matrix<S>>;
// Whether wgmma attends in a stage: to 16-bit caches, of heads whose dims products can divide.
template <class S>
constexpr bool kWideAttention = AMK_WGMMA && kCacheMatrices &&
                                HeadsOf<S>::kPaddedHead %
                                        (HeadsOf<S>::kPaddedHead > 128 ? 64 : 32) == 0;
template <class S>
using PromptShape = PromptShapeOf<S, Matrix<S>::kQuantised, kByWgmma<S>>;

// Where one product alone reads what another stage publishes, the other stage may leave it in the
// order of that product's operand, in its page: nothing is copied from there. prompt.cu says which.
template <class S>
struct OperandPage {
  static constexpr bool kWritten = false;  // the operand of S is in a page, kPage
};
template <class S>
struct WritesOperand {
  using Of = void;  // the stage whose operand S writes
};

// The stage that attends in place of S to tokens at positions before kEnd: variants divide the rows
// of the cache into different splits. prompt.cu says which, if a pass may have tokens of several.
template <class S>
struct Before {
  using Stage = void;
  static constexpr int kEnd = 0;
};

// The first token whose results are wanted, with which a tile begins: when the last layer has its
// rows in the cache, nobody reads what else is computed of others. Without logits or hidden states,
// that is the tile of the last token, if one is chosen after it, and otherwise none.
__device__ __forceinline__ int first_wanted(const Launch& launch) {
  constexpr int kTiles = 2 * kTokenTile;
  if (launch.logits || launch.hidden) return 0;
  return launch.chooses ? (launch.steps - 1) / kTiles * kTiles : round_up(launch.steps, kTiles);
}

// ---- matrices of experts ------------------------------------------------------------------------

// Products of a token with matrices of a stage: one, or one per expert that is chosen for it. Each
// is by kMatrixRows rows: those of the stage's matrix, or of one of its kMatrices experts.
template <class S>
constexpr int kRanks = kSelected<S> * kSummed<S>;
template <class S>
constexpr int kMatrixRows = S::kRows / kSelected<S>;

#if AMK_EXPERTS
template <class S>
constexpr int kMatrices = kRanks<S> > 1 ? kExperts : 1;

// The tokens of a pass by expert: a list of whole tiles, those of an expert one after another. It
// has a place for every token and rank, and the last tile of an expert has places of nobody.
struct Listed {
  u32 bits;

  __device__ static __forceinline__ Listed nobody() { return {~0u}; }
  __device__ static __forceinline__ Listed of(int token, int rank, int expert) {
    return {u32(expert) << 18 | u32(rank) << 13 | u32(token)};
  }
  __device__ __forceinline__ bool exists() const { return bits != ~0u; }
  __device__ __forceinline__ int token() const { return bits & 0x1fff; }
  __device__ __forceinline__ int rank() const { return bits >> 13 & 31; }
  __device__ __forceinline__ int expert() const { return exists() ? int(bits >> 18) : -1; }
};
static_assert(kExperts < 1 << 14 && kMostChosen <= 32, "bits of an entry");

// The expert of a tile of the list, or -1 of one in which nobody has a place. All threads of a
// block have the same answer, even when a wait was cancelled.
__device__ __forceinline__ int listed_expert(int tile) {
  return int(block_waits().listed[tile]) - 1;
}
#else
template <class S>
constexpr int kMatrices = 1;
#endif

// Places that the tokens of a pass have in the operand of a stage: their number, or those of the
// list.
template <class S>
__host__ __device__ constexpr int places_of(int tokens) {
#if AMK_EXPERTS
  if constexpr (kRanks<S> > 1)
    return tile_of_list(tokens * kRanks<S>, kExperts) * kMostTileTokens;
#endif
  return tokens;
}

// ---- memory -------------------------------------------------------------------------------------

// Bytes of the operand of a stage in a pass of some tokens; 0 for one that has none to prepare. And
// those of the sums that are added up when all are there.
template <class S, class = void>
struct StageBytes {
  static constexpr u64 operand(int) { return 0; }
  static constexpr u64 sums(int) { return 0; }
};
template <class S>
struct StageBytes<S, decltype(void(S::kColumns))> {
  static constexpr u64 operand(int tokens) {
    if (OperandPage<S>::kWritten) return 0;
    return u64(round_up(places_of<S>(tokens), kMostTileTokens) / kTokenTile) *
           PromptShape<S>::kTileBytes * kSplitK<S>;
  }
  static constexpr u64 sums(int tokens) {
    return kSummed<S> > 1 ? u64(tokens) * kSummed<S> * S::kRows * 4 : 0;
  }
};

// The most of all stages.
struct PromptSizes {
  u64 operand, sums;
};
template <class... Stages>
constexpr PromptSizes prompt_sizes(int tokens) {
  const PromptSizes all[] = {
      {StageBytes<Stages>::operand(tokens), StageBytes<Stages>::sums(tokens)}...};
  PromptSizes most{};
  for (const PromptSizes& stage : all) {
    most.operand = stage.operand > most.operand ? stage.operand : most.operand;
    most.sums = stage.sums > most.sums ? stage.sums : most.sums;
  }
  return most;
}

}  // namespace amk
