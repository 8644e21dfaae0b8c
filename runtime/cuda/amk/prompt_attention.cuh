// Attention of the tokens of a prompt's pass. The rows of all of them go into the cache first; then
// each sees the rows before its own there, and its own last. A unit is a split of a kv head for a
// few tokens: its heads are the columns of products with blocks of the cache, as in a pass of
// several rows, and which warp takes which block is as in a step (docs/passes.md). Needs schedule.h
// with AMK_TENSOR_CORES.
#pragma once

#include "attention_mma.cuh"
#include "combine.cuh"
#include "prompt_gemm.cuh"

namespace amk {

constexpr int kQkvRows = kNormedRows + kKVHeads * kHeadDim;

template <class Cache>
__device__ __forceinline__ u8* head_of_cache(Prompt& c, Cache cache, int head) {
  return c.launch.cache + cache_number(c, cache) * kLayerCacheBytes +
         size_t(head) * kHeadCacheBytes;
}

// ---- rows of the pass into the cache ------------------------------------------------------------

// Appends k and v of a row, which a warp does.
__device__ __forceinline__ void append_row(u8* head, int row, const u16* k, const u16* v,
                                           int lane) {
  if constexpr (kQuantisedCache) {
    u32 of_k = 0, of_v = 0;
    for (int d = lane; d < kHeadDim; d += 32) {
      of_k = larger_magnitude(of_k, Element::to_float(k[d]));
      of_v = larger_magnitude(of_v, Element::to_float(v[d]));
    }
    const RowQuantiser keys(largest_of_warp(of_k)), values(largest_of_warp(of_v));
    for (int d = lane; d < kHeadDim; d += 32) {
      head[cache_offset(row, d, false)] = keys(Element::to_float(k[d]));
      head[cache_offset(row, d, true)] = values(Element::to_float(v[d]));
    }
    if (lane == 0) {
      store_scale(head, row, false, keys.scale);
      store_scale(head, row, true, values.scale);
    }
  } else {
    for (int d = lane * 4; d < kHeadDim; d += 32 * 4) {
      store_row(head, row, d, false, *reinterpret_cast<const uint2*>(k + d));
      store_row(head, row, d, true, *reinterpret_cast<const uint2*>(v + d));
    }
  }
}

// Returns where the queries of a token lie.
template <class S, class Cache>
__device__ __forceinline__ const u16* append(Prompt& c, const PlainHeads heads, Cache cache,
                                             int& stride) {
  const u16* qkv = c.values<Element>(heads.in);
#pragma unroll 1
  for (int i = c.sm * kConsumerWarps + c.warp; i < c.tokens * kKVHeads;
       i += kSMs * kConsumerWarps) {
    const int token = i / kKVHeads, head = i % kKVHeads;
    const u16* row = qkv + size_t(token) * kQkvRows;
    append_row(head_of_cache(c, cache, head), c.position + token, row + k_row(head),
               row + v_row(head), c.lane);
  }
  stride = kQkvRows;
  return qkv;
}

// What the reader of a unit asks of a context, for one token.
struct TokenView {
  struct {
    float2 (*rotation)[kPromptTokens][kHeadDim / 2];  // of which the first token is this one
    decltype(Scratch::squares)& squares;
  } shared;
  int tid, warp, lane;
  u32& norms;

