// What a lane has of the columns of a prompt's attention: query heads of tokens with a kv head.
// Shares are joined into splits, and these into the results of the tokens, one after the other, as
// a step joins them (docs/passes.md). Needs schedule.h with AMK_TENSOR_CORES. Must not know how
// scores and values are multiplied.
#pragma once

#include "combine.cuh"
#include "prompt_append.cuh"
#include "prompt_cache.cuh"

namespace amk {

// Shares of a softmax that have been joined, for each column of a lane.
template <int kColumns>
struct Joined {
  float base[kColumns], max[kColumns], sum[kColumns] = {};
  __device__ __forceinline__ Joined() {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) base[c] = max[c] = kNoScore;
  }
};

// Joins a share to others: value(c, n) refers to the lane's n-th value of column c of those, as
// of(c, n) does to one of the share. Multiplying by 1 is left out, which is the rule.
template <int kValues, int kColumns, class Value, class Of>
__device__ __forceinline__ void join_share(Joined<kColumns>& all, const float (&base)[kColumns],
                                           const float (&sum)[kColumns], float unit,
                                           const Value& value, const Of& of) {
  float keep[kColumns], scale[kColumns];
  bool changes = false;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const Joining both(all.base[c], base[c], unit);
    all.base[c] = both.base;
    all.sum[c] = both(all.sum[c], sum[c]);
    keep[c] = both.keep, scale[c] = both.scale;
    changes |= both.keep != 1;
  }
  if (warp_any(changes)) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
#pragma unroll
      for (int n = 0; n < kValues; ++n) value(c, n) *= keep[c];
    }
  }
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
#pragma unroll
    for (int n = 0; n < kValues; ++n) value(c, n) = fmaf(scale[c], of(c, n), value(c, n));
  }
}

// The columns of a lane. Lane says which of its warp's they are, and which dims the lane has of
// them: column(c) and dim(n). Splits that have been joined are in shared memory, at `all`, if there
// are several.
template <class S, class Lane>
struct LaneColumns {
  using H = HeadsOf<S>;
  static constexpr int kColumns = Lane::kColumns, kValues = Lane::kValues;
  static constexpr bool kSplit = S::kSplits > 1;
  const u8* head;  // its rows of the cache
  int kv_head;
  Lane lane;
  int first_column, columns;  // of the warp, and the end of all of the stage
  int first, last;            // positions of the warp's first column and of its last
  int position[kColumns];     // of the lane's, or -1
  float own[kColumns] = {};   // their scores with their own rows, in a lane that has met them
  float values[kColumns][kValues];  // of a split
  float* all;
  Joined<kColumns> of_split, of_all;

