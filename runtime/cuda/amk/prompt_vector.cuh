// What a product of a prompt multiplies by: the vectors of all tokens, as the stage's reader takes
// them in, in the order in which warps read them as operands. Needs schedule.h with
// AMK_TENSOR_CORES. Must not know the product.
#pragma once

#include "prompt.cuh"

namespace amk {

// Four elements of a vector, or of the residual as it would be published.
template <class S, class Reader>
__device__ __forceinline__ uint2 four_of(Prompt& c, const Reader& in, int token, int part,
                                         int column) {
  if constexpr (Reader::kResidual) {
    const float4 v = *reinterpret_cast<const float4*>(c.residual(token) + column);
    return make_uint2(pack2(v.x, v.y), pack2(v.z, v.w));
  } else {
    const u16* row =
        c.values<Element>(in.page) + size_t(token) * S::kColumns * kSplitK<S> * kSummed<S>;
    return *reinterpret_cast<const uint2*>(row + part * S::kColumns + column);
  }
}

// Sums over the warps that have a part each of some tokens' vectors, in their order. Every thread
// of a block comes here: `group` counts those that have tokens of their own.
template <int kWarps, int kTogether>
__device__ __forceinline__ void sum_of_members(Prompt& c, int group, float2 (&own)[kTogether]) {
  static_assert(kTogether <= kTokensTogether, "what scratch has room for");
  auto& sums = c.shared.sums[c.norms++ & 1];
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
#pragma unroll
    for (int offset = 16; offset; offset >>= 1) {
      own[k].x += shuffle_xor(own[k].x, offset);
      own[k].y += shuffle_xor(own[k].y, offset);
    }
    if (c.lane == 0) sums[k][c.warp] = own[k];
  }
  consumer_barrier();
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
    own[k] = {0, 0};
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      own[k].x += sums[k][group * kWarps + w].x;
      own[k].y += sums[k][group * kWarps + w].y;
    }
  }
}

// Writes the operand of a stage, and for a norm what the sums of each token are scaled by. A warp
// has the columns that the same warp of a step has, four for each lane and quad, of a few tokens.
template <class S, class Reader>
__device__ __forceinline__ void prepare(Prompt& c, const Reader& in) {
  using Shape = PromptShape<S>;
  using F = Fragments<typename Shape::W>;
  constexpr int kSubs = Shape::kSubs, kGroups = Shape::kGroups, kParts = kSplitK<S>;
  constexpr int kTogether = Shape::kTogether;
  const int group = c.warp / S::kWarps, member = c.warp % S::kWarps;
  const int column0 = F::column(c.lane);
  auto column_of = [&](int sub) {
    const int column = Shape::quad_of(member, sub) * kQuadColumns + column0;
    return column < S::kColumns ? column : -1;
  };
  static_assert(kRanks<S> == 1 || kParts == 1 && kMostTileTokens % (kGroups * kTogether) == 0,
                "the units that a block has at once are of one tile of the list");
  const int units = ceil_div(places_of<S>(c.tokens), kTogether) * kParts;
  // Of experts those of the list, which has wanted tokens alone.
  const int begin = kRanks<S> > 1 ? 0 : c.first / kTogether * kParts;
#pragma unroll 1
  for (int first = begin + c.sm * kGroups; first < units; first += kSMs * kGroups) {
    const int unit = first + group, place = unit / kParts * kTogether, part = unit % kParts;
#if AMK_EXPERTS
    if constexpr (kRanks<S> > 1) {
      if (listed_expert(first * kTogether / kMostTileTokens) < 0) continue;
    }
#endif
    TokenAt at[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      at[k] = {};
      if (unit < units) at[k] = token_at<S>(c, place + k);
    }
    auto load = [&](uint2 (&x)[kTogether], int sub) {
      const int column = column_of(sub);
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int of = kSummed<S> > 1 ? at[k].rank : part;
        x[k] = at[k].there && column >= 0 ? four_of<S>(c, in, at[k].token, of, column)
                                          : make_uint2(0, 0);
      }
    };
    float2 own[kTogether] = {};
    Centre centre[kTogether] = {};
    if constexpr (Reader::kCentred) {
#pragma unroll 4
      for (int i = 0; i < kSubs; ++i) {
        uint2 x[kTogether];
        load(x, i);
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          own[k].x += sum_of(x[k]);
          own[k].y += squares_of(x[k]);
        }
      }
      sum_of_members<S::kWarps>(c, group, own);
#pragma unroll
      for (int k = 0; k < kTogether; ++k)
        centre[k] = centre_of_sums<S>(own[k].x, own[k].y, in.eps);
    }
    u8* tile = c.operand() + (size_t(place / kTokenTile) * kParts + part) * Shape::kTileBytes;
