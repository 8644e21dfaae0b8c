// GEMV on the ordinary floating-point units, for fp32 weights and for chips or sizes without a
// fitting mma. The vector is polled into shared memory once per stage; a warp takes every eighth
// block of 8 rows, a lane a quarter of the columns of one row. Same tiles, same chunks and same
// flush as gemv_mma.cuh. Needs schedule.h. Must not know what is done with a finished row.
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

// Eight weights of a lane (tile_column) times eight activations, added up in the order of the
// columns.
template <class W, class E>
__device__ __forceinline__ float dot8(const u8* weights, const Activation* x) {
  const float4 x0 = load_four<E>(x), x1 = load_four<E>(x + 4);
  if constexpr (W::kBytes == 4) {
    const float4 w0 = *reinterpret_cast<const float4*>(weights),
                 w1 = *reinterpret_cast<const float4*>(weights + 16);
    return w0.x * x0.x + w0.y * x0.y + w1.x * x0.z + w1.y * x0.w + w0.z * x1.x + w0.w * x1.y +
           w1.z * x1.z + w1.w * x1.w;
  } else {
    const uint4 w = *reinterpret_cast<const uint4*>(weights);
    return W::to_float(u16(w.x)) * x0.x + W::to_float(u16(w.x >> 16)) * x0.y +
           W::to_float(u16(w.z)) * x0.z + W::to_float(u16(w.z >> 16)) * x0.w +
           W::to_float(u16(w.y)) * x1.x + W::to_float(u16(w.y >> 16)) * x1.y +
           W::to_float(u16(w.w)) * x1.z + W::to_float(u16(w.w >> 16)) * x1.w;
  }
}

// The 32 numbers in e4m3 of quarter lane % 4 of row lane / 4 of a block, times their activations
// and their scale. x gives an activation by its column in the block.
template <class W, class Activations>
__device__ __forceinline__ float dot32(const u8* block, int lane, Activations&& x) {
  const int row = lane / 4, quarter = lane % 4;
  float sum = 0;
#pragma unroll 1
  for (int column = quarter * 32; column < quarter * 32 + 32; column += 4) {
    const u32 four = *reinterpret_cast<const u32*>(block + W::place(row, column));
#pragma unroll
    for (int i = 0; i < 4; ++i) sum += e4m3_to_float(four >> 8 * i) * x(column + i);
  }
  using Bits = typename W::Scale::Bits;
  return sum * W::Scale::to_float(reinterpret_cast<const Bits*>(block + W::kScales)[row]);
}

// A stage as this path runs it: all warps share a tile, whatever the descriptor says.
template <class S>
struct AllWarps : S {
  static constexpr int kWarps = kConsumerWarps;
};

// Sum over the block, by way of one of the two rows of shared.squares.
template <class C>
__device__ __forceinline__ float sum_over_block(C& c, int by, float v) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) v += __shfl_xor_sync(~0u, v, offset);
  if (c.lane == 0) c.shared.squares[by][c.warp] = v;
  consumer_barrier();
  v = 0;
#pragma unroll
  for (int w = 0; w < kConsumerWarps; ++w) v += c.shared.squares[by][w];
  return v;
}

// LAYERNORM of the vector in scratch, of which each thread goes over the elements that it has put
// there; `sum` is theirs. The variance is that of what is left when the mean is taken off.
template <class S, class C, class Reader>
__device__ __forceinline__ void centre_vector(C& c, const Reader& in, float sum) {
  const float mean = sum_over_block(c, 0, sum) * (1.0f / S::kColumns);
  float squares = 0;
#pragma unroll 1
  for (int column = c.tid; column < S::kColumns; column += kConsumers) {
    const float x = load_activation<Element>(&c.shared.vector[column]) - mean;
    squares += x * x;
  }
  squares = sum_over_block(c, 1, squares);
  const float inverse = rsqrtf(squares * (1.0f / S::kColumns) + in.eps);
#pragma unroll 1
  for (int column = c.tid; column < S::kColumns; column += kConsumers) {
    float x = (load_activation<Element>(&c.shared.vector[column]) - mean) * inverse;
    if constexpr (Reader::kGain) {
      const float weight = load_weight(in.weight, column);
      x *= Reader::kUnitOffset ? 1.0f + weight : weight;
    }
    if constexpr (Reader::kShift) x += load_weight(in.bias, column);
    store_activation<Element>(&c.shared.vector[column], rounded<Element>(x));
  }
}