  template <class C, class Units, class Cache>
  __device__ __forceinline__ LaneColumns(C& c, const Units& units, Cache cache, int kv_head,
                                         Lane lane, int first_column, int width, float* all)
      : head(head_of_cache<H>(c, cache, kv_head)),
        kv_head(kv_head),
        lane(lane),
        first_column(first_column),
        columns(units.end * H::kGroupHeads),
        all(all) {
    first = units.position_of(first_column);
    last = first_column < columns ? units.position_of(first_column + width - 1) : -1;
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      const int column = first_column + lane.column(i);
      position[i] = column < columns ? units.position_of(column) : -1;
    }
    forget_split();
  }
  // Where a column is among the queries of all tokens.
  __device__ __forceinline__ size_t query(int column, int stride) const {
    return size_t(column / H::kGroupHeads) * stride +
           (kv_head * H::kGroupHeads + column % H::kGroupHeads) * H::kHeadDim;
  }
  // Of the splits that have been joined.
  __device__ __forceinline__ float& of_all_splits(int c, int n) const {
    return all[(c * kValues + n) * 32];
  }

  // Joins what a warp of a step has of a split: of(c, n) are its values.
  template <class Of>
  __device__ __forceinline__ void join_warp(const float (&base)[kColumns],
                                            const float (&largest)[kColumns],
                                            const float (&sum)[kColumns], const Of& of) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
      of_split.max[c] = fmaxf(of_split.max[c], largest[c]);
    join_share<kValues>(of_split, base, sum, 1, in_split(), of);
  }

  // Ends a split: joins the tokens' own rows, as far as the split has them, where the score with
  // one is in the lane that source(c) says, and in the first split the sinks. Then joins the split
  // to those before it.
  template <class C, class Source>
  __device__ __forceinline__ void end_split(C& c, int split, const u8* sinks,
                                            const Source& source) {
    join_own(SplitBlocks<S>{split}, source);
    if (sinks && split == 0) join_sinks(Sinks<S>(c, Unit<S>{kv_head * S::kSplits, 0}, sinks));
    if constexpr (!kSplit) {
      of_all = of_split;
    } else {
      if (split == 0) {
#pragma unroll
        for (int i = 0; i < kColumns * kValues; ++i) all[i * 32] = 0;
      }
      // as a step publishes it
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        const float scale = exp2_approximate(of_split.base[i] - of_split.max[i]);
        of_split.base[i] = of_split.sum[i] > 0 ? of_split.max[i] * kLn2 : -INFINITY;
        of_split.sum[i] *= scale;
#pragma unroll
        for (int n = 0; n < kValues; ++n) values[i][n] *= scale;
      }
      join_share<kValues>(
          of_all, of_split.base, of_split.sum, kLog2e,
          [&](int i, int n) -> float& { return of_all_splits(i, n); }, in_split());
      of_split = {};
      forget_split();
    }
  }

  // What has come out of all splits.
  __device__ __forceinline__ float whole(int c, int n) const {
    return divide<Element>(kSplit ? of_all_splits(c, n) : values[c][n], of_all.sum[c]);
  }
  // Stores it: to the page, or if it is combined where the operand of the next product will be.
  template <bool kCombined, class C>
  __device__ __forceinline__ void store(C& c, const Page out) const {
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      const int column = first_column + lane.column(i);
      if (column >= columns) continue;
      const int row = int(query(column, H::kQueryRows));
#pragma unroll
      for (int n = 0; n < kValues; ++n) {
        const int dim = lane.dim(n);
        if (H::kPaddedHead > H::kHeadDim && dim >= H::kHeadDim) continue;
        const float value = whole(i, n);
        if constexpr (!kCombined) publish<Element>(c, out, row + dim, value);
        else reinterpret_cast<u16*>(c.operand())[row + dim] = Element::from_float(value);
      }
    }
  }

 private:
  __device__ __forceinline__ auto in_split() {
    return [this](int c, int n) -> float& { return values[c][n]; };
  }
  __device__ __forceinline__ void forget_split() {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
#pragma unroll
      for (int n = 0; n < kValues; ++n) values[c][n] = 0;
    }
  }

  template <class Source>
  __device__ __forceinline__ void join_own(const SplitBlocks<S>& blocks, const Source& source) {
    if (last < 0 || !blocks.owns(first / kCacheRows) && !blocks.owns(last / kCacheRows)) return;
    float scores[kColumns], sum[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int row = position[c];
      const float score = shuffle(own[c], source(row));
      const bool is_here = row >= 0 && blocks.owns(row / kCacheRows);
      scores[c] = is_here ? score : kNoScore;
      sum[c] = is_here;
      of_split.max[c] = fmaxf(of_split.max[c], scores[c]);
    }
    join_share<kValues>(of_split, scores, sum, 1, in_split(), [&](int c, int n) {
      const int dim = lane.dim(n);
      return sum[c] > 0 && dim < H::kHeadDim ? whole_value<H>(head, position[c], dim) : 0.0f;
    });
  }
  __device__ __forceinline__ void join_sinks(const Sinks<S>& sinks) {
    float scores[kColumns], sum[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      scores[c] = sinks.of((first_column + lane.column(c)) % H::kGroupHeads);
      sum[c] = 1;
      of_split.max[c] = fmaxf(of_split.max[c], scores[c]);
    }
    join_share<kValues>(of_split, scores, sum, 1, in_split(), [](int, int) { return 0.0f; });
  }
};

}  // namespace amk