#pragma unroll 4
    for (int i = 0; i < kSubs; ++i) {
      const int column = column_of(i);
      uint2 x[kTogether], gain = {}, shift = {};
      if constexpr (Reader::kGain) {
        if (column >= 0) gain = load_norm<S::kColumns>(in.weight, column);
      }
      if constexpr (Reader::kShift) {
        if (column >= 0) shift = load_norm<S::kColumns>(in.bias, column);
      }
      load(x, i);
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        if constexpr (Reader::kCentred) {
          x[k] = centred<Reader>(centre[k], x[k], gain, shift);
          if (column < 0) x[k] = make_uint2(0, 0);
        } else if constexpr (Reader::kNorm) {
          own[k].y += squares_of(x[k]);
          x[k] = make_uint2(gained<Reader>(x[k].x, gain.x), gained<Reader>(x[k].y, gain.y));
        }
      }
      if (unit < units && member < Shape::kMembers &&
          (Shape::kWhole || Shape::quad_of(member, i) < Shape::kQuads)) {
        Shape::store(tile, member, i, place % kTokenTile, x, c.lane);
      }
    }
    if constexpr (Reader::kNorm) {
      sum_of_members<S::kWarps>(c, group, own);
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        if (at[k].there && at[k].rank == 0 && member == 0 && c.lane == k)
          c.inverse()[at[k].token] = rsqrtf(fmaf(own[k].y, 1.0f / S::kColumns, in.eps));
      }
    }
  }
  join(c);
}

// ---- norms of branches that every SM adds -------------------------------------------------------

// Adds the branch that is due to the residual of all tokens. A block has one token at a time, and
// its threads the columns that they have in a step (replicated.cuh).
__device__ __forceinline__ void add_due(Prompt& c) {
  if (!c.due.gain) return;
#pragma unroll 1
  for (int token = c.first + c.sm; token < c.tokens; token += kSMs) {
    const u16* branch = c.values<Element>(c.due.page) + size_t(token) * kHidden * c.due.parts;
    float v[kOwnGroups][kTogether];
    float2 squares[1] = {};
#pragma unroll
    for (int i = 0; i < kOwnGroups; ++i) {
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int column = own_column(c.tid, i) + j;
        v[i][j] = 0;
        if (own_column(c.tid, i) < 0) continue;
        v[i][j] = Element::to_float(branch[column]);
#pragma unroll
        for (int k = 1; k < kBranchParts; ++k)
          v[i][j] += k < c.due.parts ? Element::to_float(branch[k * kHidden + column]) : 0.0f;
        squares[0].y = fmaf(v[i][j], v[i][j], squares[0].y);
      }
    }
    sum_of_members<kConsumerWarps>(c, 0, squares);
    const float inverse = rsqrtf(fmaf(squares[0].y, 1.0f / kHidden, c.due.eps));
    const float offset = c.due.unit_offset ? 1.0f : 0.0f;
    const float factor = c.due.factor ? load_weight(c.due.factor, 0) : 1.0f;
#pragma unroll
    for (int i = 0; i < kOwnGroups; ++i) {
      if (own_column(c.tid, i) < 0) break;
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int column = own_column(c.tid, i) + j;
        const float gain = offset + load_weight(c.due.gain, column);
        float& sum = c.residual(token)[column];
        sum = (sum + rounded<Element>(v[i][j] * inverse * gain)) * factor;
      }
    }
  }
  c.due.gain = nullptr;
  join(c);
}

template <class S>
__device__ __forceinline__ void add_norm(Prompt& c, const Page in, const u8* gain,
                                         const u8* factor = nullptr) {
  add_due(c);
  c.due = Branch{in, gain, factor, kParts<S>, S::kNormEps, S::kUnitOffset, c.stage};
}

}  // namespace amk
