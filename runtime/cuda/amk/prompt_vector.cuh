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
    const u16* row = c.values<Element>(in.page) + size_t(token) * S::kColumns * kSplitK<S>;
    return *reinterpret_cast<const uint2*>(row + part * S::kColumns + column);
  }
}

// Sums over the warps that have a part of a token's vector each, in their order. Every thread of a
// block comes here: `group` counts the tokens that the block has at once.
template <int kWarps>
__device__ __forceinline__ float2 sum_of_members(Prompt& c, int group, float2 own) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) {
    own.x += shuffle_xor(own.x, offset);
    own.y += shuffle_xor(own.y, offset);
  }
  float2* sums = reinterpret_cast<float2*>(c.ring) + (c.norms++ & 1) * kConsumerWarps;
  if (c.lane == 0) sums[c.warp] = own;
  block_sync();
  float2 all = {0, 0};
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    all.x += sums[group * kWarps + w].x;
    all.y += sums[group * kWarps + w].y;
  }
  return all;
}

// Writes the operand of a stage, and for a norm what the sums of each token are scaled by. A warp
// has the columns that the same warp of a step has, four for each lane and quad.
template <class S, class Reader>
__device__ __forceinline__ void prepare(Prompt& c, const Reader& in) {
  using Shape = PromptShape<S>;
  using F = Fragments<typename Shape::W>;
  constexpr int kSubs = Shape::kSubs, kGroups = Shape::kGroups, kParts = kSplitK<S>;
  const int group = c.warp / S::kWarps, member = c.warp % S::kWarps;
  const int column0 = F::column(c.lane);
  auto column_of = [&](int sub) {
    const int column = Shape::quad_of(member, sub) * kQuadColumns + column0;
    return column < S::kColumns ? column : -1;
  };
  uint2 gain[kSubs] = {}, shift[Reader::kShift ? kSubs : 1] = {};
  if constexpr (Reader::kGain) {
#pragma unroll
    for (int i = 0; i < kSubs; ++i) {
      if (column_of(i) < 0) continue;
      gain[i] = load_norm<S::kColumns>(in.weight, column_of(i));
      if constexpr (Reader::kShift) shift[i] = load_norm<S::kColumns>(in.bias, column_of(i));
    }
  }
#pragma unroll 1
  for (int first = c.sm * kGroups; first < c.tokens * kParts; first += kSMs * kGroups) {
    const int at = first + group, token = at / kParts, part = at % kParts;
    const bool real = at < c.tokens * kParts;
    uint2 x[kSubs];
#pragma unroll
    for (int i = 0; i < kSubs; ++i) {
      x[i] = real && column_of(i) >= 0 ? four_of<S>(c, in, token, part, column_of(i))
                                       : make_uint2(0, 0);
    }
    Centre centre = {};
    if constexpr (Reader::kNorm || Reader::kCentred) {
      float2 own = {0, 0};
#pragma unroll
      for (int i = 0; i < kSubs; ++i) {
        if constexpr (Reader::kCentred) own.x += sum_of(x[i]);
        own.y += squares_of(x[i]);
      }
      own = sum_of_members<S::kWarps>(c, group, own);
      if constexpr (Reader::kCentred) {
        centre = centre_of_sums<S>(own.x, own.y, in.eps);
      } else if (real && member == 0 && c.lane == 0) {
        c.inverse()[token] = rsqrtf(fmaf(own.y, 1.0f / S::kColumns, in.eps));
      }
    }
    if (!real || member >= Shape::kMembers) continue;
    u8* tile = c.operand() + (size_t(token / kTokenTile) * kParts + part) * Shape::kTileBytes;
#pragma unroll
    for (int i = 0; i < kSubs; ++i) {
      if (Shape::quad_of(member, i) == Shape::kQuads) continue;
      uint2 four = x[i];
      if constexpr (Reader::kCentred) {
        four = centred<Reader>(centre, four, gain[i], shift[Reader::kShift ? i : 0]);
        if (column_of(i) < 0) four = make_uint2(0, 0);
      } else if constexpr (Reader::kNorm) {
        four = make_uint2(gained<Reader>(four.x, gain[i].x), gained<Reader>(four.y, gain[i].y));
      }
      Shape::store(tile, member, i, token % kTokenTile, four, c.lane);
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
  for (int token = c.sm; token < c.tokens; token += kSMs) {
    const u16* branch = c.values<Element>(c.due.page) + size_t(token) * kHidden * c.due.parts;
    float v[kOwnGroups][kTogether];
    float2 squares = {0, 0};
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
        squares.y = fmaf(v[i][j], v[i][j], squares.y);
      }
    }
    squares = sum_of_members<kConsumerWarps>(c, 0, squares);
    const float inverse = rsqrtf(fmaf(squares.y, 1.0f / kHidden, c.due.eps));
    const float offset = c.due.unit_offset ? 1.0f : 0.0f;
#pragma unroll
    for (int i = 0; i < kOwnGroups; ++i) {
      if (own_column(c.tid, i) < 0) break;
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int column = own_column(c.tid, i) + j;
        const float gain = offset + load_weight(c.due.gain, column);
        c.residual(token)[column] += rounded<Element>(v[i][j] * inverse * gain);
      }
    }
  }
  c.due.gain = nullptr;
  join(c);
}

template <class S>
__device__ __forceinline__ void add_norm(Prompt& c, const Page in, const u8* gain) {
  add_due(c);
  c.due = Branch{in, gain, kParts<S>, S::kNormEps, S::kUnitOffset, c.stage};
}

}  // namespace amk
