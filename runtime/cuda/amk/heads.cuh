// The heads of a layer, and what follows from their number and size: how its cache is laid out,
// what a unit of attention has, and what its warps keep. Layers of a model may differ. Needs
// schedule.h and model_config.h. Must not know which stages there are.
#pragma once

#include "cache.cuh"
#include "context.cuh"

namespace amk {

__host__ __device__ constexpr int power_of_two_from(int n) {
  return n <= 1 ? 1 : 2 * power_of_two_from((n + 1) / 2);
}

// Columns of a product with K on tensor cores.
constexpr int kMmaHeads = 8;

template <int kHeadsOf, int kKVHeadsOf, int kHeadDimOf>
struct HeadSizes {
  static constexpr int kHeads = kHeadsOf, kKVHeads = kKVHeadsOf, kHeadDim = kHeadDimOf;
  static constexpr int kGroupHeads = kHeads / kKVHeads;  // query heads of a kv head
  static constexpr int kPaddedHead = round_up(kHeadDim, 16);

  // ---- the cache ----
  // K or V of one block
  static constexpr int kHalfBlockBytes = kCacheRows * kPaddedHead * CacheElement::kBytes;
  static constexpr int kCacheBlockBytes = 2 * kHalfBlockBytes + kCacheRows * kRowScaleBytes;
  static constexpr int kHeadCacheBytes =
      round_up(kMaxSeq, kCacheRows) / kCacheRows * kCacheBlockBytes;
  static constexpr size_t kLayerCacheBytes =
      (size_t(kKVHeads) * kHeadCacheBytes + 255) / 256 * 256;

  // ---- the qkv vector of a token ----
  static constexpr int kQueryRows = kHeads * kHeadDim;                   // the first ones
  static constexpr int kNormedRows = kQueryRows + kKVHeads * kHeadDim;  // and k's, which come after
  static constexpr int kTokenRows = kNormedRows + kKVHeads * kHeadDim;  // and v's: all
  // Position of this step's k and v row of a kv head.
  __device__ static __forceinline__ int k_row(int head) {
    return kHeads * kHeadDim + head * kHeadDim;
  }
  __device__ static __forceinline__ int v_row(int head) {
    return (kHeads + kKVHeads) * kHeadDim + head * kHeadDim;
  }

  // ---- results that warps keep ----
  // Elements from one head's results in the scratch to the next one's, so that lanes that store
  // those of different heads meet no bank twice.
  static constexpr int kHeadStride = kPaddedHead + 4;
  // On tensor cores: groups of n heads that a warp has of one token, and sets of warps. Sets have
  // different heads, and each shares the blocks among its warps.
  static constexpr int kWarpGroups = ceil_div(kGroupHeads, kConsumerWarps * kMmaHeads);
  static constexpr int kWarpSets =
      power_of_two_from(ceil_div(kGroupHeads, kWarpGroups * kMmaHeads));
  static constexpr int kPartColumns = 2 * kMmaHeads * kWarpSets;
  // heads whose results a warp keeps at a time; those of several rows are merged eight at a time
  static constexpr int kWarpHeads = !AMK_TENSOR_CORES           ? kGroupHeads
                                    : kSequenceRows > 1         ? kMmaHeads
                                    : kGroupHeads < kMmaHeads ? round_up(kGroupHeads, 2)
                                                              : kWarpGroups * kMmaHeads;
  static_assert(kWarpHeads <= kAttentionHeads, "the scratch has room for them");
  static_assert((AMK_TENSOR_CORES ? kWarpSets : 1) * kWarpHeads <= kAttentionOwn,
                "and for the scores of their own rows, of which all warps have one each");
  static_assert(!AMK_TENSOR_CORES || kWarpGroups <= 2, "at most 128 query heads a kv head");

  // ---- what a unit reads, on tensor cores: four words at a time ----
  static_assert(!AMK_TENSOR_CORES || kHeadDim % 4 == 0, "four words are read at a time");
  static constexpr int kHeadQuads = kHeadDim / 4;
  static constexpr int kUnitHeads = kGroupHeads + 2;  // of a token: q of the group, k and v
  static constexpr int kUnitQuads = kUnitHeads * kHeadQuads;
  static constexpr int kPassQuads = kSequenceRows * kUnitQuads;  // of all rows, one after the other
  static constexpr int kNormedQuads = kNormedRows / 4;
  // elements from head to head, so that a fragment's lanes meet no bank twice
  static constexpr int kQueryStride = kPaddedHead + 16;
  // k and v of this step as they are published, before they are rounded to integers
  static constexpr int kGivenRowBytes = kQuantisedCache ? 2 * kPaddedHead * Element::kBytes : 0;
  static_assert(!AMK_TENSOR_CORES || kUnitScratch >= kGroupHeads * kQueryStride * 2 +
                                                         kGivenRowBytes + kCacheBlockBytes,
                "q of a group and a block of the cache");
  // ---- and without: q of the group, and this step's k and v, which are one row ----
  static constexpr int kUnitRow = kGroupHeads * kHeadDim;
  static constexpr int kTokenFloats = kUnitRow + 2 * kHeadDim;
};

// Those of a stage's layer. The default, the model's, is for models whose layers do not differ.
template <class S, class = void>
struct OfStage {
  using Type = HeadSizes<kHeads, kKVHeads, kHeadDim>;
};
template <class S>
struct OfStage<S, decltype(void(S::kHeadDim))> {
  using Type = HeadSizes<S::kHeads, S::kKVHeads, S::kHeadDim>;
};
template <class S>
using HeadsOf = typename OfStage<S>::Type;

}  // namespace amk
