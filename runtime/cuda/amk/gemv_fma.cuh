// GEMV without tensor cores, for fp32 weights and for chips or sizes without a suitable mma. The
// vector is polled into shared memory once per stage; a warp takes every eighth block of 8 rows, a
// lane a quarter of the columns of one row. Tiles, chunks and flush are those of gemv_mma.cuh.
// Needs schedule.h. Must not know what is done with a finished row.
#pragma once

#include "digits.cuh"
#include "replicated.cuh"
#include "ring.cuh"
#include "stage.cuh"
#include "weights.cuh"

namespace amk {

// Four activations, and how one is kept: as a float, or as an element where the scratch is compact.
template <class E>
__device__ __forceinline__ float4 load_four(const float* x) {
  return *reinterpret_cast<const float4*>(x);
}
template <class E>
__device__ __forceinline__ float4 load_four(const u16* x) {
  const uint2 v = *reinterpret_cast<const uint2*>(x);
  return make_float4(E::to_float(u16(v.x)), E::to_float(u16(v.x >> 16)), E::to_float(u16(v.y)),
                     E::to_float(u16(v.y >> 16)));
}
template <class E>
__device__ __forceinline__ float load_activation(const float* x) { return *x; }
template <class E>
__device__ __forceinline__ float load_activation(const u16* x) { return E::to_float(*x); }
template <class E>
__device__ __forceinline__ void store_activation(float* to, float x) { *to = x; }
template <class E>
__device__ __forceinline__ void store_activation(u16* to, float x) { *to = u16(E::from_float(x)); }

// Eight columns of row lane / 4 of a block, from column lane % 4 * 8 on: two of each matrix.
template <class E>
struct EightWeights {
  float of[8];

  __device__ __forceinline__ EightWeights(const u8* block, int lane) {
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
      const u8* two = block + i / 2 * Elements<E>::kMatrixBytes + lane * 2 * E::kBytes;
      if constexpr (E::kBytes == 4) {
        const float2 w = *reinterpret_cast<const float2*>(two);
        of[i] = w.x, of[i + 1] = w.y;
      } else {
        const u32 w = *reinterpret_cast<const u32*>(two);
        of[i] = E::to_float(u16(w)), of[i + 1] = E::to_float(u16(w >> 16));
      }
    }
  }
  // Times eight activations, added in the order of the columns. Which products are rounded is
  // explicit and not left to the compiler, so that kernels for one token and for several agree.
  __device__ __forceinline__ float times(const float4 x, const float4 y) const {
    float sum = sum_of_products(of[0], x.x, of[1], x.y);
    sum = fmaf(of[3], x.w, fmaf(of[2], x.z, sum));
    sum = fmaf(of[5], y.y, fmaf(of[4], y.x, sum));
    return fmaf(of[7], y.w, fmaf(of[6], y.z, sum));
  }
};

// Adds the 32 floats of quarter lane % 4 of row lane / 4 of a block, times their
// activations and their scale. x gives an activation by its column in the block.
template <class W, class Activations>
__device__ __forceinline__ float add_dot32(float to, const u8* block, int lane, Activations&& x) {
  const int row = lane / 4, quarter = lane % 4;
  float sum = 0;
#pragma unroll 1
  for (int column = quarter * 32; column < quarter * 32 + 32; column += 4) {
    const u32 word = *reinterpret_cast<const u32*>(block + W::place(row, column));
#pragma unroll
    for (int i = 0; i < 4; ++i) sum = fmaf(W::to_float(word, quarter, i), x(column + i), sum);
  }
  using Bits = typename W::Scale::Bits;
  const Bits scale = reinterpret_cast<const Bits*>(block + W::kScales)[lane * W::kGroups / 4];
  return fmaf(sum, W::Scale::to_float(scale), to);
}

