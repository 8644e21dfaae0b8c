// Attention of the tokens of a prompt's pass. The rows of all of them go into the cache first; then
// each sees the rows before its own there, and its own. A warp has a few tokens of a kv head: their
// heads are the columns of products with blocks of the cache, as in a pass of several rows. What
// the warps of a step have of a split, and then the splits, are joined as a step joins them
// (docs/passes.md). Needs schedule.h with AMK_TENSOR_CORES.
#pragma once

#include "prompt_products.cuh"
#include "prompt_shares.cuh"
#if AMK_WGMMA
#include "prompt_attention_wgmma.cuh"
#endif

namespace amk {

// Columns of a warp's products: query heads of a kv head, those of one token after those of the
// token before. Of the warps of a step that share the blocks of a split, a warp of a
// prompt does for its columns what each of them does, one after the other.
template <class S>
struct PromptHeads {
  static constexpr int kGroups = HeadsOf<S>::kPaddedHead > 128 ? 1 : 2;
  static constexpr int kColumns = kGroups * kMmaHeads;
  static constexpr int kBlockColumns = kColumns * kConsumerWarps;
};
template <class S>
using PromptUnits = ColumnUnits<S, PromptHeads<S>::kBlockColumns>;

// What a lane has of the products of a warp: two columns of each group, and every eighth dim.
template <class S>
struct MmaLane {
  static constexpr int kColumns = 2 * PromptHeads<S>::kGroups;
  static constexpr int kValues = HeadsOf<S>::kPaddedHead / 8;
  int lane;

  __device__ __forceinline__ int column(int c) const {
    return c / 2 * kMmaHeads + (lane & 3) * 2 + c % 2;
  }
  __device__ __forceinline__ int dim(int n) const { return n * 8 + (lane >> 2); }
};

// A warp's columns of a kv head, from the first one of all tokens' on.
template <class S>
struct PromptUnit : LaneColumns<S, MmaLane<S>> {
  using H = HeadsOf<S>;
  using P = PromptHeads<S>;
  using Columns = LaneColumns<S, MmaLane<S>>;
  using Columns::Columns;
  HeadGroup<H> groups[P::kGroups];

