// Attention of the tokens of a prompt's pass. The rows of all of them go into the cache first; then
// each sees the rows before its own there, and its own last. A unit is a split of a kv head for a
// few tokens: its heads are the columns of products with blocks of the cache, as in a pass of
// several rows, and which warp takes which block is as in a step (docs/passes.md). Needs schedule.h
// with AMK_TENSOR_CORES.
#pragma once

#include "attention_mma.cuh"
#include "combine.cuh"
#include "prompt_append.cuh"
#include "prompt_products.cuh"

namespace amk {

// Columns of a warp's products: query heads of a kv head, those of one token after those of the
// token before. Of the warps of a step that share the blocks of a split, a warp of a
// prompt does for its columns what each of them does, one after the other.
struct PromptHeads {
  static constexpr int kGroups = 2, kColumns = kGroups * kMmaHeads;
};

// The blocks of a split, numbered as they are in it.
template <class S>
struct SplitBlocks {
  static constexpr int kChunkBlocks = S::kShareRows / kCacheRows;
  int split;

  __device__ __forceinline__ bool owns(int block) const {
    return block / kChunkBlocks % S::kSplits == split;
  }
  // Of a block, or of the first one after it that the split has.
  __device__ __forceinline__ int number(int block) const {
    const int chunk = block / kChunkBlocks, n = (chunk - split + S::kSplits - 1) / S::kSplits;
    return n * kChunkBlocks + (owns(block) ? block % kChunkBlocks : 0);
  }
  __device__ __forceinline__ int block(int number) const {
    return (number / kChunkBlocks * S::kSplits + split) * kChunkBlocks + number % kChunkBlocks;
  }
};

// The first row that a position sees.
template <class S>
__device__ __forceinline__ int first_seen(int position) {
  return S::kWindowRows > 0 ? max(0, position + 1 - S::kWindowRows) : 0;
}

// Scores of a block of the cache: of its row lane / 4, and of the one 8 further, with the two
// columns of each group that a lane has. Rows that a column does not see have none.
template <class S, class H, int kGroups>
__device__ __forceinline__ void raise_tops(float (&tops)[kGroups][2],
                                           const HeadGroup<H> (&groups)[kGroups], const u8* block,
                                           const SeenRows (&columns)[kGroups][2], int lane) {
  constexpr int kFragments = HeadGroup<H>::kFragments;
  CacheFragment fragments[kBatch];
  float d[kGroups][2][4] = {};
#pragma unroll
  for (int f = 0; f < kFragments; f += kBatch) {
    load_fragments(fragments, block + lane * kLaneBytes, f, kFragments);
#pragma unroll
    for (int i = 0; i < kBatch && f + i < kFragments; ++i) {
      const uint4 keys = operand_of<Element>(fragments[i]);
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const uint2 q = groups[g].q[f + i];
        Element::mma(d[g][i & 1], keys.x, keys.y, keys.z, keys.w, q.x, q.y);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = (lane >> 2) + i / 2 * 8;
    const RowScales scales = row_scales<H>(block, row);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      if (!columns[g][i % 2].has(row)) continue;
      const float product = d[g][0][i] + d[g][1][i];
      const float score = scaled_score<S>(kQuantisedCache ? product * scales.k : product);
      tops[g][i % 2] = fmaxf(tops[g][i % 2], score);
    }
  }
}

// Values that a lane adds up for two groups.
template <class S>
using HeadValues = float[2][HeadGroup<HeadsOf<S>>::kFragments][4];

// A warp's columns of a split, from the first one of all tokens' on.
template <class S>
struct PromptUnit {
  using H = HeadsOf<S>;
  using P = PromptHeads;
  static constexpr int kGroups = P::kGroups, kBlockWarps = BlockTurns<S>::kWarps;
  const u8* head;  // its rows of the cache
  SplitBlocks<S> blocks;
  int first, last;              // positions of the first column and of the last
  int position[kGroups][2];     // of the lane's two columns of each group, or -1
  HeadGroup<H> groups[kGroups];

