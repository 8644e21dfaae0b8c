// Attention of the tokens of a prompt's pass. The rows of all of them go into the cache first; then
// each sees the rows before its own there, and its own. A warp has a few tokens of a kv head: their
// heads are the columns of products with blocks of the cache, as in a pass of several rows. What
// the warps of a step have of a split, and then the splits, are joined as a step joins them
// (docs/passes.md). Needs schedule.h with AMK_TENSOR_CORES.
#pragma once

#include "attention_mma.cuh"
#include "combine.cuh"
#include "prompt_append.cuh"
#include "prompt_cache.cuh"
#include "prompt_products.cuh"

namespace amk {

// Columns of a warp's products: query heads of a kv head, those of one token after those of the
// token before. Of the warps of a step that share the blocks of a split, a warp of a
// prompt does for its columns what each of them does, one after the other.
template <class S>
struct PromptHeads {
  static constexpr int kGroups = HeadsOf<S>::kPaddedHead > 128 ? 1 : 2;
  static constexpr int kColumns = kGroups * kMmaHeads;
  static constexpr int kBlockColumns = kColumns * kConsumerWarps;
  static constexpr int kFragments = HeadGroup<HeadsOf<S>>::kFragments;
};

// The first row that a position sees.
template <class S>
__device__ __forceinline__ int first_seen(int position) {
  return S::kWindowRows > 0 ? max(0, position + 1 - S::kWindowRows) : 0;
}

// Shares of a softmax that have been joined, for the columns of a lane.
template <int kGroups>
struct Joined {
  float base[kGroups][2], max[kGroups][2], sum[kGroups][2] = {};
  __device__ __forceinline__ Joined() {
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      base[g][0] = base[g][1] = max[g][0] = max[g][1] = kNoScore;
  }
};

// Joins a share to others: value(g, f, i) refers to the i-th value of fragment f of group g of
// those, as of(g, f, i) does to one of the share. Multiplying by 1 is left out, which is the rule.
template <int kFragments, int kGroups, class Value, class Of>
__device__ __forceinline__ void join_share(Joined<kGroups>& all, const float (&base)[kGroups][2],
                                           const float (&sum)[kGroups][2], float unit,
                                           const Value& value, const Of& of) {
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const Joining low(all.base[g][0], base[g][0], unit), high(all.base[g][1], base[g][1], unit);
    all.base[g][0] = low.base, all.base[g][1] = high.base;
    all.sum[g][0] = low(all.sum[g][0], sum[g][0]);
    all.sum[g][1] = high(all.sum[g][1], sum[g][1]);
    if (warp_any(low.keep != 1 | high.keep != 1)) {
#pragma unroll
      for (int f = 0; f < kFragments; ++f) {
#pragma unroll
        for (int i = 0; i < 4; ++i) value(g, f, i) *= i % 2 ? high.keep : low.keep;
      }
    }
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        value(g, f, i) = fmaf(i % 2 ? high.scale : low.scale, of(g, f, i), value(g, f, i));
    }
  }
}

// A warp's columns of a kv head, from the first one of all tokens' on.
template <class S>
struct PromptUnit {
  using H = HeadsOf<S>;
  using P = PromptHeads<S>;
  static constexpr int kGroups = P::kGroups, kFragments = P::kFragments;
  static constexpr int kBlockWarps = BlockTurns<S>::kWarps;
  const u8* head;  // its rows of the cache
  int lane;
  int first, last;           // positions of the first column and of the last
  int position[kGroups][2];  // of the lane's two columns of each group, or -1
  HeadGroup<H> groups[kGroups];
  OwnScores own[kGroups];

  // Attends to a block, of which `at` is a copy: each column to the rows before its own.
  __device__ __forceinline__ void attend(int block, const u8* at) {
    const int row = block * kCacheRows;
    SeenRows seen[kGroups][2];
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int own_row = position[g][k];
        seen[g][k] = {max(0, first_seen<S>(own_row) - row), min(own_row - row, kCacheRows)};
      }
    }
    attend_block<S>(groups, at, seen, own, max(0, first_seen<S>(first) - row),
                    min(last + 1 - row, kCacheRows), lane);
  }
  // Whether a column sees a row of a block, or has its own in it.
  __device__ __forceinline__ bool sees(int block) const {
    return block * kCacheRows <= last && (block + 1) * kCacheRows > first_seen<S>(first);
  }

  // Joins what a warp of a step has of a split.
  template <class Value>
  __device__ __forceinline__ void join_warp(Joined<kGroups>& split, const Value& value) {
    float base[kGroups][2], sum[kGroups][2];
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      HeadGroup<H>& h = groups[g];
      h.template join_lanes<(S::kSplits > 1)>();
      base[g][0] = h.base0, base[g][1] = h.base1;
      sum[g][0] = h.sum0, sum[g][1] = h.sum1;
      split.max[g][0] = fmaxf(split.max[g][0], h.max0);
      split.max[g][1] = fmaxf(split.max[g][1], h.max1);
    }
    join_share<kFragments>(split, base, sum, 1, value,
                           [&](int g, int f, int i) { return groups[g].o[f][i]; });
  }

  // Joins the tokens' own rows, as far as the split has them.
  template <class Value>
  __device__ __forceinline__ void join_own(const SplitBlocks<S>& blocks, Joined<kGroups>& split,
                                           const Value& value) {
    if (last < 0 || !blocks.owns(first / kCacheRows) && !blocks.owns(last / kCacheRows)) return;
    float scores[kGroups][2], sum[kGroups][2];
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int row = position[g][k];
        const float score = shuffle(own[g].of[k], row % 8 * 4 + (lane & 3));
        const bool is_here = row >= 0 && blocks.owns(row / kCacheRows);
        scores[g][k] = is_here ? score : kNoScore;
        sum[g][k] = is_here;
        split.max[g][k] = fmaxf(split.max[g][k], scores[g][k]);
      }
    }
    join_share<kFragments>(split, scores, sum, 1, value, [&](int g, int f, int i) {
      const int dim = f * 16 + (lane >> 2) + i / 2 * 8;
      return sum[g][i % 2] > 0 && dim < H::kHeadDim
                 ? whole_value<H>(head, position[g][i % 2], dim)
                 : 0.0f;
    });
  }
};