  __device__ __forceinline__ void load(const u16* queries, int stride) {
    const int lane = this->lane.lane;
#pragma unroll
    for (int g = 0; g < P::kGroups; ++g) {
      const int column = this->first_column + g * kMmaHeads + (lane >> 2);
#pragma unroll
      for (int f = 0; f < HeadGroup<H>::kFragments; ++f) {
        const int dim = f * 16 + (lane & 3) * 4;
        const bool real =
            column < this->columns && (H::kPaddedHead == H::kHeadDim || dim < H::kHeadDim);
        groups[g].q[f] =
            real ? *reinterpret_cast<const uint2*>(queries + this->query(column, stride) + dim)
                 : make_uint2(0, 0);
      }
    }
    warp_sync();  // all lanes have the queries
  }
  __device__ __forceinline__ void forget_share() {
#pragma unroll
    for (int g = 0; g < P::kGroups; ++g) groups[g].forget();
  }
  // Attends to a block, of which `at` is a copy: each column to the rows before its own.
  __device__ __forceinline__ void attend(int block, const u8* at) {
    const int row = block * kCacheRows;
    SeenRows seen[P::kGroups][2];
    OwnScores own[P::kGroups];
#pragma unroll
    for (int c = 0; c < 2 * P::kGroups; ++c) {
      const int own_row = this->position[c];
      seen[c / 2][c % 2] = {max(0, first_seen<S>(own_row) - row), min(own_row - row, kCacheRows)};
      own[c / 2].of[c % 2] = this->own[c];
    }
    attend_block<S>(groups, at, seen, own, max(0, first_seen<S>(this->first) - row),
                    min(this->last + 1 - row, kCacheRows), this->lane.lane);
#pragma unroll
    for (int c = 0; c < 2 * P::kGroups; ++c) this->own[c] = own[c / 2].of[c % 2];
  }
  // Whether a column sees a row of a block, or has its own in it.
  __device__ __forceinline__ bool sees(int block) const {
    return block * kCacheRows <= this->last &&
           (block + 1) * kCacheRows > first_seen<S>(this->first);
  }
  // Joins the share of a split.
  __device__ __forceinline__ void join_groups() {
    float base[2 * P::kGroups], max[2 * P::kGroups], sum[2 * P::kGroups];
#pragma unroll
    for (int g = 0; g < P::kGroups; ++g) {
      HeadGroup<H>& h = groups[g];
      h.template join_lanes<(S::kSplits > 1)>();
      base[2 * g] = h.base0, base[2 * g + 1] = h.base1;
      max[2 * g] = h.max0, max[2 * g + 1] = h.max1;
      sum[2 * g] = h.sum0, sum[2 * g + 1] = h.sum1;
    }
    this->join_warp(base, max, sum, [&](int c, int n) {
      return groups[c / 2].o[n / 2][n % 2 * 2 + c % 2];
    });
  }
};

// Attention of a block's columns to all splits, by all of its warps, for stage Top of the pass.
template <class Top, class Units, class Cache>
__device__ __forceinline__ void attend_columns(Prompt& c, const Units& units, int unit,
                                               const u16* queries, int stride, const Page out,
                                               const u8* sinks, Cache cache) {
  using S = typename Units::Stage;
  using H = HeadsOf<S>;
  using P = PromptHeads<S>;
  using Lane = MmaLane<S>;
  const int column = units.column(unit);
  PromptUnit<S> u(c, units, cache, units.head(unit), Lane{c.lane}, column + c.warp * P::kColumns,
                  P::kColumns,
                  reinterpret_cast<float*>(c.ring) +
                      c.warp * Lane::kColumns * Lane::kValues * 32 + c.lane);
  u.load(queries, stride);
  constexpr int kKept = S::kSplits == 1 ? 0 : P::kBlockColumns * H::kPaddedHead * 4;
  auto walk = units.walk(column);
  BlockStream<S, kPromptRing - kKept> stream(u.head, c.ring + kKept, walk, c.tid);
#pragma unroll 1
  for (int split = 0; split < S::kSplits; ++split) {
#pragma unroll 1
    while (walk.split == split) {
      const int share = walk.warp;
      bool any = false;
      u.forget_share();
#pragma unroll 1
      for (; walk.is_in(split, share); walk.advance()) {
        const u8* at = stream.next();
        const int block = walk.block();
        if (!u.sees(block)) continue;
        u.attend(block, at);
        any = true;
      }
      if (any) u.join_groups();
    }
    u.end_split(c, split, sinks, [&](int row) { return row % 8 * 4 + (c.lane & 3); });
  }
  u.template store<(Top::kSplits > 1)>(c, out);
}

// If there are several splits, what comes out goes where the operand of the next product will be: a
// step may have it on the page of the queries, which other blocks read. Queries that have been
// normalised are there themselves, and are replaced by the warp that has read them.
template <class S, class Heads, class Cache = OfLayer>
__device__ __forceinline__ void attend(Prompt& c, const Heads heads, const Page out,
                                       const u8* sinks, Cache cache = {}) {
  int stride;
  const u16* queries = append<S>(c, heads, cache, stride);
  join(c);
  if (c.layer == kLayers - 1) c.first = first_wanted(c.launch);
#if AMK_WGMMA
  if constexpr (kWideAttention<S>) {
    begin_copies(c);
    each_stage<S, WideUnits>(c.origin, c.first, c.tokens, 0, [&](const auto& units) {
      units.each(c.sm, [&](int unit) {
        attend_wide<S>(c, units, unit, queries, stride, out, sinks, cache);
      });
    });
  }
#endif
  if constexpr (!kWideAttention<S>) {
    each_stage<S, PromptUnits>(c.origin, c.first, c.tokens, 0, [&](const auto& units) {
      units.each(c.sm, [&](int unit) {
        attend_columns<S>(c, units, unit, queries, stride, out, sinks, cache);
      });
    });
  }
  join(c);
}
template <class S, class Heads, class Cache = OfLayer>
__device__ __forceinline__ void attend(Prompt& c, const Heads heads, const Page out,
                                       Cache cache = {}) {
  attend<S>(c, heads, out, static_cast<const u8*>(nullptr), cache);
}

// Attention has joined the splits of each token: what came out is moved, unless it is where it is
// read.
template <class S>
__device__ __forceinline__ void combine(Prompt& c, const Page, const Page out) {
  if constexpr (!kSame<typename WritesOperand<S>::Of, void>) return;
  using H = HeadsOf<S>;
  const uint2* from = reinterpret_cast<const uint2*>(c.operand());
  uint2* const to = reinterpret_cast<uint2*>(c.values<Element>(out));
#pragma unroll 1
  for (int i = c.first * (H::kQueryRows / 4) + c.sm * kConsumers + c.tid;
       i < c.tokens * (H::kQueryRows / 4); i += kSMs * kConsumers)
    to[i] = from[i];
  join(c);
}

}  // namespace amk