  // What the columns see of a block, the rows before their own; false if it is after all.
  __device__ __forceinline__ bool before(int block, SeenRows (&seen)[kGroups][2]) const {
    const int row = block * kCacheRows;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int own = position[g][k];
        seen[g][k] = {max(0, first_seen<S>(own) - row), max(0, min(own - row, kCacheRows))};
      }
    }
    return row < last;
  }
  // Their own rows in a block, of those columns whose turn it is with a warp of a step.
  __device__ __forceinline__ bool own(int block, int warp, SeenRows (&seen)[kGroups][2]) const {
    bool any = false;
    const int number = blocks.number(block);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int own = position[g][k], in_block = own % kCacheRows;
        const bool mine = own >= 0 && own / kCacheRows == block &&
                          (number + (in_block > 0)) % kBlockWarps == warp;
        seen[g][k] = mine ? SeenRows{in_block, in_block + 1} : SeenRows{0, 0};
        any |= mine;
      }
    }
    return warp_any(any);
  }
  __device__ __forceinline__ const u8* at(int block) const {
    return head + size_t(block) * H::kCacheBlockBytes;
  }
};

// Attention of a warp's columns. What each warp of a step keeps of a split, its share of the values
// over its own largest score, is added up in their order, each over the largest score of all. So
// that one is looked for first: keeping the shares until it is known would take more registers than
// there are.
template <class S>
__device__ __forceinline__ void attend_columns(PromptUnit<S>& u, float (&tops)[2][2],
                                               float (&sums)[2][2],
                                               HeadValues<S>& values, int lane) {
  using H = HeadsOf<S>;
  using P = PromptHeads;
  constexpr int kGroups = PromptHeads::kGroups, kFragments = HeadGroup<H>::kFragments;
  constexpr int kBlockWarps = BlockTurns<S>::kWarps;
  const int first_block = first_seen<S>(u.first) / kCacheRows;
  SeenRows seen[kGroups][2];
#pragma unroll 1
  for (int n = u.blocks.number(first_block); u.before(u.blocks.block(n), seen); ++n)
    raise_tops<S>(tops, u.groups, u.at(u.blocks.block(n)), seen, lane);
#pragma unroll 1
  for (int block = u.first / kCacheRows; block <= u.last / kCacheRows; ++block) {
    if (!u.blocks.owns(block)) continue;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int own = u.position[g][k] - block * kCacheRows;
        seen[g][k] = {own, own + 1};
      }
    }
    raise_tops<S>(tops, u.groups, u.at(block), seen, lane);
  }
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1) {
      tops[g][0] = fmaxf(tops[g][0], shuffle_xor(tops[g][0], offset));
      tops[g][1] = fmaxf(tops[g][1], shuffle_xor(tops[g][1], offset));
    }
  }

#pragma unroll 1
  for (int warp = 0; warp < kBlockWarps; ++warp) {
#pragma unroll
    for (int g = 0; g < kGroups; ++g) u.groups[g].forget();
    int n = u.blocks.number(first_block);
    n += (warp - n % kBlockWarps + kBlockWarps) % kBlockWarps;
#pragma unroll 1
    for (; u.before(u.blocks.block(n), seen); n += kBlockWarps) {
      const int row = u.blocks.block(n) * kCacheRows;
      attend_block<S>(u.groups, u.at(u.blocks.block(n)), seen, max(0, first_seen<S>(u.first) - row),
                      min(u.last - row, kCacheRows), lane, false);
    }
#pragma unroll 1
    for (int block = u.first / kCacheRows; block <= u.last / kCacheRows; ++block) {
      if (!u.blocks.owns(block) || !u.own(block, warp, seen)) continue;
      const int row = block * kCacheRows;
      attend_block<S>(u.groups, u.at(block), seen, max(0, u.first - row),
                      min(u.last + 1 - row, kCacheRows), lane, true);
    }
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      HeadGroup<H>& h = u.groups[g];
#pragma unroll
      for (int offset = 4; offset < 32; offset <<= 1) {
        h.sum0 += shuffle_xor(h.sum0, offset);
        h.sum1 += shuffle_xor(h.sum1, offset);
      }
      const float scale0 = exp2_approximate(h.max0 - tops[g][0]);
      const float scale1 = exp2_approximate(h.max1 - tops[g][1]);
      sums[g][0] = fmaf(scale0, h.sum0, sums[g][0]);
      sums[g][1] = fmaf(scale1, h.sum1, sums[g][1]);
#pragma unroll
      for (int f = 0; f < kFragments; ++f) {
        values[g][f][0] = fmaf(scale0, h.o[f][0], values[g][f][0]);
        values[g][f][1] = fmaf(scale1, h.o[f][1], values[g][f][1]);
        values[g][f][2] = fmaf(scale0, h.o[f][2], values[g][f][2]);
        values[g][f][3] = fmaf(scale1, h.o[f][3], values[g][f][3]);
      }
    }
  }
}