// Attention of a block's columns, from `block_column` on, to all splits, by all of its warps. If
// there are several, what comes out goes where the operand of the next product will be (combine): a
// step may have it on the page of the queries, which other blocks read. Queries that have been
// normalised are there themselves, and are replaced by the warp that has read them.
template <class S, class Cache>
__device__ __forceinline__ void attend_columns(Prompt& c, int head, int block_column,
                                               const u16* queries, int stride, const Page out,
                                               const u8* sinks, Cache cache) {
  using H = HeadsOf<S>;
  using P = PromptHeads<S>;
  constexpr int kFragments = P::kFragments;
  const int columns = c.tokens * H::kGroupHeads;
  const int first_column = block_column + c.warp * P::kColumns;
  const auto position_of = [&](int column) {
    return c.position + min(column, columns - 1) / H::kGroupHeads;
  };
  PromptUnit<S> u;
  u.head = head_of_cache<H>(c, cache, head);
  u.lane = c.lane;
  u.first = position_of(first_column);
  u.last = first_column < columns ? position_of(first_column + P::kColumns - 1) : -1;
  // Where a column is among the queries of all tokens.
  const auto query = [&](int column) {
    return size_t(column / H::kGroupHeads) * stride +
           (head * H::kGroupHeads + column % H::kGroupHeads) * H::kHeadDim;
  };
#pragma unroll
  for (int g = 0; g < P::kGroups; ++g) {
    const int column = first_column + g * kMmaHeads + (c.lane >> 2);
#pragma unroll
    for (int f = 0; f < kFragments; ++f) {
      const int dim = f * 16 + (c.lane & 3) * 4;
      const bool real = column < columns && (H::kPaddedHead == H::kHeadDim || dim < H::kHeadDim);
      u.groups[g].q[f] = real ? *reinterpret_cast<const uint2*>(queries + query(column) + dim)
                              : make_uint2(0, 0);
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int of = first_column + g * kMmaHeads + (c.lane & 3) * 2 + k;
      u.position[g][k] = of < columns ? c.position + of / H::kGroupHeads : -1;
      u.own[g].of[k] = 0;
    }
  }
  warp_sync();  // all lanes have the queries

  // Of a split in registers, and of those before it in shared memory.
  float values[P::kGroups][kFragments][4];
  const auto of_split = [&](int g, int f, int i) -> float& { return values[g][f][i]; };
  float* const mine =
      reinterpret_cast<float*>(c.ring) + c.warp * P::kGroups * kFragments * 4 * 32 + c.lane;
  const auto of_all = [&](int g, int f, int i) -> float& {
    return mine[((g * kFragments + f) * 4 + i) * 32];
  };
  constexpr int kKept = S::kSplits == 1 ? 0 : P::kBlockColumns * H::kPaddedHead * 4;
  Joined<P::kGroups> all;
  BlockWalk<S> walk(first_seen<S>(position_of(block_column)) / kCacheRows,
                    position_of(block_column + P::kBlockColumns - 1) / kCacheRows);
  BlockStream<S, kPromptRing - kKept> stream(u.head, c.ring + kKept, walk, c.tid);
#pragma unroll 1
  for (int split = 0; split < S::kSplits; ++split) {
    Joined<P::kGroups> of;
#pragma unroll
    for (int g = 0; g < P::kGroups; ++g) {
#pragma unroll
      for (int f = 0; f < kFragments; ++f)
        values[g][f][0] = values[g][f][1] = values[g][f][2] = values[g][f][3] = 0;
    }
#pragma unroll 1
    while (walk.split == split) {
      const int share = walk.warp;
      bool any = false;
#pragma unroll
      for (int g = 0; g < P::kGroups; ++g) u.groups[g].forget();
#pragma unroll 1
      for (; walk.is_in(split, share); walk.advance()) {
        const u8* at = stream.next();
        const int block = walk.block();
        if (!u.sees(block)) continue;
        u.attend(block, at);
        any = true;
      }
      if (any) u.join_warp(of, of_split);
    }
    u.join_own(SplitBlocks<S>{split}, of, of_split);
    if (sinks && split == 0) {
      float scores[P::kGroups][2], sum[P::kGroups][2];
#pragma unroll
      for (int g = 0; g < P::kGroups; ++g) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const int column = first_column + g * kMmaHeads + (c.lane & 3) * 2 + k;
          const Unit<S> unit{head * S::kSplits, 0};
          scores[g][k] = Sinks<S>(c, unit, sinks).of(column % H::kGroupHeads);
          sum[g][k] = 1;
          of.max[g][k] = fmaxf(of.max[g][k], scores[g][k]);
        }
      }
      join_share<kFragments>(of, scores, sum, 1, of_split, [](int, int, int) { return 0.0f; });
    }
    if constexpr (S::kSplits == 1) {
      all = of;
    } else {
      if (split == 0) {
#pragma unroll
        for (int g = 0; g < P::kGroups; ++g) {
#pragma unroll
          for (int f = 0; f < kFragments; ++f)
            of_all(g, f, 0) = of_all(g, f, 1) = of_all(g, f, 2) = of_all(g, f, 3) = 0;
        }
      }
      // as a step publishes it
#pragma unroll
      for (int g = 0; g < P::kGroups; ++g) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const float scale = exp2_approximate(of.base[g][k] - of.max[g][k]);
          of.base[g][k] = of.sum[g][k] > 0 ? of.max[g][k] * kLn2 : -INFINITY;
          of.sum[g][k] *= scale;
#pragma unroll
          for (int f = 0; f < kFragments; ++f)
            values[g][f][k] *= scale, values[g][f][k + 2] *= scale;
        }
      }
      join_share<kFragments>(all, of.base, of.sum, kLog2e, of_all, of_split);
    }
  }

