// Experts of a pass over a prompt. A router chooses those of each token, which are then listed by
// expert: products multiply the matrix of an expert by its tokens, wherever these are in the pass.
// A list follows from the choices alone, because it is in the order of the tokens. What a token is
// the sum of is added up in its own order, when all of it is there. Needs schedule.h with
// AMK_EXPERTS.
#pragma once

#include "prompt.cuh"
#include "router.cuh"
#if AMK_WGMMA
#include "prompt_pairs.cuh"
#endif

namespace amk {

static_assert(kPromptTokens <= 1 << 13, "bits of an entry of the list");

// ---- the tiles of a product ---------------------------------------------------------------------

#if AMK_WGMMA
// The tiles of a product with matrices of experts (prompt_ring.cuh): of each tile of the list all
// rows, one tile of these after another. Tiles without tokens are left out.
template <class S>
struct PromptTiles<S, true> {
  using Shape = RowShape<S>;
  static_assert(Shape::kParts == 1, "columns of experts are not cut");
  static constexpr int kOfListed = kMostTileTokens / Shape::kTileTokens;
  int token_tiles;

  __device__ __forceinline__ explicit PromptTiles(int tokens, int = 0)
      : token_tiles(places_of<S>(tokens) / Shape::kTileTokens) {}
  __device__ __forceinline__ int count() const { return token_tiles * Shape::kRowTiles; }
  __device__ __forceinline__ PromptTile operator[](int i) const {
    const int tokens = i / Shape::kRowTiles;
    return {tokens, 0, i % Shape::kRowTiles * Shape::kRows,
            listed_expert(tokens / kOfListed)};
  }
  __device__ static __forceinline__ bool has(const PromptTile& tile) { return tile.matrix >= 0; }
  // A copying warp has read what the list is for `products`, counted from the first.
  __device__ static __forceinline__ void done(u32 warp, u32 products) {
    store_shared_release(&block_waits().read[warp], products);
  }
};

// Waits until the copying warps have read `listed` for the last product that they go by it in.
// They have no other wait by now.
__device__ __forceinline__ void await_readers(Prompt& c) {
  for (const u32& read : c.shared.read) {
    while (load_shared_acquire(&read) < c.listed) {
    }
  }
}
#endif

// ---- functions of finishers ---------------------------------------------------------------------

__device__ __forceinline__ void publish_exact(Prompt& c, const Row& r, const Page out, float v) {
  if (r.valid) publish<Fp32>(c, out, r.index(), v);
}
#if AMK_WGMMA
__device__ __forceinline__ void publish_exact(Prompt& c, const RowPair& r, const Page out,
                                              Pair v) {
  if (!r.valid) return;
  u32* to = c.values<Fp32>(out) + size_t(r.token) * r.rows + r.row;
  to[0] = bits_of(v.x);
  if (r.both()) to[1] = bits_of(v.y);
}
template <int kRows>
__device__ __forceinline__ float by_expert(Prompt& c, const RowPair& r, float v) {
  return r.valid ? v * shares_of(c)[r.token][r.row / kRows] : v;
}
__device__ __forceinline__ Pair by_gate(Prompt& c, const RowPair& r, Pair v) {
  if (!r.valid) return v;
  const float gate = gate_of(c, r.token);
  return {v.x * gate, v.y * gate};
}
#endif

// ---- routers ------------------------------------------------------------------------------------

// Lists the tokens by expert. A warp has an expert at a time: it counts the tokens of those before
// it, and its own, and then stores those. Tokens whose results are not wanted are not listed.
template <class S>
__device__ __forceinline__ void list_tokens(Prompt& c) {
  const auto& experts = c.choices().experts;
#pragma unroll 1
  for (int expert = c.sm * kConsumerWarps + c.warp; expert < S::kExperts;
       expert += kSMs * kConsumerWarps) {
    u32 before = 0, own = 0;
#pragma unroll 2
    for (int token = c.first + c.lane; token < c.tokens; token += 32) {
#pragma unroll
      for (int rank = 0; rank < S::kChosen; ++rank) {
        const int of = experts[token][rank];
        before += of < expert;
        own += of == expert;
      }
    }
#pragma unroll
    for (int offset = 16; offset; offset >>= 1) {
      before += shuffle_xor(before, offset);
      own += shuffle_xor(own, offset);
    }
    int at = tile_of_list(before, expert) * kMostTileTokens;
    const int end = tile_of_list(before + own, expert + 1) * kMostTileTokens;
#pragma unroll 2
    for (int first = c.first; first < c.tokens; first += 32) {
      const int token = first + c.lane;
      int rank = -1;
      if (token < c.tokens) {
#pragma unroll
        for (int i = 0; i < S::kChosen; ++i)
          if (experts[token][i] == expert) rank = i;
      }
      const u32 having = warp_ballot(rank >= 0);
      if (rank >= 0)
        c.list()[at + count_bits(having & ((1u << c.lane) - 1))] = Listed::of(token, rank, expert);
      at += count_bits(having);
    }
    for (at += c.lane; at < end; at += 32) c.list()[at] = Listed::nobody();
  }
}

// Chooses the experts of all tokens, a warp those of one at a time.
template <class S>
__device__ __forceinline__ void route(Prompt& c, const Page in, const u8* biases = nullptr) {
  const ScoreBiases<S> bias(c.lane, biases);
#pragma unroll 1
  for (int token = c.first + c.sm * kConsumerWarps + c.warp; token < c.tokens;
       token += kSMs * kConsumerWarps) {
    const u32* row = c.values<Fp32>(in) + size_t(token) * kScores<S>;
    float scores[ceil_div(kScores<S>, 32)];
#pragma unroll
    for (int i = 0; i < ceil_div(kScores<S>, 32); ++i) {
      const int score = c.lane + i * 32;
      scores[i] = score < kScores<S> ? float_of_bits(row[score]) : 0.0f;
    }
    const Chosen chosen =
        choose_experts<S>(c.lane, bias, [&](int i) { return scores[i]; }, [](int) {});
    if (c.lane < S::kChosen) {
      c.choices().experts[token][c.lane] = chosen.expert;
      c.choices().shares[token][c.lane] = chosen.share;
    }
    if constexpr (kGated<S>) {
      if (c.lane == S::kExperts % 32)
        c.choices().gates[token] = sigmoid(scores[S::kExperts / 32]);
    }
  }
#if AMK_WGMMA
  if (c.tid == 0) await_readers(c);
#endif
  join(c);
  list_tokens<S>(c);
  join(c);
  const int listed = max(0, c.tokens - c.first);  // tokens
  const int tiles = tile_of_list(listed * S::kChosen, S::kExperts);
  for (int tile = c.tid; tile < kListTiles; tile += kConsumers)
    c.shared.listed[tile] =
        tile < tiles ? u16(c.list()[tile * kMostTileTokens].expert() + 1) : u16(0);
  consumer_barrier();
}

// ---- sums over experts --------------------------------------------------------------------------

// Keeps a product of a token with the matrix of one of its experts.
__device__ __forceinline__ void keep_sum(Prompt& c, const Row& r, float v) {
  if (r.valid) c.sums()[size_t(r.token) * r.rows + r.row] = v;
}
#if AMK_WGMMA
__device__ __forceinline__ void keep_sum(Prompt& c, const RowPair& r, Pair v) {
  if (r.valid)
    *reinterpret_cast<float2*>(c.sums() + size_t(r.token) * r.rows + r.row) =
        make_float2(v.x, v.y);
}
#endif

// Adds up those of each token, in the order in which they were chosen, and finishes its rows.
template <class S, class Finish>
__device__ __forceinline__ void finish_sums(Prompt& c, Finish&& finish) {
  constexpr int kUnits = ceil_div(int(S::kRows), 32);  // of a token, a row for each lane
#pragma unroll 1
  for (int unit = c.first * kUnits + c.sm * kConsumerWarps + c.warp; unit < c.tokens * kUnits;
       unit += kSMs * kConsumerWarps) {
    const int token = unit / kUnits, row = unit % kUnits * 32 + c.lane;
    const bool valid = row < S::kRows;
    const float* from = c.sums() + size_t(token) * kSummed<S> * S::kRows + row;
    float sum = valid ? from[0] : 0.0f;
#pragma unroll
    for (int rank = 1; rank < kSummed<S>; ++rank)
      sum += valid ? from[rank * S::kRows] : 0.0f;
    finish(Row{row, kFlushRows, valid, token, S::kRows}, sum);
  }
  join(c);
}

}  // namespace amk