  __device__ __forceinline__ TokenView(Prompt& c, int token)
      : shared{reinterpret_cast<float2(*)[kPromptTokens][kHeadDim / 2]>(c.rotation(0, token)),
               c.shared.squares},
        tid(c.tid),
        warp(c.warp),
        lane(c.lane),
        norms(c.norms) {}
};

// Heads are normalised as a step does it, by a block for each token and kv head; queries go where
// the operand of the next product will be.
template <class S, class Cache>
__device__ __forceinline__ const u16* append(Prompt& c, const NormedHeads heads, Cache cache,
                                             int& stride) {
  using Reader = UnitReader<S, NormedHeads>;
  struct Words {
    uint2 four[Reader::kQuads];
    __device__ __forceinline__ uint2 pairs(int i) const { return four[i]; }
  };
  u16* const queries = reinterpret_cast<u16*>(c.operand());
  u16* const normed = reinterpret_cast<u16*>(c.ring);  // k, and v behind it
#pragma unroll 1
  for (int i = c.sm; i < c.tokens * kKVHeads; i += kSMs) {
    const int token = i / kKVHeads, head = i % kKVHeads;
    const u16* row = c.values<Element>(heads.in) + size_t(token) * kQkvRows;
    TokenView view(c, token);
    Reader reader(view, heads, Unit<S>{head * S::kSplits, c.position + token});
    Words words;
#pragma unroll
    for (int k = 0; k < Reader::kQuads; ++k) {
      const int quad = Reader::quad(c.tid, k);
      words.four[k] = quad < kUnitQuads
                          ? *reinterpret_cast<const uint2*>(row + unit_word(head, quad))
                          : make_uint2(0, 0);
    }
    if constexpr (S::kWholeNorm) {
      for (int quad = c.tid; quad < kNormedQuads; quad += kConsumers) {
        const float squares = squares_of(*reinterpret_cast<const uint2*>(row + quad * 4));
        (quad * 4 < kQueryRows ? reader.squares.q : reader.squares.k) += squares;
      }
    }
    reader.take(view, words);
#pragma unroll
    for (int k = 0; k < Reader::kQuads; ++k) {
      const int e = Reader::quad(c.tid, k) * 4, at = e - kGroupHeads * kHeadDim;
      if (at < 0) {
        u16* query = queries + size_t(token) * kQueryRows + head * kGroupHeads * kHeadDim;
        *reinterpret_cast<uint2*>(query + e) = reader.values(words, k);
      } else if (at < 2 * kHeadDim) {
        *reinterpret_cast<uint2*>(normed + at) = reader.values(words, k);
      }
    }
    __syncthreads();
    if (c.warp == 0) {
      append_row(head_of_cache(c, cache, head), c.position + token, normed, normed + kHeadDim,
                 c.lane);
    }
    __syncthreads();
  }
  stride = kQueryRows;
  return queries;
}

// ---- scores and values --------------------------------------------------------------------------

// How the warps of a block share the columns of a unit, which are the query heads of its tokens,
// and the blocks of the cache: those that share a set of columns deal out the blocks.
struct PromptHeads {
  static constexpr int kSets = power_of_two_from(ceil_div(kGroupHeads, kWarpGroups * kMmaHeads));
  static constexpr int kBlockWarps = kConsumerWarps / kSets;
  // Bytes that warps keep of a group of eight columns, and how many groups a warp has.
  static constexpr int kGroupBytes = kConsumerWarps * kMmaHeads * (kPaddedHead + 2) * 4;
  static constexpr int kGroups = 2 * kGroupBytes <= kPromptRing ? 2 : 1;
  static constexpr int kWarpColumns = kGroups * kMmaHeads, kColumns = kSets * kWarpColumns;
  static constexpr int kTokensOfUnit = kColumns / kGroupHeads;
  static_assert(kTokensOfUnit > 0 && kGroups * kGroupBytes <= kPromptRing, "the results fit");
};

// The blocks of a split, numbered as they lie in it.
template <class S>
struct SplitBlocks {
  static constexpr int kChunkBlocks = S::kShareRows / kCacheRows;
  int split;