// Adds what a lane has of a quantised block: quarter lane % 4 of row lane / 4.
template <class W, class Activations>
__device__ __forceinline__ float add_block(float to, const u8* block, int lane, Activations&& x) {
  if constexpr (W::kFloats) return add_dot32<W>(to, block, lane, x);
  else return add_quarter<W>(to, block, lane, x);
}

// A stage as this path runs it: all warps share a tile, whatever the descriptor says.
template <class S>
struct AllWarps : S {
  static constexpr int kWarps = kConsumerWarps;
};

// Sum over the block, through one of the two rows of shared.squares.
template <class C>
__device__ __forceinline__ float sum_over_block(C& c, int by, float v) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) v += shuffle_xor(v, offset);
  if (c.lane == 0) c.shared.squares[by][c.warp] = v;
  consumer_barrier();
  v = 0;
#pragma unroll
  for (int w = 0; w < kConsumerWarps; ++w) v += c.shared.squares[by][w];
  return v;
}

// An element with the weight of a norm, rounded once.
template <class Reader>
__device__ __forceinline__ float normed(const Reader& in, float x, int column) {
  const float weight = load_weight(in.weight, column);
  return rounded<Element>(x * (Reader::kUnitOffset ? 1.0f + weight : weight));
}

// The mean of a vector from its sum. It is rounded before it is subtracted from anything.
template <class S>
__device__ __forceinline__ float mean_of_sum(float sum) {
  return sum * (1.0f / S::kColumns);
}
// 1 over the deviation, from the sum of the squares of the centred elements.
template <class S, class Reader>
__device__ __forceinline__ float inverse_deviation(const Reader& in, float squares) {
  return rsqrtf(fmaf(squares, 1.0f / S::kColumns, in.eps));
}
// An element without its mean, over the deviation, with its weight and bias; rounded once.
template <class Reader>
__device__ __forceinline__ float centred_element(const Reader& in, float x, float mean,
                                                 float inverse, int column) {
  x = (x - mean) * inverse;
  if constexpr (Reader::kGain) {
    const float weight = load_weight(in.weight, column);
    x *= Reader::kUnitOffset ? 1.0f + weight : weight;
  }
  if constexpr (Reader::kShift) x += load_weight(in.bias, column);
  return rounded<Element>(x);
}

// LAYERNORM of the vector in scratch, of which each thread goes over the elements that it has put
// there; `sum` is theirs. The variance is that of what is left when the mean is taken off.
template <class S, class C, class Reader>
__device__ __forceinline__ void centre_vector(C& c, const Reader& in, float sum) {
  const float mean = mean_of_sum<S>(sum_over_block(c, 0, sum));
  float squares = 0;
#pragma unroll 1
  for (int column = c.tid; column < S::kColumns; column += kConsumers) {
    const float x = load_activation<Element>(&c.shared.vector[column]) - mean;
    squares = fmaf(x, x, squares);
  }
  const float inverse = inverse_deviation<S>(in, sum_over_block(c, 1, squares));
#pragma unroll 1
  for (int column = c.tid; column < S::kColumns; column += kConsumers) {
    Activation* at = &c.shared.vector[column];
    const float x = load_activation<Element>(at);
    store_activation<Element>(at, centred_element(in, x, mean, inverse, column));
  }
}

