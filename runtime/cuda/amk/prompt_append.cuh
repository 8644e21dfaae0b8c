// Appends the rows of a prompt's pass to the cache, where attention reads them: k and v of each
// token and kv head, normalised and rotated where attention in a step does so, and quantised where
// the cache has integers. Needs schedule.h with AMK_TENSOR_CORES.
#pragma once

#include "attention_mma.cuh"
#include "prompt.cuh"

namespace amk {

template <class H, class Cache>
__device__ __forceinline__ u8* head_of_cache(Prompt& c, Cache cache, int head) {
  return c.launch.cache + layer_cache<H>(cache_number(c, cache)) +
         size_t(head) * H::kHeadCacheBytes;
}

// Appends k and v of a row, which a warp does.
template <class H>
__device__ __forceinline__ void append_row(u8* head, int row, const u16* k, const u16* v,
                                           int lane) {
  if constexpr (kQuantisedCache) {
    u32 of_k = 0, of_v = 0;
    for (int d = lane; d < H::kHeadDim; d += 32) {
      of_k = larger_magnitude(of_k, Element::to_float(k[d]));
      of_v = larger_magnitude(of_v, Element::to_float(v[d]));
    }
    const RowQuantiser keys(largest_of_warp(of_k)), values(largest_of_warp(of_v));
    for (int d = lane; d < H::kHeadDim; d += 32) {
      head[cache_offset<H>(row, d, false)] = keys(Element::to_float(k[d]));
      head[cache_offset<H>(row, d, true)] = values(Element::to_float(v[d]));
    }
    if (lane == 0) {
      store_scale<H>(head, row, false, keys.scale);
      store_scale<H>(head, row, true, values.scale);
    }
  } else {
    for (int d = lane * 4; d < H::kHeadDim; d += 32 * 4) {
      store_row<H>(head, row, d, false, *reinterpret_cast<const uint2*>(k + d));
      store_row<H>(head, row, d, true, *reinterpret_cast<const uint2*>(v + d));
    }
  }
}

// Appends k and v of the rows of a matrix of the cache, from row `first` on, as far as the pass has
// them, which a warp does: each of its stores fills a matrix. `k` and `v` are those of the pass's
// first row.
template <class H>
__device__ __forceinline__ void append_matrices(Prompt& c, u8* head, int first, const u16* k,
                                                const u16* v) {
  const int own = first + c.lane / 4 - c.origin, quarter = c.lane & 3;
  const bool there = own >= 0 && own < c.tokens;
  const size_t from = there ? size_t(own) * H::kTokenRows : 0;
#pragma unroll
  for (int dim = quarter * 4; dim < H::kPaddedHead; dim += 16) {
    if (there && dim < H::kHeadDim)
      store_row<H>(head, first + c.lane / 4, dim, false,
                   *reinterpret_cast<const uint2*>(k + from + dim));
  }
  const int row = own - c.lane / 4 + quarter * 2;  // the lane's rows of a dim: this and the next
  const bool both[2] = {row >= 0 && row < c.tokens, row + 1 >= 0 && row + 1 < c.tokens};
#pragma unroll
  for (int dim = 0; dim < H::kHeadDim; dim += 8) {
    const int of = dim + quarter * 2;
    const bool real = there && (H::kHeadDim % 8 == 0 || of < H::kHeadDim);
    const u32 two = transpose8x8(real ? *reinterpret_cast<const u32*>(v + from + of) : 0);
    if (H::kHeadDim % 8 > 0 && dim + c.lane / 4 >= H::kHeadDim) continue;
    u16* const at = reinterpret_cast<u16*>(
        head + cache_offset<H>(first + quarter * 2, dim + c.lane / 4, true));
    if (both[0] && both[1]) {
      *reinterpret_cast<u32*>(at) = two;
    } else {
      if (both[0]) at[0] = u16(two);
      if (both[1]) at[1] = u16(two >> 16);
    }
  }
}

// Returns the address of the queries of a token.
template <class S, class Cache>
__device__ __forceinline__ const u16* append(Prompt& c, const PlainHeads heads, Cache cache,
                                             int& stride) {
  using H = HeadsOf<S>;
  const u16* qkv = c.values<Element>(heads.in);
  stride = H::kTokenRows;
  const int warp = c.sm * kConsumerWarps + c.warp;
  if constexpr (kCacheMatrices) {
    const int begin = c.origin / 8, groups = ceil_div(c.origin + c.tokens, 8) - begin;
#pragma unroll 1
    for (int i = warp; i < groups * H::kKVHeads; i += kSMs * kConsumerWarps) {
      const int head = i % H::kKVHeads;
      append_matrices<H>(c, head_of_cache<H>(c, cache, head), (begin + i / H::kKVHeads) * 8,
                         qkv + H::k_row(head), qkv + H::v_row(head));
    }
  } else {
#pragma unroll 1
    for (int i = warp; i < c.tokens * H::kKVHeads; i += kSMs * kConsumerWarps) {
      const int token = i / H::kKVHeads, head = i % H::kKVHeads;
      const u16* row = qkv + size_t(token) * H::kTokenRows;
      append_row<H>(head_of_cache<H>(c, cache, head), c.origin + token, row + H::k_row(head),
                 row + H::v_row(head), c.lane);
    }
  }
  return qkv;
}

// What the reader of a unit asks of a context, for one token.
struct TokenView {
  struct {
    float2 (*rotation)[kPromptTokens][kHeadDim / 2];  // of which the first token is this one
    decltype(PromptScratch::squares)& squares;
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
  using H = HeadsOf<S>;
  using Reader = UnitReader<S, NormedHeads>;
  struct Words {
    uint2 four[Reader::kQuads];
    __device__ __forceinline__ uint2 pairs(int i) const { return four[i]; }
  };
  u16* const queries = reinterpret_cast<u16*>(c.operand());
  u16* const normed = reinterpret_cast<u16*>(c.ring);  // k, and v after it
#pragma unroll 1
  for (int i = c.sm; i < c.tokens * H::kKVHeads; i += kSMs) {
    const int token = i / H::kKVHeads, head = i % H::kKVHeads;
    const u16* row = c.values<Element>(heads.in) + size_t(token) * H::kTokenRows;
    TokenView view(c, token);
    const Unit<S> u{head * S::kSplits, c.origin + token};
    Reader reader(view, heads, u);
    Words words;
#pragma unroll
    for (int k = 0; k < Reader::kQuads; ++k) {
      const UnitQuad<H> q = Reader::quad(c.tid, k);
      words.four[k] = q.is_there() ? *reinterpret_cast<const uint2*>(row + unit_word<H>(head, q))
                                   : make_uint2(0, 0);
    }
    if constexpr (S::kWholeNorm) {
      for (int quad = c.tid; quad < H::kNormedQuads; quad += kConsumers) {
        const float squares = squares_of(*reinterpret_cast<const uint2*>(row + quad * 4));
        (quad * 4 < H::kQueryRows ? reader.squares.q : reader.squares.k) += squares;
      }
    }
    reader.take(view, u, words);
#pragma unroll
    for (int k = 0; k < Reader::kQuads; ++k) {
      const UnitQuad<H> q = Reader::quad(c.tid, k);
      const int e = q.quad * 4;
      if (!q.is_there()) continue;
      if (q.is_query()) {
        u16* query = queries + size_t(token) * H::kQueryRows + head * H::kGroupHeads * H::kHeadDim;
        *reinterpret_cast<uint2*>(query + e) = reader.values(words, k);
      } else {
        *reinterpret_cast<uint2*>(normed + e - H::kUnitRow) = reader.values(words, k);
      }
    }
    consumer_barrier();
    if (c.warp == 0) {
      append_row<H>(head_of_cache<H>(c, cache, head), c.origin + token, normed,
                    normed + H::kHeadDim, c.lane);
    }
    consumer_barrier();
  }
  stride = H::kQueryRows;
  return queries;
}

}  // namespace amk