  __device__ __forceinline__ bool owns(int block) const {
    return block / kChunkBlocks % S::kSplits == split;
  }
  // Of a block, or of the first one behind it that the split has.
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

template <class S, class Cache>
__device__ __forceinline__ void attend_unit(Prompt& c, int unit, int first_token,
                                            const u16* queries, int stride, const Page out,
                                            Cache cache) {
  using H = PromptHeads;
  const int head_index = unit / S::kSplits;
  const SplitBlocks<S> blocks{unit % S::kSplits};
  const u8* head = head_of_cache(c, cache, head_index);
  const int set = c.warp % H::kSets, block_warp = c.warp / H::kSets;
  const int count = min(H::kTokensOfUnit, c.tokens - first_token);
  const int first_position = c.position + first_token;
  const int last_position = first_position + count - 1;

  HeadGroup groups[H::kGroups];
  int position[H::kGroups][2];  // of the lane's two columns, or -1
#pragma unroll
  for (int g = 0; g < H::kGroups; ++g) {
    const int first = set * H::kWarpColumns + g * kMmaHeads;
    const int column = first + (c.lane >> 2), token = column / kGroupHeads;
    const u16* query = queries + size_t(first_token + token) * stride +
                       (head_index * kGroupHeads + column % kGroupHeads) * kHeadDim;
#pragma unroll
    for (int f = 0; f < HeadGroup::kFragments; ++f) {
      const int dim = f * 16 + (c.lane & 3) * 4;
      const bool real = token < count && (kPaddedHead == kHeadDim || dim < kHeadDim);
      groups[g].q[f] = real ? *reinterpret_cast<const uint2*>(query + dim) : make_uint2(0, 0);
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int of = (first + (c.lane & 3) * 2 + k) / kGroupHeads;
      position[g][k] = of < count ? first_position + of : -1;
    }
  }

  // Rows before each token's own.
  int number = blocks.number(first_seen<S>(first_position) / kCacheRows);
  number += (block_warp - number % H::kBlockWarps + H::kBlockWarps) % H::kBlockWarps;
#pragma unroll 1
  for (;; number += H::kBlockWarps) {
    const int row = blocks.block(number) * kCacheRows;
    if (row >= last_position) break;
    SeenRows seen[H::kGroups][2];
#pragma unroll
    for (int g = 0; g < H::kGroups; ++g) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int own = position[g][k];
        seen[g][k] = {max(0, first_seen<S>(own) - row), max(0, min(own - row, kCacheRows))};
      }
    }
    attend_block<S>(groups, head + size_t(row / kCacheRows) * kCacheBlockBytes, seen,
                    max(0, first_seen<S>(first_position) - row),
                    min(last_position - row, kCacheRows), c.lane, false);
  }
  // Their own rows, each by the warp whose turn is next.
#pragma unroll 1
  for (int block = first_position / kCacheRows; block <= last_position / kCacheRows; ++block) {
    if (!blocks.owns(block)) continue;
    SeenRows seen[H::kGroups][2];
    bool any = false;
#pragma unroll
    for (int g = 0; g < H::kGroups; ++g) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int own = position[g][k], in_block = own % kCacheRows;
        const int turn = blocks.number(block) + (in_block > 0);
        const bool mine = own >= 0 && own / kCacheRows == block &&
                          turn % H::kBlockWarps == block_warp;
        seen[g][k] = mine ? SeenRows{in_block, in_block + 1} : SeenRows{0, 0};
        any |= mine;
      }
    }
    if (!__any_sync(~0u, any)) continue;
    const int row = block * kCacheRows;
    attend_block<S>(groups, head + size_t(block) * kCacheBlockBytes, seen,
                    max(0, first_position - row), min(last_position + 1 - row, kCacheRows), c.lane,
                    true);
  }

  // What the warps keep: results, then maxima and sums.
  float* const results = reinterpret_cast<float*>(c.ring);
  float* const tops = results + kConsumerWarps * H::kWarpColumns * kPaddedHead;
  float* const totals = tops + kConsumerWarps * H::kWarpColumns;
#pragma unroll
  for (int g = 0; g < H::kGroups; ++g) {
    HeadGroup& h = groups[g];
#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1) {
      h.sum0 += __shfl_xor_sync(~0u, h.sum0, offset);
      h.sum1 += __shfl_xor_sync(~0u, h.sum1, offset);
    }
    const int at = block_warp * H::kColumns + set * H::kWarpColumns + g * kMmaHeads +
                   (c.lane & 3) * 2;
    float* const own = results + at * kPaddedHead;