template <class S, class C, class Reader, class Finish>
__device__ __forceinline__ void gemv_fma(C& c, const Reader& in, Finish&& finish) {
  using W = Matrix<S>;
  constexpr int kBlocks = ceil_div(S::kColumns, W::kBlockColumns);
  constexpr int kChunkBlocks = kChunkBytes<S> / W::kBlockBytes;
  constexpr int kChunks = ceil_div(kBlocks, kChunkBlocks);
  constexpr int kBatch = 8;  // words a thread polls together
  constexpr int kPadded = round_up(S::kColumns, 32);
  static_assert(kPadded <= kVectorScratch, "the vector fits its scratch");
  const Tiles mine = tiles_of<S>(c.sm, c.layer);
  const int tiles = mine.count();
  begin_reading<S>(c);
  if constexpr (Reader::kResidual) add_due(c);
  if (tiles > 0 || S::kEmpty) {
    if constexpr (!Reader::kResidual) await(c);
    float squares = 0, sum = 0;
#pragma unroll 1
    for (int first = c.tid; first < kPadded; first += kConsumers * kBatch) {
      float batch[kBatch];
      if constexpr (Reader::kResidual) {
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          const int column = first + i * kConsumers;
          batch[i] = column < S::kColumns ? rounded<Element>(c.shared.residual[column]) : 0.0f;
        }
      } else {
        const int before = part_of<S>(mine.begin) * S::kColumns;
        auto words = word_poll<Element, kBatch>(page_copy(c, in.page), [first, before](int i) {
          const int column = first + i * kConsumers;
          return column < S::kColumns ? before + column : -1;
        });
        poll_all(c, words);
#pragma unroll
        for (int i = 0; i < kBatch; ++i) batch[i] = words.value(i);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int column = first + i * kConsumers;
        if (column >= kPadded) break;
        float x = batch[i];
        sum += x;
        if constexpr (Reader::kNorm) {
          squares += x * x;
          if (column < S::kColumns) {
            const float weight = load_weight(in.weight, column);
            x = rounded<Element>(x * (Reader::kUnitOffset ? 1.0f + weight : weight));
          }
        }
        store_activation<Element>(&c.shared.vector[column], x);
      }
    }
    if constexpr (Reader::kNorm) {
#pragma unroll
      for (int offset = 16; offset; offset >>= 1) squares += __shfl_xor_sync(~0u, squares, offset);
      if (c.lane == 0) c.shared.squares[c.norms & 1][c.warp] = squares;
    }
    if constexpr (Reader::kCentred) centre_vector<S>(c, in, sum);
    consumer_barrier();
    lap(c, Did::kExchangeWait);
  }
  end_reading<S>(c);
#pragma unroll 1
  for (int first = 0; first < tiles; first += kTilesPerFlush) {
    const int in_flush = min(kTilesPerFlush, tiles - first);
#pragma unroll 1
    for (int i = 0; i < in_flush; ++i) {
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
            const auto activation = [&](int column) {
              column += first_column;
              return column < S::kColumns ? load_activation<Element>(&c.shared.vector[column])
                                          : 0.0f;
            };
            if constexpr (W::kFloats) {
              sum += dot32<W>(block, c.lane, activation);
            } else {
              sum += multiply_quarter<W>(block, c.lane, activation);
            }
          } else {
            sum += dot8<WeightElement, Element>(
                block + c.lane * (W::kBlockBytes / 32),
                &c.shared.vector[first_column + (c.lane & 3) * 8]);
          }
        }
        release(c, c.slot, 1);
        advance_slot(c.slot, c.phase);
      }
      keep_partial(c, c.warp, i, sum);
    }
    flush_tiles<AllWarps<S>>(c, in, mine, first, in_flush, finish);
  }
  if (Reader::kNorm && (tiles > 0 || S::kEmpty)) ++c.norms;
  hand_over<S>(c, tiles > 0 || S::kEmpty);
}

}  // namespace amk