template <class S, class C, class Reader, class Finish>
__device__ __forceinline__ void gemv_fma(C& c, const Reader& in, Finish&& finish, int token = 0) {
  using W = Matrix<S>;
  constexpr int kBlocks = ceil_div(S::kColumns, W::kBlockColumns);
  constexpr int kChunkBlocks = kChunkBytes<S> / W::kBlockBytes;
  constexpr int kChunks = ceil_div(kBlocks, kChunkBlocks);
  constexpr int kBatch = 8;  // words a thread polls together
  constexpr int kPadded = round_up(S::kColumns, 32);  // of each matrix that a row is summed over
  constexpr int kAll = kSums<S> * kPadded;
  static_assert(kAll <= kVectorScratch, "the vector fits its scratch");
  const Tiles mine = tiles_of<S>(c.sm, c.layer);
  const int tiles = mine.count();
  const bool streams = !kTokenByToken<S> || has_experts(c.launch, token);
  begin_reading<S>(c);
  if constexpr (Reader::kResidual) add_due(c);
  if (tiles > 0 || S::kEmpty) {
    if constexpr (!Reader::kResidual) await(c);
    float squares = 0, sum = 0;
#pragma unroll 1
    for (int first = c.tid; first < kAll; first += kConsumers * kBatch) {
      float batch[kBatch];
      if constexpr (Reader::kResidual) {
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          const int column = first + i * kConsumers;
          batch[i] = column < S::kColumns ? rounded<Element>(c.shared.residual[column]) : 0.0f;
        }
      } else {
        const int before = first_of_vector<S>(mine, token);
        auto words = word_poll<Element, kBatch>(page_copy(c, in.page), [first, before](int i) {
          const int at = first + i * kConsumers;
          const int matrix = kSums<S> > 1 ? at / kPadded : 0, column = at - matrix * kPadded;
          return matrix < kSums<S> && column < S::kColumns
                     ? before + matrix * S::kColumns + column
                     : -1;
        });
        poll_all(c, words);
#pragma unroll
        for (int i = 0; i < kBatch; ++i) batch[i] = words.value(i);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int column = first + i * kConsumers;
        if (column >= kAll) break;
        float x = batch[i];
        sum += x;
        if constexpr (Reader::kNorm) {
          squares = fmaf(x, x, squares);
          if (column < S::kColumns) x = normed(in, x, column);
        }
        store_activation<Element>(&c.shared.vector[column], x);
      }
    }
    if constexpr (Reader::kNorm) {
#pragma unroll
      for (int offset = 16; offset; offset >>= 1) squares += shuffle_xor(squares, offset);
      if (c.lane == 0) c.shared.squares[c.norms & 1][c.warp] = squares;
    }
    if constexpr (Reader::kCentred) centre_vector<S>(c, in, sum);
    consumer_barrier();
    lap(c, Did::kExchangeWait);
  }
  end_reading<S>(c);
#pragma unroll 1
  for (int first = 0; first < tiles; first += kTilesAtOnce<S>) {
    const int in_flush = min(kTilesAtOnce<S>, tiles - first);
#pragma unroll 1
    for (int i = streams ? 0 : in_flush * kSums<S>; i < in_flush * kSums<S>; ++i) {
      const Activation* const vector = c.shared.vector + i % kSums<S> * kPadded;
      float sum = 0;
#pragma unroll 1
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        wait_full(c, c.slot, c.phase);
        const u8* source = c.ring + c.slot * kSlotBytes;
        const int blocks = min(kChunkBlocks, kBlocks - chunk * kChunkBlocks);
        for (int b = c.warp; b < blocks; b += kConsumerWarps) {
          const u8* block = source + b * W::kBlockBytes;
          const int first_column = (chunk * kChunkBlocks + b) * W::kBlockColumns;
          if constexpr (W::kQuantised) {
            sum = add_block<W>(sum, block, c.lane, [&](int column) {
              column += first_column;
              return column < S::kColumns ? load_activation<Element>(&vector[column]) : 0.0f;
            });
          } else {
            const Activation* x = &vector[first_column + (c.lane & 3) * 8];
            sum += EightWeights<typename W::Element>(block, c.lane)
                       .times(load_four<Element>(x), load_four<Element>(x + 4));
          }
        }
        release(c, c.slot, 1);
        advance_slot(c.slot, c.phase);
      }
      keep_partial<S>(c, c.warp, i, sum);
    }
    flush_tiles<AllWarps<S>>(c, in, mine, first, in_flush, finish, token);
  }
  if (Reader::kNorm && (tiles > 0 || S::kEmpty)) ++c.norms;
  if (is_last_token<S>(token)) end_stage<S>(c, tiles > 0 || S::kEmpty);
}

}  // namespace amk