template <class S, class Cache>
__device__ __forceinline__ void attend_unit(Prompt& c, int unit, int first_column,
                                            const u16* queries, int stride, const Page out,
                                            Cache cache) {
  using H = HeadsOf<S>;
  using P = PromptHeads;
  static_assert(u64(kPromptTokens) * S::kUnits * H::kGroupHeads * (H::kHeadDim + 2) < u64(1) << 31,
                "indices are ints");
  const int head = unit / S::kSplits, columns = c.tokens * H::kGroupHeads;
  PromptUnit<S> u;
  u.head = head_of_cache<H>(c, cache, head);
  u.blocks = {unit % S::kSplits};
  u.first = c.position + first_column / H::kGroupHeads;
  u.last = c.position + (min(first_column + P::kColumns, columns) - 1) / H::kGroupHeads;
#pragma unroll
  for (int g = 0; g < P::kGroups; ++g) {
    const int column = first_column + g * kMmaHeads + (c.lane >> 2);
    const u16* query = queries + size_t(column / H::kGroupHeads) * stride +
                       (head * H::kGroupHeads + column % H::kGroupHeads) * H::kHeadDim;
#pragma unroll
    for (int f = 0; f < HeadGroup<H>::kFragments; ++f) {
      const int dim = f * 16 + (c.lane & 3) * 4;
      const bool real = column < columns && (H::kPaddedHead == H::kHeadDim || dim < H::kHeadDim);
      u.groups[g].q[f] = real ? *reinterpret_cast<const uint2*>(query + dim) : make_uint2(0, 0);
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int of = first_column + g * kMmaHeads + (c.lane & 3) * 2 + k;
      u.position[g][k] = of < columns ? c.position + of / H::kGroupHeads : -1;
    }
  }
  float tops[2][2] = {{kNoScore, kNoScore}, {kNoScore, kNoScore}};
  float sums[2][2] = {};
  HeadValues<S> values = {};
  attend_columns<S>(u, tops, sums, values, c.lane);

#pragma unroll
  for (int g = 0; g < P::kGroups; ++g) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int column = first_column + g * kMmaHeads + (c.lane & 3) * 2 + k;
      if (column >= columns) continue;
      const int token = column / H::kGroupHeads, in_group = column % H::kGroupHeads;
      const int row = token * H::kQueryRows + (head * H::kGroupHeads + in_group) * H::kHeadDim;
      const int part = ((token * S::kUnits + unit) * H::kGroupHeads + in_group) * (H::kHeadDim + 2);
      const float sum = sums[g][k];
#pragma unroll
      for (int f = 0; f < HeadGroup<H>::kFragments; ++f) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int dim = f * 16 + (c.lane >> 2) + half * 8;
          const float value = values[g][f][half * 2 + k];
          if (H::kPaddedHead > H::kHeadDim && dim >= H::kHeadDim) continue;
          if constexpr (S::kSplits == 1)
            publish<Element>(c, out, row + dim, divide<Element>(value, sum));
          else publish<Fp32>(c, out, part + dim, value);
        }
      }
      if (S::kSplits > 1 && c.lane < 4) {
        publish<Fp32>(c, out, part + H::kHeadDim, sum > 0 ? tops[g][k] * kLn2 : -INFINITY);
        publish<Fp32>(c, out, part + H::kHeadDim + 1, sum);
      }
    }
  }
}