#pragma unroll
    for (int f = 0; f < HeadGroup::kFragments; ++f) {
      const int dim = f * 16 + (c.lane >> 2);
      own[dim] = h.o[f][0];
      own[kPaddedHead + dim] = h.o[f][1];
      own[dim + 8] = h.o[f][2];
      own[kPaddedHead + dim + 8] = h.o[f][3];
    }
    if (c.lane < 4) {
      tops[at] = h.max0;
      tops[at + 1] = h.max1;
      totals[at] = h.sum0;
      totals[at + 1] = h.sum1;
    }
  }
  __syncthreads();
  for (int e = c.tid; e < count * kGroupHeads * kHeadDim; e += kConsumers) {
    const int column = e / kHeadDim, dim = e % kHeadDim;
    const int token = first_token + column / kGroupHeads, in_group = column % kGroupHeads;
    float scale[H::kBlockWarps], top = kNoScore;
#pragma unroll
    for (int w = 0; w < H::kBlockWarps; ++w) {
      scale[w] = tops[w * H::kColumns + column];
      top = fmaxf(top, scale[w]);
    }
    float sum = 0, value = 0;
#pragma unroll
    for (int w = 0; w < H::kBlockWarps; ++w) {
      const int at = w * H::kColumns + column;
      scale[w] = exp2_approx(scale[w] - top);
      sum += scale[w] * totals[at];
      value += scale[w] * results[at * kPaddedHead + dim];
    }
    if constexpr (S::kSplits == 1) {
      const int row = (head_index * kGroupHeads + in_group) * kHeadDim + dim;
      publish<Element>(c, out, token * kQueryRows + row, divide<Element>(value, sum));
    } else {
      const int base = ((token * S::kUnits + unit) * kGroupHeads + in_group) * (kHeadDim + 2);
      publish<Fp32>(c, out, base + dim, value);
      if (dim == 0) {
        publish<Fp32>(c, out, base + kHeadDim, sum > 0 ? top * kLn2 : -INFINITY);
        publish<Fp32>(c, out, base + kHeadDim + 1, sum);
      }
    }
  }
  __syncthreads();
}

template <class S, class Heads, class Cache = OfLayer>
__device__ __forceinline__ void attend(Prompt& c, const Heads heads, const Page out,
                                       Cache cache = {}) {
  int stride;
  const u16* queries = append<S>(c, heads, cache, stride);
  join(c);
  const int groups = ceil_div(c.tokens, PromptHeads::kTokensOfUnit);
  // The last tokens, which see most, first.
#pragma unroll 1
  for (int i = c.sm; i < S::kUnits * groups; i += kSMs) {
    const int first_token = (groups - 1 - i / S::kUnits) * PromptHeads::kTokensOfUnit;
    attend_unit<S>(c, i % S::kUnits, first_token, queries, stride, out, cache);
  }
  join(c);
}

// Joins the splits of all tokens, as combine.cuh does those of one.
template <class S>
__device__ __forceinline__ void combine(Prompt& c, const Page in, const Page out) {
  constexpr int kLanes = lanes_for(S::kSplits), kParallel = kConsumers / kLanes;
  const float* parts = reinterpret_cast<const float*>(c.values<Fp32>(in));
  const int split = c.tid % kLanes, elements = c.tokens * kQueryRows;
#pragma unroll 1
  for (int base = c.sm * kParallel; base < elements; base += kSMs * kParallel) {
    const int e = base + c.tid / kLanes;
    const bool active = e < elements && split < S::kSplits;
    const int token = e / kQueryRows, head = e / kHeadDim % kHeads, dim = e % kHeadDim;
    const int unit = head / kGroupHeads * S::kSplits + split;
    const int row = (token * kKVHeads * S::kSplits + unit) * kGroupHeads + head % kGroupHeads;
    const float* part = parts + size_t(row) * (kHeadDim + 2);
    const float max = active ? part[kHeadDim] : -INFINITY;
    const float of_split = active ? part[kHeadDim + 1] : 0.0f;
    float top = max;
#pragma unroll
    for (int offset = 1; offset < kLanes; offset <<= 1)
      top = fmaxf(top, __shfl_xor_sync(~0u, top, offset));
    const float scale = of_split > 0 ? exp2f((max - top) * kLog2e) : 0.0f;
    float sum = scale * of_split, value = active ? scale * part[dim] : 0.0f;
#pragma unroll
    for (int offset = 1; offset < kLanes; offset <<= 1) {
      sum += __shfl_xor_sync(~0u, sum, offset);
      value += __shfl_xor_sync(~0u, value, offset);
    }
    if (active && split == 0) publish<Element>(c, out, e, divide<Element>(value, sum));
  }
  join(c);
}

}  // namespace amk
