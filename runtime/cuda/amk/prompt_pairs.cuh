// Finishers for two rows side by side, which a lane of wgmma has of a token. They compute what
// finish.cuh computes of each, and need no other lane. What they store waits until all rows of a
// batch are finished, so that the loads of a batch are in flight together. Needs schedule.h with
// AMK_WGMMA.
#pragma once

#include "prompt_ring.cuh"
#include "prompt.cuh"

namespace amk {

// The values of an even row and of the odd one after it.
struct Pair {
  float x, y;
};
__device__ __forceinline__ Pair operator+(Pair a, Pair b) { return {a.x + b.x, a.y + b.y}; }

// What a batch of pairs has to store.
struct PairStores {
  Pair residual;
  u32 published;  // two elements, or one
  u16* page = nullptr;  // that they are published on
  bool keeps = false;  // the residual
  int elements = 0;
};

// Two finished rows of a token.
struct RowPair {
  int row;    // the even one
  int rows;   // that the matrix has
  int token;  // of the pass
  int end;    // rows from here on are padding
  bool valid;  // false: padding, all of them
  PairStores& stores;

  __device__ __forceinline__ bool both() const { return row + 1 < end; }
  __device__ __forceinline__ Pair elements_of(const u8* vector, int at) const {
    return {valid ? load_weight(vector, at) : 0.0f,
            valid && both() ? load_weight(vector, at + 1) : 0.0f};
  }
};

// ---- ops ----------------------------------------------------------------------------------------

template <int kRotated, int kAngles = 0, int kDims = kHeadDim>
__device__ __forceinline__ Pair rope(Prompt& c, const RowPair& r, Pair v) {
  if (!r.valid || r.row >= kRotated) return v;
  const float2 turn = c.rotation(kAngles, r.token)[r.row % kDims / 2];
  return {rotated(false, v.x, v.y, turn.x, turn.y), rotated(true, v.y, v.x, turn.x, turn.y)};
}
__device__ __forceinline__ float silu_mul(const RowPair&, Pair v) {
  return sigmoid_of(v.x, v.x) * v.y;
}
__device__ __forceinline__ float gelu_tanh_mul(const RowPair&, Pair v) {
  return gelu_tanh(v.x) * v.y;
}
__device__ __forceinline__ float clamped_silu_mul(const RowPair&, Pair v, float cap,
                                                  float scale) {
  const float gate = v.x > cap ? cap : v.x;
  return sigmoid_of(scale * gate, gate) * (clip(v.y, cap) + 1.0f);
}
__device__ __forceinline__ Pair gelu_tanh(Pair v) { return {gelu_tanh(v.x), gelu_tanh(v.y)}; }
__device__ __forceinline__ Pair gelu(Pair v) { return {gelu(v.x), gelu(v.y)}; }
__device__ __forceinline__ Pair relu(Pair v) { return {relu(v.x), relu(v.y)}; }
__device__ __forceinline__ Pair relu2(Pair v) { return {relu2(v.x), relu2(v.y)}; }
__device__ __forceinline__ Pair xielu(Pair v, const Xielu& shape) {
  return {xielu(v.x, shape), xielu(v.y, shape)};
}
__device__ __forceinline__ Pair scale(Pair v, float by) { return {scale(v.x, by), scale(v.y, by)}; }
__device__ __forceinline__ Pair soft_cap(Pair v, float cap) {
  return {soft_cap(v.x, cap), soft_cap(v.y, cap)};
}
__device__ __forceinline__ Pair clip(Pair v, float cap) { return {clip(v.x, cap), clip(v.y, cap)}; }

__device__ __forceinline__ void offer(Candidate& best, const RowPair& r, Pair v) {
  best.offer(v.x, r.row);
  if (r.both()) best.offer(v.y, r.row + 1);
}

__device__ __forceinline__ Pair residual(Prompt& c, const RowPair& r) {
  if (!r.valid) return {0, 0};
  const float2 v = *reinterpret_cast<const float2*>(c.residual(r.token) + r.row);
  return {v.x, v.y};
}

// ---- destinations -------------------------------------------------------------------------------

__device__ __forceinline__ void store_residual(Prompt& c, const RowPair& r, Pair v) {
  r.stores.residual = v;
  r.stores.keeps = true;
}
__device__ __forceinline__ void publish_row(Prompt& c, const RowPair& r, const Page out, Pair v) {
  r.stores.published = pack2(v.x, v.y);
  r.stores.page = c.values<Element>(out);
  r.stores.elements = 2;
}
__device__ __forceinline__ void publish_pair(Prompt& c, const RowPair& r, const Page out, float v) {
  r.stores.published = Element::from_float(v);
  r.stores.page = c.values<Element>(out);
  r.stores.elements = 1;
}
__device__ __forceinline__ void store_logit(Prompt& c, const RowPair& r, Pair v) {
  if (!r.valid || !c.launch.logits) return;
  float* to = c.launch.logits + size_t(r.token) * kVocab + r.row;
  to[0] = v.x;
  if (r.both()) to[1] = v.y;
}
__device__ __forceinline__ void write_residual(Prompt& c, const RowPair& r) {
  if (r.valid && r.stores.keeps)
    *reinterpret_cast<float2*>(c.residual(r.token) + r.row) =
        make_float2(r.stores.residual.x, r.stores.residual.y);
}
__device__ __forceinline__ void write_row(const RowPair& r) {
  const PairStores& s = r.stores;
  if (!r.valid || s.elements == 0) return;
  u16* const to = s.page + (size_t(r.token) * r.rows + r.row) * s.elements / 2;
  if (s.elements == 2) *reinterpret_cast<u32*>(to) = s.published;
  else *to = u16(s.published);
}

// ---- the rows of a tile -------------------------------------------------------------------------

// The pair of a token of a product that begins with an even row of its matrix, which has rows up to
// `end`.
template <class S>
__device__ __forceinline__ RowPair pair_at(const TokenAt& at, int row, int end,
                                           PairStores& stores) {
  const int before = at.rank * kMatrixRows<S>;
  return {before + row, kRanks<S> * kMatrixRows<S>, at.token, before + end, at.there && row < end,
          stores};
}

constexpr int kPairsAtOnce = 8;

// Stores eight columns of a token in the operand of stage To: of the quarter that begins with a
// column, a group of a half.
template <class To>
__device__ __forceinline__ void store_group(u16* operand, int token, int column, int half,
                                            int group, uint4 eight) {
  using Shape = PromptShape<To>;
  const int part = kSplitK<To> > 1 ? column / To::kColumns : 0;
  const int in = column - part * To::kColumns, quad = in / kQuadColumns;
  const size_t tile = size_t(token / kTokenTile) * kSplitK<To> + part;
  u8* const to = reinterpret_cast<u8*>(operand) + tile * Shape::kTileBytes +
                 Shape::place(Shape::member_with(quad), Shape::sub_with(quad),
                              in % kQuadColumns / 32, half, token % kTokenTile);
  *reinterpret_cast<uint4*>(to + group * Shape::kGroupBytes) = eight;
}

// Stores what a batch publishes in the operand of stage To. `first` is the first of the pairs,
// which are eight rows apart. Of each eight columns of a quarter, 4 * half + 2 * group and the one
// after it are those of a group of a half. All lanes of a warp call it.
template <class To, int kCount>
__device__ __forceinline__ void store_operand(Prompt& c, const RowPair& first,
                                              const PairStores (&stores)[kCount]) {
  static_assert(kCount == 8, "of one quarter or two");
  static_assert(PromptShape<To>::kFilled, "nobody clears places without columns");
  const int lane = c.lane % 4, row = first.row - lane * 2;
  if (stores[0].elements == 2) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const uint4 eight = make_uint4(stores[i].published, stores[i + 1].published,
                                     stores[i + 2].published, stores[i + 3].published);
      if (first.valid)
        store_group<To>(stores[0].page, first.token, row + i * 8, lane / 2, lane % 2, eight);
    }
    return;
  }
  // One element of each pair: a lane has every fourth column, and the next lane the next columns.
  // One of the two stores the first half, and the other one the second.
  u32 halves[2][2];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    halves[i % 2][i / 2] =
        byte_perm(stores[i / 2 * 4 + i % 2].published, stores[i / 2 * 4 + i % 2 + 2].published,
                  0x5410);
  const bool odd = lane % 2;
  u32 eight[4];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const u32 own = odd ? halves[1][i] : halves[0][i];
    const u32 other = shuffle_xor(odd ? halves[0][i] : halves[1][i], 1);
    const u32 low = odd ? other : own, high = odd ? own : other;
    eight[i * 2] = byte_perm(low, high, 0x5410);
    eight[i * 2 + 1] = byte_perm(low, high, 0x7632);
  }
  if (first.valid)
    store_group<To>(stores[0].page, first.token, row / 2, lane % 2, lane / 2,
                    make_uint4(eight[0], eight[1], eight[2], eight[3]));
}