template <class S, class Heads, class Cache = OfLayer>
__device__ __forceinline__ void attend(Prompt& c, const Heads heads, const Page out,
                                       Cache cache = {}) {
  using H = HeadsOf<S>;
  int stride;
  const u16* queries = append<S>(c, heads, cache, stride);
  join(c);
  // Warps of a block have columns side by side of one head: they read the same rows. The last
  // tokens, which see most, come first.
  constexpr int kBlockColumns = PromptHeads::kColumns * kConsumerWarps;
  const int blocks = ceil_div(c.tokens * H::kGroupHeads, kBlockColumns);
#pragma unroll 1
  for (int i = c.sm; i < S::kUnits * blocks; i += kSMs) {
    const int first =
        (blocks - 1 - i / S::kUnits) * kBlockColumns + c.warp * PromptHeads::kColumns;
    if (first < c.tokens * H::kGroupHeads)
      attend_unit<S>(c, i % S::kUnits, first, queries, stride, out, cache);
  }
  join(c);
}

// Joins the splits of all tokens, each element by a thread, which adds up as the lanes of
// combine.cuh do: each the splits that it has, and then all of them.
template <class S>
__device__ __forceinline__ void combine(Prompt& c, const Page in, const Page out) {
  using H = HeadsOf<S>;
  constexpr int kLanes = lanes_for(S::kSplits), kOfLane = ceil_div(S::kSplits, kLanes);
  constexpr int kStride = H::kHeadDim + 2;
  const float* parts = reinterpret_cast<const float*>(c.values<Fp32>(in));
#pragma unroll 1
  for (int i = c.sm * kConsumerWarps + c.warp; i < c.tokens * H::kHeads;
       i += kSMs * kConsumerWarps) {
    const int token = i / H::kHeads, head = i % H::kHeads;
    const float* part = parts + (size_t(token * H::kKVHeads + head / H::kGroupHeads) * S::kSplits *
                                     H::kGroupHeads + head % H::kGroupHeads) * kStride;
    auto of_split = [&](int split, int at) {
      return split < S::kSplits ? part[size_t(split) * H::kGroupHeads * kStride + at] : 0.0f;
    };
    // The lane's splits: their maxima and sums, and from them their scales.
    float max[kOfLane], own[kOfLane], scale[kOfLane], top = -INFINITY, sum = 0;
#pragma unroll
    for (int s = 0; s < kOfLane; ++s) {
      const int split = c.lane + s * kLanes;
      const bool has = c.lane < kLanes && split < S::kSplits;
      max[s] = has ? of_split(split, H::kHeadDim) : -INFINITY;
      own[s] = has ? of_split(split, H::kHeadDim + 1) : 0.0f;
      top = fmaxf(top, max[s]);
    }
#pragma unroll
    for (int offset = 1; offset < kLanes; offset <<= 1)
      top = fmaxf(top, shuffle_xor(top, offset));
#pragma unroll
    for (int s = 0; s < kOfLane; ++s) {
      scale[s] = own[s] > 0 ? exp2f((max[s] - top) * kLog2e) : 0.0f;
      sum = s == 0 ? scale[s] * own[s] : sum + scale[s] * own[s];
    }
#pragma unroll
    for (int offset = 1; offset < kLanes; offset <<= 1) sum += shuffle_xor(sum, offset);
    sum = shuffle(sum, 0);
    for (int first = 0; first < H::kHeadDim; first += 32) {
      const int dim = min(first + c.lane, H::kHeadDim - 1);
      float value[kLanes];  // of each lane of combine.cuh
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
#pragma unroll
        for (int s = 0; s < kOfLane; ++s) {
          const float scaled = shuffle(scale[s], lane) * of_split(lane + s * kLanes, dim);
          value[lane] = s == 0 ? scaled : value[lane] + scaled;
        }
      }
#pragma unroll
      for (int offset = 1; offset < kLanes; offset <<= 1) {
#pragma unroll
        for (int lane = 0; lane < kLanes; lane += 2 * offset) value[lane] += value[lane + offset];
      }
      if (first + c.lane < H::kHeadDim)
        publish<Element>(c, out, i * H::kHeadDim + dim, divide<Element>(value[0], sum));
    }
  }
  join(c);
}

}  // namespace amk