#pragma unroll
  for (int g = 0; g < P::kGroups; ++g) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int column = first_column + g * kMmaHeads + (c.lane & 3) * 2 + k;
      if (column >= columns) continue;
      const int row = column / H::kGroupHeads * H::kQueryRows +
                      (head * H::kGroupHeads + column % H::kGroupHeads) * H::kHeadDim;
#pragma unroll
      for (int f = 0; f < kFragments; ++f) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int dim = f * 16 + (c.lane >> 2) + half * 8, i = half * 2 + k;
          if (H::kPaddedHead > H::kHeadDim && dim >= H::kHeadDim) continue;
          const float value =
              divide<Element>(S::kSplits == 1 ? values[g][f][i] : of_all(g, f, i), all.sum[g][k]);
          if constexpr (S::kSplits == 1) publish<Element>(c, out, row + dim, value);
          else reinterpret_cast<u16*>(c.operand())[row + dim] = Element::from_float(value);
        }
      }
    }
  }
}

template <class S, class Heads, class Cache = OfLayer>
__device__ __forceinline__ void attend(Prompt& c, const Heads heads, const Page out,
                                       const u8* sinks, Cache cache = {}) {
  using H = HeadsOf<S>;
  int stride;
  const u16* queries = append<S>(c, heads, cache, stride);
  join(c);
  // Warps of a block have columns side by side of one head: they read the same rows. The last
  // tokens, which see most, come first.
  constexpr int kBlockColumns = PromptHeads<S>::kBlockColumns;
  const int blocks = ceil_div(c.tokens * H::kGroupHeads, kBlockColumns);
#pragma unroll 1
  for (int i = c.sm; i < H::kKVHeads * blocks; i += kSMs) {
    const int first = (blocks - 1 - i / H::kKVHeads) * kBlockColumns;
    attend_columns<S>(c, i % H::kKVHeads, first, queries, stride, out, sinks, cache);
  }
  join(c);
}
template <class S, class Heads, class Cache = OfLayer>
__device__ __forceinline__ void attend(Prompt& c, const Heads heads, const Page out,
                                       Cache cache = {}) {
  attend<S>(c, heads, out, static_cast<const u8*>(nullptr), cache);
}

// Attention has joined the splits of each token: what came out is moved.
template <class S>
__device__ __forceinline__ void combine(Prompt& c, const Page, const Page out) {
  using H = HeadsOf<S>;
  const uint2* from = reinterpret_cast<const uint2*>(c.operand());
  uint2* const to = reinterpret_cast<uint2*>(c.values<Element>(out));
#pragma unroll 1
  for (int i = c.sm * kConsumers + c.tid; i < c.tokens * (H::kQueryRows / 4);
       i += kSMs * kConsumers)
    to[i] = from[i];
  join(c);
}

}  // namespace amk