// Finishes a batch of kCount pairs of stage S: of each the rows, which row(i, stores) gives, and
// their values.
template <class S, int kCount, class RowOf, class ValueOf, class Finish>
__device__ __forceinline__ void finish_batch(Prompt& c, RowOf&& row, ValueOf&& value,
                                             Finish&& finish) {
  using To = typename WritesOperand<S>::Of;
  PairStores stores[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) finish(row(i, stores[i]), value(i));
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    write_residual(c, row(i, stores[i]));
    if constexpr (kSame<To, void>) write_row(row(i, stores[i]));
  }
  if constexpr (!kSame<To, void>) store_operand<To>(c, row(0, stores[0]), stores);
}

// Finishes a lane's sums of a tile: of two tokens eight rows apart, two rows of each eight.
template <class S, class Reader, int kSums, class Finish>
__device__ __forceinline__ void finish_pairs(Prompt& c, const PromptTile& tile,
                                             const float (&sums)[kSums], Finish&& finish) {
  using Shape = SlotShape<S>;
  static_assert(Shape::kParts == 1 || Shape::kPartRows % 8 == 0, "parts are whole tiles");
  const int first = tile.part * Shape::kPartRows + tile.first_row + c.lane % 4 * 2;
  const int end = (tile.part + 1) * Shape::kPartRows;
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const TokenAt at =
        token_at<S>(c, tile.tokens * Shape::kTileTokens + c.warp * 16 + c.lane / 4 + k * 8);
    float by = 1;
    if constexpr (Reader::kNorm) by = at.there ? c.inverse()[at.token] : 0.0f;
#pragma unroll
    for (int batch = 0; batch < kSums / 4; batch += kPairsAtOnce) {
      finish_batch<S, kPairsAtOnce>(
          c,
          [&](int i, PairStores& stores) {
            const int row = first + (batch + i) * 8;
            return pair_at<S>(at, row, end, stores);
          },
          [&](int i) {
            const float* of = &sums[(batch + i) * 4 + k * 2];
            return Reader::kNorm ? Pair{of[0] * by, of[1] * by} : Pair{of[0], of[1]};
          },
          finish);
    }
  }
}

}  // namespace amk
